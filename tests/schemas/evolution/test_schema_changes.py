from __future__ import annotations

import pytest
from hypothesis import assume, given, settings

from frazil.errors import IncompatibleSchema
from frazil.schemas.evolution.merge import merge
from frazil.schemas.evolution.schema_changes import (
    AddColumn,
    CommentColumn,
    RelaxColumn,
    RenameColumn,
    WidenColumn,
    applied,
    changes,
    plain,
)
from frazil.schemas.types import Decimal, Field, ListOf, MapOf, Primitive, Struct, Type, holds
from tests.schemas.row_types import INT, LONG, ROWS, STRING, VERSIONS, struct


def optional(**named: Type) -> Struct:
    return Struct(tuple(Field(name, of) for name, of in named.items()))


def test_a_table_that_holds_the_rows_needs_no_change() -> None:
    table = optional(a=LONG, b=Decimal(18, 2), c=STRING)
    assert changes(table, struct(a=INT, b=Decimal(9, 2))) == ()


def test_a_missing_column_is_added_with_its_comment() -> None:
    rows = struct(Field("b", struct(c=INT), doc="what b is"), a=INT)
    added = AddColumn(("b",), Struct((Field("c", INT),)), "what b is")
    assert changes(optional(a=INT), rows) == (added,)
    assert str(applied(optional(a=INT), [added])) == "struct<a: int, b: struct<c: int>>"


def test_columns_are_added_and_widened_inside_lists_maps_and_structs() -> None:
    table = optional(
        s=optional(a=INT), l=ListOf(optional(a=INT)), m=MapOf(STRING, ListOf(optional(a=INT))), w=ListOf(INT)
    )
    inner = struct(a=LONG, b=INT)
    rows = struct(s=inner, l=ListOf(inner), m=MapOf(STRING, ListOf(inner)), w=ListOf(LONG))
    wanted = changes(table, rows)
    assert wanted == (
        WidenColumn(("s", "a"), INT, LONG),
        AddColumn(("s", "b"), INT),
        WidenColumn(("l", "element", "a"), INT, LONG),
        AddColumn(("l", "element", "b"), INT),
        WidenColumn(("m", "value", "element", "a"), INT, LONG),
        AddColumn(("m", "value", "element", "b"), INT),
        WidenColumn(("w", "element"), INT, LONG),
    )
    both = "struct<a: long, b: int>"
    assert (
        str(applied(table, wanted))
        == f"struct<s: {both}, l: list<{both}>, m: map<string, list<{both}>>, w: list<long>>"
    )


def test_a_column_is_never_narrowed() -> None:
    assert changes(optional(a=LONG, d=Decimal(30, 2)), struct(a=INT, d=Decimal(9, 2))) == ()


def test_a_required_column_that_rows_may_lack_becomes_optional() -> None:
    table = struct(a=INT, gone=INT, l=ListOf(INT, element_required=True), m=MapOf(STRING, INT, value_required=True))
    rows = Struct(
        (Field("a", INT), Field("l", ListOf(INT), required=True), Field("m", MapOf(STRING, INT), required=True))
    )
    wanted = changes(table, rows)
    assert wanted == tuple(RelaxColumn(path) for path in (("a",), ("l", "element"), ("m", "value"), ("gone",)))
    assert changes(applied(table, wanted), rows) == ()
    assert changes(struct(a=INT), struct(a=INT)) == ()


def test_metadata_columns_are_none_of_the_rows_business() -> None:
    assert changes(struct(_kafka_offset=LONG, _ingested_at=LONG, a=INT), struct(a=INT)) == ()


def test_a_new_comment_is_taken_and_an_empty_one_is_not() -> None:
    table = Struct((Field("a", INT, doc="old"), Field("b", INT, doc="old")))
    rows = struct(Field("a", INT, doc="new"), b=INT)
    assert changes(table, rows) == (CommentColumn(("a",), "new"),)


def test_an_alias_renames_the_column_last_the_deepest_first() -> None:
    table = optional(a=optional(b=INT))
    rows = struct(Field("x", struct(Field("y", LONG, aliases=("b",))), aliases=("a",)))
    wanted = changes(table, rows)
    assert wanted == (WidenColumn(("a", "b"), INT, LONG), RenameColumn(("a", "b"), "y"), RenameColumn(("a",), "x"))
    assert str(applied(table, wanted)) == "struct<x: struct<y: long>>"


