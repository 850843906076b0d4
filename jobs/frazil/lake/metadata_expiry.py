"""Metadata expiry, the ingest's own upkeep ("trimming"): old snapshots leave the metadata; no data file is touched.

A table that gets a commit every ten seconds has 8,640 snapshots a day, 1.2 KB each in every metadata file. Trimming keeps
them few with no right but to delete under `metadata/`. Data files that compaction replaced are the maintenance job's to
delete, so trimming leaves the snapshots that name them.
"""

from __future__ import annotations

from dataclasses import dataclass

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from frazil.lake.iceberg_java import Iceberg, message, thrown
from frazil.lake.ledger import entry as ledger
from frazil.lake.snapshot_retention import History, expirable, since

EVERY = 50  # commits


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The result of trimming one table: the number of `snapshots` that were removed. `gave_up` says why it did not."""

    snapshots: int = 0
    gave_up: str | None = None


def due(commits: int) -> bool:
    """Return whether a driver that has made so many commits to a table checks whether to trim it."""
    return commits > 0 and commits % EVERY == 0


def trim(
    iceberg: Iceberg,
    table: str,
    *,
    keep: int,
    keep_days: int | None = None,
    now_ms: int,
    at_least: int = EVERY,
) -> Trimmed:
    """Expire what is beyond the newest `keep` snapshots of a table and older than `keep_days`, if it is `at_least` so many.

    What a branch or a tag refers to stays, so the ledger does. Manifests that nothing refers to any more are deleted, data
    files never. A failure of upkeep fails no caller: when another writer's commits win, or the catalog or store refuses,
    `gave_up` says so, the table is as good as before, and the next call tries again. It never raises.

    Call it between two commits of the same driver (`due` says after which), for the table and its dead-letter table, and
    once at the end of a run, for drivers whose runs are all short. Takes one metadata load; if there is something to do,
    one commit.
    """
    try:
        if not iceberg.exists(table):
            return Trimmed()
        loaded = iceberg.load(table)
        history = History.of(iceberg.metadata(loaded))
        going = expirable(history, keep=keep, since_ms=since(now_ms, keep_days), with_data=False)
        if len(going) < max(1, at_least):
            return Trimmed()
        metadata_only = ("java.lang.String", "METADATA_ONLY")  # manifests and their lists, and no data file
        level = iceberg.classes.static("ExpireSnapshots$CleanupLevel", "valueOf", metadata_only)
        expire = loaded.expireSnapshots().expireOlderThan(0).cleanupLevel(level)
        for snapshot_id in going:
            expire = expire.expireSnapshotId(snapshot_id)
        expire.commit()
        io = loaded.io()
        for location in finished_decisions(history, going):
            if io.newInputFile(location).exists():  # else a driver that died while finishing removed it
                io.deleteFile(location)
        return Trimmed(len(going))
    except Py4JJavaError as error:
        return Trimmed(gave_up=f"{thrown(error)}: {message(error)}")
    except PySparkException as error:  # what pyspark makes of Java's IllegalArgumentException: a tag was set just now
        return Trimmed(gave_up=str(error).splitlines()[0])
    except Py4JError as error:  # the JVM is going down
        return Trimmed(gave_up=type(error).__name__)


def finished_decisions(history: History, going: tuple[int, ...]) -> tuple[str, ...]:
    """Return the decision files that only the snapshots `going` name. They are finished: a newer commit came after each.

    A driver finishes what it finds open before it plans, so only the newest commit's decision can be open; the tag keeps
    that one from going.
    """
    named = {s.id: s.summary[ledger.SIDE] for s in history.snapshots if ledger.SIDE in s.summary}
    staying = {location for snapshot_id, location in named.items() if snapshot_id not in going}
    return tuple(location for location in named.values() if location not in staying)
