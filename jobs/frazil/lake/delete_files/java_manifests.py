"""The delete files of a snapshot, and the paths of its data files, from its manifests: internal classes, called here only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from frazil.lake.delete_files.file_partitions import Partition, partitions_of
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import ICEBERG, Java, items

_NONE = "\0"  # in no path
_IO, _MANIFEST = ICEBERG + "io.FileIO", ICEBERG + "ManifestFile"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFile:
    """A file of position deletes that a snapshot has. `of` is its data file, if it names rows of this one only.

    `sequence` is the sequence number of its deletes. `java` is the file itself, null where nothing is committed.
    """

    location: str
    partition: Partition
    sequence: int
    rows: int
    bytes: int
    of: str | None = None
    is_vector: bool = False
    java: Java = None


def position_deletes(iceberg: Iceberg, table: Java, snapshot_id: int) -> list[DeleteFile]:
    """Return the position deletes of a snapshot: vectors, and Parquet files of version 2. Other delete files are left out."""
    classes = iceberg.classes
    files = classes.list_of(())
    for manifest in items(table.snapshot(snapshot_id).deleteManifests(table.io())):
        reader = classes.static(
            "ManifestFiles",
            "readDeleteManifest",
            (classes.load(_MANIFEST), manifest),
            (classes.load(_IO), table.io()),
            (classes.load("java.util.Map"), table.specs()),
        )
        try:
            files.addAll(classes.all_of(classes.list_of([reader])))
        finally:
            reader.close()
    return _of_positions(iceberg, table, files)


def data_paths(iceberg: Iceberg, table: Java, snapshot_id: int) -> frozenset[str]:
    """Return the paths of the data files of a snapshot. It is one call a manifest, however many files there are."""
    classes, found = iceberg.classes, set[str]()
    for manifest in items(table.snapshot(snapshot_id).dataManifests(table.io())):
        paths = classes.static(
            "ManifestFiles",
            "readPaths",
            (classes.load(_MANIFEST), manifest),
            (classes.load(_IO), table.io()),
            (classes.load("java.util.Map"), table.specs()),
        )
        try:
            found.update(str(classes.java("java.lang.String").join(_NONE, paths)).split(_NONE))
        finally:
            paths.close()
    return frozenset(found - {""})


def _of_positions(iceberg: Iceberg, table: Java, files: Java) -> list[DeleteFile]:
    """Return those of a Java list of delete files that are position deletes."""
    classes = iceberg.classes

    def of(method: str) -> list[Any]:
        return classes.values(classes.each(files, classes.function("ContentFile", method)))

    kind = classes.load(ICEBERG + "DeleteFile")
    named = classes.function("util.ContentFileUtil", "referencedDataFileLocation", kind)
    columns = (
        of("content"),
        of("format"),
        of("location"),
        partitions_of(iceberg, table, files),
        of("dataSequenceNumber"),
        of("recordCount"),
        of("fileSizeInBytes"),
        classes.values(classes.each(files, named)),
    )
    return [
        DeleteFile(
            location=location,
            partition=partition,
            sequence=sequence,
            rows=rows,
            bytes=size,
            of=data_file,
            is_vector=form == "PUFFIN",
            java=files.get(place),
        )
        for place, (content, form, location, partition, sequence, rows, size, data_file) in enumerate(
            zip(*columns, strict=True)
        )
        if content == "POSITION_DELETES" and form in ("PARQUET", "PUFFIN")
    ]
