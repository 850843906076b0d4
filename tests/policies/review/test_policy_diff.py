"""Who may do what, before and after: told statement by statement, and refused unless a declaration asks for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policies.documents import fill, split
from policies.review.policy_diff import PolicyChange
from policies.review.review import Verdict
from tests.policies.example import ACCOUNT, REGION, VALUES
from tests.policies.review.cases import BOATS, DESIRED, TRUST, rights, role
from tests.policies.review.planning import FLIGHTS, PLANES, change, documents, plan, reviewed, stays

ROLE = "aws_iam_role.tableflow"
NAME = "frazil-dev-ingest"


def statement(**parts: Any) -> dict[str, Any]:
    return {"Sid": "Read", "Effect": "Allow", "Action": ["s3:GetObject"], "Resource": ["arn:aws:s3:::a/*"], **parts}


def bucket(*statements: Any) -> dict[str, Any]:
    return {"bucket": "b", "policy": json.dumps({"Version": "2012-10-17", "Statement": list(statements)})}


def changed(before: Any, after: Any, **more: Any) -> tuple[PolicyChange, ...]:
    return reviewed(plan(change("aws_s3_bucket_policy.b", "update", before, after, **more))).policies


@pytest.mark.parametrize(
    ("after", "what", "lines"),
    [
        (statement(Action=["s3:GetObject", "s3:PutObject"]), "changed", ("Action gains s3:PutObject",)),
        (
            statement(Resource=["arn:aws:s3:::b/*"]),
            "changed",
            ("Resource gains arn:aws:s3:::b/*", "Resource loses arn:aws:s3:::a/*"),
        ),
        (statement(Effect="Deny"), "changed", ("Effect gains Deny", "Effect loses Allow")),
        (statement(Principal={"AWS": "*"}), "changed", ("Principal is new: AWS:*",)),
        (
            statement(Condition={"StringEquals": {"k": ["v"]}}),
            "changed",
            ("Condition StringEquals k is new: v",),
        ),
        (
            statement(Sid="Other", Action="s3:ListBucket"),
            "added",
            ("Action s3:ListBucket", "Resource arn:aws:s3:::a/*", "no condition"),
        ),
    ],
)
def test_a_statement_is_told_by_what_changes_in_it(after: dict[str, Any], what: str, lines: tuple[str, ...]) -> None:
    [policy] = changed(bucket(statement()), bucket(after))
    told = next(each for each in policy.statements if each.what == what)
    assert told.lines == lines


def test_a_condition_is_told_by_its_keys() -> None:
    before, after = (statement(Condition={"StringLike": {"s3:prefix": values}}) for values in (["a", "b"], ["b", "c"]))
    [policy] = changed(bucket(before), bucket(after))
    assert policy.statements[0].lines == (
        "Condition StringLike s3:prefix gains c",
        "Condition StringLike s3:prefix loses a",
    )


def test_another_name_order_or_spelling_changes_nothing() -> None:
    one, two = statement(), statement(Sid="Two", Action="s3:ListBucket")
    again = [{**two, "Sid": "B"}, {**one, "Action": "s3:GetObject", "Sid": "A"}]
    assert changed(bucket(one, two), bucket(*again)) == ()


@pytest.mark.parametrize("how", ["unknown", "sensitive", "no JSON"])
def test_a_policy_that_cannot_be_read_is_a_danger(how: str) -> None:
    after: dict[str, Any] = {
        "name": "x",
        "assume_role_policy": "{" if how == "no JSON" else json.dumps({"Statement": []}),
    }
    one = change(ROLE, "update", role(TRUST), after)
    if how == "unknown":
        del after["assume_role_policy"]
        one["change"]["after_unknown"] = {"assume_role_policy": True}
    if how == "sensitive":
        one["change"]["after_sensitive"] = {"assume_role_policy": True}
    review = reviewed(plan(one))
    assert [(danger.rule, danger.resource) for danger in review.dangers] == [("policy_widened", ROLE)]
    assert review.verdict is Verdict.REFUSED


# ── Rights of a role, in parts ──────────────────────────────────────────────────────────────────
def parts(*tables: str, limit: int) -> list[dict[str, Any]]:
    whole = json.loads(rights(*tables)["policy"])
    return [
        {"name": f"{NAME}-{number}", "policy": json.dumps(part)} for number, part in enumerate(split(whole, limit), 1)
    ]


def in_parts(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The changes of managed policies that become others, more or fewer."""
    made = []
    for index in range(max(len(before), len(after))):
        was, will = (side[index] if index < len(side) else None for side in (before, after))
        address = f"aws_iam_policy.rights-{index + 1}"
        verb = "create" if was is None else "delete" if will is None else "update"
        made.append(stays(address, was) if was == will else change(address, verb, was, will))
    return made


@pytest.mark.parametrize(("old", "new"), [(1500, 6144), (6144, 1500), (1500, 1800)])
def test_moving_rights_from_one_part_to_another_widens_nothing(old: int, new: int) -> None:
    review = reviewed(plan(*in_parts(parts("nyc.flights", limit=old), parts("nyc.flights", limit=new))))
    assert (review.dangers, review.policies) == ((), ())


def test_rights_of_tables_that_the_change_declares_are_expected() -> None:
    moved = in_parts(parts("nyc.flights", limit=1500), parts("nyc.flights", "sea.boats", limit=1500))
    review = reviewed(plan(documents([FLIGHTS], [FLIGHTS, BOATS]), *moved))
    assert review.verdict is Verdict.CHANGES
    assert review.expected
    [policy] = review.policies
    assert policy.argument == f"all policies of {NAME}"


