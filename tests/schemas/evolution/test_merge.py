from __future__ import annotations

from hypothesis import given, settings

from frazil.declaration.checks.column_rules import is_reserved
from frazil.schemas.evolution.merge import merge
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type
from tests.schemas.row_types import DOUBLE, FLOAT, INT, LONG, STRING, VERSIONS, struct


def merged(*versions: Struct) -> Struct:
    found = merge(list(enumerate(versions)))
    assert not found.incompatible
    return found.type


def problem(*versions: Struct) -> str:
    found = merge(list(enumerate(versions)))
    assert list(found.incompatible) == [len(versions) - 1]
    return str(found.incompatible[len(versions) - 1])


def test_one_version_is_its_row_type_with_folded_names() -> None:
    row = merged(struct(Id=LONG, lines=ListOf(struct(Sku=STRING))))
    assert row == Struct(
        (
            Field("id", LONG, required=True, source="Id"),
            Field("lines", ListOf(Struct((Field("sku", STRING, required=True, source="Sku"),))), required=True),
        )
    )


def test_no_version_is_no_column() -> None:
    assert merged() == Struct(())


def test_types_widen_as_iceberg_allows() -> None:
    row = merged(
        struct(a=INT, b=FLOAT, c=Decimal(9, 2)),
        struct(a=LONG, b=DOUBLE, c=Decimal(18, 2)),
        struct(a=INT, b=FLOAT, c=Decimal(9, 2)),
    )
    assert [f.type for f in row.fields] == [LONG, DOUBLE, Decimal(18, 2)]


def test_what_iceberg_forbids_leaves_the_version_out_and_says_where() -> None:
    cases: list[tuple[Type, Type, str]] = [
        (INT, STRING, "x: int cannot become string"),
        (Decimal(9, 2), Decimal(9, 3), "x: decimal(9, 2) cannot become decimal(9, 3)"),
        (struct(a=INT), INT, "x: a struct cannot become int"),
        (ListOf(INT), MapOf(STRING, INT), "x: a list cannot become a map"),
        (
            ListOf(struct(a=struct(b=INT))),
            ListOf(struct(a=struct(b=STRING))),
            "x.element.a.b: int cannot become string",
        ),
        (MapOf(STRING, INT), MapOf(STRING, STRING), "x.value: int cannot become string"),
        (Primitive(Kind.DATE), Primitive(Kind.TIMESTAMP), "x: date cannot become timestamp"),
    ]
    for old, new, says in cases:
        assert problem(struct(x=old), struct(x=new)).startswith(says)


def test_numbers_of_two_units_never_share_a_column() -> None:
    millis, micros, nanos = (
        Primitive(of, unit=unit) for of, unit in ((Kind.INT, "ms"), (Kind.LONG, "us"), (Kind.LONG, "ns"))
    )
    for old, new in ((millis, micros), (micros, nanos), (micros, millis)):
        says = f"x: {old} of {old.unit} cannot become {new} of {new.unit}"
        assert problem(struct(x=old), struct(x=new)).startswith(says)
        assert problem(struct(x=LONG), struct(x=old), struct(x=new)).startswith("x: long of ")  # a table says no unit
        assert problem(struct(x=ListOf(old)), struct(x=ListOf(new))).startswith("x.element: ")
    assert merged(struct(x=INT), struct(x=millis), struct(x=LONG)).fields[0].type == LONG


def test_a_version_that_does_not_fit_does_not_stop_those_after_it() -> None:
    found = merge([(7, struct(x=INT)), (8, struct(x=STRING, y=INT)), (9, struct(x=LONG, z=INT))])
    assert list(found.incompatible) == [8]
    assert str(found.type) == "struct<x: long, z: int>"


def test_new_fields_stand_after_those_that_are_there() -> None:
    row = merged(struct(b=INT, d=INT), struct(a=INT, b=INT, c=INT, d=INT))
    assert [f.name for f in row.fields] == ["b", "d", "a", "c"]


