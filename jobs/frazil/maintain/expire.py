"""Expire snapshots beyond the declared retention, and the files that only they refer to."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException

from frazil.lake.iceberg_java import message, thrown
from frazil.lake.snapshot_retention import History
from frazil.maintain.result import Action, Outcome, Status
from frazil.maintain.selection import to_expire
from frazil.maintain.target import MaintenanceRun, Target

_COUNTS = (
    "deletedDataFilesCount",
    "deletedEqualityDeleteFilesCount",
    "deletedPositionDeleteFilesCount",
    "deletedManifestsCount",
    "deletedManifestListsCount",
    "deletedStatisticsFilesCount",
)


def expire(run: MaintenanceRun, target: Target) -> Outcome:
    """Expire one table to its declared retention. What a branch or a tag refers to stays, so the ledger does.

    The metadata commit comes first, the files are deleted after it: a run that dies in between leaves orphans, never a
    snapshot without its files.
    """
    began, declared = run.job.clock(), target.pipeline.table
    table = run.job.iceberg.load(target.identifier)
    history = History.of(run.job.iceberg.metadata(table))
    going = to_expire(
        history,
        keep=declared.keep_snapshots,
        keep_days=declared.keep_days,
        now_ms=run.job.now_ms(),
        grace_ms=round(run.policy.grace_seconds * 1000),
    )
    ended, reason, files, manifests = Status.DONE, "", 0, 0
    if run.policy.dry_run:
        ended = Status.DRY_RUN
    elif going:
        action = run.job.iceberg.spark_actions().expireSnapshots(table).expireOlderThan(0)
        for snapshot_id in going:
            action = action.expireSnapshotId(snapshot_id)
        run.job.failpoint("expire.decided")
        try:
            result = action.execute()
            files, *others = (int(getattr(result, name)()) for name in _COUNTS)
            manifests = sum(others)
        # Another client tagged one of them, or other commits kept winning: the next run expires the rest.
        except IllegalArgumentException as error:
            ended, reason, going = Status.CONFLICT, str(error).splitlines()[0], ()
        except Py4JJavaError as error:
            if thrown(error) not in ("CommitFailedException", "ValidationException"):
                raise
            ended, reason, going = Status.CONFLICT, f"{thrown(error)}: {message(error)}", ()
    return Outcome(
        action=Action.EXPIRE,
        table=target.identifier,
        ended=ended,
        snapshots=len(going),
        files_removed=files,
        left={"metadata_files": manifests} if manifests else {},
        why=reason,
        seconds=round(run.job.clock() - began, 3),
    )
