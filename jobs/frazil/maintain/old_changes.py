"""The retention of a history: changes older than declared go, and the state's snapshots stay until their changes are recorded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from frazil.declaration.write_modes import history
from frazil.lake import ledger
from frazil.lake.history.history_columns import COMMITTED_AT
from frazil.lake.history.recorded import kept_from
from frazil.lake.java_classes import Java
from frazil.maintain.target import MaintenanceRun, Target

_DELETES = "delete-old-changes"


def delete_old(run: MaintenanceRun, target: Target) -> int:
    """Delete the changes of complete days (UTC) that are older than the declared number of days, in one commit; return how many.

    A history is partitioned by these days, so complete files go and none is written. No change stays without all later ones:
    the rows before the changes still lead back to each state since then.
    """
    declared = history(target.pipeline.write)
    assert declared is not None
    iceberg = run.job.iceberg
    table = iceberg.load(target.identifier)
    now = datetime.fromtimestamp(run.job.clock(), UTC)
    until = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=declared.keep_days)
    text = iceberg.classes.load("java.lang.String")
    old = iceberg.classes.static(
        "expressions.Expressions",
        "lessThan",
        (text, COMMITTED_AT.name),
        (iceberg.classes.load("java.lang.Object"), until.isoformat()),
    )
    rows, planned = 0, table.newScan().filter(old).planFiles()
    try:
        files = planned.iterator()
        while files.hasNext():
            rows += int(files.next().file().recordCount())
    finally:
        planned.close()
    if not rows:
        return 0
    change = table.newDelete().deleteFromRowFilter(old)
    for key, value in {ledger.UPKEEP: _DELETES, ledger.RUN: run.job.run, ledger.VERSION: run.job.version}.items():
        change.set(key, value)
    run.job.failpoint("expire.decided")
    change.commit()
    return rows


def needed_by_history(run: MaintenanceRun, target: Target, table: Java) -> int | None:
    """Return the sequence number from which on the snapshots of a state stay, as its history may not have their changes."""
    pipeline = target.pipeline
    if not target.is_main or history(pipeline.write) is None:
        return None
    return kept_from(run.job.iceberg, table, pipeline.table.history, pipeline.name)