@pytest.mark.parametrize(
    "more",
    [
        statement(Action=["s3:PutObject"], Resource=["arn:aws:s3:::frazil-dev-tables/lake/nyc.db/planes/*"]),
        statement(Action=["s3:PutObject"], Resource=["arn:aws:s3:::frazil-dev-tables/lake/sea.db/*"]),
        statement(Action=["s3:PutObject"], Resource=["arn:aws:s3:::frazil-dev-tables/*"]),
        statement(
            Action=["glue:DeleteTable"], Resource=["arn:aws:glue:eu-central-1:123456789012:table/sea/boats_of_others"]
        ),
        statement(Action=["iam:PassRole"], Resource=["*"]),
    ],
    ids=lambda each: str(each["Resource"][0])[-24:],
)
def test_more_than_what_is_declared_is_refused(more: dict[str, Any]) -> None:
    before, after = rights("nyc.flights"), rights("nyc.flights", "sea.boats")
    wide = json.loads(after["policy"])
    wide["Statement"].append({**more, "Sid": "More"})
    made = change("aws_iam_policy.ingest", "update", before, {**after, "policy": json.dumps(wide)})
    review = reviewed(plan(documents([FLIGHTS], [FLIGHTS, BOATS]), made))
    assert review.verdict is Verdict.REFUSED


def moving(wanted: str, *given: str) -> list[dict[str, Any]]:
    """The changes of a job that moves to the application `wanted`, whose role and scheduler then know the `given` ones."""

    def rights_on(*applications: str) -> tuple[dict[str, Any], dict[str, Any]]:
        where = {"account": ACCOUNT, "region": REGION, "applications": applications}
        trust = {"name": NAME, "assume_role_policy": json.dumps(fill("job_trust", where))}
        scheduler = fill("scheduler", {**where, "job_roles": VALUES["job_roles"], "functions": VALUES["functions"]})
        return trust, {"name": "frazil-dev-scheduler-1", "policy": json.dumps(scheduler)}

    held = [
        {"key": "desired/ingest.json", "content": json.dumps({**DESIRED, "application": each})}
        for each in ("00f1", wanted)
    ]
    (old_trust, old_rights), (new_trust, new_rights) = rights_on("00f1"), rights_on(*given)
    return [
        change("aws_s3_object.desired", "update", *held),
        change("aws_iam_role.ingest", "update", old_trust, new_trust),
        change("aws_iam_policy.scheduler-1", "update", old_rights, new_rights),
    ]


def test_rights_on_the_application_to_which_runs_move_are_expected() -> None:
    review = reviewed(plan(*moving("00f2", "00f2", "00f1")))
    assert [each.rule for each in review.dangers] == []
    assert review.expected


@pytest.mark.parametrize(("wanted", "given"), [("00f1", ("00f1", "00f2")), ("00f2", ("00f1", "00f2", "00f3"))])
def test_rights_on_another_application_are_refused(wanted: str, given: tuple[str, ...]) -> None:
    found = {each.resource for each in reviewed(plan(*moving(wanted, *given))).dangers if each.rule == "policy_widened"}
    assert found == {"aws_iam_role.ingest", "aws_iam_policy.scheduler-1"}


def test_lake_formations_grants_on_a_new_database_are_expected_and_on_others_not() -> None:
    def grant(database: str) -> dict[str, Any]:
        place = {"table": [{"database_name": database, "wildcard": True}]}
        role = f"arn:aws:iam::{ACCOUNT}:role/{NAME}"
        values = {"principal": role, "permissions": ["ALTER"], **place}
        return change(f"aws_lakeformation_permissions.{database}", "create", None, values)

    review = reviewed(plan(documents([FLIGHTS], [FLIGHTS, BOATS]), grant("sea"), grant("nyc")))
    assert [(each.rule, each.resource) for each in review.dangers] == [
        ("policy_widened", "aws_lakeformation_permissions.nyc")
    ]
    assert [finding.resource for finding in review.expected] == ["aws_lakeformation_permissions.sea"]


def test_tables_that_were_declared_before_explain_no_new_right() -> None:
    made = change("aws_iam_policy.ingest", "update", rights("nyc.flights"), rights("nyc.flights", "nyc.planes"))
    assert reviewed(plan(documents([FLIGHTS, PLANES], [FLIGHTS, PLANES]), made)).verdict is Verdict.REFUSED


def test_a_further_policy_for_a_role_that_stands_is_refused_and_for_a_new_role_is_not() -> None:
    wide = {"name": f"{NAME}-2", "policy": json.dumps({"Statement": [statement(Resource="arn:aws:s3:::other/*")]})}
    made = change("aws_iam_policy.rights-2", "create", None, wide)
    stands = stays("aws_iam_role.ingest", {"name": NAME, "assume_role_policy": "{}"})
    assert [each.rule for each in reviewed(plan(stands, made)).dangers] == ["policy_widened"]
    new = change("aws_iam_role.ingest", "create", None, {"name": NAME, "assume_role_policy": "{}"})
    assert reviewed(plan(new, made)).dangers == ()


def test_a_policy_of_others_that_is_attached_is_refused() -> None:
    arn = "arn:aws:iam::aws:policy/AdministratorAccess"
    made = change("aws_iam_role_policy_attachment.x", "create", None, {"role": NAME, "policy_arn": arn})
    [danger] = reviewed(plan(made)).dangers
    assert (danger.rule, danger.resource) == ("policy_widened", "aws_iam_role_policy_attachment.x")
    assert arn in danger.what
