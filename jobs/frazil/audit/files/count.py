"""Count the records in a pipeline's tables from their data files alone, one window of offsets after the other.

A gapless file (see `dense`) is counted from its manifest. Of all others two columns are read. Memory is bounded by the
window, whatever the number of rows and files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from frazil.audit.files.bitmap import joined
from frazil.audit.files.file_scan import Columns, Scan, Scanned, Source, is_dense, is_foreign, unlike
from frazil.audit.files.proofs import Digests, Proof, Remembered, without_most
from frazil.audit.files.window import NONE, Found, Role, Tally, Window
from frazil.audit.files.windows import Boxes, Claim, Stretch, contains, stretches, tile, without
from frazil.audit.finding import SHOWN, Finding, Flaw, Range
from frazil.lake.ledger import entry as ledger
from frazil.lake.read.data_files import READERS, Contents, DataFile, contents, each, lengths, missing
from frazil.lake.read.stored_tables import Snapshot, StoredTable

WINDOW = 1 << 29
"""Offsets that are counted at a time: 64 MiB for each bitmap of them."""

SEGMENT = 1 << 26
"""Offsets of a proof, at most."""

PROOFS = 64
"""Proofs that are kept apart; above it, neighbours are joined."""


@dataclass(frozen=True, slots=True)
class Read:
    """The way the files of one table were counted: `by_manifest` alone, or `by_scan`, each as files and rows.

    `rows_remembered` are known from earlier proofs, those of manifests too. `others` are rows of other topics, which are
    left alone; `unplaced` rows lack partition or offset. `recovered` are dead letters that count as landed.
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
    rows_remembered: int = 0
    recovered: int = 0


@dataclass(frozen=True, slots=True)
class Counted:
    """The contents of the tables for a topic: by stretch, and rows outside of all stretches by role and partition."""

    tallies: tuple[tuple[Stretch, Tally], ...]
    outside: dict[tuple[Role, int], Found]
    reads: dict[Role, Read]
    findings: tuple[Finding, ...]
    remembered: Remembered


