"""Declarations that disappear: synthesis refuses them, or lets Terraform forget what they declared."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from frazil.declaration import InvalidDeclaration, Pipeline, Table, Topic
from frazil.errors import FrazilError
from frazil.release.manifest import Architecture
from infra.confluent.managed_topic import ManagedTopic
from infra.tf import App
from stacks.spec.deployments import Confluent, Deployment, Emr, dev
from stacks.stacks.compose import compose
from stacks.workflow.app import deployed_before, deployed_groups, guard
from stacks.workflow.deployed import Deployed, Retired, forgotten, write
from tests.stacks.synthesised import (
    AVRO_TEXT,
    EXAMPLE,
    EXAMPLE_TOPICS,
    FLOWING_PIPELINES,
    FLOWING_TOPICS,
    release,
)

EMPTY = Deployed(environment="dev")
ALL_PIPELINES, ALL_TOPICS = (*EXAMPLE, *FLOWING_PIPELINES), (*EXAMPLE_TOPICS, *FLOWING_TOPICS)
TERRAFORM = shutil.which("terraform")


def guarded(
    before: Deployed = EMPTY,
    *,
    deployment: Deployment = dev,
    pipelines: Sequence[Pipeline] = ALL_PIPELINES,
    topics: Sequence[ManagedTopic] = ALL_TOPICS,
    retired: Sequence[Retired] = (),
    is_open: bool = False,
    groups: Collection[str] = (),
    folder: Path | None = None,
) -> tuple[Deployed, dict[str, dict[str, Any]]]:
    """The content of the file after a synthesis, and the JSON of the stacks if there is a folder for it."""
    with TemporaryDirectory() as temporary:
        app = App(outdir=str(folder or temporary))
    told: dict[str, Any] = {
        "text_of": lambda file: AVRO_TEXT,
        "release": release(deployment.emr.architecture),
    }
    stacks = compose(app, deployment, pipelines, topics, former_groups=groups, **told)
    after = guard(stacks, before, retired, is_open=is_open)
    if folder is None:
        return after, {}
    app.synth()
    files = {each.name: each / "cdk.tf.json" for each in (folder / "stacks").iterdir()}
    return after, {name: json.loads(file.read_text()) for name, file in files.items()}


@pytest.fixture(scope="module")
def before() -> Deployed:
    return guarded()[0]


def refused(before: Deployed, **changed: Any) -> set[str]:
    """The objects whose declaration is missed."""
    with pytest.raises(InvalidDeclaration) as raised:
        guarded(before, **changed)
    return {each.path.removeprefix("deployed dev: ") for each in raised.value.problems}


def test_the_same_declarations_change_nothing(before: Deployed) -> None:
    assert guarded(before)[0] == before


def test_a_topic_and_its_schema_do_not_vanish(before: Deployed) -> None:
    assert refused(before, topics=EXAMPLE_TOPICS[:1]) == {
        "confluent_kafka_topic planes",
        "confluent_kafka_topic clicks",
        "confluent_schema clicks-value",
    }


def test_what_tableflow_lands_does_not_vanish_with_its_last_pipeline(before: Deployed) -> None:
    assert refused(before, pipelines=EXAMPLE) == {
        "aws_glue_catalog_database flow",
        f"aws_s3_bucket {dev.names.bucket('tableflow')}",
        "confluent_provider_integration frazil-dev-tableflow",
        "confluent_tableflow_topic clicks",
        "confluent_tableflow_topic views",
    }


def test_a_cluster_does_not_vanish_by_naming_another(before: Deployed) -> None:
    other = replace(dev, confluent=Confluent(environment_id="env-1", cluster_id="lkc-1", is_administered=True))
    assert refused(before, deployment=other) == {
        "confluent_environment frazil-dev",
        "confluent_kafka_cluster frazil-dev",
    }


def test_other_pipelines_do_not_take_the_place_of_ones_own(before: Deployed) -> None:
    """The examples, say, because a variable names the wrong file."""
    others = [Pipeline(topic=Topic("x", value="avro"), table=Table("other.x"))]
    missed = refused(before, pipelines=others, topics=())
    assert {each.split()[0] for each in missed} == {each.type for each in before.objects} - KEPT


def test_with_both_keys_declarations_may_vanish(before: Deployed) -> None:
    after, _ = guarded(before, pipelines=EXAMPLE, topics=EXAMPLE_TOPICS, is_open=True)
    assert len(after.objects) < len(before.objects)


def test_what_is_retired_leaves_the_stacks_and_is_forgotten_by_terraform(before: Deployed, tmp_path: Path) -> None:
    reason = "planes has a new owner"
    retired = [Retired("confluent_kafka_topic", "planes", reason=reason)]
    after, stacks = guarded(before, topics=(ALL_TOPICS[0], *ALL_TOPICS[2:]), retired=retired, folder=tmp_path)
    [gone] = after.retired
    assert (gone.name, gone.reason) == ("planes", reason)
    confluent = stacks["dev-confluent"]
    assert gone.address not in confluent["resource"]["confluent_kafka_topic"]
    assert confluent["removed"] == [{"from": f"confluent_kafka_topic.{gone.address}", "lifecycle": {"destroy": False}}]
    assert "removed" not in stacks["dev-foundation"]


def test_changed_pipelines_delete_no_document_that_a_run_may_read(before: Deployed, tmp_path: Path) -> None:
    after, stacks = guarded(before, pipelines=(*ALL_PIPELINES, ONE_MORE), folder=tmp_path)
    ingestion = stacks["dev-ingestion"]
    objects = {f"aws_s3_object.{name}" for name in ingestion["resource"]["aws_s3_object"]}
    removed = {each["from"] for each in ingestion["removed"]}
    was = {each.partition("/")[2] for each in before.documents}
    assert len(was - objects) == 1, "the environment's document stays, the pipelines' is another"
    assert removed == was - objects
    assert not [each for each in ingestion["removed"] if each["lifecycle"]["destroy"]]
    assert len(after.documents) == 3
    back, _ = guarded(after)
    assert set(back.documents) == set(after.documents)


KEPT = {"aws_kms_key", "aws_secretsmanager_secret", "confluent_environment", "confluent_kafka_cluster"}
"""Whatever is declared, these are."""
ONE_MORE = Pipeline(topic=Topic("more", value="avro"), table=Table("nyc.more"))


@pytest.mark.parametrize(
    "changed",
    [
        {"emr": Emr(architecture=Architecture.X86_64)},
        {"confluent": Confluent(environment_id="env-1", cluster_id="lkc-1", is_administered=True)},
        {"name": "other"},
    ],
    ids=str,
)
def test_whatever_moves_application_or_cluster_makes_another_environment_document(changed: dict[str, Any]) -> None:
    other = replace(dev, **changed)
    documents = [
        {each.partition("/")[2] for each in guarded(Deployed(environment=one.name), deployment=one)[0].documents}
        for one in (dev, other)
    ]
    assert len(documents[0] & documents[1]) == 1, "that of the pipelines is the same"


def test_a_missing_file_is_refused_unless_nothing_is_to_run(tmp_path: Path) -> None:
    file = tmp_path / "dev.json"
    with pytest.raises(FrazilError, match="the file is missing") as raised:
        deployed_before(dev, file, is_first=False)
    assert "FRAZIL_RELEASE=none" in str(raised.value)
    assert deployed_before(dev, file, is_first=True) == EMPTY
    write(file, EMPTY)
    assert deployed_before(dev, file, is_first=False) == EMPTY


@pytest.mark.skipif(TERRAFORM is None, reason="terraform is not installed")
def test_terraform_forgets_and_deletes_nothing(tmp_path: Path) -> None:
    """The block that synthesis writes, run by Terraform on an object that its provider would have to delete."""

    def terraform(*arguments: str) -> str:
        command = [TERRAFORM or "", *arguments, "-input=false", "-no-color"]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    def apply(content: dict[str, Any]) -> str:
        (tmp_path / "cdk.tf.json").write_text(json.dumps(content))
        terraform("init")
        return terraform("apply", "-auto-approve")

    kept, note = tmp_path / "kept", "terraform_data.document"
    destroyed = {"local-exec": {"when": "destroy", "command": f"touch {kept}.deleted"}}
    apply({"resource": {"terraform_data": {"document": {"provisioner": destroyed}}}})
    deployed = EMPTY.after((), [f"dev-x/{note}"], ()).after((), ["dev-x/terraform_data.next"], ())
    declared = {"terraform_data": {"next": {}}}
    said = apply({"removed": forgotten(deployed, "dev-x", declared), "resource": declared})
    assert "1 added, 0 changed, 0 destroyed" in said
    assert not Path(f"{kept}.deleted").exists()


def test_a_group_that_was_deployed_is_known_by_its_documents_and_forgets_them(tmp_path: Path) -> None:
    document = "aws_s3_object.pipelines_object-1"
    listed = tuple(f"dev-{stack}/{document}" for stack in ("ingestion", "ingestion-payments", "ingestion-a-b"))
    before = Deployed(environment="dev", documents=listed)
    assert deployed_groups(before) == {"payments", "a-b"}
    assert deployed_groups(EMPTY) == set()
    after, stacks = guarded(before, groups=deployed_groups(before), folder=tmp_path)
    assert set(listed) < set(after.documents), "so that the next synthesis knows the group, too"
    for name in ("payments", "a-b"):
        assert "resource" not in stacks[f"dev-ingestion-{name}"]
        assert {"from": document, "lifecycle": {"destroy": False}} in stacks[f"dev-ingestion-{name}"]["removed"]
