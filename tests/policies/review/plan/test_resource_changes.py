"""What Terraform will do, read from its JSON."""

from __future__ import annotations

from typing import Any

import pytest

from policies.review.plan.masking import cleaned
from policies.review.plan.resource_changes import LATER, Difference, Verb, drifted, is_complete, planned
from tests.policies.review.planning import change, plan


def told(*changes: dict[str, Any], **more: Any) -> list[tuple[str, Verb]]:
    return [(each.address, each.verb) for each in planned(cleaned(plan(*changes, **more)), "s")]


def differences(before: Any, after: Any, verb: str = "update", **more: Any) -> tuple[Difference, ...]:
    [one] = planned(cleaned(plan(change("a.b", verb, before, after, **more))), "s")
    return one.differences()


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


def test_what_moves_and_changes_is_told_as_a_change_with_its_former_address() -> None:
    one = change("a.new", "update", {"x": 1}, {"x": 2}, previous_address="a.old")
    [found] = planned(cleaned(plan(one)), "s")
    assert (found.verb, found.moved_from) == (Verb.UPDATE, "a.old")


@pytest.mark.parametrize("nothing", [None, "", [], {}])
@pytest.mark.parametrize("other", [None, "", [], {}])
def test_providers_spell_nothing_in_four_ways(nothing: Any, other: Any) -> None:
    assert differences({"x": nothing, "y": 1}, {"x": other, "y": 2}) == (Difference("y", 1, 2),)


@pytest.mark.parametrize(("before", "after"), [(None, 0), (None, False), ("", "0"), ([], [0])])
def test_zero_and_false_are_not_nothing(before: Any, after: Any) -> None:
    assert len(differences({"x": before}, {"x": after})) == 1


def test_a_difference_is_told_at_its_place() -> None:
    before = {"config": {"retention.ms": "1", "same": "x"}, "byob_aws": [{"bucket_name": "a"}], "tags": ["a"]}
    after = {"config": {"retention.ms": "2", "same": "x"}, "byob_aws": [{"bucket_name": "b"}], "tags": ["a", "b"]}
    assert [each.path for each in differences(before, after)] == [
        "byob_aws[0].bucket_name",
        "config.retention.ms",
        "tags",
    ]


def test_json_is_compared_by_its_parts_and_not_by_its_spelling() -> None:
    assert differences({"p": '{"a": 1, "b": 2}', "x": 1}, {"p": '{"b":2,"a":1}', "x": 2}) == (Difference("x", 1, 2),)
    assert differences({"p": '{"a": 1}'}, {"p": '{"a": 3}'}) == (Difference("p.a", 1, 3),)


def test_what_is_known_later_is_told_as_that() -> None:
    assert differences({"a": "x", "b": {"c": "y"}}, {"b": {}}, unknown={"a": True, "b": {"c": True}}) == (
        Difference("a", "x", LATER),
        Difference("b.c", "y", LATER),
    )


def test_of_a_replacement_only_what_forces_it_is_told_as_known_later() -> None:
    found = differences(
        {"id": "i", "name": "a"}, {"name": "b"}, "replace", unknown={"id": True, "name": True}, forced=[["name"]]
    )
    assert found == (Difference("name", "a", LATER),)


def test_what_forces_a_replacement_is_told_with_its_place_and_reason() -> None:
    one = change(
        "a.b",
        "replace",
        {"x": 1},
        {"x": 2},
        forced=[["byob_aws", 0, "bucket_name"]],
        action_reason="replace_because_tainted",
    )
    [found] = planned(cleaned(plan(one)), "s")
    assert (found.forced_by, found.why) == (("byob_aws[0].bucket_name",), "it was left half made")


def test_a_reason_that_is_not_known_here_is_told_in_terraforms_words() -> None:
    [found] = planned(cleaned(plan(change("a.b", "delete", {"x": 1}, action_reason="delete_because_of_the_moon"))), "s")
    assert found.why == "delete because of the moon"


def test_drift_is_told_as_far_as_the_plan_depends_on_it_and_deletions_always() -> None:
    made = plan(
        resource_drift=[
            change("a.relevant", "update", {"x": 1, "y": 1}, {"x": 2, "y": 2}),
            change("a.other", "update", {"x": 1}, {"x": 2}),
            change("a.noise", "update", {"x": None}, {"x": {}}),
            change("a.gone", "delete", {"x": 1}),
        ],
        relevant_attributes=[
            {"resource": "a.relevant", "attribute": ["x"]},
            {"resource": "a.noise", "attribute": ["x"]},
        ],
    )
    found = drifted(cleaned(made), "s")
    assert [(change.address, differences) for change, differences in found] == [
        ("a.relevant", (Difference("x", 1, 2),)),
        ("a.gone", ()),
    ]


@pytest.mark.parametrize(
    ("more", "complete"), [({}, True), ({"errored": True}, False), ({"complete": False}, False), ({"errored": False, "complete": True}, True)]
)  # fmt: skip
def test_a_plan_that_ended_early_is_not_whole(more: dict[str, bool], complete: bool) -> None:
    assert is_complete(cleaned({**plan(), **more})) is complete


def test_a_plan_of_an_older_terraform_says_nothing_of_being_whole() -> None:
    made = plan()
    del made["complete"], made["errored"]
    assert is_complete(cleaned(made))