class Counting:
    """A count that is planned and not begun. `estimate` is what it will read."""

    def __init__(
        self,
        sources: Sequence[Source],
        read: dict[int, list[Range]],
        *,
        topic: str,
        deep: bool,
        remembered: Remembered | None,
    ) -> None:
        self._before = remembered or Remembered()
        self._sources = tuple(with_claims(source, self._before) for source in sources)
        self._read = stretches(read)
        self._digests = Digests(self._sources)
        proofs = (proof for proof in self._before.proofs if contains(self._read, proof.parts))
        self._known = tuple(proof for proof in proofs if proof.digest == self._digests.of(proof.parts))
        self._windows = tile(without(self._read, (part for proof in self._known for part in proof.parts)), WINDOW)
        self._scan = Scan(self._read, topic=topic, deep=deep)
        self._dense: dict[int, list[DataFile]] = {}  # by the place of their source: several may have one role
        self._foreign: dict[int, list[DataFile]] = {}
        self._scanned: dict[int, list[DataFile]] = {}
        for place, source in enumerate(self._sources):
            kinds: tuple[list[DataFile], list[DataFile], list[DataFile]] = ([], [], [])
            for file in source.files:
                kinds[_kind(source, file, topic, deep=deep)].append(file)
            self._dense[place], self._foreign[place], self._scanned[place] = kinds
        self._jobs = self._planned()
        self.estimate = self._estimate()

    def run(self) -> Counted:
        """Read the files, window by window."""
        tallies = [one for proof in self._known for one in proof.tallies]
        outside: dict[tuple[Role, int], Found] = {}
        scans: list[tuple[Source, Scanned]] = []
        proofs: list[Proof] = list(self._known)
        doubtful: list[tuple[Source, DataFile]] = []
        for place, source in enumerate(self._sources):
            for file in self._dense[place]:
                self._beyond(source, file, outside)
        for spans, files in self._jobs:
            window = Window(spans, tile(spans, SEGMENT))
            for place, source in enumerate(self._sources):
                for file in self._dense[place]:
                    box = source.box(file)
                    if box is not None:
                        window.fill(source.role, box.partition_low, Range(box.offset_low, box.offset_high + 1))

            def scan(job: tuple[Source, DataFile], window: Window = window) -> Scanned:
                return self._scan.scan(*job, window)

            for (source, file), scanned in zip(files, each(scan, files, parallel=READERS), strict=True):
                scans.append((source, scanned))
                if scanned.problems or scanned.unplaced or scanned.outside:
                    doubtful.append((source, file))
                for partition, found in scanned.outside.items():
                    key = (source.role, partition)
                    outside[key] = outside.get(key, NONE) + found
            for segment in window.tallies():
                tallies += segment
                proofs.append(Proof("", tuple(segment)))
        return Counted(
            tallies=tuple(tallies),
            outside=outside,
            reads={source.role: self._read_of(place, source, scans) for place, source in enumerate(self._sources)},
            findings=_findings(self._sources, scans),
            remembered=Remembered(
                self._kept(proofs, doubtful), {source.role: source.claims for source in self._sources}
            ),
        )

    def _kept(self, proofs: Sequence[Proof], doubtful: Sequence[tuple[Source, DataFile]]) -> tuple[Proof, ...]:
        """Return the proofs worth remembering: of offsets that lived once, all clean, and of files without a problem."""
        boxes = Boxes([source.box(file) for source, file in doubtful])
        altered = any(source.altered for source in self._sources)
        clean = [
            replace(proof, digest=self._digests.of(proof.parts))
            for proof in proofs
            if proof.tallies
            and all(part.lives == 1 and tally.is_clean for part, tally in proof.tallies)
            and not bool(boxes.touching(proof.parts).any())
        ]
        return () if altered else without_most(clean, self._digests, at_most=PROOFS, limit=SEGMENT)

    def _planned(self) -> list[tuple[tuple[Stretch, ...], list[tuple[Source, DataFile]]]]:
        """Return each window with the files to read for it, in the order of their offsets; the first has strays too."""
        jobs: list[tuple[tuple[Stretch, ...], list[tuple[Source, DataFile]]]] = [(w, []) for w in self._windows]
        strays: list[tuple[Source, DataFile]] = []
        for place, source in enumerate(self._sources):
            files = sorted(self._scanned[place], key=lambda file: _low(source, file))
            boxes = source.boxes(files)
            for spans, wanted in jobs:
                wanted += [(source, files[i]) for i in boxes.touching(spans).nonzero()[0].tolist()]
            inside = boxes.touching(self._read)
            strays += [(source, file) for file, is_inside in zip(files, inside, strict=True) if not is_inside]
        return [*jobs, ((), strays)] if strays else jobs

    def _estimate(self) -> Estimate:
        files = {file.path: file for _, wanted in self._jobs for source, file in wanted}
        rows = sum(file.rows for _, wanted in self._jobs for _, file in wanted)
        return Estimate(
            files=len(files),
            rows=sum(file.rows for file in files.values()),
            bytes=sum(file.column_bytes for file in files.values()),
            seconds=round(max(rows / ROWS_PER_SECOND, len(files) * SECONDS_PER_FILE / READERS), 1),
            files_known=sum(len(source.files) for source in self._sources) - len(files),
        )

    def _beyond(self, source: Source, file: DataFile, outside: dict[tuple[Role, int], Found]) -> None:
        """Count the offsets of a gapless file that were never read."""
        box = source.box(file)
        if box is None:
            return
        span = Stretch(box.partition_low, Range(box.offset_low, box.offset_high + 1))
        strange = without([span], (s for s in self._read if s.partition == span.partition))
        if strange:
            key = (source.role, span.partition)
            found = Found(sum(map(len, strange)), tuple(joined([s.range for s in strange])[:SHOWN]))
            outside[key] = outside.get(key, NONE) + found

    def _read_of(self, place: int, source: Source, scans: Sequence[tuple[Source, Scanned]]) -> Read:
        role, mine = source.role, [scanned for of, scanned in scans if of is source]
        opened = {file.path for _, wanted in self._jobs for of, file in wanted if of is source}
        return Read(
            table=source.table.identifier,
            snapshot_id=None,
            files_by_manifest=len(self._dense[place]),
            rows_by_manifest=sum(file.rows for file in self._dense[place]),
            files_by_scan=len(opened),
            rows_by_scan=sum(scanned.rows for scanned in mine),
            files_with_deletes=sum(bool(file.deletes) for file in source.files),
            others=sum(scanned.others for scanned in mine) + sum(file.rows for file in self._foreign[place]),
            unplaced=sum(scanned.unplaced for scanned in mine),
            recovered=sum(scanned.recovered for scanned in mine),
            rows_remembered=sum(
                tally.dead_lettered if role is Role.DEAD_LETTERS else tally.landed
                for proof in self._known
                for _, tally in proof.tallies
            ),
        )


def _kind(source: Source, file: DataFile, topic: str, *, deep: bool) -> int:
    """Return 0 for a file that its manifest describes, 1 for one of other topics, 2 for one that has to be read."""
    if deep or source.replayed or file.path in source.altered:
        return 2
    if is_dense(file, source.columns, topic):
        return 0
    return 1 if is_foreign(file.bounds.get(source.columns.topic), topic) else 2