def test_a_field_is_required_if_every_version_has_it_and_none_writes_null() -> None:
    row = merged(struct(a=INT, b=INT, c=INT), struct(Field("b", INT), a=INT, d=INT))
    assert {f.name: f.required for f in row.fields} == {"a": True, "b": False, "c": False, "d": False}
    lists = merged(struct(x=ListOf(INT, element_required=True)), struct(x=ListOf(INT)))
    assert lists.fields[0].type == ListOf(INT, element_required=False)


def test_the_newest_comment_that_is_not_empty_wins() -> None:
    row = merged(*(Struct((Field("a", INT, doc=doc),)) for doc in ("first", "second", "")))
    assert row.fields[0].doc == "second"


def test_older_versions_claim_names_first_and_keep_them() -> None:
    old = merged(struct(id=INT))
    row = merged(struct(id=INT), struct(Id=INT, id=INT))
    assert [f.source for f in row.fields] == ["id", "Id"]
    assert row.fields[0].name == old.fields[0].name == "id"
    assert row.fields[1].name.startswith("id_")


def test_an_alias_renames_the_column_and_keeps_its_place() -> None:
    row = merged(struct(amount=INT, b=INT), struct(Field("total", LONG, aliases=("amount",)), b=INT))
    total = row.fields[0]
    assert (total.name, total.source, total.aliases, total.type) == ("total", "total", ("amount",), LONG)


def test_an_older_producer_that_registers_again_does_not_rename_back() -> None:
    new = struct(Field("b", INT, aliases=("a",)))
    assert [f.name for f in merged(struct(a=INT), new, struct(a=INT)).fields] == ["b"]


def test_an_alias_can_skip_a_version() -> None:
    row = merged(struct(a=INT), struct(Field("b", INT, aliases=("a",))), struct(Field("c", INT, aliases=("a",))))
    assert [(f.name, set(f.aliases)) for f in row.fields] == [("c", {"a", "b"})]


def test_an_alias_of_a_field_that_is_still_there_belongs_to_that_field() -> None:
    row = merged(struct(a=INT), struct(Field("b", INT, aliases=("a",)), a=INT))
    assert [(f.name, f.aliases) for f in row.fields] == [("a", ()), ("b", ())]


def test_a_name_that_comes_back_beside_its_new_one_is_ambiguous_and_refused() -> None:
    again = struct(Field("b", INT, aliases=("a",)), a=INT)
    assert "a: two fields of one version are the column 'b'" in problem(
        struct(a=INT), struct(Field("b", INT, aliases=("a",))), again
    )


def test_a_renamed_columns_old_name_is_not_given_to_another() -> None:
    row = merged(
        struct(id=INT), struct(Field("key", INT, aliases=("id",))), struct(Field("key", INT, aliases=("id",)), Id=INT)
    )
    assert row.fields[0].name == "key"
    assert row.fields[1].name.startswith("id_")


def test_json_text_holds_every_structure_that_comes_later_and_nothing_else() -> None:
    text = struct(Field("x", STRING, as_json=True))
    assert merged(text, struct(x=struct(a=INT))).fields[0].as_json
    assert merged(text, struct(x=ListOf(INT))).fields[0].as_json
    assert "JSON text cannot become string" in problem(text, struct(x=STRING))
    assert "a struct cannot become JSON text" in problem(struct(x=struct(a=INT)), text)


@settings(deadline=None)
@given(VERSIONS)
def test_further_versions_keep_every_column_with_its_name_or_a_declared_new_one(
    versions: list[tuple[int, Struct]],
) -> None:
    before, after = merge(versions[:-1]).type, merge(versions).type
    for old, new in zip(before.fields, after.fields, strict=False):
        assert old.name == new.name or old.source in new.aliases
    assert len(after.fields) >= len(before.fields)


@settings(deadline=None)
@given(VERSIONS)
def test_names_are_unique_and_each_source_name_means_one_field(versions: list[tuple[int, Struct]]) -> None:
    row = merge(versions).type
    names = [f.name for f in row.fields]
    sources = [name for f in row.fields for name in (f.source, *f.aliases)]
    assert len(set(names)) == len(names)
    assert len(set(sources)) == len(sources)
    assert not any(is_reserved(name) for name in names)
