"""The columns of a history, and how they follow those of the state."""

from __future__ import annotations

import pytest

from frazil.errors import InvalidInput
from frazil.lake.history.history_columns import BEFORE, OWN, check_names, given_away, renamed, wanted
from frazil.schemas.iceberg import field_ids, row_type, schema_json
from frazil.schemas.schema_changes import AddColumn, WidenColumn, applied, changes
from frazil.schemas.types import Field, Kind, ListOf, Primitive, Struct

INT, LONG, TEXT = Primitive(Kind.INT), Primitive(Kind.LONG), Primitive(Kind.STRING)
STATE = Struct((Field("id", INT), Field("address", Struct((Field("street", TEXT),))), Field("tags", ListOf(TEXT))))
IDS = field_ids(schema_json(STATE))
KNOWN = {number: name for name, number in IDS.items()}


def history() -> Struct:
    return row_type(schema_json(wanted(STATE)))


def test_a_history_has_the_columns_of_the_state_twice_and_its_own() -> None:
    names = [field.name for field in history().fields]
    assert names == ["id", "address", "tags", *OWN]
    before = history().fields[-1]
    assert before.name == BEFORE
    assert isinstance(before.type, Struct)
    assert [field.name for field in before.type.fields] == ["id", "address", "tags"]
    assert not changes(history(), wanted(STATE))


def test_columns_of_both_images_widen_and_are_added_at_any_depth() -> None:
    address = Struct((Field("street", TEXT), Field("city", TEXT)))
    state = Struct((Field("id", LONG), Field("address", address), Field("tags", ListOf(TEXT))))
    made = changes(history(), wanted(state))
    assert {change.path for change in made if isinstance(change, WidenColumn)} == {("id",), (BEFORE, "id")}
    added = {change.path for change in made if isinstance(change, AddColumn)}
    assert added == {("address", "city"), (BEFORE, "address", "city")}
    assert not changes(applied(history(), made), wanted(state))


def test_columns_are_renamed_by_field_id_the_deepest_first() -> None:
    names = {**KNOWN, IDS["id"]: "number", IDS["address"]: "place", IDS["address.street"]: "place.road", 99: "id"}
    assert renamed(KNOWN, names) == (("address.street", "road"), ("address", "place"), ("id", "number"))
    assert not renamed(names, names)


def test_a_column_that_the_state_has_no_longer_keeps_its_name() -> None:
    assert not renamed(KNOWN, {number: name for number, name in KNOWN.items() if name != "id"})


def test_a_column_gives_its_name_to_another_one_only_if_the_state_has_it_no_longer() -> None:
    existing = [*IDS, "gone", "address.gone", "gone_dropped"]
    known = {**KNOWN, 99: "dropped"}
    names = {**KNOWN, IDS["id"]: "gone", IDS["address"]: "place", IDS["address.street"]: "place.gone", 100: "dropped"}
    found = given_away(known, names, [*existing, "dropped"])
    assert found == (("address.gone", "gone_dropped"), ("dropped", "dropped_dropped"), ("gone", "gone_dropped1"))
    swapped = {**KNOWN, IDS["id"]: "tags", IDS["tags"]: "id"}
    assert not given_away(KNOWN, swapped, existing)
    assert not given_away(KNOWN, {**KNOWN, 7: "new", 8: "new.gone"}, existing)


@pytest.mark.parametrize("name", OWN)
def test_no_column_of_the_state_has_a_name_of_the_history(name: str) -> None:
    with pytest.raises(InvalidInput, match="own in the history"):
        check_names(Struct((Field(name, TEXT),)), "s.t__changes")
