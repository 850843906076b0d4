"""IAM bounds a policy's size; a role of many tables gets several."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from policies.documents import MANAGED_LIMIT, CannotFill, characters, fill, split
from tests.policies.example import PLACES, VALUES, policy


def many_tables(count: int) -> dict[str, Any]:
    places = dataclasses.replace(PLACES, tables=[f"shop.a_table_with_a_long_name_{number}" for number in range(count)])
    chosen = {
        key: VALUES[key]
        for key in (
            "artifact_bucket",
            "artifact_prefixes",
            "proof_prefix",
            "key",
            "secrets",
            "log_bucket",
            "log_prefix",
            "log_group",
        )
    }
    return fill("ingest_job", places.values("ingest_job", **chosen))


def each_condition(condition: dict[str, Any]) -> list[str]:
    """A condition for each combination of its values."""
    found: list[dict[str, str]] = [{}]
    for operator, keys in condition.items():
        for key, values in keys.items():
            several = values if isinstance(values, list) else [values]
            found = [{**one, f"{operator} {key}": value} for one in found for value in several]
    return [json.dumps(one, sort_keys=True) for one in found]


def granted(*documents: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {
        (action, resource, condition)
        for document in documents
        for statement in document["Statement"]
        for condition in each_condition(statement.get("Condition", {}))
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
        for resource in ([statement["Resource"]] if isinstance(statement["Resource"], str) else statement["Resource"])
    }


def test_a_small_policy_stays_one() -> None:
    assert split(policy("reader")) == (policy("reader"),)


@pytest.mark.parametrize("count", [40, 60, 300])
def test_parts_fit_and_allow_the_same(count: int) -> None:
    whole = many_tables(count)
    parts = split(whole, MANAGED_LIMIT)
    assert len(parts) > 1
    assert all(characters(part) <= MANAGED_LIMIT for part in parts)
    assert granted(*parts) == granted(whole)


def test_sids_are_unique_within_a_part() -> None:
    for part in split(many_tables(60)):
        sids = [statement["Sid"] for statement in part["Statement"]]
        assert len(set(sids)) == len(sids)


@pytest.mark.parametrize("name", ["table_bucket", "confluent_trust"])
def test_a_bucket_policy_and_a_trust_stay_whole(name: str) -> None:
    with pytest.raises(CannotFill, match="a policy that names principals cannot be split"):
        split(policy(name))


def test_a_limit_that_nothing_fits_is_told() -> None:
    with pytest.raises(CannotFill, match="does not fit"):
        split(policy("reader"), 100)
