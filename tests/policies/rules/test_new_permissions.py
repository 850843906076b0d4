"""Plans that let more in, or protect less."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policies.rules.new_permissions import policy_widened, protection_removed
from tests.policies.example import CONFLUENT, policy
from tests.policies.review.planning import change, plan
from tests.policies.reviewing import told

ROLE = "aws_iam_role.confluent"
TRUST = policy("confluent_trust")


def widened(before: Any, after: Any, name: str = "assume_role_policy", **more: Any) -> list[tuple[str, str]]:
    was, will = ({name: json.dumps(each)} if each is not None else {} for each in (before, after))
    return told(policy_widened, plan(change(ROLE, more.pop("verb", "update"), was, will, **more)))


def edited(**statement: Any) -> dict[str, Any]:
    """Confluent's trust with its first statement changed; None removes an element."""
    first = {key: value for key, value in {**TRUST["Statement"][0], **statement}.items() if value is not None}
    return {**TRUST, "Statement": [first, TRUST["Statement"][1]]}


def test_the_same_trust_passes_in_any_order() -> None:
    assert widened(TRUST, {**TRUST, "Statement": TRUST["Statement"][::-1]}) == []
    assert widened(TRUST, edited(Sid="Other")) == []


def test_a_trust_that_lets_fewer_in_passes() -> None:
    assert widened(TRUST, {**TRUST, "Statement": TRUST["Statement"][:1]}) == []


def test_a_trust_without_its_external_id_is_told() -> None:
    [(address, what)] = widened(TRUST, edited(Condition=None))
    assert address == ROLE
    assert what.startswith(
        f"assume_role_policy now allows sts:AssumeRole for {CONFLUENT}, without a condition; it was if "
    )


def started(*applications: str, **more: Any) -> dict[str, Any]:
    """The trust of a job's role, for these applications."""
    return {**policy("job_trust", applications=applications), **more}


def test_a_condition_with_fewer_values_allows_no_more() -> None:
    """The removal of a former application narrows the trust of each job."""
    assert widened(started("b", "a"), started("b")) == []
    assert widened(started("b", "a"), started("a", "b")) == []
    assert len(widened(started("b"), started("b", "a"))) == 1
    assert len(widened(started("b"), started("a"))) == 1


@pytest.mark.parametrize(
    ("before", "after", "is_wider"),
    [
        ({"StringEquals": {"k": "a"}}, {"StringEquals": {"k": "a", "l": "b"}}, False),
        ({"StringEquals": {"k": "a"}}, {"StringEquals": {"k": "a"}, "Bool": {"l": "true"}}, False),
        ({"StringEquals": {"k": ["a", "b"]}}, {"StringEqualsIfExists": {"k": "a"}}, True),
        ({"StringNotEquals": {"k": "a"}}, {"StringNotEquals": {"k": ["a", "b"]}}, False),
        ({"StringNotEquals": {"k": ["a", "b"]}}, {"StringNotEquals": {"k": "a"}}, True),
        ({"Null": {"k": "false"}}, {"Null": {"k": "true"}}, True),
        ({"Null": {"k": "false"}}, {"StringEquals": {"k": "a"}}, True),
        ({}, {"StringEquals": {"k": "a"}}, False),
        ({"StringEquals": {"k": "a"}}, {}, True),
    ],
)
def test_a_condition_is_compared_by_what_it_lets_through(before: Any, after: Any, is_wider: bool) -> None:
    one, other = (
        {"Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Condition": each}]} for each in (before, after)
    )
    assert bool(widened(one, other, "policy")) is is_wider


@pytest.mark.parametrize(
    "more",
    [
        {"Principal": {"AWS": [CONFLUENT, "arn:aws:iam::999999999999:root"]}},
        {"Action": ["sts:AssumeRole", "sts:AssumeRoleWithWebIdentity"]},
        {"Principal": "*"},
    ],
    ids=str,
)
def test_a_trust_that_lets_more_in_is_told(more: dict[str, Any]) -> None:
    findings = widened(TRUST, edited(**more))
    assert len(findings) == 1
    assert "now allows" in findings[0][1]


def test_a_new_roles_trust_widens_nothing() -> None:
    assert widened(None, TRUST, verb="create") == []
    assert widened(None, None, verb="create", unknown={"assume_role_policy": True}) == []


def test_a_bucket_that_no_longer_denies_is_told() -> None:
    before = policy("table_bucket")
    after = {**before, "Statement": [each for each in before["Statement"] if each["Sid"] != "RefuseWithoutTls"]}
    findings = widened(before, after, "policy")
    assert len(findings) == 2  # the bucket, and its objects
    assert all("no longer denies s3:*" in what for _, what in findings)
    assert widened(after, before, "policy") == []


