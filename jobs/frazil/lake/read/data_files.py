"""The files of a snapshot: which there are, what their metrics say, whether they exist, and columns of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from frazil.errors import CatalogUnavailable
from frazil.lake.read.catalog_errors import damage, translated_errors
from frazil.lake.read.stored_tables import Snapshot, StoredTable

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile as IcebergFile

PARALLEL = 16  # requests to the object store at a time
READERS = 4  # files whose rows are read at a time

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Bounds:
    """A manifest's metrics of one column in one file. A string's bounds may be cut. `None` is unknown."""

    low: Any
    high: Any
    nulls: int | None


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file that a snapshot refers to. `bounds` are those of the columns asked for, as far as there are metrics.

    `deletes` are the delete files that apply to it, which only a merge-on-read delete leaves. `column_bytes` is the size
    of the columns asked for, compressed, as far as there are metrics. `snapshot_id` is the snapshot that added the file, if
    it is known.
    """

    path: str
    format: str
    rows: int
    bytes: int
    spec_id: int
    partition: Any
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    deletes: tuple[Any, ...] = ()
    column_bytes: int = 0
    snapshot_id: int | None = None


@dataclass(frozen=True, slots=True)
class Contents:
    """The files of one snapshot.

    `lost` are manifests, or the manifest list itself, that do not exist or cannot be read: what they list is not in `files`.
    `has_equality_deletes` says that rows are deleted by value, which only an engine can apply.
    """

    files: tuple[DataFile, ...] = ()
    delete_files: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    has_equality_deletes: bool = False


def contents(table: StoredTable, snapshot: Snapshot | None, columns: Sequence[str]) -> Contents:
    """Return the files of a snapshot, with the bounds of `columns`; of none, nothing."""
    from pyiceberg.manifest import ManifestContent

    if snapshot is None:
        return Contents()
    listed = manifests(table, snapshot)
    if listed is None:
        return Contents(lost=(snapshot.manifest_list,))
    paths = tuple(manifest.manifest_path for manifest in listed)
    if any(manifest.content == ManifestContent.DELETES and _is_live(manifest) for manifest in listed):
        return _with_deletes(table, snapshot, columns, paths)
    ids = field_ids(table, columns)

    def read(manifest: Any) -> list[DataFile] | None:
        entries = _entries(table, manifest)
        if entries is None:
            return None
        return [replace(_data_file(entry.data_file, ids), snapshot_id=entry.snapshot_id) for entry in entries]

    read_all = list(each(read, listed))
    return Contents(
        files=tuple(file for files in read_all for file in files or ()),
        lost=tuple(path for path, files in zip(paths, read_all, strict=True) if files is None),
    )


def manifests(table: StoredTable, snapshot: Snapshot) -> list[Any] | None:
    """Return the manifests of a snapshot; None if the file that lists them does not exist or cannot be read.

    PyIceberg's own `Snapshot.manifests` remembers what it read before, which does not prove that it still exists.
    """
    from pyiceberg.manifest import read_manifest_list

    location = snapshot.manifest_list
    return _listed(location, lambda: read_manifest_list(table.iceberg.io.new_input(location)))


def _entries(table: StoredTable, manifest: Any) -> list[Any] | None:
    """Return what a manifest lists; None if it does not exist or cannot be read."""
    io = table.iceberg.io
    return _listed(manifest.manifest_path, lambda: manifest.fetch_manifest_entry(io, discard_deleted=True))


def _listed(location: str, read: Callable[[], Iterable[Any]]) -> list[Any] | None:
    try:
        with translated_errors(location):
            return list(read())
    except FileNotFoundError:
        return None
    except damage():
        return None


def lengths(table: StoredTable, locations: Iterable[str]) -> dict[str, int | None]:
    """Return the size of each file in bytes, by a HEAD request each; None for one that does not exist."""

    def length(location: str) -> int | None:
        try:
            with translated_errors(location):
                return len(table.iceberg.io.new_input(location))
        except (FileNotFoundError, ValueError):  # the second for a text of a damaged list that is no path
            return None

    asked = list(dict.fromkeys(locations))
    return dict(zip(asked, each(length, asked), strict=True))


