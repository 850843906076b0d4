"""A role's permissions are those of all policies that are attached to it, whoever made the policy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policies.review.review import Verdict
from tests.policies.review.cases import BOATS, rights
from tests.policies.review.planning import FLIGHTS, change, documents, plan, reviewed, stays
from tests.policies.reviewing import stack

READER, MAINTAIN = "frazil-dev-reader", "frazil-dev-maintain"
ATTACHED = "aws_iam_role_policy_attachment"


def arn(policy: str) -> str:
    return f"arn:aws:iam::123456789012:policy/{policy}"


def allows(name: str, *actions: str, on: str = "nyc.db/flights") -> dict[str, Any]:
    statement = {
        "Sid": "Tables",
        "Effect": "Allow",
        "Action": list(actions),
        "Resource": [f"arn:aws:s3:::frazil-dev-tables/lake/{on}/*"],
    }
    return {"name": name, "arn": arn(name), "policy": json.dumps({"Statement": [statement]})}


def role(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "assume_role_policy": "{}", **more}


def attached(to: str, policy: str) -> dict[str, Any]:
    return {"role": to, "policy_arn": arn(policy)}


READS, DELETES = allows(f"{READER}-1", "s3:GetObject"), allows(f"{MAINTAIN}-1", "s3:DeleteObject")
DEPLOYED = (
    stays("aws_iam_role.reader", role(READER)),
    stays("aws_iam_policy.reader-1", READS),
    stays(f"{ATTACHED}.reader-1", attached(READER, f"{READER}-1")),
    stays("aws_iam_role.maintain", role(MAINTAIN)),
    stays("aws_iam_policy.maintain-1", DELETES),
    stays(f"{ATTACHED}.maintain-1", attached(MAINTAIN, f"{MAINTAIN}-1")),
)


def dangers(*changes: dict[str, Any], synthesised: Any = None) -> list[tuple[str, str, str]]:
    found = reviewed(plan(*DEPLOYED, *changes), synthesised=synthesised).dangers
    return [(each.rule, each.resource, each.what) for each in found]


def only(*changes: dict[str, Any], synthesised: Any = None) -> tuple[str, str]:
    """Where the one danger is, and what it is; its rule is that of new permissions."""
    [(rule, where, what)] = dangers(*changes, synthesised=synthesised)
    assert rule == "policy_widened"
    return where, what


# ── A policy that exists ────────────────────────────────────────────────────────────────────────
def test_a_role_that_gets_the_policy_of_another_role_is_told_with_what_it_may_do() -> None:
    made = change(f"{ATTACHED}.more", "create", None, attached(READER, f"{MAINTAIN}-1"))
    where, what = only(made)
    assert where == f"{ATTACHED}.more"
    assert what.startswith(
        f"policy of {READER} now allows s3:DeleteObject on arn:aws:s3:::frazil-dev-tables/lake/nyc.db"
    )
    found = reviewed(plan(*DEPLOYED, made))
    assert found.verdict is Verdict.REFUSED
    [shown] = found.policies
    assert (shown.argument, [each.what for each in shown.statements]) == (f"all policies of {READER}", ["added"])


def test_an_attachment_that_turns_to_another_role_or_policy_is_told() -> None:
    [*others, last] = DEPLOYED
    turned = change(
        last["address"],
        "replace",
        attached(MAINTAIN, f"{MAINTAIN}-1"),
        attached(READER, f"{MAINTAIN}-1"),
        forced=[["role"]],
    )
    found = reviewed(plan(*others, turned))
    assert [(each.rule, each.resource) for each in found.dangers if each.rule == "policy_widened"] == [
        ("policy_widened", last["address"])
    ]
    other = change(
        f"{ATTACHED}.reader-1", "replace", attached(READER, f"{READER}-1"), attached(READER, f"{MAINTAIN}-1")
    )
    kept = [each for each in DEPLOYED if each["address"] != other["address"]]
    assert "policy_widened" in {each.rule for each in reviewed(plan(*kept, other)).dangers}


def test_a_new_role_that_gets_a_policy_that_exists_is_told() -> None:
    made = (
        change("aws_iam_role.guest", "create", None, role("frazil-dev-guest")),
        change(f"{ATTACHED}.guest", "create", None, attached("frazil-dev-guest", f"{MAINTAIN}-1")),
    )
    where, what = only(*made)
    assert (where, "s3:DeleteObject" in what) == (f"{ATTACHED}.guest", True)


def test_a_policy_of_another_role_is_not_explained_by_new_tables() -> None:
    """A reader that may delete the files of new tables is more than a declaration asks for."""
    deletes = allows(f"{MAINTAIN}-payments-1", "s3:DeleteObject", on="sea.db/boats")
    new = (
        change("aws_iam_role.payments", "create", None, role(f"{MAINTAIN}-payments")),
        change("aws_iam_policy.payments-1", "create", None, deletes),
        change(f"{ATTACHED}.payments-1", "create", None, attached(f"{MAINTAIN}-payments", f"{MAINTAIN}-payments-1")),
    )
    tables = documents([FLIGHTS], [FLIGHTS, BOATS])
    assert dangers(tables, *new) == []
    also = change(f"{ATTACHED}.more", "create", None, attached(READER, f"{MAINTAIN}-payments-1"))
    where, what = only(tables, *new, also)
    assert (where, READER in what) == (f"{ATTACHED}.more", True)


def test_a_policy_of_two_roles_that_allows_more_is_told_of_both() -> None:
    shared = stays(f"{ATTACHED}.more", attached(READER, f"{MAINTAIN}-1"))
    wide = allows(f"{MAINTAIN}-1", "s3:DeleteObject", "s3:PutObject")
    rest = [each for each in DEPLOYED if each["address"] != "aws_iam_policy.maintain-1"]
    found = reviewed(plan(*rest, shared, change("aws_iam_policy.maintain-1", "update", DELETES, wide)))
    assert {each.what.partition(" now allows")[0] for each in found.dangers} == {
        f"policy of {READER}",
        f"policy of {MAINTAIN}",
    }


@pytest.mark.parametrize("before", [None, role(READER, inline_policy=[], managed_policy_arns=[arn(f"{READER}-1")])])
def test_a_policy_inside_a_role_or_in_a_list_of_it_is_told(before: dict[str, Any] | None) -> None:
    inline = {"name": "x", "policy": DELETES["policy"]}
    [_, *others] = DEPLOYED
    for gained in ({"inline_policy": [inline]}, {"managed_policy_arns": [arn(f"{MAINTAIN}-1")]}):
        after = {**(before or role(READER)), **gained}
        changed = change("aws_iam_role.reader", "update" if before else "create", before, after)
        [danger] = reviewed(plan(*others, changed)).dangers
        assert (danger.rule, danger.resource) == ("policy_widened", "aws_iam_role.reader")
        assert "in a way that no stack of Frazil does" in danger.what
    assert dangers(change("aws_iam_role.reader", "update", before, {**(before or {}), "description": "d"})) == []


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("aws_iam_role_policy", {"role": READER, "policy": DELETES["policy"]}),
        ("aws_iam_policy_attachment", {"roles": [READER], "policy_arn": arn(f"{MAINTAIN}-1")}),
        ("aws_iam_user_policy_attachment", {"user": "anna", "policy_arn": arn(f"{MAINTAIN}-1")}),
        ("aws_iam_group_policy_attachment", {"group": "staff", "policy_arn": arn(f"{MAINTAIN}-1")}),
        ("aws_iam_user_policy", {"user": "anna", "policy": DELETES["policy"]}),
        ("aws_iam_group_policy", {"group": "staff", "policy": DELETES["policy"]}),
    ],
)
def test_what_no_stack_of_frazil_has_is_told(kind: str, values: dict[str, Any]) -> None:
    assert only(change(f"{kind}.x", "create", None, values))[0] == f"{kind}.x"
    assert dangers(change(f"{kind}.x", "delete", values, None)) == []


# ── What is known only later ────────────────────────────────────────────────────────────────────
def declared(**arguments: str) -> dict[str, Any]:
    """The stack that declares `more`, the attachment, with these expressions."""
    return stack(**{f"{ATTACHED}__more": {name: f"${{{each}}}" for name, each in arguments.items()}})


LATER = change(f"{ATTACHED}.more", "create", None, {"role": READER}, unknown={"policy_arn": True})


def test_an_attached_policy_that_is_known_only_later_is_told_unless_its_resource_is_evident() -> None:
    where, what = only(LATER)
    assert where == f"{ATTACHED}.more"
    assert what == "it gets a policy that is known only after it is applied, so its permissions cannot be reviewed"
    for unclear in (
        "data.aws_iam_policy.x.arn",
        'replace(aws_iam_policy.reader-1.arn, "reader", "maintain")',
        "aws_iam_policy.elsewhere.arn",
        "local.arn",
    ):
        assert only(LATER, synthesised=declared(policy_arn=unclear))[1] == what


def test_an_evident_policy_is_compared_like_one_whose_arn_is_known() -> None:
    of_maintain = declared(policy_arn="aws_iam_policy.maintain-1.arn")
    assert "now allows s3:DeleteObject" in only(LATER, synthesised=of_maintain)[1]
    own = allows(f"{READER}-2", "s3:GetObject")
    del own["arn"]
    new = change("aws_iam_policy.reader-2", "create", None, own, unknown={"arn": True})
    of_reader = declared(policy_arn="aws_iam_policy.reader-2.arn")
    assert dangers(new, LATER, synthesised=of_reader) == [], "what the reader may do already, in another part"


def test_a_role_that_is_known_only_later_is_told_unless_it_is_evident() -> None:
    later = change(f"{ATTACHED}.more", "create", None, {"policy_arn": arn(f"{MAINTAIN}-1")}, unknown={"role": True})
    assert "a role that is known only after" in only(later)[1]
    evident = declared(role="aws_iam_role.reader.name")
    assert "now allows s3:DeleteObject" in only(later, synthesised=evident)[1]


def test_roles_of_two_stacks_with_the_same_addresses_are_compared_apart() -> None:
    """The stacks of two groups have the same addresses, and one role may not be taken for the other."""

    def of(group: str, *tables: str) -> list[dict[str, Any]]:
        name = f"frazil-dev-ingest-{group}"
        before, after = (
            {"name": f"{name}-1", "arn": arn(f"{name}-1"), "policy": rights(*each)["policy"]}
            for each in (("nyc.flights",), ("nyc.flights", *tables))
        )
        return [
            stays("aws_iam_role.ingest", role(name)),
            change("aws_iam_policy.ingest-1", "update", before, after)
            if tables
            else stays("aws_iam_policy.ingest-1", before),
            stays(f"{ATTACHED}.ingest-1", attached(name, f"{name}-1")),
        ]

    tables = documents([FLIGHTS], [FLIGHTS, BOATS])
    expected = reviewed(plan(tables, *of("a", "sea.boats")), plan(*of("b")))
    assert (expected.dangers, bool(expected.expected)) == ((), True)
    found = reviewed(plan(tables, *of("a", "sea.boats")), plan(*of("b", "hr.salaries")))
    assert {each.rule for each in found.dangers} == {"policy_widened"}
    found = reviewed(plan(tables, *of("a", "hr.salaries")), plan(*of("b", "sea.boats")))
    assert {each.rule for each in found.dangers} == {"policy_widened"}
