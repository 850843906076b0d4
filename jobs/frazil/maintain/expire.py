"""Advance the tag of an idle pipeline, and expire snapshots beyond the declared retention."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException

from frazil.errors import Fenced, RolledBack
from frazil.lake.commit.commit_rows_and_offsets import commit
from frazil.lake.commit.dead_letters.decide import open_decision
from frazil.lake.commit.fence import StageAgain
from frazil.lake.commit.request import CommitRequest, Extra
from frazil.lake.iceberg_java import message, thrown
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entries import entry
from frazil.lake.snapshot_retention import History, expirable, since
from frazil.lake.stage import empty_commit
from frazil.maintain.choose_upkeep import to_carry
from frazil.maintain.target import Action, MaintenanceRun, Outcome, Status, Target

FINISHED = (ledger.COMMIT_ID, ledger.DECISION, ledger.TABLE, ledger.STAGED_BY, ledger.STAGED_AT)


def carry(run: MaintenanceRun, target: Target) -> Outcome:
    """Carry the tag of one table on, if it keeps what retention would let go. Not while a decision is open."""
    ended, reason = _carried(run, target)
    return target.outcome(
        Action.CARRY, ended or Status.DONE, reason, snapshots=0 if ended in (None, Status.CONFLICT) else 1
    )


def _carried(run: MaintenanceRun, target: Target) -> tuple[Status | None, str]:
    """Return how it ended; None if the tag was not due."""
    iceberg, declared, name = run.job.iceberg, target.pipeline.table, target.pipeline.name
    table = iceberg.load(target.identifier)
    history = History.of(iceberg.metadata(table))
    idle = to_carry(history, ledger.tag(name), keep=declared.snapshots.newest, since_ms=_since(run, target))
    last = entry(table, name)
    if idle is None or last is None or last.end is None:
        return None, ""
    if open_decision(iceberg, declared.identifier, declared.dead_letters, name) is not None:
        return None, "a decision on dead letters is open; the next run of the pipeline finishes it"
    if run.policy.dry_run:
        return Status.DRY_RUN, ""
    batch = CommitRequest(
        pipeline=name,
        run=run.job.run,
        version=run.job.version,
        start=last.end,
        end=last.end,
        committed=last.end,
        topic_id=last.end.topic_id,
        schema_ids=last.schema_ids,
        valid_through=last.valid_through,
        on=last.snapshot_id,  # a decision leaves the offsets as they are, and would look finished, or undone, after this one
    )
    # What a side table says of the decision that it has finished stays so.
    kept = FINISHED if target.is_dead_letter_table else ()
    extra = {key: last.summary[key] for key in kept if key in last.summary}
    run.job.failpoint("carry.decided")
    try:
        commit(
            run.job,
            empty_commit(iceberg, target.identifier, at=run.job.clock()),
            batch,
            Extra(summary={**extra, ledger.UPKEEP: Action.CARRY.value}, finishes=target.is_dead_letter_table),
        )
    except (Fenced, RolledBack, StageAgain) as refused:
        return Status.CONFLICT, refused.what
    return Status.DONE, ""


def _since(run: MaintenanceRun, target: Target) -> int:
    """Return the moment since which no snapshot goes: queries may still read one that is younger than the grace time."""
    days = target.pipeline.table.snapshots.days
    return since(run.job.now_ms(), days, grace_ms=round(run.policy.grace_seconds * 1000))


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
    table, keep = run.job.iceberg.load(target.identifier), target.pipeline.table.snapshots.newest
    history = History.of(run.job.iceberg.metadata(table))
    going = expirable(history, keep=keep, since_ms=_since(run, target), with_data=True)
    ended, reason, files, manifests = Status.DONE, "", 0, 0
    if run.policy.dry_run:
        ended = Status.DRY_RUN
    elif going:
        actions = run.job.iceberg.classes.static("spark.actions.SparkActions", "get")
        action = actions.expireSnapshots(table).expireOlderThan(0)
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
    return target.outcome(
        Action.EXPIRE,
        ended,
        reason,
        snapshots=len(going),
        files_removed=files,
        left={"metadata_files": manifests} if manifests else {},
    )
