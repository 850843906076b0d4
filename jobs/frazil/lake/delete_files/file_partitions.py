"""What identifies the partitions of files, in a few calls into the JVM however many files there are."""

from __future__ import annotations

from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import ICEBERG, Java

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
    struct = classes.load(ICEBERG + "StructLike")
    paths = classes.values(
        classes.each(partitions, classes.function("PartitionSpec", "partitionToPath", struct, on=spec))
    )
    fields = range(int(spec.fields().size()))
    if not any(_NULL in path for path in paths):
        return [(number, path, (False,) * len(fields)) for path in paths]
    kinds = classes.java("java.lang.Integer").TYPE, classes.load("java.lang.Class")
    get = [
        classes.function("StructLike", "get", *kinds, then=[field, classes.load("java.lang.Object")])
        for field in fields
    ]
    nulls = zip(*([value is None for value in classes.values(classes.each(partitions, of))] for of in get), strict=True)
    return [(number, path, are_null) for path, are_null in zip(paths, nulls, strict=True)]
