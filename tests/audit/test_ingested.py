"""Tables as the real ingest and the real Iceberg leave them: verified without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from frazil.audit.files.proofs import ProofFolder
from frazil.audit.finding import Depth, Flaw, Outcome, Range
from frazil.audit.verification import Verification
from frazil.audit.verify import verify
from frazil.declaration.options import MetadataColumns
from frazil.lake.read.stored_tables import Lake
from tests.support.shop import Shop
from tests.support.variants import first_short

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def verified(shop: Shop, *, deep: bool = False, proofs: ProofFolder | None = None) -> Verification:
    lake = Lake(shop.lake, lambda secret: "")
    return verify(shop.pipeline, lake, deep=deep, proofs=proofs, wait=lambda seconds: None)


@pytest.fixture(params=first_short([MetadataColumns.FLAT, MetadataColumns.STRUCT]))
def filled(request: pytest.FixtureRequest, shop_of: Callable[..., Shop]) -> Shop:
    """Two batches; the second has a poisoned record in partition 0."""
    shop = shop_of(table={"metadata_columns": request.param})
    schema = shop.register()
    shop.produce(shop.orders(100, schema), partition=0)
    shop.produce(shop.orders(100, schema, first=100), partition=1)
    shop.drain()
    shop.produce([*shop.orders(20, schema, first=200), b"\x00bad", *shop.orders(20, schema, first=220)], partition=0)
    shop.drain()
    return shop


def test_what_the_ingest_lands_is_proven_and_mostly_from_manifests(filled: Shop) -> None:
    found = verified(filled)
    assert (found.outcome, found.findings) == (Outcome.PROVEN, ())
    table, dead = found.reads
    assert (table.files_by_manifest, table.rows_by_manifest) == (2, 200)
    assert (table.files_by_scan, table.rows_by_scan, dead.rows_by_manifest) == (1, 40, 1)
    deep = verified(filled, deep=True)
    assert (found.depth, deep.outcome, deep.depth) == (Depth.COUNTED, Outcome.PROVEN, Depth.VALUES_READ)
    assert deep.cautions == (), "what Spark writes has checksums"


def test_a_compacted_table_is_still_proven(filled: Shop, spark: SparkSession) -> None:
    name = filled.pipeline.table.identifier
    spark.sql(f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    found = verified(filled)
    assert found.outcome is Outcome.PROVEN
    assert found.reads[0].files_by_scan == 1


def test_rows_deleted_merge_on_read_are_missed(filled: Shop, spark: SparkSession) -> None:
    name = filled.pipeline.table.identifier
    spark.sql(f"ALTER TABLE lake.{name} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    spark.sql(f"DELETE FROM lake.{name} WHERE order_id = 42")
    found = verified(filled)
    assert found.reads[0].files_with_deletes == 1
    assert [(f.flaw, f.partition, str(f.ranges[0])) for f in found.findings] == [(Flaw.MISSING, 0, "42")]


@pytest.mark.long
def test_rows_deleted_by_value_are_refused(filled: Shop) -> None:
    """A file of equality deletes, as Flink writes them; that it is empty of rows does not matter."""
    iceberg = filled.job().iceberg
    table = iceberg.load(filled.pipeline.table.identifier)
    gateway: Any = iceberg.spark.sparkContext._gateway
    integers = gateway.new_array(gateway.jvm.int, 1)
    integers[0] = 1
    builder = iceberg.classes.static("FileMetadata", "deleteFileBuilder", ("PartitionSpec", table.spec()))
    deletes = (
        builder.ofEqualityDeletes(integers)
        .withPath(f"{table.location()}/data/deletes.parquet")
        .withFileSizeInBytes(1)
        .withRecordCount(1)
        .build()
    )
    table.newRowDelta().addDeletes(deletes).commit()
    found = verified(filled)
    assert (found.outcome, [f.flaw for f in found.findings]) == (Outcome.UNCHECKED, [Flaw.EQUALITY_DELETES])


@pytest.mark.long
def test_rows_deleted_by_deletion_vectors_are_missed(
    shop_of: Callable[..., Shop], spark: SparkSession, tmp_path: Path
) -> None:
    """Format v3, vectors of several files in one Puffin file, and a partitioning that changed in between."""
    shop = shop_of(table={"format_version": 3, "partition_by": ("bucket(4, order_id)",)})
    schema, name = shop.register(), f"lake.{shop.pipeline.table.identifier}"
    shop.produce(shop.orders(100, schema), partition=0)
    shop.drain()
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD truncate(10, order_id)")
    shop.produce(shop.orders(100, schema, first=100), partition=0)
    shop.drain()
    assert verified(shop, proofs=ProofFolder(tmp_path)).outcome is Outcome.PROVEN
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    for some in ("10, 11, 12, 13, 14, 15", "16, 150, 151, 152"):
        spark.sql(f"DELETE FROM {name} WHERE order_id IN ({some})")
    for found in (verified(shop, proofs=ProofFolder(tmp_path)), verified(shop, deep=True)):
        assert [(f.flaw, f.count, f.ranges) for f in found.findings] == [
            (Flaw.MISSING, 10, (Range(10, 17), Range(150, 153)))
        ]
        assert found.reads[0].files_with_deletes >= 4