def test_a_role_that_may_do_more_is_told() -> None:
    before, after = policy("reader"), policy("ingest_job")
    told_of = {what for _, what in widened(before, after, "policy")}
    assert any("now allows s3:DeleteObject" in what for what in told_of)
    assert not any(
        "s3:GetObject on arn:aws:s3:::frazil-dev-tables" in what and "now allows" in what
        for what in told_of
        if "orders/*" in what
    )


# ── Lake Formation ──────────────────────────────────────────────────────────────────────────────
READER = "arn:aws:iam::111111111111:role/data/frazil-dev-reader"


def grant(*permissions: str, role: str = READER, **place: Any) -> dict[str, Any]:
    where = place or {"table": [{"database_name": "nyc", "wildcard": True, "name": ""}]}
    return {"principal": role, "permissions": list(permissions), "permissions_with_grant_option": [], **where}


def granted(before: Any, after: Any, *others: dict[str, Any], verb: str = "update") -> list[str]:
    changed = change("aws_lakeformation_permissions.g", verb, before, after)
    return [what for _, what in told(policy_widened, plan(changed, *others))]


def test_a_grant_to_a_role_that_exists_is_told() -> None:
    where = f"table (database_name nyc, wildcard True) to {READER}"
    assert granted(None, grant("SELECT"), verb="create") == [f"Lake Formation now grants SELECT on {where}"]
    assert granted(grant("SELECT"), grant("DESCRIBE", "SELECT"), verb="replace") == [
        f"Lake Formation now grants DESCRIBE on {where}"
    ]
    other = grant("SELECT", table=[{"database_name": "hr", "wildcard": True}])
    assert "database_name hr" in granted(grant("SELECT"), other, verb="replace")[0]
    passed_on = {**grant("SELECT"), "permissions_with_grant_option": ["SELECT"]}
    assert "with the right to pass it on" in granted(grant("SELECT"), passed_on)[0]


def test_a_grant_that_shrinks_or_goes_widens_nothing() -> None:
    assert granted(grant("DESCRIBE", "SELECT"), grant("SELECT")) == []
    assert granted(grant("SELECT"), None, verb="delete") == []


def test_a_grant_to_a_role_of_the_same_plan_widens_nothing() -> None:
    role = change("aws_iam_role.reader", "create", None, {"name": "frazil-dev-reader"})
    assert granted(None, grant("SELECT"), role, verb="create") == []
    other = change("aws_iam_role.reader", "create", None, {"name": "frazil-dev"})
    assert len(granted(None, grant("SELECT"), other, verb="create")) == 1


# ── Protection ──────────────────────────────────────────────────────────────────────────────────
def test_a_public_access_block_that_opens_is_told() -> None:
    was, will = (
        {"block_public_acls": True, "restrict_public_buckets": True},
        {"block_public_acls": True, "restrict_public_buckets": False},
    )
    opened = change("aws_s3_bucket_public_access_block.x", "update", was, will)
    assert told(protection_removed, plan(opened)) == [
        ("aws_s3_bucket_public_access_block.x", "restrict_public_buckets is turned off")
    ]
    closed = change("aws_s3_bucket_public_access_block.x", "update", will, was)
    assert told(protection_removed, plan(closed)) == []


@pytest.mark.parametrize(
    "kind",
    ["public_access_block", "policy", "server_side_encryption_configuration", "ownership_controls", "versioning"],
)
def test_what_guards_a_bucket_is_not_removed(kind: str) -> None:
    address = f"aws_s3_bucket_{kind}.x"
    assert told(protection_removed, plan(change(address, "delete", {"bucket": "b"}))) == [(address, "it is removed")]
    assert told(protection_removed, plan(change(address, "create", None, {"bucket": "b"}))) == []


def test_versions_stay_on() -> None:
    was, will = ({"versioning_configuration": [{"status": status}]} for status in ("Enabled", "DecisionRequired"))
    assert len(told(protection_removed, plan(change("aws_s3_bucket_versioning.x", "update", was, will)))) == 1
    assert told(protection_removed, plan(change("aws_s3_bucket_versioning.x", "update", will, was))) == []


def test_a_clusters_deletion_protection_stays_on() -> None:
    was, will = {"deletion_protection": True}, {"deletion_protection": None}
    assert len(told(protection_removed, plan(change("confluent_kafka_cluster.x", "update", was, will)))) == 1


@pytest.mark.parametrize("after", [None, "arn:aws:iam::123456789012:policy/other"])
def test_a_roles_boundary_stays(after: str | None) -> None:
    bounded = {"permissions_boundary": "arn:aws:iam::123456789012:policy/boundary-frazil-dev"}
    lost = change("aws_iam_role.x", "update", bounded, {"permissions_boundary": after})
    assert len(told(protection_removed, plan(lost))) == 1
    assert told(protection_removed, plan(change("aws_iam_role.x", "update", {}, bounded))) == []
