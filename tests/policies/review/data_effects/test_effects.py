"""What becomes of data: a claim for each kind of change of a declaration."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from frazil.declaration import (
    Append,
    At,
    Changelog,
    Debezium,
    Earliest,
    ErrorMode,
    Isolation,
    Keep,
    Latest,
    Limits,
    MetadataColumns,
    Offsets,
    Order,
    Pipeline,
    Reading,
    Spark,
    Table,
    Tableflow,
    Topic,
    Upsert,
    WriteMode,
)
from frazil.declaration.checks.change_effects import Outcome
from policies.review.data_effects.effects import Effect, effects
from tests.policies.review.cases import BOATS, with_table, with_topic
from tests.policies.review.planning import FLIGHTS, PLANES


def only(before: Pipeline, after: Pipeline) -> Effect:
    [effect] = effects([before], [after])
    return effect


def test_the_same_pipelines_have_no_effect_in_any_order() -> None:
    assert effects([FLIGHTS, PLANES], [PLANES, FLIGHTS]) == ()


def test_a_new_pipeline_makes_its_tables_and_says_where_it_begins() -> None:
    [effect] = effects([FLIGHTS], [FLIGHTS, BOATS])
    assert (effect.outcome, effect.is_dangerous) == (Outcome.MADE, False)
    assert "sea.boats and sea.boats__dead_letters are made from the topic boats, from the next record" in effect.what


def test_a_new_state_that_will_not_be_complete_says_so() -> None:
    state = with_topic(BOATS, key_format="text")
    whole = replace(state, write=Upsert(), start=Earliest(), on_error=ErrorMode.SUSPEND)
    for what, write in (("state", Upsert()), ("history", Changelog())):
        for start in (Latest(), At(datetime(2026, 1, 2, tzinfo=UTC)), Offsets({0: 5})):
            [effect] = effects([], [replace(whole, write=write, start=start)])
            assert effect.what.endswith(
                f"; the table is not the complete {what}: it begins at {start.kind}, later than older keys"
            )
    [effect] = effects([], [replace(whole, on_error=ErrorMode.DEAD_LETTER)])
    assert effect.what.endswith(
        "; with on_error=dead_letter, the row of a key whose last record is rejected is of an earlier record"
    )
    [effect] = effects([], [whole])
    assert ";" not in effect.what


def test_a_pipeline_that_is_gone_leaves_its_table_and_loses_what_comes_later() -> None:
    [effect] = effects([FLIGHTS, PLANES], [FLIGHTS])
    assert (effect.pipeline, effect.outcome, effect.is_dangerous) == ("planes", Outcome.LEFT, True)


def test_another_unit_of_a_declared_column_is_in_the_review() -> None:
    def of(unit: str) -> Pipeline:
        return with_topic(FLIGHTS, value_format="json", columns=("id long", f"time_hour {unit}"))

    [effect] = effects([of("io.debezium.time.Timestamp")], [of("io.debezium.time.MicroTimestamp")])
    assert effect.is_dangerous
    assert "time_hour was io.debezium.time.Timestamp and is read as io.debezium.time.MicroTimestamp" in effect.what


def test_a_pipeline_by_another_name_stops() -> None:
    stopped, left = effects([PLANES], [replace(PLANES, name="aircraft")])
    assert (stopped.outcome, stopped.is_dangerous) == (Outcome.STOPS, True)
    assert "LedgerLost" in stopped.what
    assert (left.outcome, left.is_dangerous) == (Outcome.LEFT, False)


UNCOMMITTED = Reading(isolation=Isolation.READ_UNCOMMITTED)


@pytest.mark.parametrize(
    ("changed", "field", "outcome", "dangerous"),
    [
        (with_topic(FLIGHTS, transactional=True), "topic.transactional", Outcome.FROM_NOW_ON, True),
        (with_topic(FLIGHTS, value_format="json_schema"), "topic.value", Outcome.FROM_NOW_ON, True),
        (replace(FLIGHTS, kafka=UNCOMMITTED), "kafka.isolation", Outcome.FROM_NOW_ON, True),
        (replace(FLIGHTS, on_error=ErrorMode.SKIP), "on_error", Outcome.FROM_NOW_ON, True),
        (replace(FLIGHTS, on_error=ErrorMode.SUSPEND), "on_error", Outcome.FROM_NOW_ON, False),
        (replace(FLIGHTS, max_rejected_percent=100), "max_rejected_percent", Outcome.FROM_NOW_ON, True),
        (replace(FLIGHTS, max_rejected_percent=1), "max_rejected_percent", Outcome.FROM_NOW_ON, False),
        (replace(FLIGHTS, write=Append(on_tombstone="skip")), "write.on_tombstone", Outcome.FROM_NOW_ON, True),
        (replace(FLIGHTS, write=Append(on_tombstone="null_row")), "write.on_tombstone", Outcome.FROM_NOW_ON, False),
        (replace(FLIGHTS, headers=False), "headers", Outcome.FROM_NOW_ON, True),
        (with_table(FLIGHTS, identifier="nyc.trips"), "table.identifier", Outcome.LEFT, True),
        (with_table(FLIGHTS, partition_by=("days(time_hour)",)), "table.partition_by", Outcome.REBUILD, False),
        (with_table(FLIGHTS, metadata_columns=MetadataColumns.STRUCT), "table.metadata_columns", Outcome.STOPS, True),
        (with_table(FLIGHTS, snapshots=Keep(days=5)), "table.snapshots.days", Outcome.UPKEEP, False),
        (replace(FLIGHTS, engine=Spark(limits=Limits(max_bytes=1))), "engine.limits.max_bytes", Outcome.UPKEEP, False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_changed_field_does_what_it_does(changed: Pipeline, field: str, outcome: Outcome, dangerous: bool) -> None:
    effect = only(FLIGHTS, changed)
    assert (effect.changed, effect.outcome, effect.is_dangerous) == (field, outcome, dangerous)
    assert effect.before != effect.after


def test_another_topic_stops_the_pipeline() -> None:
    effect = only(FLIGHTS, replace(with_topic(FLIGHTS, name="other"), name="flights"))
    assert (effect.changed, effect.outcome, effect.is_dangerous) == ("topic.name", Outcome.STOPS, True)


def test_another_engine_leaves_the_table() -> None:
    plain = Pipeline(topic=Topic("clicks", value="avro"), table=Table("flow.clicks"))
    effect = only(plain, replace(plain, engine=Tableflow()))
    assert (effect.outcome, effect.is_dangerous) == (Outcome.LEFT, True)


@pytest.mark.parametrize(
    ("old", "new", "dangerous"), [("text", "json", False), ("json", "text", False), ("text", "bytes", True)]
)
def test_keys_as_text_and_as_json_share_a_column(old: str, new: str, dangerous: bool) -> None:
    effect = only(with_topic(FLIGHTS, key_format=old), with_topic(FLIGHTS, key_format=new))
    assert effect.is_dangerous is dangerous


def test_what_is_dangerous_comes_first() -> None:
    mixed: list[Any] = [with_table(FLIGHTS, snapshots=Keep(days=3), metadata_columns=MetadataColumns.STRUCT), PLANES]
    assert [each.is_dangerous for each in effects([FLIGHTS, PLANES], mixed)] == [True, False]


@pytest.mark.parametrize(
    ("before", "after", "is_dangerous"),
    [(None, "tail", True), ("tail", "year", True), ("tail", ("tail", "year"), True), (("a", "b"), ("b", "a"), False)],
)
def test_another_key_of_a_state_stops_the_pipeline(before: Any, after: Any, is_dangerous: bool) -> None:
    effect = only(*(replace(FLIGHTS, write=Upsert(key=key)) for key in (before, after)))
    assert (effect.changed, effect.outcome, effect.is_dangerous) == ("write.key", Outcome.STOPS, is_dangerous)


STATE = Upsert(order_by="time_hour")


OPTIONS: list[tuple[WriteMode, WriteMode, str, bool, str]] = [
    (STATE, replace(STATE, on_tombstone="soft_delete"), "on_tombstone", False, "marks it as deleted"),
    (replace(STATE, on_tombstone="soft_delete"), STATE, "on_tombstone", True, "marked already stay so"),
    (
        STATE,
        Upsert(order_by=Order("time_hour", remember_deletes="3 days")),
        "order_by.remember_deletes",
        True,
        "brings their rows back",
    ),
    (
        STATE,
        Upsert(order_by=Order("time_hour", remember_deletes="9 days")),
        "order_by.remember_deletes",
        False,
        "not forgotten yet",
    ),
    (STATE, Upsert(order_by=Order(("time_hour", "id"))), "order_by.columns", True, "no table changes its order"),
    (STATE, Upsert(), "order_by", True, "no table changes its order"),
    (Upsert(), Upsert(key="id"), "key", True, "no table changes its key"),
    (Changelog(key="id"), Changelog(key="other"), "key", True, "no table changes its key"),
    (Changelog(), Changelog(order_by="time_hour"), "order_by", True, "only a rebuilt table"),
]
"""Two write modes, the option in which they differ, whether the change is a danger, and a part of what is said of it."""


@pytest.mark.parametrize(
    ("before", "after", "field", "is_dangerous", "said"),
    OPTIONS,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_option_of_a_write_mode_says_what_it_does(
    before: WriteMode, after: WriteMode, field: str, is_dangerous: bool, said: str
) -> None:
    found = effects([replace(FLIGHTS, write=before)], [replace(FLIGHTS, write=after)])
    (effect,) = (each for each in found if each.changed == f"write.{field}")
    assert effect.is_dangerous is is_dangerous
    assert effect.outcome is (
        Outcome.STOPS if field in ("order_by", "order_by.columns", "key") else Outcome.FROM_NOW_ON
    )
    assert said in effect.what


def test_a_truncate_that_deletes_all_rows_is_a_danger() -> None:
    events = replace(with_topic(FLIGHTS, key_format="avro"), envelope=Debezium(), write=Upsert())
    effect = only(events, replace(events, write=Upsert(on_truncate="delete_all")))
    assert (effect.changed, effect.is_dangerous) == ("write.on_truncate", True)
    assert "deletes all rows of the table" in effect.what


@pytest.mark.parametrize(("before", "after"), [(Append(), Upsert()), (Upsert(), Changelog()), (Upsert(), Append())])
def test_another_write_mode_stops_the_pipeline(before: WriteMode, after: WriteMode) -> None:
    found = effects([replace(FLIGHTS, write=before)], [replace(FLIGHTS, write=after)])
    (effect,) = (each for each in found if each.changed == "write")
    assert (effect.outcome, effect.is_dangerous) == (Outcome.STOPS, True)


def test_a_state_that_takes_dead_letters_from_now_on_says_so() -> None:
    state = replace(FLIGHTS, write=Upsert(), on_error=ErrorMode.SUSPEND)
    effect = only(state, replace(state, on_error=ErrorMode.DEAD_LETTER))
    assert "the row of a key whose last record is rejected is of an earlier record" in effect.what
    assert "earlier record" not in only(replace(state, on_error=ErrorMode.DEAD_LETTER), state).what
    assert "earlier record" not in only(FLIGHTS, replace(FLIGHTS, on_error=ErrorMode.SKIP)).what


def test_another_start_of_a_state_says_that_a_rebuilt_table_would_not_be_complete() -> None:
    state = replace(FLIGHTS, write=Upsert(), on_error=ErrorMode.SUSPEND)
    for what, before in (("state", state), ("history", replace(state, write=Changelog()))):
        for start in (Latest(), At(datetime(2026, 1, 2, tzinfo=UTC)), Offsets({0: 5})):
            late = replace(before, start=start)
            said = f"the table is not the complete {what}: it begins at {start.kind}, later than older keys"
            assert only(before, late).what.endswith(f"Only a rebuilt table starts there; then {said}")
            assert only(late, before).what.endswith("Only a rebuilt table starts there")
            assert only(late, with_table(late, identifier="nyc.other")).what.endswith(f"; {said}")
    assert "complete" not in only(FLIGHTS, replace(FLIGHTS, start=Latest())).what


def test_a_table_keeps_the_type_of_its_columns_of_json() -> None:
    text = with_table(FLIGHTS, format_version=3)
    effect = only(text, with_table(text, json_columns="variant"))
    assert (effect.outcome, effect.is_dangerous) == (Outcome.STOPS, True)
