"""Rewrite small data files of a table to few larger ones with the same rows, in a commit that changes no row.

The plan, the reading of a group's files and the commit are Iceberg's own (what its `rewriteDataFiles` is made of); taken
apart here so that rows are counted between writing and committing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, SparkSession

from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java
from frazil.lake.stage import CATALOG


@dataclass(frozen=True, slots=True)
class Group:
    """Files of one partition that are not of the target size. `newest` is the highest sequence number among them.

    `has_deletes`: another engine has deleted rows of them, in delete files.
    """

    partition: str
    files: int
    rows: int
    bytes: int
    newest: int
    has_deletes: bool
    java: Java = None


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A group and the files that were written for it; they are in no snapshot yet."""

    group: Group
    files: int
    rows: int
    bytes: int


def plan(iceberg: Iceberg, table: Java, *, group_bytes: int) -> list[Group]:
    """Return the groups of files that are too small or too large for the table's target size, by partition.

    Groups are of at least two files or more than one target's worth, and of `group_bytes` at most.
    """
    options = {"min-input-files": "2", "max-file-group-size-bytes": str(group_bytes)}
    planned = iceberg.rewrite_planner(table, options).plan().groups()
    try:
        found, groups = [], planned.iterator()
        while groups.hasNext():
            found.append(_group(table, groups.next()))
        return found
    finally:
        planned.close()


def rewrite(
    spark: SparkSession, iceberg: Iceberg, table: Java, group: Group, *, unique_id: str, order: Sequence[Column] = ()
) -> Rewritten:
    """Write the rows of a group's files to new files of the target size, in the order `order` within each file."""
    sets, cache, coordinator = iceberg.task_sets(), iceberg.table_cache(), iceberg.coordinator()
    source = f"{unique_id}-source"  # Spark mixes up the options of a read and a write that name one table
    cache.add(unique_id, table)
    cache.add(source, table)
    sets.stageTasks(table, source, group.java.fileScanTasks())
    try:
        rows = (
            spark.read.option("split-size", str(group.java.inputSplitSize()))
            .option("file-open-cost", "0")
            .table(f"{CATALOG}.`{source}`")
        )
        (
            (rows.sortWithinPartitions(*order) if order else rows)
            .writeTo(f"{CATALOG}.`{unique_id}`")
            .option("target-file-size-bytes", str(group.java.maxOutputFileSize()))
            .option("output-spec-id", str(group.java.outputSpecId()))
            .option("fanout-enabled", "true")
            .option("check-nullability", "false")
            .append()
        )
        files = list(coordinator.fetchNewFiles(table, unique_id))
    finally:
        sets.removeTasks(table, source)
        cache.remove(source)
        cache.remove(unique_id)
        coordinator.clearRewrite(table, unique_id)
    group.java.setOutputFiles(iceberg.classes.set_of(files))
    return Rewritten(
        group,
        len(files),
        sum(f.recordCount() for f in files),
        sum(f.fileSizeInBytes() for f in files),
    )


def commit(
    iceberg: Iceberg, table: Java, rewritten: Sequence[Rewritten], *, planned_on: int, summary: Mapping[str, str]
) -> None:
    """Swap the files of these groups for what was written for them, in one commit.

    `planned_on` is the snapshot that the groups were planned on. Commits of others that added files do not matter; if one
    took away a file or deleted rows of it, the Java exception says so, and the written files are deleted again.
    """
    manager = iceberg.rewrite_commit(table, planned_on, summary)
    manager.commitOrClean(iceberg.classes.set_of(one.group.java for one in rewritten))


def drop(table: Java, rewritten: Rewritten) -> None:
    """Delete the files that were written for a group, and that no commit took."""
    for file in rewritten.group.java.addedFiles():
        table.io().deleteFile(file.location())


def _group(table: Java, group: Java) -> Group:
    files, rows, newest, has_deletes, partition = 0, 0, 0, False, ""
    for task in group.fileScanTasks():
        file = task.file()
        if not files:
            partition = str(table.specs().get(file.specId()).partitionToPath(file.partition()))
        sequence = file.fileSequenceNumber()
        files, rows = files + 1, rows + int(file.recordCount())
        newest = max(newest, int(sequence) if sequence is not None else 0)
        has_deletes = has_deletes or not task.deletes().isEmpty()
    return Group(partition, files, rows, int(group.inputFilesSizeInBytes()), newest, has_deletes, group)
