"""Which tables can promise that a key keeps its partition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from frazil.declaration import Debezium, Pipeline, Table, Topic, Upsert, parse
from frazil.declaration.document import document
from frazil.declaration.partitioning import partition_field
from frazil.declaration.stable_partitions import stable_fields
from frazil.declaration.to_json import to_json
from frazil.declaration.write_modes import identity
from tests.declaration.problems_of import problems_of


def state(*partition_by: str, key_format: str = "text", envelope: Any = None, **write: Any) -> Pipeline:
    return Pipeline(
        topic=Topic("orders", value_format="avro", key_format=key_format),
        table=Table("shop.orders", partition_by=partition_by),
        write=Upsert(**{"stable_partition": True, **write}),
        envelope=envelope,
    )


def test_a_table_may_keep_its_mode_and_declare_it_later() -> None:
    declared = state("days(made_at)")
    assert identity(declared) == identity(replace(declared, write=Upsert()))
    assert parse(document([declared])) == (declared,)
    assert stable_fields(declared) == (partition_field("days(made_at)"),)
    assert stable_fields(replace(declared, write=Upsert())) == ()


def test_a_document_of_before_declares_nothing() -> None:
    older = document([state("days(made_at)", stable_partition=False)])
    write = to_json(Upsert())
    del write["stable_partition"]
    older = {**older, "pipelines": [{**older["pipelines"][0], "write": write}]}
    assert parse(older)[0].write == Upsert()


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ({"by": ()}, "a table without partition fields has no partitions that could be searched alone"),
        ({"by": ("hours(_kafka_timestamp)",)}, "_kafka_timestamp is of a key's last record"),
        ({"by": ("days(made_at)", "days(_ingested_at)")}, "_ingested_at is of a key's last record"),
        ({"by": ("_kafka_partition",)}, "_kafka_partition is of a key's last record"),
        ({"by": ("days(_deleted_at)",), "on_tombstone": "soft_delete"}, "_deleted_at is of a key's last record"),
        ({"by": ("days(changed_at)",), "order_by": "changed_at"}, "changed_at orders the records of a key"),
        (
            {"by": ("_op",), "key_format": "avro", "envelope": Debezium(operation_column=True)},
            "_op is of a key's last record",
        ),
    ],
)
def test_what_each_record_changes_is_not_kept(declared: dict[str, Any], says: str) -> None:
    by = declared.pop("by")
    found = problems_of(lambda: state(*by, **declared))
    assert found.keys() == {"pipeline.write.stable_partition"}
    assert found["pipeline.write.stable_partition"].startswith(says)


@pytest.mark.parametrize(
    "by", ["bucket(8, customer)", "truncate(4, zip)", "months(made_at)", "region", "bucket(4, _kafka_key)"]
)
def test_every_transform_of_a_column_that_a_key_keeps_is_taken(by: str) -> None:
    assert stable_fields(state(by)) == (partition_field(by),)


def test_an_order_that_is_part_of_the_key_is_kept() -> None:
    assert stable_fields(state("days(at)", key=("id", "at"), order_by=("at", "version")))
