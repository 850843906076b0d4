"""Write modes: values with their own parameters."""

import pytest

from frazil.declaration import (
    Append,
    Changelog,
    Deletion,
    ErrorMode,
    Order,
    Pipeline,
    Table,
    Upsert,
    parse,
)
from frazil.declaration.documents.document import document
from frazil.declaration.documents.to_json import to_json
from frazil.declaration.write_modes import gaps_of_state, identity
from tests.declaration.problems_of import problems_of
from tests.support.topics import topic_of


def state(topic=None, table=None, **choices):
    topic = topic_of("orders", **{"value_format": "avro", "key_format": "text", **(topic or {})})
    return Pipeline(topic=topic, table=Table("shop.orders", **(table or {})), **{"write": Upsert(), **choices})


def test_a_state_is_declared_by_its_name_alone():
    assert state(write="upsert").write == Upsert()
    assert to_json(Upsert()) == {
        "type": "upsert",
        "on_tombstone": "delete",
        "on_truncate": "refuse",
    }
    assert parse(document([state()])) == (state(),)


def test_a_state_stops_at_a_rejected_record_unless_it_is_declared_otherwise():
    assert state().on_error is ErrorMode.SUSPEND
    assert state(write="upsert").on_error is ErrorMode.SUSPEND
    assert state(on_error="dead_letter").on_error is ErrorMode.DEAD_LETTER
    assert state(write=Append()).on_error is ErrorMode.DEAD_LETTER


def test_the_order_of_a_state_is_one_name_or_several():
    ordered = Upsert(order_by="changed_at", on_tombstone=Deletion.SOFT_DELETE)
    assert ordered == Upsert(order_by="changed_at", on_tombstone="soft_delete")
    assert identity(state(write=ordered)) == "upsert ordered by changed_at"
    by_two = Upsert(order_by=Order(("_kafka_timestamp", "id")), on_tombstone="soft_delete")
    assert identity(state(write=by_two)) == "upsert ordered by _kafka_timestamp, id"
    assert identity(state(write=Upsert(on_tombstone="soft_delete"))) == identity(state()) == "upsert"
    assert parse(document([state(write=ordered)])) == (state(write=ordered),)


@pytest.mark.parametrize(
    ("declared", "problems"),
    [
        (
            {"order_by": "_kafka_offset"},
            {"order.columns[0]": "'_kafka_offset' orders no records: offsets do so without order_by"},
        ),
        ({"order_by": ("at", "id")}, {"upsert.order_by": "this is of type tuple. Write Order(…), or None"}),
        ({"on_tombstone": "skip"}, {"upsert.on_tombstone": "'skip' is not one of its values"}),
        (
            {"on_truncate": "delete_all", "on_tombstone": "soft_delete"},
            {"upsert.on_truncate": "a truncate would write each row of the table again, marked as deleted"},
        ),
    ],
)
def test_what_orders_no_records_is_refused(declared, problems):
    found = problems_of(lambda: Upsert(**declared))
    assert found.keys() == problems.keys()
    assert all(found[path].startswith(text) for path, text in problems.items())


@pytest.mark.parametrize(
    ("columns", "remembered", "path", "said"),
    [
        ("at", "3 weeks", "remember_deletes", "'3 weeks' is no duration"),
        (("at", "at"), "7 days", "columns[1]", "at is named twice. Remove one of the two"),
        ((), "7 days", "columns", "no column is named. Name one, or remove order_by"),
        ("_order", "7 days", "columns[0]", "'_order' orders no records"),
        ("At", "7 days", "columns[0]", "'At' is no column's name"),
    ],
)
def test_an_order_is_of_columns_and_remembers_deletes_for_a_time(columns, remembered, path, said):
    [(found, text)] = problems_of(lambda: Order(columns, remember_deletes=remembered)).items()
    assert found == f"order.{path}"
    assert text.startswith(said)


@pytest.mark.parametrize(
    ("declared", "path"),
    [
        ({"topic": {"key_format": "json"}}, "pipeline.topic.key"),
        ({"table": {"metadata_columns": "struct"}}, "pipeline.table.metadata_columns"),
        ({"write": Upsert(on_truncate="delete_all")}, "pipeline.write.on_truncate"),
    ],
)
def test_what_no_state_can_be_is_refused(declared, path):
    assert path in problems_of(lambda: state(**declared))


# ── Columns of the value as a key ───────────────────────────────────────────────────────────────
def test_one_column_is_named_without_a_tuple():
    assert Upsert(key="id") == Upsert(key=("id",))
    assert to_json(Upsert(key="id"))["key"] == ["id"]
    keyed = state(write=Upsert(key=("id", "line")))
    assert parse(document([keyed])) == (keyed,)


