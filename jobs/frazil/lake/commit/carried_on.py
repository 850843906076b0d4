"""Values that each commit repeats from the entry before it, so that no account depends on snapshots that expire. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from frazil.lake.commit.replaced_rows import RowChanges
from frazil.lake.commit.request import CommitRequest, Extra
from frazil.lake.commit.table_state import TableState
from frazil.lake.delete_files.staged_deletes import StagedDeletes
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.key_totals import KeyAccount
from frazil.lake.ledger.next_offsets import Offsets, canonical
from frazil.lake.ledger.remembered_deletes import RememberedDeletes
from frazil.lake.ledger.totals import Totals
from frazil.schemas.dead_letter_outcomes import DeadLetterOutcome


def carried_on(
    state: TableState,
    request: CommitRequest,
    extra: Extra,
    changes: RowChanges | None,
    deletes: StagedDeletes | None,
) -> dict[str, str]:
    """Return the summary entries: the totals, the number of the newest decision, and the keys' account."""
    before = Totals() if state.last is None else state.last.totals
    after = before.after(request.start, request.end, request.counts) if before is not None else None
    closes = before is not None and after is not None and len(after.closed) > len(before.closed)
    windows = {name: _window(state, request, name) for name in ledger.WINDOWS}
    had = ledger.KEYS_MOVED in request.windows or (state.last is not None and ledger.KEYS_MOVED in state.last.summary)
    keys = _keys(state, request, changes, deletes, closes=closes, ends=had and windows[ledger.KEYS_MOVED] is None)
    open_windows = {name: str(offsets) for name, offsets in windows.items() if offsets is not None}
    beside = {**_deleted_keys(state, changes), **_stale_keys(state, changes)}
    if ledger.window_of(ledger.REJECTED_RECORDS) in open_windows and state.last is not None:
        known = state.last.summary.get(ledger.ACCEPTED_RECORDS)
        beside |= {} if known is None else {ledger.ACCEPTED_RECORDS: known}
    numbered = _numbered(state, extra)
    return {**_totals(after), **beside, **numbered, **_replayed(state, request, numbered), **keys, **open_windows}


def _totals(after: Totals | None) -> dict[str, str]:
    """Return the account since the pipeline began; none for a ledger without one."""
    if after is None:
        return {}
    topics = {} if after.closed_topics is None else {ledger.CLOSED_TOPICS: after.closed_topics}
    return {ledger.TOTALS: str(after), **topics}


def _window(state: TableState, request: CommitRequest, name: str) -> Offsets | None:
    """Return the offsets up to which a decision counts, after this commit; None if it has come to all of them."""
    known = request.windows.get(name) or (state.last.window(name) if state.last is not None else None)
    if known is None or known.topic_id != request.end.topic_id:
        return None
    return known if any(request.end.at.get(p, 0) < offset for p, offset in known.at.items()) else None


def _keys(
    state: TableState,
    request: CommitRequest,
    changes: RowChanges | None,
    deletes: StagedDeletes | None,
    *,
    closes: bool,
    ends: bool,
) -> dict[str, str]:
    """Return the account of an upsert table after this commit; none for an append table.

    It `closes` a partition's account, or `ends` the time in which keys may change their partition: later records of a key may
    come from another one than its row, without a question.
    """
    before = state.keys
    if changes is not None and deletes is not None:
        before = before or KeyAccount()
        account = changes.account(before, deletes, request.counts.landed)
        staged = max(before.staged, request.staged_us or 0)
    elif before is not None:
        account, staged = request.keys or before.unchanged, before.staged
    else:
        return {}
    until = staged if ends else before.staged if closes else before.until
    return {ledger.KEYS: str(replace(account, staged=staged, until=until))}


def _deleted_keys(state: TableState, changes: RowChanges | None) -> dict[str, str]:
    """Return the deleted keys that the table remembers; none where there are none. An operator's decision may name others."""
    known = changes.remembered if changes is not None else None
    if known is None:
        known = state.last.remembered_deletes if state.last is not None else RememberedDeletes()
    return {ledger.REMEMBERED_DELETES: str(known)} if known.files else {}


def _stale_keys(state: TableState, changes: RowChanges | None) -> dict[str, str]:
    """Return the keys whose newest record was rejected; none for an append table."""
    stale = changes.stale if changes is not None else None
    if stale is None:
        stale = state.last.stale_keys if state.last is not None else None
    return {ledger.STALE_KEYS: str(stale)} if stale is not None else {}


def _numbered(state: TableState, extra: Extra) -> dict[str, str]:
    """Return the summary entries with the number of the newest side decision: the state's, or the next one for a new decision."""
    before = state.tagged.number if state.tagged else 0
    if ledger.SIDE in extra.summary:
        return {**extra.summary, ledger.DECISION: str(max(before, extra.numbered_from) + 1)}
    return {ledger.DECISION: str(before), **extra.summary}


def _replayed(state: TableState, request: CommitRequest, numbered: Mapping[str, str]) -> dict[str, str]:
    """Return the number of the newest decision by a replay, and the outcomes so far; nothing before the first one."""
    if request.replay is not None:
        counts = Counter(state.last.closed_dead_letters if state.last is not None else {})
        counts.update(
            {name: count for name, count in json.loads(request.replay).items() if name in set(DeadLetterOutcome)}
        )
        return {ledger.REPLAYED: canonical({**counts, "number": int(numbered[ledger.DECISION])})}
    known = state.last.summary.get(ledger.REPLAYED) if state.last is not None else None
    return {} if known is None or ledger.REPLAYED in numbered else {ledger.REPLAYED: known}
