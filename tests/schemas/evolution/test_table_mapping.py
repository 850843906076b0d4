from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.schemas.avro import parse, row_type
from frazil.schemas.evolution.merge import merge
from frazil.schemas.evolution.schema_changes import AddColumn, applied
from frazil.schemas.evolution.table_mapping import landing, target
from frazil.schemas.metadata import metadata_fields
from frazil.schemas.types import Field, ListOf, Primitive, Struct, holds
from tests.schemas.row_types import INT, LONG, STRING, VERSIONS, struct
from tests.support.fitting import fits


def test_the_target_is_the_tables_row_type_with_the_sources_of_its_fields() -> None:
    rows = merge(
        [
            (1, struct(Amount=INT)),
            (2, struct(Field("Total", INT, aliases=("Amount",)), Lines=ListOf(struct(Sku=STRING)))),
        ]
    ).type
    table = Struct(
        (
            *metadata_fields(struct=False),
            Field("note", STRING),
            Field("total", LONG),
            Field("lines", ListOf(Struct((Field("sku", STRING),)))),
        )
    )
    note, total, lines = target(table, rows).fields
    assert (note.name, note.source) == ("note", "note")
    assert (total.name, total.source, total.aliases, total.type) == ("total", "Total", ("Amount",), LONG)
    assert lines.type == ListOf(Struct((Field("sku", STRING, source="Sku"),)))


def test_the_struct_of_metadata_is_not_in_the_target_either() -> None:
    table = Struct((*metadata_fields(struct=True), Field("a", INT)))
    assert [f.name for f in target(table, struct(a=INT)).fields] == ["a"]


def test_versions_and_table_are_brought_together() -> None:
    plan = landing(Struct((Field("a", INT),)), [(5, struct(a=INT)), (6, struct(a=INT, b=INT)), (7, struct(a=STRING))])
    assert plan.changes == (AddColumn(("b",), INT),)
    assert [f.name for f in plan.target.fields] == ["a", "b"]
    assert list(plan.incompatible) == [7]


def test_a_version_that_the_table_refuses_is_left_out_and_the_others_land() -> None:
    table = Struct((Field("a", INT),))
    plan = landing(table, [(1, struct(a=STRING)), (2, struct(a=INT, b=INT)), (3, struct(a=INT, b=STRING))])
    assert {i: str(p).split(".")[0] for i, p in plan.incompatible.items()} == {
        1: "a: int cannot become string",
        3: "b: int cannot become string",
    }
    assert plan.changes == (AddColumn(("b",), INT),)


def test_a_frozen_table_takes_the_versions_that_fit_as_it_is() -> None:
    table = Struct((Field("a", LONG), Field("old", INT)))
    versions = [
        (1, struct(a=INT)),
        (2, struct(a=LONG, b=INT)),
        (3, struct(Field("new", INT, aliases=("old",)), a=LONG)),
    ]
    plan = landing(table, versions, may_add=False, may_widen=False)
    assert plan.changes == ()
    assert list(plan.incompatible) == [2]
    assert [(f.name, f.source) for f in plan.target.fields] == [("a", "a"), ("old", "new")]


def test_a_version_that_lacks_what_a_frozen_table_requires_is_left_out() -> None:
    plan = landing(
        struct(a=INT),
        [(1, struct(a=INT)), (2, Struct(())), (3, Struct((Field("a", INT),)))],
        may_add=False,
        may_widen=False,
    )
    assert list(plan.incompatible) == [2, 3]


@settings(deadline=None)
@given(VERSIONS)
def test_every_version_that_is_not_refused_fits_the_target(versions: list[tuple[int, Struct]]) -> None:
    plan = landing(Struct(()), versions)
    for schema_id, version in versions:
        if schema_id not in plan.incompatible:
            assert fits(plan.target, version) is None


@settings(deadline=None)
@given(VERSIONS, st.integers(0, 4))
def test_a_landing_that_was_made_needs_no_change_and_refuses_the_same(
    versions: list[tuple[int, Struct]], known: int
) -> None:
    first = landing(Struct(()), versions[:known])
    table = applied(Struct(()), first.changes)
    plan = landing(table, versions)
    again = landing(applied(table, plan.changes), versions)
    assert again.changes == ()
    assert again.target == plan.target
    assert set(again.incompatible) == set(plan.incompatible)
    assert set(first.incompatible) == {schema_id for schema_id in plan.incompatible if schema_id < known}


