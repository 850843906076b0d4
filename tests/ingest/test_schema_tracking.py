"""What a pipeline's schemas refuse before any of them is known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from frazil.declaration import Pipeline, Table, Topic, Upsert
from frazil.decode.writer_schemas import WriterSchemas
from frazil.errors import InvalidInput
from frazil.ingest.schema_tracking import Evolution
from tests.envelopes.fields_envelope import Fields, FieldsEvents


def test_the_order_of_changes_is_compared_where_columns_are_declared() -> None:
    """Declared columns are known from the start: no schema is asked for, and none is learned."""
    topic = Topic("orders", value_format="json", columns=("id long", "seq long", "op string"), key_format="text")
    pipeline = Pipeline(topic=topic, table=Table("shop.orders"), write=Upsert(key="id"))
    writers = WriterSchemas(topic, None, envelope=FieldsEvents(Fields(operation="op", key=("id",), order=("seq",))))
    job: Any = SimpleNamespace(iceberg=None, clock=None, new_id=None)
    report: Any = None
    with pytest.raises(InvalidInput, match="ordered by seq"):
        Evolution(pipeline, job, writers, report)
