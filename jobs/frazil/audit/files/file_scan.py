"""Scan a data file: mark its rows in a window, and check what its manifest and its footer state of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.audit.files.window import NONE, Found, Role, Window
from frazil.audit.files.windows import Box, Boxes, Claim, Placement, Stretch
from frazil.audit.finding import SHOWN, Finding, Flaw, Range
from frazil.errors import CatalogUnavailable
from frazil.lake.read.catalog_errors import translated_errors
from frazil.lake.read.data_files import Bounds, DataFile
from frazil.lake.read.row_groups import RowGroup, open_file
from frazil.lake.read.stored_tables import StoredTable
from frazil.schemas.dead_letter_outcomes import LANDED


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that say which record a row was; nested ones with dots. `outcome` is that of dead letters; None for rows."""

    topic: str
    partition: str
    offset: str
    outcome: str | None = None

    @property
    def all(self) -> tuple[str, str, str]:
        """The three that say which record it was."""
        return self.topic, self.partition, self.offset

    @property
    def counted(self) -> tuple[str, ...]:
        """Those whose bounds say what a file holds."""
        return self.all if self.outcome is None else (*self.all, self.outcome)


def is_dense(file: DataFile, columns: Columns, topic: str) -> bool:
    """Return whether the manifest alone says which records a file holds."""
    try:
        of_topic, partition, offset = (file.bounds[name] for name in columns.all)
    except KeyError:
        return False
    if file.deletes or not file.rows or None in (partition.low, offset.low):
        return False
    if columns.outcome is not None and file.bounds[columns.outcome].nulls != file.rows:
        return False
    return (
        is_of(of_topic, topic)
        and partition.nulls == offset.nulls == 0
        and partition.low == partition.high
        and offset.high - offset.low + 1 == file.rows
    )


def is_of(bounds: Bounds | None, topic: str) -> bool:
    """Return whether all rows of a file are the topic's. Names that metrics cut say nothing: two topics may begin alike."""
    return bounds is not None and bounds.nulls == 0 and bounds.low == bounds.high == topic


def is_foreign(bounds: Bounds | None, topic: str) -> bool:
    """Return whether no row of a file is the topic's."""
    if bounds is None or bounds.nulls != 0 or bounds.low is None or bounds.high is None:
        return False
    return bool(topic < bounds.low or topic > bounds.high)


_CORRUPT = re.compile(
    r"corrupt|decompress|end of stream|thrift|deserializ|checksum|invalid|flatbuffer|encoding|page|level|mismatch|unexpected",
    re.IGNORECASE,
)
"""Words of Arrow's `OSError` for a file whose bytes are not what was written; a store that fails raises `OSError`, too."""
_OF_STORE = re.compile(
    r"error:? [A-Z]+_[A-Z_]+|http|curl|connect|network|time[d ]*out|credential|access|token", re.IGNORECASE
)

_FORMAT = re.compile("Unsupported file format|Unsupported schema projection|out of range for nanosecond")
"""Words of PyIceberg and Arrow for Avro files, and for times in ORC files: only engines read these."""
_PATH = re.compile(r"\S*/\S*")

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Source:
    """The files of one table in which records are looked for. Of `altered` ones no manifest is believed.

    `claims` are what commits say of the files that they added, by snapshot. They count for files of several partitions,
    whose bounds span all offsets in between, and are checked when such a file is read. `replayed` are dead letters that a decision
    counts as landed, which is not in their table yet.
    """

    role: Role
    table: StoredTable
    columns: Columns
    files: tuple[DataFile, ...]
    altered: frozenset[str] = frozenset()
    claims: Mapping[int, Claim] = field(default_factory=dict)
    replayed: frozenset[tuple[int, int]] = frozenset()

    def boxes(self, files: Sequence[DataFile]) -> Boxes:
        """Return where the records of files may be."""
        return Boxes([self.box(file) for file in files], [self.claim(file) for file in files])

    def claim(self, file: DataFile) -> Claim | None:
        """Return what the commit of a file says of its offsets; None if nothing says more than the file's bounds."""
        return self.claims.get(file.snapshot_id or -1) if self.is_wide(file) else None

    def is_wide(self, file: DataFile) -> bool:
        """Return whether a file has records of several partitions."""
        box = self.box(file)
        return box is not None and box.partition_low < box.partition_high

    def box(self, file: DataFile) -> Box | None:
        """Return where the records of a file may be; None if nothing says so."""
        return None if file.path in self.altered else _box(file.bounds.get, self.columns)


