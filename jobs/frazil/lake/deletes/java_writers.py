"""What writes delete files, of Iceberg's Java API: internal classes, called here only."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from typing import Any

from pyspark.sql.types import StructType

from frazil.lake.deletes.position_files import PATH_ID
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import ICEBERG, Java, items

_TABLE, _MAP = ICEBERG + "Table", "java.util.Map"
_OF_LOCATIONS = ("write.object-storage.", "write.location-provider.", "write.parquet.compression-")
"""What properties of a table begin with that say where and how its data files are written."""


def tasks(table: Java, snapshot_id: int, paths: Collection[str] | None) -> dict[str, Java]:
    """Return the scan tasks of a snapshot for the wanted data files, by path: each a data file with its delete files.

    None wants all data files.
    """
    found: dict[str, Java] = {}
    planned = table.newScan().useSnapshot(snapshot_id).planFiles()
    try:
        iterator = planned.iterator()
        while (paths is None or len(found) < len(paths)) and iterator.hasNext():
            task = iterator.next()
            path = str(task.file().location())
            if paths is None or path in paths:
                found[path] = task
    finally:
        planned.close()
    return found


def unlisted_table(iceberg: Iceberg, table: Java, schema: StructType, folder: str) -> Java:
    """Return a table without partitions that is in no catalog: its files are in a folder beside the data files of `table`.

    `schema` is Spark's. Columns get field ids by their places, so a column keeps its id if only its type widens.
    """
    classes, properties = iceberg.classes, dict(table.properties())
    kept = {name: value for name, value in properties.items() if name.startswith(_OF_LOCATIONS)}
    data = str(properties.get("write.data.path") or f"{table.location()}/data")
    kept |= {"write.data.path": f"{data.rstrip('/')}/{folder}", "write.format.default": "parquet"}
    as_java = classes.java("org.apache.spark.sql.types.DataType").fromJson(schema.json())
    columns = classes.static(
        "spark.SparkSchemaUtil", "convert", (classes.load("org.apache.spark.sql.types.StructType"), as_java)
    )
    string, location = classes.load("java.lang.String"), str(table.location())
    metadata = classes.static(
        "TableMetadata",
        "newTableMetadata",
        (classes.load(ICEBERG + "Schema"), columns),
        (classes.load(ICEBERG + "PartitionSpec"), classes.static("PartitionSpec", "unpartitioned")),
        (string, location),
        (classes.load(_MAP), classes.map_of(kept)),
    )
    locations = classes.static(
        "LocationProviders", "locationsFor", (string, location), (classes.load(_MAP), classes.map_of(kept))
    )
    operations = classes.new(
        "StaticTableOperations",
        (classes.load(ICEBERG + "TableMetadata"), metadata),
        (classes.load(ICEBERG + "io.FileIO"), table.io()),
        (classes.load(ICEBERG + "io.LocationProvider"), locations),
    )
    return classes.new(
        "BaseTable", (classes.load(ICEBERG + "TableOperations"), operations), (string, f"{table.name()}.{folder}")
    )


class VectorWriter:
    """Write deletion vectors of format version 3, merged with those that the data files have, to one Puffin file."""

    def __init__(self, iceberg: Iceberg, table: Java, old: Mapping[str, Collection[Java]]) -> None:
        self._table, self._classes = table, iceberg.classes
        classes = iceberg.classes
        previous = classes.java("java.util.HashMap")()
        for path, deletes in old.items():
            if deletes:
                kept = classes.static("util.DeleteFileSet", "create")
                for delete in deletes:
                    kept.add(delete)
                previous.put(path, kept)
        loader = classes.static(
            "spark.source.SparkPositionDeltaWrite$PreviousDeleteLoader",
            "create",
            (classes.load(_TABLE), table),
            (classes.load(_MAP), previous),
        )
        integer, long = classes.java("java.lang.Integer").TYPE, classes.java("java.lang.Long").TYPE
        puffin = classes.load(ICEBERG + "FileFormat").getField("PUFFIN").get(None)
        builder = classes.static(
            "io.OutputFileFactory", "builderFor", (classes.load(_TABLE), table), (integer, 0), (long, 0)
        )
        self._writer = classes.new(
            "deletes.BaseDVFileWriter",
            (
                classes.load(ICEBERG + "io.OutputFileFactory"),
                builder.operationId(uuid.uuid4().hex).format(puffin).build(),
            ),
            (classes.load("java.util.function.Function"), loader),
        )

    def delete(self, file: Java, bitmap: bytes) -> None:
        """Delete positions of a data file: a 64-bit roaring bitmap in its portable form, little-endian."""
        classes = self._classes
        buffer = classes.java("java.nio.ByteBuffer").wrap(bitmap)
        buffer.order(classes.java("java.nio.ByteOrder").LITTLE_ENDIAN)
        positions = classes.static(
            "deletes.RoaringPositionBitmap", "deserialize", (classes.load("java.nio.ByteBuffer"), buffer)
        )
        index = classes.new(
            "deletes.BitmapPositionDeleteIndex",
            (classes.load(ICEBERG + "deletes.RoaringPositionBitmap"), positions),
            (classes.load(ICEBERG + "DeleteFile"), None),
        )
        self._writer.delete(file.location(), index, self._table.specs().get(file.specId()), file.partition())

    def close(self) -> tuple[tuple[Java, ...], tuple[Java, ...]]:
        """Write all; return the new delete files, and those that they replace."""
        self._writer.close()
        result = self._writer.result()
        return items(result.deleteFiles()), items(result.rewrittenDeleteFiles())


def is_of_one_file(iceberg: Iceberg, delete: Java) -> bool:
    """Return whether a delete file names one data file: it says so, or its bounds do, as in files of version 2 of other engines."""
    kind = iceberg.classes.load(ICEBERG + "DeleteFile")
    return bool(iceberg.classes.static("util.ContentFileUtil", "isFileScoped", (kind, delete)))


def partition_of(iceberg: Iceberg, table: Java, file: Java) -> tuple[int, str, tuple[bool, ...]]:
    """Return what identifies a file's partition: spec, path, and which fields are null, as the text "null" has the same path."""
    partition, kind = file.partition(), iceberg.classes.java("java.lang.Class").forName("java.lang.Object")
    nulls = tuple(partition.get(place, kind) is None for place in range(int(partition.size())))
    return int(file.specId()), str(table.specs().get(file.specId()).partitionToPath(partition)), nulls


