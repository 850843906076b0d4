"""What each write mode adds to a table, refuses and needs, without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.declaration import Append, Changelog, Debezium, Pipeline, Table, Topic, Upsert
from frazil.errors import InvalidInput
from frazil.schemas.evolution.schema_changes import AddColumn
from frazil.schemas.types import Field, Kind, Primitive, Struct
from frazil.write.append import AppendMode
from frazil.write.changelog import ChangelogMode
from frazil.write.mode import own_changes, without_own
from frazil.write.mode_of import mode_of
from frazil.write.upsert import UpsertMode

LONG, TEXT = Primitive(Kind.LONG), Primitive(Kind.STRING)
ROW = Struct((Field("id", LONG), Field("at", LONG), Field("word", TEXT)))
MODES = {
    "append": (Append(), AppendMode, []),
    "upsert": (Upsert(), UpsertMode, []),
    "upsert with an order": (Upsert(order_by="at"), UpsertMode, ["_order"]),
    "upsert with soft deletes": (Upsert(on_tombstone="soft_delete"), UpsertMode, ["_deleted_at"]),
    "changelog": (Changelog(), ChangelogMode, ["_op", "_changed_at"]),
    "changelog with an order": (Changelog(order_by="at"), ChangelogMode, ["_order", "_op", "_changed_at"]),
}


def pipeline(write: Any, **more: Any) -> Pipeline:
    return Pipeline(topic=Topic("orders", value="avro", key="avro"), table=Table("shop.orders"), write=write, **more)


@pytest.mark.parametrize("kind", MODES)
def test_each_mode_has_a_class_and_adds_its_own_columns(kind: str) -> None:
    write, of, columns = MODES[kind]
    mode = mode_of(pipeline(write))
    assert type(mode) is of
    assert [field.name for field in mode.columns(ROW)] == columns
    assert set(columns) <= set(mode.own)
    table = Struct((*ROW.fields, *mode.columns(ROW)))
    assert without_own(mode, table) == ROW
    assert own_changes(mode, table, ROW) == ()


def test_a_changelog_of_change_data_says_which_values_the_source_omits() -> None:
    mode = mode_of(pipeline(Changelog(), envelope=Debezium()))
    assert [field.name for field in mode.columns(ROW)] == ["_op", "_changed_at", "_unavailable"]


@pytest.mark.parametrize("kind", MODES)
def test_a_column_of_a_name_that_is_taken_is_refused_but_in_append_tables(kind: str) -> None:
    write, of, _ = MODES[kind]
    mode = mode_of(pipeline(write))
    for name in ("_op", "_deleted_at"):
        row = Struct((*ROW.fields, Field(name, TEXT)))
        is_taken = name in mode.own
        assert is_taken is ((name == "_op") is (of is ChangelogMode) and of is not AppendMode)
        assert (mode.unfit(row) is not None) is is_taken
        if is_taken:
            with pytest.raises(InvalidInput, match=f"the column {name} is Frazil's own"):
                mode.check_columns(row)
        else:
            mode.check_columns(row)


def test_only_upserts_that_compare_rows_need_those_of_the_batches_before() -> None:
    needs = {
        kind: mode_of(pipeline(write)).needs_rows(keys_move=True, fills=False) for kind, (write, *_) in MODES.items()
    }
    assert [kind for kind, is_so in needs.items() if is_so] == ["upsert with an order", "upsert with soft deletes"]
    fills = {
        kind: mode_of(pipeline(write)).needs_rows(keys_move=False, fills=True) for kind, (write, *_) in MODES.items()
    }
    assert [kind for kind, is_so in fills.items() if is_so] == [kind for kind in MODES if kind.startswith("upsert")]


def test_soft_deletes_that_are_declared_later_add_their_column() -> None:
    mode = mode_of(pipeline(Upsert(on_tombstone="soft_delete")))
    (change,) = own_changes(mode, ROW, ROW)
    assert isinstance(change, AddColumn)
    assert change.path == ("_deleted_at",)


@pytest.mark.parametrize(("on_truncate", "all_go"), [("refuse", False), ("delete_all", True)])
def test_a_truncate_deletes_all_rows_where_that_is_declared(on_truncate: Any, all_go: bool) -> None:
    assert mode_of(pipeline(Upsert(on_truncate=on_truncate), envelope=Debezium())).deletes_all is all_go
    assert not mode_of(pipeline(Changelog(), envelope=Debezium())).deletes_all
