"""Writers of delete files, of Iceberg's Java API: internal classes, called here only."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from contextlib import closing
from typing import Any

from pyspark.sql.types import StructType

from frazil.lake.delete_files.position_deletes import PATH_ID
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import GUAVA, Java, items

TASKS_AT_ONCE = 1_000
"""So many scan tasks are in memory at once, next to those that are wanted."""
_EQUALITY = "EQUALITY_DELETES"
_OF_LOCATIONS = ("write.object-storage.", "write.location-provider.", "write.parquet.compression-")
"""The beginnings of table properties that say where and how data files are written."""


def tasks(iceberg: Iceberg, table: Java, snapshot_id: int, paths: Collection[str] | None) -> dict[str, Java]:
    """Return the scan tasks of a snapshot for some data files, or all, by path: each a data file with its delete files."""
    found: dict[str, Java] = {}
    classes = iceberg.classes
    file, location = classes.function("ContentScanTask", "file"), classes.function("ContentFile", "location")
    with closing(table.newScan().useSnapshot(snapshot_id).planFiles()) as planned:
        tasks = ("java.lang.Iterable", planned), ("int", TASKS_AT_ONCE)
        parts = classes.static(GUAVA + "Iterables", "partition", *tasks).iterator()
        while (paths is None or len(found) < len(paths)) and parts.hasNext():
            part = parts.next()
            there = classes.values(classes.each(classes.each(part, file), location))
            found |= {path: part.get(i) for i, path in enumerate(there) if paths is None or path in paths}
    return found


def unlisted_table(iceberg: Iceberg, table: Java, schema: StructType, folder: str) -> Java:
    """Return a table without partitions that is in no catalog: its files are in a folder next to the data files of `table`.

    `schema` is Spark's. Columns get field ids by their places, so a column keeps its id if only its type widens.
    """
    classes, properties = iceberg.classes, dict(table.properties())
    kept = {name: value for name, value in properties.items() if name.startswith(_OF_LOCATIONS)}
    data = str(properties.get("write.data.path") or f"{table.location()}/data")
    kept |= {"write.data.path": f"{data.rstrip('/')}/{folder}", "write.format.default": "parquet"}
    as_java = classes.java("org.apache.spark.sql.types.DataType").fromJson(schema.json())
    columns = classes.static("spark.SparkSchemaUtil", "convert", ("org.apache.spark.sql.types.StructType", as_java))
    place = ("java.lang.String", str(table.location())), ("java.util.Map", classes.map_of(kept))
    spec = ("PartitionSpec", classes.static("PartitionSpec", "unpartitioned"))
    operations = classes.new(
        "StaticTableOperations",
        ("TableMetadata", classes.static("TableMetadata", "newTableMetadata", ("Schema", columns), spec, *place)),
        ("io.FileIO", table.io()),
        ("io.LocationProvider", classes.static("LocationProviders", "locationsFor", *place)),
    )
    name = ("java.lang.String", f"{table.name()}.{folder}")
    return classes.new("BaseTable", ("TableOperations", operations), name)


class VectorWriter:
    """Write deletion vectors of format version 3, merged with those that the data files have, to one Puffin file.

    `tasks` are scan tasks of the data files by path. `old` is the number of their delete files that are of one data file.
    """

    def __init__(self, iceberg: Iceberg, table: Java, tasks: Mapping[str, Java]) -> None:
        self._table, self._classes = table, iceberg.classes
        self._paths, listed = list(tasks), iceberg.classes.list_of(tasks.values())
        self._files = iceberg.classes.each(listed, iceberg.classes.function("ContentScanTask", "file"))
        deletes = iceberg.classes.each(listed, iceberg.classes.function("FileScanTask", "deletes"))
        all_deletes = iceberg.classes.all_of(deletes)
        of_one = iceberg.classes.function("util.ContentFileUtil", "isFileScoped", "DeleteFile")
        self.old = iceberg.classes.values(iceberg.classes.each(all_deletes, of_one)).count(True)
        self._writer = self._made(self._previous(self._of_positions(deletes, all_deletes)))

    def delete(self, bitmaps: Mapping[str, bytes]) -> None:
        """Delete positions of data files, by path: 64-bit roaring bitmaps in their portable form, little-endian."""
        classes = self._classes
        buffer = classes.java("java.nio.ByteBuffer").wrap(b"".join(bitmaps[path] for path in self._paths))
        buffer.order(classes.java("java.nio.ByteOrder").LITTLE_ENDIAN)
        # Each call reads the bitmap at the buffer's position, and moves that after it.
        read = classes.function("deletes.RoaringPositionBitmap", "deserialize", "java.nio.ByteBuffer")
        positions = classes.each(classes.java("java.util.Collections").nCopies(len(self._paths), buffer), read)
        kinds = ("deletes.RoaringPositionBitmap", "DeleteFile")
        made = classes.function("deletes.BitmapPositionDeleteIndex", "new", *kinds, then=[None])
        indexes = classes.each(positions, made)
        partitions = classes.each(self._files, classes.function("ContentFile", "partition"))
        specs = self._table.specs()
        by_id = {number: specs.get(number) for number in map(int, classes.values(specs.keySet()))}
        of = classes.values(classes.each(self._files, classes.function("ContentFile", "specId")))
        for i, path in enumerate(self._paths):
            self._writer.delete(path, indexes.get(i), by_id[of[i]], partitions.get(i))

    def close(self) -> tuple[tuple[Java, ...], tuple[Java, ...]]:
        """Write all; return the new delete files, and those that they replace."""
        self._writer.close()
        result = self._writer.result()
        return items(result.deleteFiles()), items(result.rewrittenDeleteFiles())

    def _of_positions(self, deletes: Java, all_deletes: Java) -> Java:
        """Return the lists without equality deletes, as another engine writes them: they stay next to a vector."""
        classes = self._classes
        contents = classes.each(all_deletes, classes.function("ContentFile", "content"))
        if _EQUALITY not in classes.values(contents):
            return deletes
        return classes.list_of(
            classes.list_of(delete for delete in items(of_file) if str(delete.content()) != _EQUALITY)
            for of_file in items(deletes)
        )

    def _previous(self, deletes: Java) -> Java:
        """Return the delete files of each data file that has some, by its path."""
        classes = self._classes
        sets = classes.each(deletes, classes.function("util.DeleteFileSet", "of", "java.lang.Iterable"))
        are_empty = classes.values(classes.each(sets, classes.function("util.DeleteFileSet", "isEmpty")))
        previous = classes.java("java.util.HashMap")()
        for i, path in enumerate(self._paths):
            if not are_empty[i]:
                previous.put(path, sets.get(i))
        return previous

    def _made(self, previous: Java) -> Java:
        classes = self._classes
        table = ("Table", self._table)
        loads = "spark.source.SparkPositionDeltaWrite$PreviousDeleteLoader"
        loader = classes.static(loads, "create", table, ("java.util.Map", previous))
        puffin = classes.load("FileFormat").getField("PUFFIN").get(None)
        builder = classes.static("io.OutputFileFactory", "builderFor", table, ("int", 0), ("long", 0))
        files = builder.operationId(uuid.uuid4().hex).format(puffin).build()
        factory = ("io.OutputFileFactory", files)
        return classes.new("deletes.BaseDVFileWriter", factory, ("java.util.function.Function", loader))


def write_bytes(table: Java, data_file: Java, name: str, payload: bytes) -> str:
    """Write a file into the partition of a data file, by the table's own locations and `FileIO`; return where it is."""
    spec, locations = table.specs().get(data_file.specId()), table.locationProvider()
    partitioned = bool(spec.isPartitioned())
    at = (
        locations.newDataLocation(spec, data_file.partition(), name) if partitioned else locations.newDataLocation(name)
    )
    with closing(table.io().newOutputFile(at).create()) as stream:
        stream.write(payload)
    return str(at)


def position_delete_file(
    iceberg: Iceberg, table: Java, data_file: Java, location: str, *, size: int, rows: int, paths: list[str]
) -> Java:
    """Return the position delete file at `location`: sorted `paths` are the data files it names, `data_file` is one of them."""
    classes, spec = iceberg.classes, table.specs().get(data_file.specId())
    builder = classes.static("FileMetadata", "deleteFileBuilder", ("PartitionSpec", spec))
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
    # py4j would make an Integer of a small Long: null here, and the builder sets the count.
    counts = [("java.lang.Long", None), *[("java.util.Map", None)] * 4]
    return classes.new("Metrics", *counts, *(("java.util.Map", bound) for bound in bounds))
