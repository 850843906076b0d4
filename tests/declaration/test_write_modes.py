"""Write modes: values with their own parameters."""

import pytest

from frazil.declaration import (
    Append,
    ErrorMode,
    KeyFormat,
    Pipeline,
    Table,
    Tableflow,
    Tombstones,
    Topic,
    Upsert,
    parse,
)
from frazil.declaration.document import document
from frazil.declaration.to_json import to_json
from tests.declaration.problems_of import problems_of


def test_a_mode_is_tagged_by_its_type_in_a_document():
    assert to_json(Append()) == {"type": "append", "on_tombstone": "dead_letter"}


@pytest.mark.parametrize("text", list(Tombstones))
def test_what_a_tombstone_becomes_is_named_by_its_text(text):
    assert Append(on_tombstone=str(text.value)) == Append(on_tombstone=text)


def test_an_unknown_parameter_is_refused_with_the_nearest():
    assert problems_of(lambda: Append(on_tombstones="skip")) == {
        "append.on_tombstones": "there is no such field. Did you mean on_tombstone?"
    }


def state(topic=None, table=None, **choices):
    topic = Topic("orders", **{"value_format": "avro", "key_format": "text", **(topic or {})})
    return Pipeline(topic=topic, table=Table("shop.orders", **(table or {})), **{"write": Upsert(), **choices})


def test_a_state_is_declared_by_its_name_alone():
    assert state(write="upsert").write == Upsert()
    assert to_json(Upsert()) == {"type": "upsert"}
    assert parse(document([state()])) == (state(),)


def test_a_state_stops_at_a_rejected_record_unless_it_is_declared_otherwise():
    assert state().on_error is ErrorMode.SUSPEND
    assert state(write="upsert").on_error is ErrorMode.SUSPEND
    assert state(on_error="log").on_error is ErrorMode.LOG
    assert state(write=Append()).on_error is ErrorMode.LOG


@pytest.mark.parametrize(
    ("declared", "path"),
    [
        ({"topic": {"key_format": KeyFormat.JSON}}, "pipeline.topic.key_format"),
        ({"table": {"metadata_columns": "struct"}}, "pipeline.table.metadata_columns"),
        ({"topic": {"key_format": KeyFormat.BYTES}, "engine": Tableflow()}, "pipeline.write"),
    ],
)
def test_what_no_state_can_be_is_refused(declared, path):
    assert path in problems_of(lambda: state(**declared))
