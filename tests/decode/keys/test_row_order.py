"""What orders the records of a key, by the row's type."""

from __future__ import annotations

import pytest

from frazil.decode.keys.row_order import row_order
from frazil.errors import InvalidInput
from frazil.schemas.types import Decimal, Field, Kind, ListOf, Primitive, Struct, Type

ROW = Struct(
    (
        Field("id", Primitive(Kind.LONG)),
        Field("changed_at", Primitive(Kind.TIMESTAMPTZ), aliases=("updated_at",)),
        Field("cents", Decimal(9, 2)),
    )
)


def test_one_column_is_its_own_order_and_several_are_a_struct() -> None:
    one, several = row_order(["id"], ROW), row_order(["cents", "_kafka_timestamp"], ROW)
    assert one is not None
    assert several is not None
    assert one.type == Primitive(Kind.LONG)
    assert str(several.type) == "struct<cents: decimal(9, 2), _kafka_timestamp: timestamptz>"
    assert row_order([], ROW) is None


def test_a_column_that_a_schema_renamed_keeps_its_declared_name() -> None:
    order = row_order(["updated_at"], ROW)
    assert order is not None
    assert (order.fields[0].name, order.columns) == ("updated_at", {"updated_at": "changed_at"})


def test_a_renamed_column_is_known_by_its_name_in_the_table() -> None:
    row = Struct((Field("modifiedat", Primitive(Kind.LONG), aliases=("updatedAt",)),))
    order = row_order(["updatedat"], row)
    assert order is not None
    assert order.columns == {"updatedat": "modifiedat"}


def test_numbers_with_a_scale_of_their_own_have_no_order() -> None:
    row = Struct((Field("x", Primitive(Kind.BINARY), has_own_scale=True),))
    with pytest.raises(InvalidInput, match="a scale of their own"):
        row_order(["x"], row)


@pytest.mark.parametrize(
    ("of", "as_json", "message"),
    [
        (Primitive(Kind.DOUBLE), False, "x is of type double, which orders no records"),
        (Primitive(Kind.BOOLEAN), False, "x is of type boolean"),
        (ListOf(Primitive(Kind.INT)), False, "x is of type list<int>"),
        (Struct((Field("y", Primitive(Kind.INT)),)), False, "x is of type struct<y: int>"),
        (Primitive(Kind.STRING), True, "x is JSON text"),
    ],
)
def test_a_type_without_a_total_order_is_refused(of: Type, as_json: bool, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        row_order(["x"], Struct((Field("x", of, as_json=as_json),)))


def test_a_column_that_is_not_there_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="Did you mean changed_at"):
        row_order(["changed_a"], ROW)
