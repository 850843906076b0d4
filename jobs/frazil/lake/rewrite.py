"""Rewrite small data files of a table to few larger ones with the same rows, in a commit that changes no row.

The plan, the reading of a group's files and the commit are Iceberg's own (what its `rewriteDataFiles` is made of); taken
apart here so that rows are counted between writing and committing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, SparkSession

from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java, items
from frazil.lake.stage import CATALOG, OPTIONS

DELETED_SHARE, MANY_DELETE_FILES = "0.1", 10
"""From this share of deleted rows, or number of delete files, a data file is rewritten without them."""


@dataclass(frozen=True, slots=True)
class Group:
    """Files of one partition that are not of the target size. `newest` is the highest sequence number among them.

    `deletes` are the delete files that name rows of them, which are `deleted` rows; `maybe_deleted` are more, of delete files that
    may name rows of other files too, or rows that another one names.
    """

    partition: str
    files: int
    rows: int
    bytes: int
    newest: int
    deletes: int = 0
    deleted: int = 0
    maybe_deleted: int = 0
    java: Java = None


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A group and the files that were written for it; they are in no snapshot yet."""

    group: Group
    files: int
    rows: int
    bytes: int


def plan(
    iceberg: Iceberg,
    table: Java,
    *,
    group_bytes: int,
    target_bytes: int,
    with_deletes: bool = False,
    small_bytes: int | None = None,
) -> list[Group]:
    """Return the groups of files that are too small or too large for the target size, by partition.

    Groups are of at least two files or more than one target's worth, and of `group_bytes` at most. With `with_deletes`, files of
    which many rows are deleted are there too. Files of `small_bytes` and more count as large enough.
    """
    options = {"min-input-files": "2", "max-file-group-size-bytes": str(group_bytes)}
    options["target-file-size-bytes"] = str(target_bytes)
    if small_bytes is not None:
        options["min-file-size-bytes"] = str(min(small_bytes, target_bytes * 3 // 4))
    if with_deletes:
        options |= {"delete-ratio-threshold": DELETED_SHARE, "delete-file-threshold": str(MANY_DELETE_FILES)}
    planner = iceberg.classes.new("actions.BinPackRewriteFilePlanner", ("Table", table))
    planner.init(options)
    with closing(planner.plan().groups()) as planned:
        found, groups = [], planned.iterator()
        while groups.hasNext():
            found.append(_group(iceberg, table, groups.next()))
        return found


def rewrite(
    spark: SparkSession, iceberg: Iceberg, table: Java, group: Group, *, unique_id: str, order: Sequence[Column] = ()
) -> Rewritten:
    """Write the rows of a group's files to new files of the target size, in the order `order` within each file."""
    cache, coordinator = iceberg.table_cache(), iceberg.coordinator()
    source = f"{unique_id}-source"  # Spark mixes up the options of a read and a write that name one table
    cache.add(unique_id, table)
    cache.add(source, table)
    iceberg.task_sets().stageTasks(table, source, group.java.fileScanTasks())
    try:
        read = spark.read.option("split-size", str(group.java.inputSplitSize())).option("file-open-cost", "0")
        rows = read.table(f"{CATALOG}.`{source}`")
        (
            (rows.sortWithinPartitions(*order) if order else rows)
            .writeTo(f"{CATALOG}.`{unique_id}`")
            .option("target-file-size-bytes", str(group.java.maxOutputFileSize()))
            .option("output-spec-id", str(group.java.outputSpecId()))
            .options(**OPTIONS)
            .append()
        )
        files = items(coordinator.fetchNewFiles(table, unique_id))
    finally:
        iceberg.task_sets().removeTasks(table, source)
        cache.remove(source)
        cache.remove(unique_id)
        coordinator.clearRewrite(table, unique_id)
    group.java.setOutputFiles(iceberg.classes.set_of(files))
    rows, size = sum(file.recordCount() for file in files), sum(file.fileSizeInBytes() for file in files)
    return Rewritten(group, len(files), rows, size)


def commit(
    iceberg: Iceberg, table: Java, rewritten: Sequence[Rewritten], *, planned_on: int, summary: Mapping[str, str]
) -> None:
    """Swap the files of these groups for what was written for them, in one commit.

    `planned_on` is the snapshot that the groups were planned on. Commits of others that added files do not matter; if one
    took away a file or deleted rows of it, the Java exception says so, and the written files are deleted again.
    """
    arguments = ("long", planned_on), ("boolean", True), ("java.util.Map", iceberg.classes.map_of(summary))
    manager = iceberg.classes.new("actions.RewriteDataFilesCommitManager", ("Table", table), *arguments)
    manager.commitOrClean(iceberg.classes.set_of(one.group.java for one in rewritten))


def drop(table: Java, rewritten: Rewritten) -> None:
    """Delete the files that were written for a group, and that no commit took; what cannot be deleted is an orphan."""
    for file in rewritten.group.java.addedFiles():
        with suppress(Py4JJavaError):  # an ingest may delete nothing but metadata
            table.io().deleteFile(file.location())


def _group(iceberg: Iceberg, table: Java, group: Java) -> Group:
    classes, tasks = iceberg.classes, group.fileScanTasks()
    files = classes.each(tasks, classes.function("ContentScanTask", "file"))
    sequences = classes.values(classes.each(files, classes.function("ContentFile", "fileSequenceNumber")))
    rows = classes.values(classes.each(files, classes.function("ContentFile", "recordCount")))
    deletes = classes.each(tasks, classes.function("FileScanTask", "deletes"))
    alone, shared = _deleted_rows(iceberg, deletes)
    first = files.get(0)
    return Group(
        partition=str(table.specs().get(first.specId()).partitionToPath(first.partition())),
        files=len(rows),
        rows=sum(rows),
        bytes=int(group.inputFilesSizeInBytes()),
        newest=max(sequence or 0 for sequence in sequences),
        deletes=len(alone) + len(shared),
        deleted=sum(alone),
        maybe_deleted=sum(shared),
        java=group,
    )


def _deleted_rows(iceberg: Iceberg, deletes: Java) -> tuple[Collection[int], Collection[int]]:
    """Return the rows of each delete file of these lists, one list a data file: of those that are alone, and of the others."""
    classes = iceberg.classes
    sizes = classes.values(classes.each(deletes, classes.function("java.util.Collection", "size")))
    alone: dict[tuple[str, str], int] = {}
    shared: dict[str, int] = {}
    if not any(sizes):
        return (), ()
    listed = classes.all_of(deletes)
    of_file = classes.values(classes.each(listed, classes.function("DeleteFile", "referencedDataFile")))
    location = classes.values(classes.each(listed, classes.function("ContentFile", "location")))
    rows = classes.values(classes.each(listed, classes.function("ContentFile", "recordCount")))
    beside = [size for size in sizes for _ in range(size)]
    for of, at, deleted, size in zip(of_file, location, rows, beside, strict=True):
        if of is not None and size == 1:  # two of one data file may name one row
            alone[of, at] = deleted
        else:
            shared[at] = deleted
    return alone.values(), shared.values()
