"""The environment `local`, deployed to stand-ins: made, changed, found changed by others, and destroyed with two keys only.

The tests follow each other: the last ones destroy what the others have looked at.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.policies.test_deployers_calls import RECORDED
from tests.support.standin_cloud import CLICK, LOCAL, Cloud

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(1800)]

STACKS = ("foundation", "confluent", "ingestion")
WIDER = CLICK.replace("]}", ',{"name":"user","type":"string","default":""}]}')
UNFIT = WIDER.replace("]}", ',{"name":"place","type":"string"}]}')
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def deployed(founded: Cloud) -> Cloud:
    """All stacks, deployed in order."""
    founded.declare()
    for what in STACKS:
        founded.apply(what)
    return founded


@pytest.mark.parametrize("what", STACKS)
def test_a_second_plan_is_empty(deployed: Cloud, what: str) -> None:
    code, said = deployed.plan(what)
    assert code == 0, said


def test_topics_and_schemas_are_really_there(deployed: Cloud) -> None:
    assert deployed.partitions() == {"flights": 6, "clicks": 3, "views": 2}
    assert deployed.setting("flights", "retention.ms") == str(168 * HOUR_MS)
    assert len(deployed.schemas("clicks-value")) == 1


def test_no_plan_and_no_output_shows_a_secret(deployed: Cloud) -> None:
    secrets = [key["secret"] for key in deployed.organization["api_key"].values()]
    assert len(secrets) == 5
    for what in STACKS:
        shown = (
            deployed.run(what, "plan").stdout
            + deployed.terraform.run(
                deployed.folder / "cdktf.out" / "stacks" / f"local-{what}", "show", "-no-color", **deployed.settings
            ).stdout
        )
        assert not [secret for secret in secrets if secret in shown], what


WAITS_FOR_ALL = "confluent_role_binding.reader_subjects-in-effect_210AC7AB"
"""The binding that opens nothing: it is made again so that the provider waits until all bindings are in effect."""


def documents(deployed: Cloud) -> set[str]:
    told = deployed.aws("s3").list_objects_v2(Bucket=LOCAL.names.bucket("artifacts"), Prefix="documents/")
    return {each["Key"] for each in told["Contents"]}


def test_another_pipeline_replaces_nothing_and_deletes_no_document_that_a_run_may_read(deployed: Cloud) -> None:
    before = documents(deployed)
    deployed.declare(
        more='pipelines.insert(0, Pipeline(topic=Topic("views", value=AVRO), table=Table("nyc.aaa"), name="aaa"))\n'
    )
    for what in STACKS:
        said = deployed.apply(what)
        replaced = re.findall(r"# (\S+) must be replaced", said)
        assert replaced == ([WAITS_FOR_ALL] if what == "confluent" else []), said
        assert f", {len(replaced)} destroyed" in said, said
    assert len(documents(deployed) - before) == 1
    assert before < documents(deployed)
    for what in STACKS:
        assert deployed.plan(what)[0] == 0
    deployed.declare()
    for what in STACKS:
        deployed.apply(what)
    assert before < documents(deployed)


FIRST = "Application(architecture=Architecture.X86_64, capacity=SMALL.capacity)"
LARGER = "replace(SMALL, capacity=Capacity(cores=16, memory_gb=64, disk_gb=400))"
MOVES = (
    # where the runs go, the application there, and the one that they leave
    (f"runs={LARGER}, ", 'application="b"', FIRST),
    (
        "",
        "",
        'Application(name="b", architecture=Architecture.X86_64, capacity=Capacity(cores=16, memory_gb=64, disk_gb=400))',
    ),
)


@pytest.mark.parametrize(("runs", "to", "former"), MOVES, ids=["to", "fro"])
def test_runs_move_to_a_second_application_and_the_former_one_is_deleted_after_its_stop(
    deployed: Cloud, runs: str, to: str, former: str, tmp_path: Path
) -> None:
    emr, s3 = deployed.aws("emr-serverless"), deployed.aws("s3")

    def desired() -> str:
        held = s3.get_object(Bucket=LOCAL.names.bucket("artifacts"), Key="desired/ingest.json")
        return str(json.loads(held["Body"].read())["application"])

    old = desired()
    emr.start_application(applicationId=old)  # as its first run does
    deployed.declare(deployment=f"{runs}emr=replace(local.emr, former=({former},), {to})")
    for what, counts in (("foundation", "+1 ~0 -0 ±0"), ("ingestion", " -0 ±0")):
        code, said = deployed.deploy(what)
        assert (code, counts in said) == (0, True), said  # no danger
    new = desired()
    assert new != old
    trust = deployed.aws("iam").get_role(RoleName=LOCAL.names.role("ingest"))["Role"]["AssumeRolePolicyDocument"]
    assert old in json.dumps(trust)
    file = tmp_path / "outputs.json"
    for what in STACKS:
        code, said = deployed.deploy(what, f"--outputs={file}")
        assert (code, said) == (0, f"local-{what}: nothing changes\n")
    assert json.loads(file.read_text())["local-ingestion"]["former_applications"] == [old]

    deployed.declare(deployment=f"{runs}emr=replace(local.emr, {to})")
    code, said = deployed.deploy("foundation")
    assert (code, "run frazil deploy move-application before this one changes" in said) == (1, True), said
    accepted = "--accept-danger=it is stopped"
    code, said = deployed.deploy("foundation", accepted)
    assert (code, "CREATED, STOPPED" in said) == (6, True), f"AWS deletes no application that is started: {said}"
    emr.stop_application(applicationId=old)
    code, said = deployed.deploy("foundation", accepted)
    assert (code, "+0 ~0 -1 ±0" in said) == (0, True), said
    code, said = deployed.deploy("ingestion", accepted)
    assert code == 0, said
    assert desired() == new
    trust = deployed.aws("iam").get_role(RoleName=LOCAL.names.role("ingest"))["Role"]["AssumeRolePolicyDocument"]
    assert old not in json.dumps(trust)
    for what in STACKS:
        code, said = deployed.deploy(what)
        assert (code, said) == (0, f"local-{what}: nothing changes\n")


def test_turning_both_keys_replaces_nothing(deployed: Cloud) -> None:
    """A cluster that changes must not make what hangs on its registry unknown: that would replace keys, bindings, schemas."""
    deployed.declare(destroy="local")
    code, said = deployed.plan("confluent")
    deployed.declare()
    assert code == 2
    assert "~ deletion_protection" in said
    assert "0 to add, 2 to change, 0 to destroy" in said  # the cluster, and how long its keys can be recovered


def test_partitions_are_added_in_place(deployed: Cloud) -> None:
    deployed.declare(partitions=8)
    code, said = deployed.plan("confluent")
    assert code == 2
    assert "0 to add, 1 to change, 0 to destroy" in said
    deployed.apply("confluent")
    assert deployed.partitions()["flights"] == 8
    assert deployed.plan("confluent")[0] == 0


def test_fewer_partitions_are_refused(deployed: Cloud) -> None:
    deployed.declare(partitions=2)
    code, said = deployed.plan("confluent")
    deployed.declare(partitions=8)
    assert code == 1
    assert "Instance cannot be destroyed" in said


def test_a_schema_that_fits_is_a_new_version_and_one_that_does_not_fails_the_plan(deployed: Cloud) -> None:
    deployed.declare(partitions=8, schema=WIDER)
    deployed.apply("confluent")
    assert len(deployed.schemas("clicks-value")) == 2
    deployed.declare(partitions=8, schema=UNFIT)
    code, said = deployed.plan("confluent")
    deployed.declare(partitions=8, schema=WIDER)
    assert code == 1
    assert "does not fit the newest version" in said
    assert deployed.plan("confluent")[0] == 0


def test_a_setting_that_somebody_changed_is_seen_and_set_back(deployed: Cloud) -> None:
    entry = ConfigEntry("retention.ms", "1000", incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ResourceType.TOPIC, "flights", incremental_configs=[entry])
    deployed.kafka.incremental_alter_configs([changed])[changed].result()
    code, said = deployed.plan("confluent")
    assert code == 2
    assert "1 to change" in said
    deployed.apply("confluent")
    assert deployed.setting("flights", "retention.ms") == str(168 * HOUR_MS)


def test_a_topic_that_somebody_deleted_is_seen_and_made_again(deployed: Cloud) -> None:
    deployed.delete_topics("flights")
    code, said = deployed.plan("confluent")
    assert code == 2
    assert "1 to add, 0 to change, 0 to destroy" in said
    deployed.apply("confluent")
    assert deployed.partitions()["flights"] == 8


@pytest.mark.parametrize("what", ["foundation", "confluent"])
def test_with_one_key_what_holds_data_is_not_destroyed(deployed: Cloud, what: str) -> None:
    assert LOCAL.is_disposable
    ended = deployed.run(what, "destroy", "-auto-approve")
    assert ended.returncode == 1
    assert "Instance cannot be destroyed" in ended.stderr
    assert deployed.plan(what)[0] == 0


def test_with_both_keys_all_of_it_goes(deployed: Cloud) -> None:
    s3, bucket = deployed.aws("s3"), LOCAL.names.bucket("tables")
    for name in ("1", "2"):
        s3.put_object(Bucket=bucket, Key=f"lake/nyc.db/flights/data/{name}", Body=b"rows")
    s3.delete_object(Bucket=bucket, Key="lake/nyc.db/flights/data/2")  # what is deleted is still there, as a version
    deployed.declare(partitions=8, schema=WIDER, destroy="local")
    for what in STACKS:
        deployed.apply(what)
    for what in reversed(STACKS):
        ended = deployed.run(what, "destroy", "-auto-approve")
        assert ended.returncode == 0, ended.stderr
    assert deployed.partitions() == {"views": 2}
    assert deployed.schemas("clicks-value") == []
    assert not any(deployed.organization.values())
    prefix = LOCAL.names.prefix
    buckets = [each["Name"] for each in deployed.aws("s3").list_buckets()["Buckets"]]
    assert not [name for name in buckets if name.startswith(prefix)]
    assert not [role for role in deployed.aws("iam").list_roles()["Roles"] if role["RoleName"].startswith(prefix)]
    assert not deployed.aws("secretsmanager").list_secrets()["SecretList"]
    assert not deployed.aws("scheduler").list_schedules()["Schedules"]


def test_no_more_was_asked_of_aws_than_is_recorded(deployed: Cloud) -> None:
    """The recorded calls are what the deployer's role is held against."""
    assert deployed.asked <= set(RECORDED), json.dumps(sorted(deployed.asked))
