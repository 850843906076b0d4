"""The delete files of a snapshot, and the paths of its data files, from its manifests: internal classes, called here only."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.lake.deletes.java_writers import partition_of
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import ICEBERG, Java, items

Partition = tuple[int, str, tuple[bool, ...]]
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
    classes, found = iceberg.classes, list[DeleteFile]()
    for manifest in items(table.snapshot(snapshot_id).deleteManifests(table.io())):
        reader = classes.static(
            "ManifestFiles",
            "readDeleteManifest",
            (classes.load(_MANIFEST), manifest),
            (classes.load(_IO), table.io()),
            (classes.load("java.util.Map"), table.specs()),
        )
        try:
            found += [file for java in _each(reader) if (file := _delete_file(iceberg, table, java)) is not None]
        finally:
            reader.close()
    return found


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


def _each(files: Java) -> list[Java]:
    found, iterator = [], files.iterator()
    while iterator.hasNext():
        found.append(iterator.next())
    return found


def _delete_file(iceberg: Iceberg, table: Java, java: Java) -> DeleteFile | None:
    kind = str(java.format())
    if str(java.content()) != "POSITION_DELETES" or kind not in ("PARQUET", "PUFFIN"):
        return None
    of = iceberg.classes.static(
        "util.ContentFileUtil", "referencedDataFileLocation", (iceberg.classes.load(ICEBERG + "DeleteFile"), java)
    )
    return DeleteFile(
        location=str(java.location()),
        partition=partition_of(iceberg, table, java),
        sequence=int(java.dataSequenceNumber()),
        rows=int(java.recordCount()),
        bytes=int(java.fileSizeInBytes()),
        of=None if of is None else str(of),
        is_vector=kind == "PUFFIN",
        java=java,
    )
