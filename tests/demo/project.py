"""The project of the demonstration: what `frazil init` writes, with the edits of its user.

One deployment is edited: account, processors, who deploys, and that its clouds are stand-ins on this machine.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from frazil.cli.demo.topics import flights
from stacks.spec.deployments import DEPLOYMENTS

NAME = "lake"
"""The folder that `frazil init` makes."""
DEV = replace(DEPLOYMENTS["dev"], account=DEPLOYMENTS["local"].account)
"""The deployment, as far as the demonstration needs to know it: its names, account and region."""
PIPELINES, INFRA, SCHEMA = "pipelines.py", "infra_app.py", "flights.avsc"
RETIRED = "planes"
"""The pipeline that the change removes, with its topic, whose records stay."""

_PIPELINES = '''"""The pipelines and topics of the demonstration."""

from frazil_deploy.infra.confluent.managed_topic import ManagedTopic, SchemaFormat, ValueSchema

from frazil.declaration import Pipeline, SchemaEvolution, Table, Topic, Upsert

flights = Pipeline(
    topic=Topic("flights", value="avro"),
    table=Table(
        "nyc.flights",
        partition_by=("months(time_hour)",),
        sort_by=("time_hour",),
        schema_evolution=SchemaEvolution.FREEZE,
    ),
)

planes = Pipeline(
    topic=Topic("planes", value="protobuf"),
    table=Table("nyc.planes"),
)

fleet = Pipeline(
    topic=Topic("fleet", value="protobuf", key="text"),
    table=Table("nyc.fleet"),
    write=Upsert(),
)

pipelines = [flights, planes, fleet]

topics = [
    ManagedTopic("flights", partitions=6, schema=ValueSchema(format=SchemaFormat.AVRO, file="flights.avsc")),
    ManagedTopic("planes", partitions=1),
    ManagedTopic("fleet", partitions=2),
]
'''
_PLANES = """planes = Pipeline(
    topic=Topic("planes", value="protobuf"),
    table=Table("nyc.planes"),
)
"""
_WEATHER = """weather = Pipeline(
    topic=Topic("weather", value="json_schema"),
    table=Table("nyc.weather", partition_by=("months(time_hour)",), sort_by=("time_hour",)),
)
"""
_RETIRED = """
retired = [
    Retired("confluent_kafka_topic", "planes", reason="its producer has ended"),
]
"""
_DEV = 'confluent=Confluent(kind="basic"), runs=SMALL, is_disposable=True),'
_EDITED = f"""confluent=Confluent(kind="basic"), is_disposable=True, is_local=True, emr=Emr(architecture="X86_64"),
                   access=Access(deployers=("arn:aws:iam::{DEV.account}:role/ci",)), monitoring=Monitoring(log_days=1),
                   # One streaming run follows the topics. Idle for a minute, the application ends, and can be deleted.
                   runs=replace(SMALL, mode="follow", freshness_minutes=10, idle_minutes=1)),"""
_RUNS = "freshness_minutes=10, idle_minutes=1)),"
_MOVED = """freshness_minutes=10, idle_minutes=1,
                                capacity=replace(SMALL.capacity, cores=16, memory_gb=64))),"""
_EMR = 'emr=Emr(architecture="X86_64"),'
_TWO_APPLICATIONS = """emr=Emr(architecture="X86_64", application="b", former=(
                       Application(capacity=SMALL.capacity, idle_minutes=1, architecture="X86_64"),)),"""


def declare(project: Path) -> None:
    """Edit what `frazil init` wrote: three topics with pipelines, one frozen and one a state; one deployment."""
    _replace(project / INFRA, '"111111111111"', f'"{DEV.account}"')
    _replace(project / INFRA, _DEV, _EDITED)
    _replace(
        project / INFRA,
        "import SMALL, Confluent, Deployment",
        "import SMALL, Access, Confluent, Deployment, Emr, Monitoring",
    )
    _replace(
        project / INFRA, "\nfrom frazil_deploy.infra", "\nfrom dataclasses import replace\n\nfrom frazil_deploy.infra"
    )
    (project / PIPELINES).write_text(_PIPELINES)
    (project / SCHEMA).write_text(flights().versions[0].text)
    shutil.rmtree(project / "tests")  # they test the pipeline that init wrote


def change(project: Path) -> None:
    """Declare the change: flights takes and has a new column, weather is new, planes is retired."""
    file = project / PIPELINES
    _replace(file, "schema_evolution=SchemaEvolution.FREEZE", "schema_evolution=SchemaEvolution.WIDEN")
    _replace(file, _PLANES, _WEATHER)
    _replace(file, "pipelines = [flights, planes, fleet]\n", "pipelines = [flights, fleet, weather]\n")
    _replace(file, 'ManagedTopic("planes", partitions=1)', 'ManagedTopic("weather", partitions=3)')
    imported = "from frazil_deploy.infra.confluent.managed_topic import ManagedTopic, SchemaFormat, ValueSchema\n"
    _replace(file, imported, f"{imported}from frazil_deploy.stacks.workflow.deployed import Retired\n")
    file.write_text(file.read_text() + _RETIRED)
    (project / SCHEMA).write_text(flights().versions[1].text)


def number(project: Path, generation: int) -> None:
    """Declare the number of the next generation, which `cdktf deploy` does not derive."""
    _replace(project / INFRA, "replace(SMALL, ", f"replace(SMALL, generation={generation}, ")


def move(project: Path) -> None:
    """Declare a larger application, and keep the former one."""
    _replace(project / INFRA, _RUNS, _MOVED)
    _replace(project / INFRA, _EMR, _TWO_APPLICATIONS)
    _replace(project / INFRA, "import SMALL, Access, Confluent", "import SMALL, Access, Application, Confluent")


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    if text.count(old) != 1:
        raise ValueError(f"{file}: {old!r} is there {text.count(old)} times, and not once")
    file.write_text(text.replace(old, new))
