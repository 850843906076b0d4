"""The write mode's own columns that an existing table gets again, and the tables that are another new type's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from frazil.declaration import Append, Avro, Changelog, Pipeline, RecordName, Table, Topic, Upsert, canonical, routes
from frazil.declaration.documents.to_json import to_json
from frazil.declaration.several.type_pattern import TypePattern
from frazil.errors import OtherPipeline
from frazil.ingest.setup.existing_table import check_ours, own_columns, said
from frazil.lake.layout import SHAPES, Layout


@pytest.mark.parametrize(
    ("write", "former", "names"),
    [
        (Append(), ("_deleted_at",), []),
        (Upsert(on_tombstone="soft_delete"), (), []),
        (Upsert(on_tombstone="soft_delete"), ("_deleted_at",), ["_deleted_at"]),
        (Upsert(order_by="at"), ("_deleted_at",), ["_order"]),
        (Changelog(order_by="at"), (), ["_order", "_op", "_changed_at"]),
    ],
)
def test_soft_deletes_that_are_declared_later_add_their_column_elsewhere(
    write: Any, former: tuple[str, ...], names: list[str]
) -> None:
    pipeline = Pipeline(topic=Topic("orders", value="avro"), table=Table("shop.orders"), write=write)
    assert [field.name for field in own_columns(pipeline, former)] == names


def test_a_table_of_another_new_type_is_refused_and_one_whose_type_moved_is_not() -> None:
    topic = Topic("events", value=Avro(subject_strategy="topic_record"))

    def of(record_type: str, **named: Table) -> Pipeline:
        to = {**{f"shop.{name}.Paid": table for name, table in named.items()}, "shop.*": "shop.{name}"}
        *_, pattern = routes(topic, by=RecordName(), to=to, otherwise=Table("shop.other"))
        assert isinstance(pattern, TypePattern)
        return pattern.pipeline_of("events", record_type)

    first = of("shop.b.Paid")
    actual = Layout(
        uuid="u",
        format_version=2,
        partition_by=frozenset(),
        sort_by=(),
        properties={SHAPES: canonical([to_json(first.shape.of_rows)]).decode()},
        columns={"_kafka_offset": 1},
        required=frozenset(),
        former={},
        writers=frozenset({"paid"}),
    )
    check_ours(first, actual)
    with pytest.raises(OtherPipeline, match=r"that of type shop\.b\.Paid, and not of shop\.a\.Paid"):
        check_ours(of("shop.a.Paid"), actual)
    assert said(of("shop.a.Paid"), actual)[0].endswith("Name shop.a.Paid in `to`, with another table")
    check_ours(of("shop.a.Paid", b=Table("shop.moved")), actual)
    check_ours(of("shop.a.Paid"), replace(actual, writers=frozenset()))  # no run has landed in it
