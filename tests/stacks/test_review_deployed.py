"""Reviews of the environment `local` as it is deployed to stand-ins: what a person would read before each change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from policies.review.markdown.page import marker
from tests.support.standin import Terraform
from tests.support.standin_cloud import CLICK, Cloud, cloud

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(1800)]

WIDER = CLICK.replace("]}", ',{"name":"user","type":"string","default":""}]}')
STACKS = ("foundation", "confluent", "ingestion")
MORE = """
from frazil.declaration import SchemaEvolution
pipelines[0] = Pipeline(
    topic=Topic("flights", value=AVRO), table=Table("nyc.flights", schema_evolution=SchemaEvolution.FREEZE)
)
pipelines.append(Pipeline(topic=Topic("weather", value=AVRO), table=Table("sky.weather")))
"""


@pytest.fixture(scope="module")
def deployed(root: Path, tmp_path_factory: pytest.TempPathFactory, terraform: Terraform) -> Iterator[Cloud]:
    with cloud(root, tmp_path_factory.mktemp("reviewed"), terraform) as made:
        made.declare()
        made.run("confluent", "validate")  # skips where providers cannot be had
        yield made


def reviewed(cloud: Cloud, *arguments: str, **variables: str) -> tuple[int, str, str]:
    """How `python -m stacks.workflow.review local` ends, what it says, and what it complains of."""
    told: Mapping[str, str] = {
        **os.environ,
        **cloud.terraform.settings,
        **cloud.settings,
        "PYTHONPATH": f"{cloud.root}{os.pathsep}{cloud.root / 'jobs'}",
        "TMPDIR": str(cloud.folder),
        "FRAZIL_PIPELINES": str(cloud.folder / "pipelines.py"),
        "FRAZIL_RELEASE": str(cloud.folder / "release.json"),
        "FRAZIL_DEPLOYED": str(cloud.folder / "deployed"),
        **variables,
    }
    command = [sys.executable, "-m", "stacks.workflow.review", "local", *arguments]
    done = subprocess.run(command, cwd=cloud.folder, env=told, capture_output=True, text=True, timeout=600, check=False)
    assert not list(cloud.folder.glob("frazil-review-*"))
    return done.returncode, done.stdout, done.stderr


def test_in_an_empty_account_what_cannot_be_planned_yet_is_refused_and_named(deployed: Cloud) -> None:
    status, out, err = reviewed(deployed)
    assert (status, err) == (1, "")
    assert all(f"- **`local-{stack}`**: It is not reviewed" in out for stack in ("confluent", "ingestion"))
    assert out.count("`not_reviewed`") == 2


def test_what_stands_as_it_is_declared_has_nothing_to_tell(deployed: Cloud) -> None:
    for what in STACKS:
        deployed.apply(what)
    status, out, err = reviewed(deployed)
    assert (status, err) == (0, "")
    assert out.startswith(f"{marker('local')}\n## Review of `local`: **nothing changes**")


def test_a_change_is_told_with_what_becomes_of_data_and_no_secret(deployed: Cloud) -> None:
    secrets = [key["secret"] for key in deployed.organization["api_key"].values()]
    assert len(secrets) == 5
    deployed.declare(partitions=8, schema=WIDER)
    more = deployed.folder / "more.py"
    more.write_text((deployed.folder / "pipelines.py").read_text() + MORE)
    form = deployed.folder / "form.json"
    status, out, err = reviewed(deployed, "--form", str(form), FRAZIL_PIPELINES=str(more))
    assert (status, err) == (4, ""), out
    assert "| `flights` | `nyc.flights` | from now on |" in out
    assert "| `weather` | `sky.weather` | new |" in out
    [topic] = [
        each
        for each in json.loads(form.read_text())["stacks"]["local-confluent"]["resources"]
        if each["address"].startswith("confluent_kafka_topic.")
    ]
    assert topic["arguments"]["partitions_count"] == {"before": 6, "after": 8, "unknown": False}
    [total] = [line for line in out.splitlines() if line.startswith("| **total** |")]
    assert "+" in total
    assert not [secret for secret in secrets if secret in out + form.read_text()]


def test_with_both_keys_the_review_says_what_would_be_lost(deployed: Cloud) -> None:
    deployed.declare(partitions=3)
    status, out, _ = reviewed(deployed, FRAZIL_DESTROY_DATA="local")
    assert status == 1
    assert "`partitions_lowered`\n  - Affects: flights, 6 partitions; used by: flights (nyc.flights).\n" in out
    assert "`data_lost`" not in out
