"""Carry: the tag of an idle pipeline moves on, to an empty snapshot with the same offsets.

The tag keeps its snapshot, and with it every data file that was in the table then. If nothing arrives for weeks while
other writers or compaction replace files, those files can never be deleted. The new snapshot is published like any batch,
by compare-and-set on the offsets: a driver at work is neither fenced nor overtaken.
"""

from __future__ import annotations

from frazil.errors import Fenced, RolledBack
from frazil.lake import ledger
from frazil.lake.commit.append import entry, publish
from frazil.lake.commit.check import Batch
from frazil.lake.commit.multi_table import open_decision
from frazil.lake.snapshot_retention import History
from frazil.lake.stage import nothing
from frazil.maintain.keeper import Keeper, Kept
from frazil.maintain.result import Action, Ended, Outcome
from frazil.maintain.selection import to_carry

FINISHED = (ledger.COMMIT_ID, ledger.DECISION, ledger.TABLE, ledger.STAGED_BY, ledger.STAGED_AT)


def carry(keeper: Keeper, kept: Kept) -> Outcome:
    """Carry the tag of one table on, if it keeps what retention would let go. Not while a decision is open."""
    began = keeper.clock()
    ended, said = _carried(keeper, kept)
    return Outcome(
        action=Action.CARRY,
        table=kept.identifier,
        ended=ended or Ended.DONE,
        snapshots=0 if ended in (None, Ended.CONFLICT) else 1,
        why=said,
        seconds=round(keeper.clock() - began, 3),
    )


def _carried(keeper: Keeper, kept: Kept) -> tuple[Ended | None, str]:
    """How it ended; None when there was nothing to carry."""
    iceberg, declared, name = keeper.iceberg, kept.pipeline.table, kept.pipeline.name
    table = iceberg.load(kept.identifier)
    idle = to_carry(
        History.of(iceberg.metadata(table)),
        ledger.tag(name),
        keep=declared.keep_snapshots,
        keep_days=declared.keep_days,
        now_ms=keeper.now_ms(),
        grace_ms=round(keeper.policy.grace_seconds * 1000),
    )
    last = entry(table, name)
    if idle is None or last is None or last.end is None:
        return None, ""
    if open_decision(iceberg, declared.identifier, declared.dead_letters, name) is not None:
        return None, "a decision on dead letters is open; the next run of the pipeline finishes it"
    if keeper.dry_run:
        return Ended.TOLD, ""
    batch = Batch(
        pipeline=name,
        run=keeper.run,
        version=keeper.version,
        start=last.end,
        end=last.end,
        held=last.end,
        topic_id=last.end.topic_id,
        schema_ids=last.schema_ids,
        valid_through=last.valid_through,
        rejects_accepted=last.rejects_accepted,
        on=last.snapshot_id,  # a decision leaves the offsets as they are, and would look finished, or undone, behind this one
    )
    # What a side table says of the decision that it has finished stays so.
    extra = {key: last.summary[key] for key in FINISHED if kept.is_side and key in last.summary}
    keeper.reach("carry.decided")
    try:
        publish(
            iceberg,
            nothing(iceberg, kept.identifier, at=keeper.clock()),
            batch,
            extra={**extra, ledger.UPKEEP: Action.CARRY.value},
            is_side=kept.is_side,
            clock=keeper.clock,
            wait=keeper.wait,
            reach=keeper.reach,
        )
    except (Fenced, RolledBack) as refused:
        return Ended.CONFLICT, refused.what
    return Ended.DONE, ""
