"""The file of what holds data: nothing leaves it by accident."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from frazil.declaration import InvalidDeclaration
from frazil.errors import FrazilError
from policies.resources import HOLDS_DATA
from stacks.spec.deployments import DEPLOYMENTS
from stacks.workflow.deployed import DOCUMENTS_KEPT, Deployed, Retired, file_of, forgotten, held, read, write
from tests.declaration.problems_of import problems_of

EMPTY = Deployed(environment="dev")
NAMED = ("bucket", "name", "display_name", "topic_name", "subject_name")


def stacks(*kinds: str) -> dict[str, Any]:
    """A stack that declares an object `thing` of each type, and something that holds nothing."""
    told = {kind: {"thing_1": dict.fromkeys(NAMED, "thing")} for kind in kinds}
    return {"dev-x": {"resource": {"aws_iam_role": {"role": {"name": "role"}}, **told}}}


def recorded(*kinds: str) -> Deployed:
    return EMPTY.after(held(stacks(*kinds)), (), ())


def refused(before: Deployed, *kinds: str, retired: tuple[Retired, ...] = ()) -> list[str]:
    with pytest.raises(InvalidDeclaration) as raised:
        before.after(held(stacks(*kinds)), (), retired)
    return [str(each) for each in raised.value.problems]


@pytest.mark.parametrize("kind", HOLDS_DATA)
def test_what_holds_data_and_is_no_longer_declared_is_refused_with_both_remedies(kind: str) -> None:
    [told] = refused(recorded(kind))
    assert f"{kind} thing" in told
    assert HOLDS_DATA[kind] in told
    assert f'Declare it again, or write Retired("{kind}", "thing", reason="…")' in told


@pytest.mark.parametrize("kind", HOLDS_DATA)
def test_what_is_retired_is_forgotten_and_not_deleted(kind: str) -> None:
    after = recorded(kind).after((), (), [Retired(kind, "thing", reason="its team has left")])
    assert after.objects == ()
    assert [(each.name, each.reason) for each in after.retired] == [("thing", "its team has left")]
    assert forgotten(after, "dev-x", {}) == [{"from": f"{kind}.thing_1", "lifecycle": {"destroy": False}}]
    assert forgotten(after, "dev-y", {}) == []


def test_the_entry_of_a_retired_object_may_go_once_it_is_in_the_file() -> None:
    [kind, *_] = HOLDS_DATA
    after = recorded(kind).after((), (), [Retired(kind, "thing", reason="x")])
    assert after.after((), (), ()) == after


def test_what_is_declared_again_is_neither_retired_nor_forgotten() -> None:
    kind = "confluent_kafka_topic"
    gone = recorded(kind).after((), (), [Retired(kind, "thing", reason="x")])
    back = gone.after(held(stacks(kind)), (), ())
    assert back == recorded(kind)
    assert forgotten(gone, "dev-x", stacks(kind)["dev-x"]["resource"]) == []


def test_what_is_declared_is_not_retired_as_well() -> None:
    kind = "confluent_kafka_topic"
    [told] = refused(recorded(kind), kind, retired=(Retired(kind, "thing", reason="x"),))
    assert "it is both declared and retired" in told


def test_all_problems_are_told_at_once_and_one_retirement_excuses_one_object() -> None:
    before = recorded("confluent_kafka_topic", "aws_s3_bucket", "aws_kms_key")
    told = refused(before, retired=(Retired("aws_kms_key", "thing", reason="x"),))
    assert [each.split(":")[1].split()[0] for each in told] == ["aws_s3_bucket", "confluent_kafka_topic"]


def test_with_both_keys_anything_may_go() -> None:
    after = recorded("aws_s3_bucket").after((), (), (), is_open=True)
    assert (after.objects, after.retired) == ((), ())


def test_a_retired_bucket_keeps_what_makes_it_private() -> None:
    content = stacks("aws_s3_bucket")
    for other, bucket in (("thing_2", "thing_1"), ("others", "another")):
        policy = {"bucket": f"${{aws_s3_bucket.{bucket}.id}}"}
        content["dev-x"]["resource"].setdefault("aws_s3_bucket_policy", {})[other] = policy
    before = EMPTY.after(held(content), (), ())
    after = before.after((), (), [Retired("aws_s3_bucket", "thing", reason="x")])
    told = [each["from"] for each in forgotten(after, "dev-x", {})]
    assert told == ["aws_s3_bucket.thing_1", "aws_s3_bucket_policy.thing_2"]


def test_documents_of_before_are_forgotten_and_those_of_now_are_not() -> None:
    first = EMPTY.after((), ["dev-x/aws_s3_object.a"], ())
    second = first.after((), ["dev-x/aws_s3_object.b"], ())
    declared = {"aws_s3_object": {"b": {}}}
    assert [each["from"] for each in forgotten(second, "dev-x", declared)] == ["aws_s3_object.a"]
    assert second.after((), ["dev-x/aws_s3_object.a"], ()).documents == (
        "dev-x/aws_s3_object.b",
        "dev-x/aws_s3_object.a",
    )


def test_the_file_does_not_grow_without_end() -> None:
    deployed = EMPTY
    for number in range(DOCUMENTS_KEPT + 5):
        deployed = deployed.after((), [f"dev-x/aws_s3_object.{number}"], ())
    assert len(deployed.documents) == DOCUMENTS_KEPT
    assert deployed.documents[-1].endswith(f".{DOCUMENTS_KEPT + 4}")


def test_what_was_written_is_read_and_the_same_content_is_the_same_bytes(tmp_path: Path) -> None:
    file = tmp_path / "deployed" / "dev.json"
    assert read(file, "dev") is None
    kinds = ("confluent_kafka_topic", "aws_s3_bucket")
    deployed = recorded(*kinds).after((), ["a/b"], [Retired(kind, "thing", reason="x") for kind in kinds])
    write(file, deployed)
    written = file.stat().st_mtime_ns
    assert read(file, "dev") == deployed
    assert recorded(*kinds).written() == recorded(*reversed(kinds)).written()
    write(file, deployed)
    assert file.stat().st_mtime_ns == written
    assert [each.name for each in file.parent.iterdir()] == ["dev.json"]


def test_a_file_that_cannot_be_understood_is_an_error_that_names_it(tmp_path: Path) -> None:
    file = tmp_path / "dev.json"
    write(file, Deployed(environment="prod"))
    with pytest.raises(FrazilError, match="belongs to environment prod") as raised:
        read(file, "dev")
    assert str(file) in str(raised.value)
    file.write_text(json.dumps({"version": 1, "environment": "dev", "objects": [{"type": "x"}]}))
    with pytest.raises(InvalidDeclaration, match="the field is missing"):
        read(file, "dev")


def test_a_retirement_says_what_and_why() -> None:
    assert list(problems_of(lambda: Retired("aws_iam_role", "x", reason="y"))) == ["retired.type"]
    assert list(problems_of(lambda: Retired("aws_s3_bucket", "", reason=" "))) == ["retired.name", "retired.reason"]


def test_stand_ins_keep_their_file_beside_their_state() -> None:
    assert file_of(DEPLOYMENTS["dev"], "") == Path("deployed/dev.json")
    assert file_of(DEPLOYMENTS["local"], "") == Path(".frazil/deployed/local.json")
    assert file_of(DEPLOYMENTS["local"], "/x") == Path("/x/local.json")