@pytest.mark.parametrize("misfit", [STRING, LONG], ids=["a misfit", "none"])
def test_many_versions_are_brought_together_in_linear_time(misfit: Primitive, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    def counted(*given: Any) -> bool:
        nonlocal compared
        compared += 1
        return holds(*given)

    monkeypatch.setattr("frazil.schemas.evolution.merge.holds", counted)
    monkeypatch.setattr("frazil.schemas.evolution.schema_changes.holds", counted)
    columns = {f"f{number}": LONG for number in range(10)}
    versions = [(number, struct(**columns)) for number in range(1, 301)]
    plan = landing(Struct((Field("x", LONG),)), [*versions[:150], (999, struct(**columns, x=misfit)), *versions[150:]])
    assert list(plan.incompatible) == ([999] if misfit is STRING else [])
    assert compared < 4 * 300 * 10  # in each version each field once, twice if one is left out


def version(*fields: tuple[str, Any, *tuple[str, ...]], inside: str) -> Struct:
    """Return the row type of an Avro record, or of one with it `inside`: of each field its name, its type and its aliases."""
    listed = [{"name": name, "type": of, "aliases": list(aliases)} for name, of, *aliases in (("id", "long"), *fields)]
    of = {"type": "record", "name": "R", "fields": listed}
    if inside != "row":
        kinds = {"list": {"type": "array", "items": of}, "union": ["null", "int", of]}
        of = {"type": "record", "name": "Outer", "fields": [{"name": "s", "type": kinds[inside]}]}
    return row_type(parse(json.dumps(of)))


UNION = ["int", "string"]


@pytest.mark.parametrize("inside", ["row", "list", "union"])
@pytest.mark.parametrize(
    "fields",
    [
        (("a", "int"), ("a", UNION), ("b", "int", "a")),
        (("a", "int"), ("b", "int", "a"), ("b", UNION), ("c", "int", "b", "a")),
        (("ID", "int"), ("ID", UNION), ("x", "int", "ID")),
    ],
    ids=["a union, then a rename", "a union between two renames", "a name that folds like another one"],
)
def test_a_renamed_column_keeps_its_versions_when_another_is_refused(fields: Any, inside: str) -> None:
    """The refused version makes the others be judged one by one, in a table that has the new name already."""
    versions = [(number, version(field, inside=inside)) for number, field in enumerate(fields)]
    refused = len(fields) - 2
    table = applied(Struct(()), landing(Struct(()), versions[:refused]).changes)
    for _ in range(2):
        plan = landing(table, versions)
        assert plan.incompatible.keys() == {refused}
        table = applied(table, plan.changes)
    assert plan.changes == ()
    row: Any = table if inside == "row" else table.fields[0].type
    row = {
        "row": row,
        "list": getattr(row, "element", None),
        "union": row.fields[-1].type if inside == "union" else None,
    }[inside]
    assert [field.name for field in row.fields] == ["id", fields[-1][0]]


def names(*fields: Any) -> Struct:
    return version(*fields, inside="row")


def landed(*versions: Struct) -> Struct:
    table = Struct(())
    for _ in range(2):
        table = applied(table, landing(table, list(enumerate(versions))).changes)
    return table


def test_names_that_fold_alike_keep_their_columns_next_to_a_union() -> None:
    first, later = names(("x", UNION)), names(("X", "int"))
    for table in (
        landed(first, later),
        applied(landed(first), landing(landed(first), [(0, first), (1, later)]).changes),
    ):
        plan = landing(table, [(0, first), (1, later)])
        assert (plan.changes, plan.incompatible) == ((), {})
        assert [field.type == INT for field in plan.target.fields] == [False, False, True]


def test_a_name_that_folds_like_a_lost_ones_keeps_its_column() -> None:
    """The versions that the table was made of are not known any more."""
    table = landed(names(("Id2", "int"), ("ID2", "int")))
    plan = landing(table, [(7, names(("ID2", "int")))])
    assert plan.changes == ()
    assert {field.source: field.name for field in plan.target.fields}["ID2"] == table.fields[2].name
    later = landing(table, [(7, names(("ID2", "int"))), (8, names(("Id2", "int")))])
    assert {field.source: field.name for field in later.target.fields}["Id2"] == table.fields[1].name


def test_a_name_that_a_refused_version_has_next_to_the_new_one_is_no_rename() -> None:
    versions = [names(("c", "int")), names(("a", "int"), ("c", UNION)), names(("a", "int", "c"))]
    table = landed(versions[0])
    for _ in range(2):
        plan = landing(table, list(enumerate(versions)))
        assert plan.incompatible.keys() == {1}
        table = applied(table, plan.changes)
    assert [field.name for field in table.fields] == ["id", "c", "a"]
