"""What each commit carries on from the entry before it, so that no account depends on snapshots that expire. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from frazil.lake import ledger
from frazil.lake.commit.check import Base, CommitRequest
from frazil.lake.commit.row_delta import RowChanges
from frazil.lake.deletes.staged_deletes import StagedDeletes
from frazil.lake.key_account import KeyAccount
from frazil.lake.totals import Totals


def carried_on(
    base: Base,
    batch: CommitRequest,
    extra: Mapping[str, str],
    least: int,
    changes: RowChanges | None,
    deletes: StagedDeletes | None,
) -> dict[str, str]:
    """Return the summary entries: the totals, the number of the newest decision, which is above `least`, and the keys' account."""
    return {**_totals(base, batch), **_numbered(base, extra, least), **_keys(base, batch, changes, deletes)}


def _totals(base: Base, batch: CommitRequest) -> dict[str, str]:
    """Return the account since the pipeline began, of the transaction's own base and this batch; none for a ledger without one."""
    before = Totals() if base.last is None else base.last.totals
    if before is None:
        return {}
    after = before.after(batch.start, batch.end, batch.counts)
    topics = {} if after.closed_topics is None else {ledger.CLOSED_TOPICS: after.closed_topics}
    return {ledger.TOTALS: str(after), **topics}


def _keys(
    base: Base, batch: CommitRequest, changes: RowChanges | None, deletes: StagedDeletes | None
) -> dict[str, str]:
    """Return the account of a table of current state after this commit; none for an append table."""
    before = base.last.keys if base.last is not None else None
    if changes is not None and deletes is not None:
        return {ledger.KEYS: str(changes.account(before or KeyAccount(), deletes, batch.counts.landed))}
    return {ledger.KEYS: str(before.unchanged)} if before is not None else {}


def _numbered(base: Base, extra: Mapping[str, str], least: int) -> dict[str, str]:
    """Return the summary entries with the number of the newest side decision: the base's, or the next one for a new decision."""
    before = base.tagged.number if base.tagged else None
    if ledger.SIDE in extra:
        return {**extra, ledger.DECISION: str(max(before or 0, least) + 1)}
    return {**extra, **({} if before is None else {ledger.DECISION: str(before)})}
