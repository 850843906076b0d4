"""The delete files of a snapshot, and the paths of its data files, from its manifests: internal classes, called here only."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java, items

_NONE = "\0"  # in no path


@dataclass(frozen=True, slots=True)
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
    """Return the position deletes of a snapshot: vectors, and Parquet files of version 2. Other delete files are omitted."""
    classes = iceberg.classes
    files = classes.list_of(())
    for manifest in items(table.snapshot(snapshot_id).deleteManifests(table.io())):
        with closing(_read(iceberg, table, manifest, "readDeleteManifest")) as reader:
            files.addAll(classes.all_of(classes.list_of([reader])))
    return _of_positions(iceberg, table, files)


def data_paths(iceberg: Iceberg, table: Java, snapshot_id: int) -> frozenset[str]:
    """Return the paths of the data files of a snapshot. It is one call a manifest, however many files there are."""
    found = set[str]()
    for manifest in items(table.snapshot(snapshot_id).dataManifests(table.io())):
        with closing(_read(iceberg, table, manifest, "readPaths")) as paths:
            found.update(str(iceberg.classes.java("java.lang.String").join(_NONE, paths)).split(_NONE))
    return frozenset(found - {""})


def _read(iceberg: Iceberg, table: Java, manifest: Java, method: str) -> Java:
    of_table = ("io.FileIO", table.io()), ("java.util.Map", table.specs())
    return iceberg.classes.static("ManifestFiles", method, ("ManifestFile", manifest), *of_table)


def _of_positions(iceberg: Iceberg, table: Java, files: Java) -> list[DeleteFile]:
    """Return those of a Java list of delete files that are position deletes."""
    classes = iceberg.classes

    def of(method: str) -> list[Any]:
        return classes.values(classes.each(files, classes.function("ContentFile", method)))

    named = classes.function("util.ContentFileUtil", "referencedDataFileLocation", "DeleteFile")
    forms = of("format")
    columns = (
        of("location"),
        partitions_of(iceberg, table, files),
        of("dataSequenceNumber"),
        of("recordCount"),
        of("fileSizeInBytes"),
        classes.values(classes.each(files, named)),
        [form == "PUFFIN" for form in forms],
        items(files),
    )
    return [
        DeleteFile(*values)
        for content, form, values in zip(of("content"), forms, zip(*columns, strict=True), strict=True)
        if content == "POSITION_DELETES" and form in ("PARQUET", "PUFFIN")
    ]


Partition = tuple[int, str, tuple[bool, ...]]
"""Spec, path, and which fields are null, as the text "null" has the same path."""
_NULL = "null"


def partitions_of(iceberg: Iceberg, table: Java, files: Java) -> list[Partition]:
    """Return the partition of each file of a Java list, data files or delete files."""
    classes = iceberg.classes
    partitions = classes.each(files, classes.function("ContentFile", "partition"))
    specs = [int(spec) for spec in classes.values(classes.each(files, classes.function("ContentFile", "specId")))]
    found: dict[int, Partition] = {}
    for spec in sorted(set(specs)):
        places = [place for place, of in enumerate(specs) if of == spec]
        is_one = len(places) == len(specs)
        of_spec = partitions if is_one else classes.list_of(partitions.get(place) for place in places)
        found |= zip(places, _of_one_spec(iceberg, table.specs().get(spec), of_spec), strict=True)
    return [found[place] for place in range(len(specs))]


def _of_one_spec(iceberg: Iceberg, spec: Java, partitions: Java) -> list[Partition]:
    classes, number = iceberg.classes, int(spec.specId())
    to_path = classes.function("PartitionSpec", "partitionToPath", "StructLike", on=spec)
    paths = classes.values(classes.each(partitions, to_path))
    fields = range(int(spec.fields().size()))
    if not any(_NULL in path for path in paths):
        return [(number, path, (False,) * len(fields)) for path in paths]
    value = classes.load("java.lang.Object")
    get = [classes.function("StructLike", "get", "int", "java.lang.Class", then=[field, value]) for field in fields]
    nulls = zip(*([value is None for value in classes.values(classes.each(partitions, of))] for of in get), strict=True)
    return [(number, path, are_null) for path, are_null in zip(paths, nulls, strict=True)]
