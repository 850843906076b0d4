"""Count: which records stand in a table, told by its data files and by nothing else.

A dense file (see `dense`) is counted from its manifest alone. All others are read: two columns of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from frazil.audit.dense import Columns, is_dense, is_of
from frazil.audit.finding import SHOWN, Finding, Flaw
from frazil.audit.runs import NONE, Range, Runs, of_ranges, of_rows, union
from frazil.lake.data_files import Contents, DataFile, batches, contents, each, lengths
from frazil.lake.reader import Snapshot, StoredTable

READERS = 4  # files read at a time
COALESCE = 1_000_000  # ranges kept apart before they are united: 16 MB


@dataclass(slots=True)
class Tally:
    """The records of one partition in one table. `rows` counts doubled ones as often as they stand there."""

    rows: int = 0
    set: Runs = NONE
    excess: list[Runs] = field(default_factory=list)
    _apart: list[Runs] = field(default_factory=list)
    _ranges: int = 0

    def add(self, runs: Runs) -> None:
        """Count more rows. Ranges are united now and then, so that memory follows what is distinct and not what was
        read.
        """
        self.rows += runs.offsets
        self._apart.append(runs)
        self._ranges += len(runs)
        if self._ranges > COALESCE + 2 * len(self.set):
            self.unite()

    def unite(self) -> None:
        """Make `set` and `excess` what was added so far."""
        self.set, excess = union([self.set, *self._apart])
        if len(excess):
            self.excess.append(excess)
        self._apart, self._ranges = [], 0


@dataclass(frozen=True, slots=True)
class Read:
    """How the files of one table were counted: `by_manifest` alone or `by_scan`, each as files and rows.

    `others` are rows of other topics, which are left alone; `unplaced` rows lack partition or offset.
    """

    table: str
    snapshot_id: int | None
    files_by_manifest: int = 0
    rows_by_manifest: int = 0
    files_by_scan: int = 0
    rows_by_scan: int = 0
    files_with_deletes: int = 0
    others: int = 0
    unplaced: int = 0


@dataclass(frozen=True, slots=True)
class Counted:
    """What a table holds of a topic, by partition, how that was told, and what is wrong with its files."""

    read: Read
    tallies: dict[int, Tally]
    findings: tuple[Finding, ...]

    def set_of(self, partition: int) -> Runs:
        """The offsets of a partition that stand here."""
        return self.tallies[partition].set if partition in self.tallies else NONE

    def rows_of(self, partition: int) -> int:
        """The rows of a partition."""
        return self.tallies[partition].rows if partition in self.tallies else 0


def nothing(table: str) -> Counted:
    """The count of a table that is not there."""
    return Counted(Read(table, None), {}, ())


def count(
    table: StoredTable, snapshot: Snapshot | None, columns: Columns, *, topic: str, deep: bool = False
) -> Counted:
    """Count the topic's records in a snapshot of a table; with `deep` every file is read, dense or not."""
    found = contents(table, snapshot, columns.all)
    sizes = lengths(table, [*found.delete_files, *(file.path for file in found.files)])
    return tally(
        table,
        [file for file in found.files if sizes[file.path] is not None],
        columns,
        topic=topic,
        deep=deep,
        altered={file.path for file in found.files if sizes[file.path] not in (None, file.bytes)},
        snapshot_id=snapshot.id if snapshot else None,
        findings=_of_files(table, found, sizes),
    )


def tally(
    table: StoredTable,
    files: Sequence[DataFile],
    columns: Columns,
    *,
    topic: str,
    deep: bool = False,
    altered: Collection[str] = (),
    snapshot_id: int | None = None,
    findings: Sequence[Finding] = (),
) -> Counted:
    """Count the topic's records in files that are there; of the `altered` ones no manifest is believed."""
    tallies: dict[int, Tally] = {}
    problems, others, unplaced, rows_read = list(findings), 0, 0, 0
    believed = [] if deep else [file for file in files if file.path not in altered]
    dense = [file for file in believed if is_dense(file, columns, topic)]
    known = {id(file) for file in dense}
    for file in dense:
        partition, offset = file.bounds[columns.partition].low, file.bounds[columns.offset]
        tallies.setdefault(partition, Tally()).add(of_ranges([Range(offset.low, offset.high + 1)]))
    # In the order of offsets, so that ranges that touch meet soon.
    scanned = sorted((file for file in files if id(file) not in known), key=lambda file: _low(file, columns))
    for rows in each(lambda file: _scan(table, file, columns, topic), scanned, parallel=READERS):
        others, unplaced, rows_read = others + rows.others, unplaced + rows.unplaced, rows_read + rows.read
        if rows.problem is not None:
            problems.append(rows.problem)
        for partition, runs in rows.runs.items():
            tallies.setdefault(partition, Tally()).add(runs)
    for one in tallies.values():
        one.unite()
    if unplaced:
        problems.append(
            Finding(
                flaw=Flaw.UNPLACED,
                where=f"table {table.identifier}",
                what=f"{unplaced} rows lack partition or offset: they came from elsewhere",
                count=unplaced,
            )
        )
    read = Read(
        table=table.identifier,
        snapshot_id=snapshot_id,
        files_by_manifest=len(dense),
        rows_by_manifest=sum(file.rows for file in dense),
        files_by_scan=len(scanned),
        rows_by_scan=rows_read,
        files_with_deletes=sum(bool(file.deletes) for file in files),
        others=others,
        unplaced=unplaced,
    )
    return Counted(read, dict(sorted(tallies.items())), tuple(problems))