def missing(table: StoredTable, locations: Iterable[str]) -> tuple[str, ...]:
    """Return those of the files that do not exist."""
    return tuple(location for location, size in lengths(table, locations).items() if size is None)


def named_file(document: Mapping[str, Any]) -> DataFile:
    """Return a data file that is in no snapshot, as a decision names it: Iceberg's JSON."""
    from pyiceberg.typedef import Record

    names = ("file-path", "file-format", "record-count", "file-size-in-bytes", "spec-id")
    path, form, rows, size, spec_id = (document[name] for name in names)
    return DataFile(path, form.upper(), rows, size, spec_id, Record())


def each(work: Callable[[A], B], items: Sequence[A], *, parallel: int = PARALLEL) -> Iterator[B]:
    """Yield the results of `work` on each item, in their order, a few at a time: what is not taken yet is not begun."""
    if len(items) <= 1:
        yield from map(work, items)
        return
    window = 4 * parallel
    with ThreadPoolExecutor(parallel, thread_name_prefix="files") as threads:
        for begin in range(0, len(items), window):
            yield from threads.map(work, items[begin : begin + window])


def _is_live(manifest: Any) -> bool:
    """Return whether any file in a manifest still counts; unknown counts as yes."""
    return any(count is None or count > 0 for count in (manifest.added_files_count, manifest.existing_files_count))


def _with_deletes(table: StoredTable, snapshot: Snapshot, columns: Sequence[str], paths: Sequence[str]) -> Contents:
    ids = field_ids(table, columns)
    if lost := missing(table, paths):
        return Contents(lost=lost)
    try:
        with translated_errors(snapshot.manifest_list):
            tasks = list(table.iceberg.scan(snapshot_id=snapshot.id).plan_files())
    except damage() as error:
        if "equality deletes" in str(error):
            return Contents(has_equality_deletes=True)
        damaged = tuple(one.manifest_path for one in manifests(table, snapshot) or () if _entries(table, one) is None)
        if not damaged:
            raise
        return Contents(lost=damaged)
    deletes = {delete.file_path: None for task in tasks for delete in task.delete_files}
    files = tuple(_data_file(task.file, ids, tuple(task.delete_files)) for task in tasks)
    return Contents(files=files, delete_files=tuple(deletes))


def field_ids(table: StoredTable, columns: Sequence[str]) -> dict[str, tuple[int, Any]]:
    """Return Iceberg's id and type of columns, by name. Raises `CatalogUnavailable` if the table lacks one."""
    schema, ids = table.iceberg.schema(), {}
    for name in columns:
        try:
            found = schema.find_field(name)
        except ValueError:
            raise CatalogUnavailable(
                f"the table has no column {name}",
                where=f"table {table.identifier}",
                do="Check that the declaration names the table that Frazil made, with the layout it was made with",
            ) from None
        ids[name] = (found.field_id, found.field_type)
    return ids


def _data_file(file: IcebergFile, ids: Mapping[str, tuple[int, Any]], deletes: tuple[Any, ...] = ()) -> DataFile:
    from pyiceberg.conversions import from_bytes

    def bound(kind: Any, value: bytes | None) -> Any:
        return None if value is None else from_bytes(kind, value)

    low, high, nulls = file.lower_bounds or {}, file.upper_bounds or {}, file.null_value_counts or {}
    sizes = file.column_sizes or {}
    return DataFile(
        path=file.file_path,
        format=str(file.file_format.value),
        rows=file.record_count,
        bytes=file.file_size_in_bytes,
        spec_id=file.spec_id or 0,
        partition=file.partition,
        bounds={
            name: Bounds(bound(kind, low.get(number)), bound(kind, high.get(number)), nulls.get(number))
            for name, (number, kind) in ids.items()
        },
        deletes=deletes,
        column_bytes=sum(sizes.get(number, 0) for number, _ in ids.values()),
    )
