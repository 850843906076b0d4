"""Keys of upsert tables whose newest record was rejected: how commits count them, and who says so."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from frazil.audit.verify import verify
from frazil.clients.secrets import Secrets
from frazil.declaration import ErrorMode, Limits, Upsert
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.key_totals import StaleKeys
from frazil.lake.read.stored_tables import Lake
from frazil.maintain.orphans import remembered_files
from frazil.recovery.decisions import Accepted
from frazil.status.pipeline_status import status_of
from tests.scenarios.test_debezium import debezium
from tests.scenarios.test_truncates import truncate, truncating
from tests.support.debezium_events import PLACEHOLDER, Source
from tests.support.shop import ORDER, Shop, ShopOf, avro, frame
from tests.support.state_replay import VERSIONED

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.long]
LOG = {"on_error": ErrorMode.DEAD_LETTER, "max_rejected_percent": 100, "key_format": "text"}


@dataclass
class Produced:
    """A topic, and the keys that must be stale after its records: those whose last record was bad."""

    shop: Shop
    last_is_bad: dict[int, bool] = field(default_factory=dict)
    unknown: int = 0

    def good(self, key: int, word: str = "w") -> None:
        value = avro(ORDER, {"order_id": key, "user": word, "amount": None})
        self._put(key, frame(self.shop.register(), value), is_bad=False)

    def delete(self, key: int) -> None:
        self._put(key, None, is_bad=False)

    def bad(self, key: int) -> None:
        self._put(key, b"\x07no frame", is_bad=True)

    def bad_key(self) -> None:
        self.shop.produce([b"\x07no frame"], partition=0, key=b"\xff\xfe")
        self.unknown += 1

    def _put(self, key: int, value: bytes | None, *, is_bad: bool) -> None:
        self.shop.produce([value], partition=key % 2, key=f"k{key}".encode())
        self.last_is_bad[key] = is_bad

    def check(self) -> None:
        """Assert that ledger, `verify` and `show` count what must be stale."""
        keys = sum(self.last_is_bad.values())
        stale = stale_keys(self.shop)
        assert (stale.keys, stale.unknown, stale.since) == (keys, self.unknown, 0)
        lake = Lake(self.shop.lake, Secrets({}).read)
        proof = verify(self.shop.pipeline, lake)
        assert proof.outcome == "proven", proof.findings
        shown = status_of(self.shop.pipeline, lake.table(self.shop.pipeline.table.identifier))
        for one in (proof, shown):
            assert (one.stale_keys, one.unknown_keys) == (keys, self.unknown)
        assert set(shown.stale) <= set(proof.notes)
        assert len(shown.stale) == bool(keys) + bool(self.unknown)


def stale_keys(shop: Shop) -> StaleKeys:
    last = shop.entry()
    assert last.stale_keys is not None
    return last.stale_keys


def stale_files(shop: Shop) -> list[Path]:
    location = shop.table.location()
    return sorted(Path(urlsplit(location).path).glob("metadata/frazil-stale-keys-*"))


def test_a_key_is_stale_from_its_rejected_record_to_its_next_good_one(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), **LOG)
    made = Produced(shop)
    for key in range(6):
        made.good(key)
    made.bad(0)
    made.bad(1)
    made.good(1, "later in the batch")
    made.bad(2)
    made.delete(2)
    made.bad(9)  # never had a row
    made.bad_key()
    shop.drain()
    made.check()  # 0 and 9
    made.delete(9)
    made.delete(5)
    made.bad(5)
    shop.drain()
    made.check()  # 0 and 5
    files, iceberg = stale_files(shop), shop.job().iceberg
    named = remembered_files(iceberg, iceberg.load(shop.pipeline.table.identifier), shop.pipeline.name)
    assert {Path(urlsplit(location).path) for location in named} == set(files)  # so they are no orphans
    made.good(4, "says nothing of others")
    shop.drain()
    made.check()
    assert stale_files(shop) == files
    made.good(0)
    made.good(5)
    shop.drain()
    made.check()
    assert stale_keys(shop) == StaleKeys(unknown=1)


def test_a_row_that_keeps_values_from_before_its_rejected_record_stays_stale(shop_of: ShopOf) -> None:
    """The rejected record may have had the values that the next change leaves out."""
    shop = debezium(shop_of, on_error=ErrorMode.DEAD_LETTER, max_rejected_percent=100)
    source = Source(shop)
    for number in (1, 2):
        source.write("c", number, customer="first", note="old")
    shop.drain()
    shop.produce([b"bad!!!"], partition=0, key=source.key(1))
    shop.drain()
    assert stale_keys(shop).keys == 1
    for number in (1, 2):
        source.write("u", number, customer="x", note=PLACEHOLDER)
    shop.drain()
    assert stale_keys(shop).keys == 1
    source.write("u", 1, customer="x", note="new")
    shop.drain()
    assert stale_keys(shop).keys == 0


@pytest.mark.parametrize("on_error", [ErrorMode.DEAD_LETTER, ErrorMode.SKIP])
@pytest.mark.parametrize("write", [Upsert(), Upsert(on_tombstone="soft_delete")])
@pytest.mark.parametrize("seed", range(2))
def test_any_records_in_any_batches_count_as_their_replay(
    shop_of: ShopOf, seed: int, write: Upsert, on_error: ErrorMode
) -> None:
    dice = random.Random(seed)
    shop = shop_of(write=write, **{**LOG, "on_error": on_error}, limits=Limits(first_rows=7, max_rows=7))
    made = Produced(shop)
    for _ in range(4):
        for _ in range(dice.randrange(4, 25)):
            key, what = dice.randrange(8), dice.random()
            if what < 0.4:
                made.good(key)
            elif what < 0.6:
                made.delete(key)
            elif what < 0.95:
                made.bad(key)
            else:
                made.bad_key()
        shop.drain()
        made.check()


def test_the_key_of_a_rejected_record_is_that_of_its_value_or_of_its_own_key(shop_of: ShopOf) -> None:
    """With `order_by`: late records end nothing, and a record without an order has a key."""
    shop = shop_of(write=Upsert(key="order_id", order_by="version", on_tombstone="soft_delete"), **LOG)
    schema_id = shop.register(VERSIONED)

    def put(key: int, version: int | None) -> None:
        value = avro(VERSIONED, {"order_id": key, "user": "u", "version": version})
        shop.produce([frame(schema_id, value)], partition=0, key=b"of no column")

    put(1, 5)
    put(2, 5)
    put(2, None)  # order_missing
    shop.produce([b"\x07no frame"], partition=0, key=b"of no column")
    shop.drain()
    assert replace(stale_keys(shop), file="") == StaleKeys(keys=1, unknown=1)
    put(2, 4)  # late
    put(1, None)
    put(1, 6)
    shop.drain()
    assert replace(stale_keys(shop), file="") == StaleKeys(keys=1, unknown=1)
    put(2, 7)
    shop.drain()
    assert stale_keys(shop) == StaleKeys(unknown=1)


def test_a_truncate_that_deletes_all_rows_leaves_no_stale_key_before_it(shop_of: ShopOf) -> None:
    shop, source = truncating(shop_of, on_error=ErrorMode.DEAD_LETTER, max_rejected_percent=100)
    source.write("c", 1, customer="first")
    source.produce(1, source.event("?", None))
    shop.drain()
    assert stale_keys(shop).keys == 1
    source.produce(2, source.event("?", None))
    truncate(source)
    source.produce(3, source.event("?", None))
    source.produce(4, source.event("?", None))
    source.write("c", 4, customer="behind")
    shop.drain()
    assert replace(stale_keys(shop), file="") == StaleKeys(keys=1)
    source.delete(3)
    shop.drain()
    assert stale_keys(shop) == StaleKeys()
    shop.assert_proven(deep=True)


def test_a_rollback_takes_stale_keys_back_and_a_replay_counts_them_again(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), **LOG)
    made = Produced(shop)
    for key in range(4):
        made.good(key)
    made.bad(1)
    shop.drain()
    made.check()
    iceberg, name = shop.job().iceberg, shop.pipeline.table.identifier
    before, head = stale_keys(shop), int(iceberg.load(name).currentSnapshot().snapshotId())
    made.good(1)
    made.bad(2)
    made.bad(3)
    shop.drain()
    made.check()
    iceberg.load(name).manageSnapshots().setCurrentSnapshot(head).commit()
    shop.accept(Accepted.ROLLED_BACK_REPLAY)
    assert stale_keys(shop) == before
    shop.drain()
    made.check()


def test_a_lost_file_and_an_earlier_release_begin_the_count_again(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The figure says since when; nothing stops."""
    shop = shop_of(write=Upsert(), **LOG)
    made = Produced(shop)
    made.good(0)
    made.bad(0)
    shop.drain()
    for file in stale_files(shop):
        file.unlink()
    made.bad(1)
    shop.drain(clock=lambda: 2_000_000_000.0)
    assert replace(stale_keys(shop), file="") == StaleKeys(keys=1, since=2_000_000_000_000_000)
    last = urlsplit(stale_keys(shop).file).path
    Path(last).write_text("damaged")
    made.bad(2)
    shop.drain(clock=lambda: 2_000_000_100.0)
    assert replace(stale_keys(shop), file="") == StaleKeys(keys=1, since=2_000_000_100_000_000)

    monkeypatch.setattr(ledger, "STALE_KEYS", "of-another-release")
    made.bad(3)
    shop.drain(clock=lambda: 2_000_000_200.0)
    assert replace(stale_keys(shop), file="") == StaleKeys(keys=1, since=2_000_000_200_000_000)
    proof = shop.verified()
    assert proof.outcome == "proven", proof.findings
    assert "1 keys are stale: their newest record was rejected (counted since 2033-05-18 03:36 UTC)" in proof.notes
