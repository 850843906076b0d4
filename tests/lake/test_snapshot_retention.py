"""Which snapshots may go, on values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from frazil.lake.ledger import entry as ledger
from frazil.lake.snapshot_retention import DAY_MS, History, Past, expirable, since


def history(count: int, *, refs: dict[str, int] | None = None, removing: tuple[int, ...] = ()) -> History:
    """Snapshots 1 to `count`, one a second, each the child of the one before; `removing` took files out."""
    snapshots = tuple(
        Past(
            id=n,
            parent_id=n - 1 or None,
            sequence=n,
            at_ms=n * 1000,
            operation="replace" if n in removing else "append",
        )
        for n in range(1, count + 1)
    )
    return History(snapshots, {"main": count, **(refs or {})}, count)


def going(found: History, *, keep: int = 3, since_ms: int = 10**9, with_data: bool = False) -> tuple[int, ...]:
    return expirable(found, keep=keep, since_ms=since_ms, with_data=with_data)


def test_the_newest_stay() -> None:
    assert going(history(6)) == (1, 2, 3)


def test_with_fewer_than_are_kept_nothing_goes() -> None:
    assert going(history(2)) == ()
    assert going(History((), {}, None)) == ()


def test_the_young_stay() -> None:
    assert going(history(6), since_ms=2000) == (1,)


def test_of_very_many_young_ones_the_newest_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frazil.lake.snapshot_retention.MOST_BY_AGE", 4)
    assert going(history(6), since_ms=0) == (1, 2)
    assert going(history(6), keep=5, since_ms=0) == (1,)  # the declared number counts, however large
    assert going(history(4), since_ms=0) == ()


def test_what_a_tag_refers_to_stays_unless_the_tag_is_disregarded() -> None:
    assert going(history(6, refs={"audit": 2})) == (1, 3)
    tagged = history(6, refs={"frazil_p": 2})
    assert expirable(tagged, keep=3, since_ms=10**9, disregard=["frazil_p"], with_data=True) == (1, 2, 3)


def test_what_is_newer_than_the_ledger_stays_and_shows_that_the_head_descends_from_it() -> None:
    assert going(history(6, refs={"frazil_p": 2}), with_data=True) == (1,)


def test_nothing_goes_while_the_head_does_not_descend_from_the_ledger() -> None:
    rolled_back = History(history(6).snapshots, {"main": 4, "frazil_p": 6}, 4)
    assert going(rolled_back, keep=0, with_data=True) == ()
    gap = tuple(s for s in history(6).snapshots if s.id != 5)
    assert going(History(gap, {"main": 6, "frazil_p": 3}, 6), keep=0, with_data=True) == ()


def test_a_tag_that_was_moved_to_another_writers_snapshot_does_not_let_the_ledger_go() -> None:
    found = history(6, refs={"frazil_p": 5})
    snapshots = tuple(replace(s, summary={ledger.END: "{}"}) if s.id == 3 else s for s in found.snapshots)
    assert going(replace(found, snapshots=snapshots), keep=1) == (1, 2)


def test_without_a_tag_the_newest_snapshot_with_offsets_is_the_ledger() -> None:
    plain = history(6)
    summary = {ledger.END: "{}"}
    noted = tuple(replace(s, summary=summary) if s.id in (1, 3) else s for s in plain.snapshots)
    assert going(History(noted, plain.refs, 6), keep=0, with_data=True) == (1, 2)


def test_who_deletes_no_data_leaves_the_snapshots_that_tell_of_replaced_files() -> None:
    compacted = history(8, removing=(4,))
    assert going(compacted) == (1, 2, 5)
    assert going(compacted, with_data=True) == (1, 2, 3, 4, 5)


def test_who_deletes_no_data_leaves_what_is_not_in_the_heads_lineage() -> None:
    fork = Past(id=99, parent_id=1, sequence=2, at_ms=1500)
    forked = history(6)
    found = History(tuple(sorted((*forked.snapshots, fork), key=lambda s: s.sequence)), forked.refs, 6)
    assert going(found) == (1, 2, 3)
    assert going(found, with_data=True) == (1, 2, 99, 3)


def test_the_head_stays_though_nothing_refers_to_it() -> None:
    bare = history(3)
    assert expirable(History(bare.snapshots, {}, 3), keep=0, since_ms=10**9, with_data=True) == (1, 2)


def test_declared_days_and_grace_both_hold() -> None:
    now = 100 * DAY_MS
    assert since(now, None) == now
    assert since(now, 2, grace_ms=1000) == now - 2 * DAY_MS
    assert since(now, None, grace_ms=1000) == now - 1000


def test_batches_of_a_state_may_go_and_its_compactions_stay() -> None:
    """They delete rows by files that they add, and merges replace these; only a compaction takes data files out."""
    found = history(8, removing=(4,))
    said = {id_: (("overwrite", {ledger.KEYS: "{}"})) for id_ in range(1, 9)}
    said |= {
        2: ("replace", {ledger.UPKEEP: "merge"}),
        4: ("replace", {ledger.UPKEEP: "compact", "deleted-data-files": "2"}),
    }
    upserts = (replace(s, operation=said[s.id][0], summary=said[s.id][1]) for s in found.snapshots)
    assert going(replace(found, snapshots=tuple(upserts))) == (1, 2, 5)