def write_bytes(table: Java, data_file: Java, name: str, payload: bytes) -> str:
    """Write a file into the partition of a data file, by the table's own locations and `FileIO`; return where it is."""
    spec, locations = table.specs().get(data_file.specId()), table.locationProvider()
    partitioned = bool(spec.isPartitioned())
    at = (
        locations.newDataLocation(spec, data_file.partition(), name) if partitioned else locations.newDataLocation(name)
    )
    stream = table.io().newOutputFile(at).create()
    try:
        stream.write(payload)
    finally:
        stream.close()
    return str(at)


def position_delete_file(
    iceberg: Iceberg, table: Java, data_file: Java, location: str, *, size: int, rows: int, paths: list[str]
) -> Java:
    """Return the position delete file at `location`: sorted `paths` are the data files it names, `data_file` is one of them."""
    classes, spec = iceberg.classes, table.specs().get(data_file.specId())
    builder = classes.static("FileMetadata", "deleteFileBuilder", (classes.load(ICEBERG + "PartitionSpec"), spec))
    builder = builder.ofPositionDeletes().withFormat("PARQUET").withPath(location).withFileSizeInBytes(size)
    builder = builder.withMetrics(_bounds(iceberg, paths[0], paths[-1])).withRecordCount(rows)
    if spec.isPartitioned():
        builder = builder.withPartition(data_file.partition())
    if len(paths) == 1:
        builder = builder.withReferencedDataFile(paths[0])
    return builder.build()


def _bounds(iceberg: Iceberg, first: str, last: str) -> Java:
    """Return metrics with the exact bounds of the paths: without them every data file would open the delete file."""
    classes = iceberg.classes
    bounds: list[Any] = []
    for path in (first, last):
        bound = classes.java("java.util.HashMap")()
        bound.put(PATH_ID, classes.java("java.nio.ByteBuffer").wrap(path.encode()))
        bounds.append(bound)
    kind = classes.load(_MAP)
    # py4j would make an Integer of a small Long: null here, and the builder sets the count.
    counts = [(classes.load("java.lang.Long"), None), *[(kind, None)] * 4]
    return classes.new("Metrics", *counts, *((kind, bound) for bound in bounds))