@dataclass(slots=True)
class Scanned:
    """The result of a scan: `rows` read for the first time, of which `others` are of other topics and `unplaced` lack their place.

    `recovered` are dead letters that count as landed, and are left out.
    `outside` are of offsets that were never read, by partition.
    """

    rows: int = 0
    others: int = 0
    unplaced: int = 0
    recovered: int = 0
    outside: dict[int, Found] = field(default_factory=dict)
    problems: list[Finding] = field(default_factory=list)


class Scan:
    """Scans of the files of all windows. `read` is everything that the ledger says was read."""

    def __init__(self, read: Sequence[Stretch], *, topic: str, deep: bool) -> None:
        self._read, self._topic, self._deep = read, topic, deep
        self._domain = Placement(read)
        self._seen: dict[tuple[Role, str], set[int]] = {}
        """Row groups that were read before, by file: a row that is in no window is counted once."""

    def scan(self, source: Source, file: DataFile, window: Window) -> Scanned:
        """Mark the rows of a file in a window. Row groups that have none of it are not read."""
        scanned = Scanned()
        names = [source.columns.partition, source.columns.offset]
        believed = not self._deep and file.path not in source.altered
        if not (believed and is_of(file.bounds.get(source.columns.topic), self._topic)):
            names.append(source.columns.topic)
        if source.columns.outcome is not None:
            names.append(source.columns.outcome)
        seen = self._seen.setdefault((source.role, file.path), set())
        with noted(source, file.path, scanned.problems), open_file(source.table, file, names) as opened:
            if opened.rows not in (None, file.rows):
                what = f"holds {opened.rows} rows, its manifest says {file.rows}"
                scanned.problems.append(unlike(source, Flaw.FILE_ALTERED, file.path, what))
            if not self._agree(source, file, opened.groups):
                what = "states other bounds than its manifest"
                scanned.problems.append(unlike(source, Flaw.FILE_ALTERED, file.path, what))
            for group in self._wanted(opened.groups, source.columns, window, seen):
                self._group(source, file, group, opened.read(group), window, scanned, is_first=group.index not in seen)
                seen.add(group.index)
        return scanned

    def _agree(self, source: Source, file: DataFile, groups: Sequence[RowGroup]) -> bool:
        """Return whether no row group reaches beyond the manifest's bounds: such rows would be looked for elsewhere."""
        file_box = source.box(file)
        parts = (_box(group.bounds.get, source.columns) for group in groups)
        return file_box is None or all(part is None or file_box.contains(part) for part in parts)

    def _wanted(
        self, groups: Sequence[RowGroup], columns: Columns, window: Window, seen: set[int]
    ) -> Sequence[RowGroup]:
        boxes = Boxes([_box(group.bounds.get, columns) for group in groups])
        here, anywhere = boxes.touching(window.placement.spans), boxes.touching(self._read)
        return [g for g, now, ever in zip(groups, here, anywhere, strict=True) if now or not (ever or g.index in seen)]

    def _group(
        self,
        source: Source,
        file: DataFile,
        group: RowGroup,
        batches: object,
        window: Window,
        scanned: Scanned,
        *,
        is_first: bool,
    ) -> None:
        boxes = [box for box in (source.box(file), _box(group.bounds.get, source.columns)) if box is not None]
        claim = source.claim(file)
        claimed = None if claim is None else Placement([Stretch(p, r) for p, r in sorted(claim.items()) if len(r)])
        lies = False
        for batch in batches:  # type: ignore[attr-defined]
            if not all(pa.types.is_integer(batch.schema.types[i]) for i in (0, 1)):
                raise pa.ArrowInvalid("its partitions or offsets are not integers")
            if source.columns.outcome is not None:
                number, batch = len(batch), _dead(batch, source)
                scanned.recovered += number - len(batch) if is_first else 0
            placed = batch.drop_null() if any(column.null_count for column in batch.columns) else batch
            own_rows = placed.filter(pc.equal(placed.column(2), self._topic)) if batch.num_columns == 3 else placed
            partitions, offsets = (np.asarray(placed.column(i)) for i in (0, 1))
            lies = lies or not all(_inside(partitions, offsets, box) for box in boxes)
            lies = lies or (claimed is not None and bool((claimed.place(partitions, offsets) < 0).any()))
            if own_rows is not placed:
                partitions, offsets = (np.asarray(own_rows.column(i)) for i in (0, 1))
            offsets = offsets.astype(np.int64, copy=False)
            addresses = window.placement.place(partitions, offsets)
            is_inside = addresses >= 0
            window.mark(source.role, addresses if bool(is_inside.all()) else addresses[is_inside])
            if is_first:
                scanned.rows += len(batch)
                scanned.unplaced += len(batch) - len(placed)
                scanned.others += len(placed) - len(own_rows)
                elsewhere = partitions[~is_inside], offsets[~is_inside]
                is_strange = self._domain.place(*elsewhere) < 0
                outside(scanned.outside, elsewhere[0][is_strange], elsewhere[1][is_strange])
        if lies:
            what = "has records outside of the bounds that its manifest, its footer or its commit states"
            scanned.problems.append(unlike(source, Flaw.FILE_ALTERED, file.path, what))


