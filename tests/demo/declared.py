"""The declarations of the first deployment, and their change. The demo edits files of a checkout, as a user does."""

from __future__ import annotations

import re
from pathlib import Path

from packaging.version import Version

from frazil.cli.demo.topics import flights

PIPELINES, TOPICS, DEPLOYMENTS = (Path("stacks", f"{name}.py") for name in ("pipelines", "topics", "deployments"))
SCHEMA = Path("stacks", "flights.avsc")

_PIPELINES = '''"""The pipelines of the demonstration."""

from frazil.declaration import KeyFormat, Pipeline, SchemaEvolution, Table, Topic, Upsert, ValueFormat

flights = Pipeline(
    topic=Topic("flights", value_format=ValueFormat.AVRO),
    table=Table(
        "nyc.flights",
        partition_by=("months(time_hour)",),
        sort_by=("time_hour",),
        schema_evolution=SchemaEvolution.FREEZE,
    ),
)

planes = Pipeline(
    topic=Topic("planes", value_format=ValueFormat.PROTOBUF),
    table=Table("nyc.planes"),
)

fleet = Pipeline(
    topic=Topic("fleet", value_format=ValueFormat.PROTOBUF, key_format=KeyFormat.TEXT),
    table=Table("nyc.fleet"),
    write=Upsert(),
)

pipelines = [flights, planes, fleet]
'''
_WEATHER = """weather = Pipeline(
    topic=Topic("weather", value_format=ValueFormat.JSON_SCHEMA),
    table=Table("nyc.weather", partition_by=("months(time_hour)",), sort_by=("time_hour",)),
)

pipelines = [flights, planes, fleet, weather]
"""
_TOPICS = '''"""The topics of the demonstration."""

from infra.managed_topic import ManagedTopic, SchemaFormat, ValueSchema

topics = [
    ManagedTopic("flights", partitions=6, schema=ValueSchema(format=SchemaFormat.AVRO, file="flights.avsc")),
    ManagedTopic("planes", partitions=1),
    ManagedTopic("fleet", partitions=2),
]
'''
_LOCAL = """
# Nothing starts a schedule here, so one streaming run follows the topics. Idle for a minute, the application stops, and can go.
local = replace(local, runs=replace(SMALL, mode=Mode.FOLLOW, freshness_minutes=10, idle_minutes=1))
DEPLOYMENTS["local"] = local
"""


def declare(checkout: Path) -> None:
    """Declare the first deployment: three topics with pipelines, of which one takes no new columns and one is a state; one streaming run."""
    (checkout / PIPELINES).write_text(_PIPELINES)
    (checkout / TOPICS).write_text(_TOPICS)
    (checkout / SCHEMA).write_text(flights().versions[0].text)
    # Read first: a file that is not there is an error, and is not created.
    deployments = (checkout / DEPLOYMENTS).read_text()
    (checkout / DEPLOYMENTS).write_text(deployments + _LOCAL)


def change(checkout: Path) -> None:
    """Declare the change: flights takes and has a new column, weather is a new topic and pipeline, the version is new."""
    _replace(checkout / PIPELINES, "schema_evolution=SchemaEvolution.FREEZE", "schema_evolution=SchemaEvolution.WIDEN")
    _replace(checkout / PIPELINES, "pipelines = [flights, planes, fleet]\n", _WEATHER)
    _replace(
        checkout / TOPICS,
        '    ManagedTopic("planes"',
        '    ManagedTopic("weather", partitions=3),\n    ManagedTopic("planes"',
    )
    (checkout / SCHEMA).write_text(flights().versions[1].text)
    project = checkout / "pyproject.toml"
    text = project.read_text()
    [version] = re.findall(r'^version = "(.+)"$', text, re.MULTILINE)
    _replace(project, f'version = "{version}"', f'version = "{next_version(version)}"')


def next_version(version: str) -> str:
    """Return the version after one: `0.2.0` after `0.2.0.dev0`, `0.2.1` after that."""
    of = Version(version)
    return of.base_version if of.is_prerelease else f"{of.major}.{of.minor}.{of.micro + 1}"


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    if text.count(old) != 1:
        raise ValueError(f"{file}: {old!r} is there {text.count(old)} times, and not once")
    file.write_text(text.replace(old, new))