def test_a_column_that_had_a_suffix_is_the_one_renamed() -> None:
    versions = [(1, struct(id=INT, Id=LONG)), (2, struct(Field("key", LONG, aliases=("Id",)), id=INT))]
    before, after = merge(versions[:1]).type, merge(versions).type
    table = Struct(tuple(Field(f.name, f.type) for f in before.fields))
    assert changes(table, after) == (RenameColumn((before.fields[1].name,), "key"),)


@pytest.mark.parametrize("name", ["_kafka_offset", "_ingested_at", "_pos"])
def test_an_alias_takes_no_column_of_frazil(name: str) -> None:
    """A field of that name in the source never had it as a column; inside a struct it had."""
    rows = struct(Field("pos", LONG, aliases=(name,)))
    assert changes(optional(**{name: LONG}), rows) == (AddColumn(("pos",), LONG),)
    assert changes(optional(s=optional(**{name: LONG})), struct(s=rows)) == (RenameColumn(("s", name), "pos"),)


def test_two_columns_renamed_at_once_do_not_get_mixed_up() -> None:
    versions = [
        (1, struct(id=INT, Id=STRING)),
        (2, struct(Field("first", INT, aliases=("id",)), Field("second", STRING, aliases=("Id",)))),
    ]
    before, after = merge(versions[:1]).type, merge(versions).type
    table = Struct(tuple(Field(f.name, f.type) for f in before.fields))
    assert str(applied(table, changes(table, after))) == "struct<first: int, second: string>"


def test_a_name_that_another_field_has_now_is_not_renamed_away() -> None:
    rows = struct(Field("b", INT, aliases=("A",)), a=INT)
    assert changes(optional(a=INT), rows) == (AddColumn(("b",), INT),)


@pytest.mark.parametrize(
    ("table", "rows", "says"),
    [
        (
            optional(x=ListOf(optional(a=INT))),
            struct(x=ListOf(struct(a=STRING))),
            "x.element.a: int cannot become string",
        ),
        (optional(x=MapOf(STRING, INT)), struct(x=MapOf(INT, INT)), "x.key: a map's key cannot change"),
    ],
)
def test_what_iceberg_forbids_is_told_with_its_path(table: Struct, rows: Struct, says: str) -> None:
    with pytest.raises(IncompatibleSchema, match=says):
        changes(table, rows)


def test_what_the_declaration_does_not_allow_is_told_with_its_path() -> None:
    table = struct(a=INT)
    with pytest.raises(IncompatibleSchema, match=r"b: the table has no such column"):
        changes(table, struct(a=INT, b=INT), may_add=False)
    with pytest.raises(IncompatibleSchema, match=r"a: int may not be widened to long"):
        changes(table, struct(a=LONG), may_widen=False)
    with pytest.raises(IncompatibleSchema, match=r"a: the column is required"):
        changes(table, Struct((Field("a", INT),)), may_widen=False)
    assert changes(table, struct(a=INT, b=INT), may_widen=False) == (AddColumn(("b",), INT),)


def test_a_frozen_table_keeps_its_names_and_comments() -> None:
    rows = struct(Field("b", INT, aliases=("a",), doc="new"))
    assert changes(optional(a=INT), rows, may_add=False, may_widen=False) == ()


@settings(deadline=None)
@given(VERSIONS)
def test_a_table_made_step_by_step_and_one_made_at_once_hold_the_same_columns(
    versions: list[tuple[int, Struct]],
) -> None:
    table = Struct(())
    for upto in range(len(versions)):
        table = applied(table, changes(table, merge(versions[: upto + 1]).type))
    everything = merge(versions).type
    assert changes(table, everything) == ()
    assert {f.name for f in table.fields} == {f.name for f in everything.fields}


@settings(deadline=None)
@given(ROWS, VERSIONS)
def test_changes_leave_nothing_to_change_and_neither_narrow_nor_drop_a_column(
    first: Struct, versions: list[tuple[int, Struct]]
) -> None:
    table, rows = plain(merge([(0, first)]).type), merge(versions).type
    assert isinstance(table, Struct)
    try:
        wanted = changes(table, rows)
    except IncompatibleSchema:
        assume(False)
        return
    after = applied(table, wanted)
    assert changes(after, rows) == ()
    assert len(after.fields) >= len(table.fields)
    for old, new in zip(table.fields, after.fields, strict=False):
        assert old.name == new.name or RenameColumn((old.name,), new.name) in wanted
        if isinstance(old.type, Primitive | Decimal):
            assert isinstance(new.type, Primitive | Decimal)
            assert holds(new.type, old.type)
        assert not (new.required and not old.required)