def _dead(batch: pa.RecordBatch, source: Source) -> pa.RecordBatch:
    """Return the dead letters that do not count as landed, without their outcome."""
    outcome = batch.column(batch.num_columns - 1)
    is_landed = pc.fill_null(pc.is_in(outcome, pa.array(LANDED, pa.string())), False)
    batch = batch.select(range(batch.num_columns - 1)).filter(pc.invert(is_landed))
    if not source.replayed:
        return batch
    places = zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
    return batch.filter(pa.array([place not in source.replayed for place in places], pa.bool_()))


def outside(found: dict[int, Found], partitions: Ints, offsets: Ints) -> None:
    """Count rows of offsets that were never read."""
    for partition in np.unique(partitions).tolist():
        mine = offsets[partitions == partition]
        values = np.unique(mine)
        begins = np.flatnonzero(np.diff(values, prepend=values[0] - 2) != 1)
        ends = np.append(begins[1:], len(values))
        shown = tuple(
            Range(int(values[a]), int(values[b - 1]) + 1) for a, b in zip(begins[:SHOWN], ends[:SHOWN], strict=True)
        )
        found[partition] = found.get(partition, NONE) + Found(len(mine), shown)


@contextmanager
def noted(source: Source, path: str, problems: list[Finding]) -> Iterator[None]:
    """Note why the file at `path` cannot be read in the block. Raises `CatalogUnavailable` if that is not the file's fault."""
    try:
        with translated_errors(path):
            yield
    except FileNotFoundError:
        problems.append(unlike(source, Flaw.FILE_LOST, path, "does not exist"))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        problems.append(_unreadable(source, path, error))
    except CatalogUnavailable as error:
        said = _PATH.sub("", error.what)
        if not _CORRUPT.search(said) or _OF_STORE.search(said):
            raise
        problems.append(_unreadable(source, path, error))


def unlike(source: Source, flaw: Flaw, path: str, what: str) -> Finding:
    """Return a finding about one file."""
    return Finding(flaw=flaw, where=f"table {source.table.identifier}", what=f"{path} {what}", count=1)


def _unreadable(source: Source, path: str, error: Exception) -> Finding:
    why = (str(error).splitlines() or [""])[0]
    if _FORMAT.search(why):
        return unlike(
            source, Flaw.FORMAT_NOT_READ, path, f"is not read here: {why}. Rewrite it as Parquet by another engine"
        )
    return unlike(source, Flaw.FILE_UNREADABLE, path, f"cannot be read: {why}")


def _box(bounds: object, columns: Columns) -> Box | None:
    partition, offset = (bounds(name) for name in (columns.partition, columns.offset))  # type: ignore[operator]
    if not isinstance(partition, Bounds) or not isinstance(offset, Bounds):
        return None
    edges = (partition.low, partition.high, offset.low, offset.high)
    return None if None in edges else Box(*map(int, edges))


def _inside(partitions: Ints, offsets: Ints, box: Box) -> bool:
    if not len(offsets):
        return True
    return (
        box.partition_low <= int(partitions.min())
        and int(partitions.max()) <= box.partition_high
        and box.offset_low <= int(offsets.min())
        and int(offsets.max()) <= box.offset_high
    )