def _low(file: DataFile, columns: Columns) -> int:
    bounds = file.bounds.get(columns.offset)
    return bounds.low if bounds is not None and bounds.low is not None else 0


@dataclass(frozen=True, slots=True)
class _Rows:
    read: int = 0
    runs: dict[int, Runs] = field(default_factory=dict)
    others: int = 0
    unplaced: int = 0
    problem: Finding | None = None


def _scan(table: StoredTable, file: DataFile, columns: Columns, topic: str) -> _Rows:
    read, others, unplaced = 0, 0, 0
    parts: dict[int, list[Runs]] = {}
    names = [columns.partition, columns.offset]
    if not is_of(file.bounds.get(columns.topic), topic):
        names.append(columns.topic)
    try:
        for batch in batches(table, file, names):
            read += len(batch)
            placed = batch.drop_null() if batch.column(0).null_count or batch.column(1).null_count else batch
            ours = placed if len(names) == 2 else placed.filter(pc.equal(placed.column(2), topic))
            unplaced, others = unplaced + len(batch) - len(placed), others + len(placed) - len(ours)
            for partition, runs in of_rows(ours.column(0), ours.column(1)).items():
                parts.setdefault(partition, []).append(runs)
    except FileNotFoundError:
        return _Rows(problem=_unlike(table, Flaw.FILE_LOST, file, "does not exist"))
    except pa.ArrowInvalid as error:
        why = f"cannot be read: {str(error).splitlines()[0]}"
        return _Rows(problem=_unlike(table, Flaw.FILE_UNREADABLE, file, why))
    told = f"holds {read} rows, its manifest says {file.rows}" if read != file.rows and not file.deletes else ""
    problem = _unlike(table, Flaw.FILE_ALTERED, file, told) if told else None
    return _Rows(read, {partition: _joined(runs) for partition, runs in parts.items()}, others, unplaced, problem)


def _joined(many: Sequence[Runs]) -> Runs:
    """The runs of a file's batches in one, doubled rows still doubled."""
    together, excess = union(many)
    if not len(excess):
        return together
    return Runs(pa.concat_arrays([together.first, excess.first]), pa.concat_arrays([together.last, excess.last]))


def _unlike(table: StoredTable, flaw: Flaw, file: DataFile, what: str) -> Finding:
    return Finding(flaw=flaw, where=f"table {table.identifier}", what=f"{file.path} {what}", count=1)


def _of_files(table: StoredTable, found: Contents, sizes: Mapping[str, int | None]) -> list[Finding]:
    where = f"table {table.identifier}"
    findings = [
        _unlike(table, Flaw.FILE_ALTERED, file, f"has {sizes[file.path]} bytes, {file.bytes} were written")
        for file in found.files
        if sizes[file.path] not in (None, file.bytes)
    ]
    if found.has_equality_deletes:
        what = "rows are deleted by value (equality deletes), which only an engine applies: compact, then verify again"
        findings.append(Finding(flaw=Flaw.EQUALITY_DELETES, where=where, what=what))
    lost = sorted(path for path, size in sizes.items() if size is None)
    if lost:
        rows = {file.path: file.rows for file in found.files}
        shown = ", ".join(lost[:SHOWN])
        what = f"{len(lost)} files of {sum(rows.get(path, 0) for path in lost)} rows do not exist: {shown}"
        findings.append(Finding(flaw=Flaw.FILE_LOST, where=where, what=what, count=len(lost)))
    return findings
