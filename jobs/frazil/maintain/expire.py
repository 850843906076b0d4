"""Expire: snapshots beyond the declared retention go, and with them the files that only they refer to."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException

from frazil.lake.iceberg_java import message, thrown
from frazil.lake.snapshot_retention import History
from frazil.maintain.keeper import Keeper, Kept
from frazil.maintain.result import Action, Ended, Outcome
from frazil.maintain.selection import to_expire

_COUNTS = (
    "deletedDataFilesCount",
    "deletedEqualityDeleteFilesCount",
    "deletedPositionDeleteFilesCount",
    "deletedManifestsCount",
    "deletedManifestListsCount",
    "deletedStatisticsFilesCount",
)


def expire(keeper: Keeper, kept: Kept) -> Outcome:
    """Expire one table to its declared retention. What a branch or a tag refers to stays, so the ledger does.

    The metadata commit comes first, the files are deleted after it: a run that dies in between leaves orphans, never a
    snapshot without its files.
    """
    began, declared = keeper.clock(), kept.pipeline.table
    table = keeper.iceberg.load(kept.identifier)
    history = History.of(keeper.iceberg.metadata(table))
    going = to_expire(
        history,
        keep=declared.keep_snapshots,
        keep_days=declared.keep_days,
        now_ms=keeper.now_ms(),
        grace_ms=round(keeper.policy.grace_seconds * 1000),
    )
    ended, said, files, manifests = Ended.DONE, "", 0, 0
    if keeper.dry_run:
        ended = Ended.TOLD
    elif going:
        action = keeper.iceberg.spark_actions().expireSnapshots(table).expireOlderThan(0)
        for snapshot_id in going:
            action = action.expireSnapshotId(snapshot_id)
        keeper.reach("expire.decided")
        try:
            result = action.execute()
            files, *others = (int(getattr(result, name)()) for name in _COUNTS)
            manifests = sum(others)
        # Somebody tagged one of them, or commits of others kept winning: what was not expired is so next time.
        except IllegalArgumentException as error:
            ended, said, going = Ended.CONFLICT, str(error).splitlines()[0], ()
        except Py4JJavaError as error:
            if thrown(error) not in ("CommitFailedException", "ValidationException"):
                raise
            ended, said, going = Ended.CONFLICT, f"{thrown(error)}: {message(error)}", ()
    return Outcome(
        action=Action.EXPIRE,
        table=kept.identifier,
        ended=ended,
        snapshots=len(going),
        files_removed=files,
        left={"metadata_files": manifests} if manifests else {},
        why=said,
        seconds=round(keeper.clock() - began, 3),
    )
