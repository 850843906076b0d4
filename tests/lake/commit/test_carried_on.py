"""What each commit of an upsert table carries on of its keys."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from frazil.lake.commit.carried_on import carried_on
from frazil.lake.commit.request import CommitRequest, Extra
from frazil.lake.commit.table_state import TableState
from frazil.lake.delete_files.staged_deletes import StagedDeletes
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.key_totals import KeyAccount
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.remembered_deletes import KeyFile, RememberedDeletes
from frazil.lake.ledger.totals import Counts

FIRST, SECOND = (Offsets("orders", topic, {0: 0}) for topic in ("T1", "T2"))


class Rows:
    """Changes that write one row."""

    def __init__(self, remembered: RememberedDeletes | None = None) -> None:
        self.remembered, self.stale = remembered, None

    def account(self, before: KeyAccount, deletes: StagedDeletes, records: int) -> KeyAccount:
        return KeyAccount(rows=before.rows + 1, records=before.records + records)


class Commits:
    """The entries of one pipeline, each on the one before."""

    def __init__(self) -> None:
        self.last: Entry | None = None

    def add(
        self,
        start: Offsets,
        end: Offsets,
        *,
        staged_us: int | None = None,
        has_rows: bool = True,
        keys_moved: Offsets | None = None,
        remembered: RememberedDeletes | None = None,
        extra: Mapping[str, str] = MappingProxyType({}),
    ) -> KeyAccount:
        batch = CommitRequest(
            pipeline="orders", run="me", version="1", start=start, end=end, committed=None, topic_id=end.topic_id,
            counts=Counts(read=1, written=1) if has_rows else Counts(), staged_us=staged_us, windows={} if keys_moved is None else {ledger.KEYS_MOVED: keys_moved},
        )  # fmt: skip
        base = TableState("uuid", {}, self.last, head_follows_tag=True, own_commit=None, last=self.last)
        changes: Any = Rows(remembered) if has_rows else None
        deletes = StagedDeletes(snapshot_id=1) if has_rows else None
        summary = carried_on(base, batch, Extra(summary=extra), changes, deletes)
        self.last = Entry.of(1, {**batch.summary("uuid"), ledger.KEYS: str(KeyAccount()), **summary})
        assert self.last.keys is not None
        return self.last.keys

    def moved(self) -> Offsets | None:
        assert self.last is not None
        return self.last.window(ledger.KEYS_MOVED)


def at(offsets: Offsets, offset: int) -> Offsets:
    return Offsets(offsets.topic, offsets.topic_id, {0: offset})


def test_the_newest_staging_is_known_though_a_drivers_clock_goes_back() -> None:
    commits = Commits()
    assert commits.add(FIRST, at(FIRST, 1), staged_us=70).staged == 70
    assert commits.add(at(FIRST, 1), at(FIRST, 2), staged_us=50).staged == 70
    assert commits.add(at(FIRST, 2), at(FIRST, 3), staged_us=90).staged == 90


def test_rows_of_an_earlier_log_are_those_staged_before_the_decision() -> None:
    commits = Commits()
    assert commits.add(FIRST, at(FIRST, 5), staged_us=70).until == 0
    decided = commits.add(at(FIRST, 5), SECOND, staged_us=None, has_rows=False)
    assert (decided.staged, decided.until) == (70, 70)
    later = commits.add(SECOND, at(SECOND, 1), staged_us=80)
    assert (later.staged, later.until) == (80, 70)
    assert commits.add(at(SECOND, 1), SECOND, staged_us=None, has_rows=False).until == 80


def test_keys_may_move_until_the_offsets_of_the_decision_are_reached() -> None:
    """Each commit repeats it, whoever made it; behind it, rows tell nothing by their partition."""
    commits = Commits()
    commits.add(FIRST, at(FIRST, 2), staged_us=70)
    commits.add(at(FIRST, 2), at(FIRST, 2), has_rows=False, keys_moved=at(FIRST, 5))
    assert commits.moved() == at(FIRST, 5)
    assert commits.add(at(FIRST, 2), at(FIRST, 4), staged_us=80).until == 0
    assert commits.add(at(FIRST, 4), at(FIRST, 4), has_rows=False).until == 0  # as upkeep commits
    assert commits.moved() == at(FIRST, 5)
    assert commits.add(at(FIRST, 4), at(FIRST, 5), staged_us=90).until == 90
    assert commits.moved() is None
    assert commits.add(at(FIRST, 5), at(FIRST, 6), staged_us=99).until == 90


def test_a_decision_that_nothing_waits_for_is_reached_at_once() -> None:
    commits = Commits()
    commits.add(FIRST, at(FIRST, 2), staged_us=70)
    assert commits.add(at(FIRST, 2), at(FIRST, 2), has_rows=False, keys_moved=at(FIRST, 2)).until == 70
    assert commits.moved() is None


def test_another_topic_ends_what_was_decided_of_the_one_before() -> None:
    commits = Commits()
    commits.add(FIRST, at(FIRST, 2), staged_us=70)
    commits.add(at(FIRST, 2), at(FIRST, 2), has_rows=False, keys_moved=at(FIRST, 9))
    assert commits.add(at(FIRST, 2), SECOND, has_rows=False).until == 70
    assert commits.moved() is None


def test_deleted_keys_are_carried_on_until_a_batch_or_a_decision_says_otherwise() -> None:
    commits, known = Commits(), RememberedDeletes((KeyFile("s3://b/1", 1, 1, 1), KeyFile("s3://b/2", 1, 1, 2)))

    def held() -> RememberedDeletes:
        assert commits.last is not None
        return commits.last.remembered_deletes

    commits.add(FIRST, at(FIRST, 1), remembered=known)
    assert held() == known
    commits.add(at(FIRST, 1), at(FIRST, 1), has_rows=False)  # as upkeep and operators commit
    assert held() == known
    left = known.without(["s3://b/1"])
    commits.add(at(FIRST, 1), at(FIRST, 1), has_rows=False, extra={ledger.REMEMBERED_DELETES: str(left)})
    assert held() == left
    commits.add(at(FIRST, 1), at(FIRST, 2), remembered=RememberedDeletes())
    assert commits.last is not None
    assert ledger.REMEMBERED_DELETES not in commits.last.summary
