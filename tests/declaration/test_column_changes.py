"""What only the types that a connector names say of a changed declaration."""

import pytest

from frazil.declaration.change_effects import FIELDS


@pytest.mark.parametrize("field", ["topic.columns", "topic.key_columns"])
def test_another_unit_of_a_declared_column_is_said(field: str) -> None:
    before = ("id long", "at io.debezium.time.Timestamp", "all list<struct<d: io.debezium.time.Date>>")
    effect = FIELDS[field]
    after = ("at io.debezium.time.MicroTimestamp", "all list<struct<d: date>>", "id int", "new timestamp")
    said = effect.said(before, after)
    assert "at was io.debezium.time.Timestamp and is read as io.debezium.time.MicroTimestamp" in said
    assert "all.element.d was io.debezium.time.Date and is read as date" in said
    assert effect.said(before, (*before[:2], "id int")) == effect.what
    assert effect.said(None, after) == effect.said(before, None) == effect.what