def _low(source: Source, file: DataFile) -> tuple[int, str]:
    box = source.box(file)
    return (box.offset_low if box is not None else 0, file.path)


def _findings(sources: Sequence[Source], scans: Sequence[tuple[Source, Scanned]]) -> tuple[Finding, ...]:
    # A file that is read for several windows has the same problem in each.
    found = list(dict.fromkeys(problem for _, scanned in scans for problem in scanned.problems))
    for source in sources:
        unplaced = sum(scanned.unplaced for of, scanned in scans if of is source)
        if unplaced:
            what = f"{unplaced} rows lack partition or offset: they came from elsewhere"
            where = f"table {source.table.identifier}"
            found.append(Finding(flaw=Flaw.UNPLACED, where=where, what=what, count=unplaced))
    return tuple(found)


ROWS_PER_SECOND = 10_000_000.0
"""The rate of one machine for compacted files (docs/benchmarks.md)."""

SECONDS_PER_FILE = 0.02
"""The time to open a file, without its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The work of a verification. `files_known` are described by their manifests or by an earlier verification.

    `bytes` is the compressed size of the columns to read.
    """

    files: int = 0
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    files_known: int = 0


def claims_of(source: Source) -> dict[int, Claim]:
    """Return what the commits that are kept say of files of several partitions."""
    claims: dict[int, Claim] = {}
    for id_ in {file.snapshot_id for file in source.files if source.is_wide(file)}:
        snapshot = source.table.snapshots.get(id_) if id_ is not None else None
        if snapshot is None or snapshot.operation != "append":
            continue
        if ledger.EVENTS in snapshot.summary or ledger.REPLAY in snapshot.summary:
            continue  # an operator's decision may append what was decided before it, and a replay writes files again
        start, end = snapshot.entry.start, snapshot.entry.end
        if start is not None and end is not None and start.topic_id == end.topic_id:
            claims[snapshot.id] = {p: Range(start.at.get(p, upto), upto) for p, upto in end.at.items()}
    return claims


def with_claims(source: Source, before: Remembered) -> Source:
    """Return a source with the claims of commits that have expired since they were remembered, too."""
    wanted = {file.snapshot_id for file in source.files if source.is_wide(file)}
    known = {id_: claim for id_, claim in before.claims.get(source.role, {}).items() if id_ in wanted}
    return replace(source, claims={**known, **source.claims})


def files_of(
    role: Role, table: StoredTable, snapshot: Snapshot | None, columns: Columns
) -> tuple[Source, list[Finding]]:
    """Return the files of a snapshot that exist, and what is wrong with the others."""
    found = contents(table, snapshot, columns.counted)
    sizes = lengths(table, [*found.delete_files, *(file.path for file in found.files)])
    files = tuple(file for file in found.files if sizes[file.path] is not None)
    altered = frozenset(file.path for file in files if sizes[file.path] != file.bytes)
    source = Source(role, table, columns, files, altered)
    source = replace(source, claims=claims_of(source))
    deletes = {delete.file_path: delete for file in files for delete in file.deletes}
    wrong = [
        unlike(source, Flaw.FILE_ALTERED, name, f"has {sizes[name]} bytes, {delete.file_size_in_bytes} were written")
        for name, delete in deletes.items()
        if sizes[name] not in (None, delete.file_size_in_bytes)
    ]
    return source, wrong + _of_files(source, found, {path for path, size in sizes.items() if size is None}, sizes)


def _of_files(source: Source, found: Contents, lost: set[str], sizes: dict[str, int | None]) -> list[Finding]:
    where = f"table {source.table.identifier}"
    absent = missing(source.table, found.lost)  # which are found for all snapshots
    damaged = [unlike(source, Flaw.MANIFEST_LOST, name, "cannot be read") for name in found.lost if name not in absent]
    findings = damaged + [
        unlike(source, Flaw.FILE_ALTERED, file.path, f"has {sizes[file.path]} bytes, {file.bytes} were written")
        for file in source.files
        if file.path in source.altered
    ]
    if found.has_equality_deletes:
        what = "rows are deleted by value (equality deletes), which only an engine applies: compact, then verify again"
        findings.append(Finding(flaw=Flaw.EQUALITY_DELETES, where=where, what=what))
    if lost:
        rows = {file.path: file.rows for file in found.files}
        shown = ", ".join(sorted(lost)[:SHOWN])
        what = f"{len(lost)} files of {sum(rows.get(path, 0) for path in lost)} rows do not exist: {shown}"
        findings.append(Finding(flaw=Flaw.FILE_LOST, where=where, what=what, count=len(lost)))
    return findings