@pytest.mark.parametrize(
    ("key", "path", "said"),
    [
        ("Id", "key[0]", "Id has upper case; columns are lower case. Write id"),
        (("id", "a.b"), "key[1]", "'a.b' has a dot, and no field inside a column is a key. Name a column of its own"),
        ("größe", "key[0]", "'größe' is no column's name."),
        ("x" * 129, "key[0]", "is no column's name."),
        ("_kafka_key", "key[0]", "_kafka_key is not a column of the value:"),
        ("_file", "key[0]", "_file is not a column of the value:"),
        ((), "key", "a key without columns is one key for all records."),
        (("id", "line", "id"), "key[2]", "id is named twice. Remove one of the two"),
        (7, "key", "7 is of type int. Write text or a tuple, or None"),
    ],
)
def test_what_is_no_key_is_refused(key, path, said):
    problems = problems_of(lambda: Upsert(key=key))
    assert [*problems] == [f"upsert.{path}"]
    assert said in problems[f"upsert.{path}"]


def test_a_text_alone_is_no_second_problem():
    assert [*problems_of(lambda: Upsert(key="id", keys="id"))] == ["upsert.keys"]


def test_a_document_lists_the_columns():
    tampered = {"version": 2, "pipelines": [to_json(state())]}
    tampered["pipelines"][0]["write"] = {"type": "upsert", "key": "id"}
    assert problems_of(lambda: parse(tampered)) == {"pipelines[0].write.key": "'id' is text. Write a list"}


@pytest.mark.parametrize(
    ("topic", "key", "path"),
    [
        ({"value_format": "text"}, "word", "pipeline.write.key[0]"),
        ({"value_format": "json"}, "value", "pipeline.write.key[0]"),
        ({"subject_strategy": "record"}, "id", "pipeline.write.key"),
    ],
)
def test_columns_that_a_topic_does_not_have_are_refused(topic, key, path):
    assert [*problems_of(lambda: state(topic, write=Upsert(key=key)))] == [path]


@pytest.mark.parametrize(
    ("topic", "key"),
    [
        ({"key_format": "json"}, "id"),
        ({"value_format": "text"}, "value"),
        ({"subject_strategy": "record", "record_name": "shop.Order"}, "id"),
        ({"subject_strategy": "topic_record"}, "id"),
    ],
)
def test_columns_of_a_value_may_be_a_key(topic, key):
    assert state(topic, write=Upsert(key=key)).write == Upsert(key=key)


def test_an_order_by_columns_needs_a_record_whose_columns_are_known():
    topic = {"subject_strategy": "record"}
    by_column = Upsert(order_by="version", on_tombstone="soft_delete")
    assert set(problems_of(lambda: state(topic, write=by_column))) == {"pipeline.write.order_by"}
    state(topic | {"record_name": "shop.Order"}, write=by_column)
    state(topic, write=Upsert(order_by="_kafka_timestamp", on_tombstone="soft_delete"))


# ── Changelogs ──────────────────────────────────────────────────────────────────────────────────
def test_a_changelog_is_declared_by_its_name_alone():
    assert state(write="changelog").write == Changelog()
    assert to_json(Changelog()) == {"type": "changelog", "order_by": []}
    keyed = state(write=Changelog(key="id", order_by=("at", "_kafka_timestamp")))
    assert parse(document([keyed])) == (keyed,)
    assert state(write=Changelog()).on_error is ErrorMode.SUSPEND


def test_what_never_changes_of_a_table_with_a_key_has_it():
    by_version = state(write=Changelog(key=("id", "line"), order_by="version"))
    assert identity(by_version) == "changelog ordered by version"
    assert identity(by_version, ("id", "line")) == "changelog by id, line ordered by version"
    assert identity(state(), ("id",)) == "upsert by id"
    assert identity(state()) == "upsert"


def test_what_a_changelog_cannot_be_is_refused():
    assert {*problems_of(lambda: Changelog(order_by="_kafka_offset"))} == {"changelog.order_by[0]"}
    assert {*problems_of(lambda: Changelog(key=(), order_by=("at", "at")))} == {
        "changelog.key",
        "changelog.order_by[1]",
    }
    found = problems_of(lambda: state({"key_format": "json"}, {"metadata_columns": "struct"}, write=Changelog()))
    assert {*found} == {"pipeline.topic.key", "pipeline.table.metadata_columns"}
    assert "a changelog compares" in found["pipeline.table.metadata_columns"]
    assert "pipeline.write" in problems_of(lambda: state(write=Changelog(), engine="tableflow"))


def test_an_incomplete_history_is_said():
    assert list(gaps_of_state(state(write=Changelog()))) == []
    late = list(gaps_of_state(state(write=Changelog(), start="latest", on_error="dead_letter")))
    assert late[0] == "the table is not the complete history: it begins at latest, later than older keys"
    assert "the last row of a key whose last record is rejected" in late[1]
    assert list(gaps_of_state(state(write=Append(), start="latest"))) == []
