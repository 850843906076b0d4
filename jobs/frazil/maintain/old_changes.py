"""The retention of a history: changes older than declared go, and the state's snapshots stay until their changes are recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from frazil.declaration.write_modes import history
from frazil.lake import ledger
from frazil.lake.history.history_columns import COMMITTED_AT, SEQUENCE
from frazil.lake.history.recorded import kept_from
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java
from frazil.maintain.target import MaintenanceRun, Target

_DELETES = "delete-old-changes"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOfChanges:
    """A data file of a history: the sequence numbers of its `first` and `last` change, and whether all of them are old."""

    first: int
    last: int
    rows: int
    is_old: bool


def old_up_to(files: Sequence[FileOfChanges]) -> int:
    """Return the highest sequence number up to which old files can go, so that no other file has a change up to it.

    It is lower than that of the newest old change if clocks of drivers went back between two commits.
    """
    end = min(
        (file.first for file in files if not file.is_old), default=max((file.last for file in files), default=0) + 1
    )
    end -= 1
    for file in sorted((file for file in files if file.is_old), key=lambda file: -file.last):
        if file.first <= end < file.last:
            end = file.first - 1
    return end


def delete_old(run: MaintenanceRun, target: Target) -> int:
    """Delete the changes of complete days (UTC) that are older than the declared number of days, in one commit; return how many.

    A history is partitioned by these days, so complete files go and none is written. No change stays without all later ones, by
    sequence number: the rows before the changes still lead back to each state since then. Old changes behind one that is not old
    yet, by another driver's clock, stay with it.
    """
    declared = history(target.pipeline.write)
    assert declared is not None
    iceberg = run.job.iceberg
    table = iceberg.load(target.identifier)
    now = datetime.fromtimestamp(run.job.clock(), UTC)
    until = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=declared.keep_days)
    old = _expression(iceberg, "lessThan", COMMITTED_AT.name, until.isoformat())
    files = _files(iceberg, table, old)
    end = old_up_to(files)
    rows = sum(file.rows for file in files if file.last <= end)
    if not rows:
        return 0
    kind = iceberg.classes.load("org.apache.iceberg.expressions.Expression")
    up_to = _expression(iceberg, "lessThanOrEqual", SEQUENCE.name, end)
    change = table.newDelete().deleteFromRowFilter(
        iceberg.classes.static("expressions.Expressions", "and", (kind, old), (kind, up_to))
    )
    for key, value in {ledger.UPKEEP: _DELETES, ledger.RUN: run.job.run, ledger.VERSION: run.job.version}.items():
        change.set(key, value)
    run.job.failpoint("expire.decided")
    change.commit()
    return rows


def _expression(iceberg: Iceberg, name: str, column: str, value: Any) -> Java:
    text, of = iceberg.classes.load("java.lang.String"), iceberg.classes.load("java.lang.Object")
    return iceberg.classes.static("expressions.Expressions", name, (text, column), (of, value))


def _files(iceberg: Iceberg, table: Java, old: Java) -> list[FileOfChanges]:
    """Return the files of a history; none if no file has `old` rows only."""
    scan = table.newScan()
    going = {str(t.file().location()) for t in _tasks(scan.filter(old)) if str(t.residual().op()) == "TRUE"}
    if not going:
        return []
    number = int(table.schema().findField(SEQUENCE.name).fieldId())
    found = []
    for task in _tasks(scan.includeColumnStats()):
        described = iceberg.file_json(table, task.file())
        first, last = _bounds(described, number)
        is_old = str(task.file().location()) in going
        found.append(FileOfChanges(first=first, last=last, rows=int(described["record-count"]), is_old=is_old))
    return found


def _bounds(described: dict[str, Any], number: int) -> tuple[int, int]:
    """Return the bounds of a column of long integers; if a file has none, those of all integers."""
    found = []
    for name, unknown in (("lower-bounds", 0), ("upper-bounds", 2**63 - 1)):
        bounds = described.get(name, {"keys": [], "values": []})
        known = dict(zip(bounds["keys"], bounds["values"], strict=True)).get(number)
        found.append(int.from_bytes(bytes.fromhex(known), "little") if known is not None else unknown)
    return found[0], found[1]


def _tasks(scan: Java) -> Iterator[Java]:
    planned = scan.planFiles()
    try:
        tasks = planned.iterator()
        while tasks.hasNext():
            yield tasks.next()
    finally:
        planned.close()


def needed_by_history(run: MaintenanceRun, target: Target, table: Java) -> int | None:
    """Return the sequence number from which on the snapshots of a state stay, as its history may not have their changes."""
    pipeline = target.pipeline
    if not target.is_main or history(pipeline.write) is None:
        return None
    return kept_from(run.job.iceberg, table, pipeline.table.history, pipeline.name)
