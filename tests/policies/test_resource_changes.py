"""What Terraform will do, read from its JSON."""

from __future__ import annotations

from typing import Any

import pytest

from policies.resource_changes import Verb, changes_of
from policies.review.plan.masking import cleaned
from tests.policies.review.planning import change, plan


def told(*changes: dict[str, Any], **more: Any) -> list[tuple[str, Verb]]:
    found = changes_of(cleaned(plan(*changes, **more)))
    return [(each.address, each.verb) for each in found if each.verb is not Verb.STAY]


@pytest.mark.parametrize(
    ("actions", "verb"),
    [
        (["create"], Verb.CREATE),
        (["update"], Verb.UPDATE),
        (["delete"], Verb.DELETE),
        (["delete", "create"], Verb.REPLACE),
        (["create", "delete"], Verb.REPLACE),
        (["forget"], Verb.FORGET),
        (["create", "forget"], Verb.FORGET),
    ],
)
def test_actions_are_verbs(actions: list[str], verb: Verb) -> None:
    one = change("a.b", "update", {"x": 1}, {"x": 2})
    one["change"]["actions"] = actions
    assert told(one) == [("a.b", verb)]


@pytest.mark.parametrize("actions", [["no-op"], ["read"]])
def test_what_stays_or_is_only_read_is_not_told(actions: list[str]) -> None:
    one = change("a.b", "update", {"x": 1}, {"x": 1})
    one["change"]["actions"] = actions
    assert told(one) == []


def test_data_sources_are_not_told() -> None:
    assert told(change("a.b", "create", None, {"x": 1}) | {"mode": "data"}) == []


def test_what_moves_or_is_imported_without_a_change_is_told_as_such() -> None:
    moved = change("a.new", "stay", {"x": 1}, {"x": 1}, previous_address="a.old")
    imported = change("a.i", "stay", {"x": 1}, {"x": 1}, importing="id-1")
    assert told(moved, imported) == [("a.new", Verb.MOVE), ("a.i", Verb.IMPORT)]


def test_what_forces_a_replacement_is_told_with_its_place() -> None:
    one = change("a.b", "replace", {"x": 1}, {"x": 2}, forced=[["byob_aws", 0, "bucket_name"]])
    [found] = changes_of(cleaned(plan(one)))
    assert found.forced_by == ("byob_aws[0].bucket_name",)
