from __future__ import annotations

import pytest
from hypothesis import given

from frazil.schemas.types import Decimal, Kind, Primitive, Scalar, becomes, holds
from tests.schemas.row_types import DOUBLE, FLOAT, INT, LONG, SCALARS, STRING


@pytest.mark.parametrize(("old", "new"), [(INT, LONG), (FLOAT, DOUBLE), (Decimal(9, 2), Decimal(18, 2))])
def test_iceberg_widens(old: Scalar, new: Scalar) -> None:
    assert becomes(old, new)
    assert not becomes(new, old)
    assert holds(new, old)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (INT, STRING),
        (INT, DOUBLE),
        (LONG, DOUBLE),
        (Decimal(9, 2), Decimal(18, 3)),
        (Decimal(9, 0), LONG),
        (Primitive(Kind.DATE), Primitive(Kind.TIMESTAMP)),
        (Primitive(Kind.TIMESTAMP), Primitive(Kind.TIMESTAMPTZ)),
        (STRING, Primitive(Kind.BINARY)),
    ],
)
def test_iceberg_does_not_widen(old: Scalar, new: Scalar) -> None:
    assert not becomes(old, new)


def test_a_column_of_doubles_holds_ints_and_not_longs() -> None:
    assert holds(DOUBLE, INT)
    assert not holds(DOUBLE, LONG)


@given(SCALARS, SCALARS)
def test_what_a_column_becomes_holds_what_it_held(old: Scalar, new: Scalar) -> None:
    assert holds(old, old)
    if becomes(old, new):
        assert holds(new, old)
        assert not holds(old, new)
