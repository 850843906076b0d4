"""The history of a table of current state: each change of each commit, with the row before it, exactly once."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from frazil.audit.verify import verify
from frazil.cli.main import app
from frazil.clients.secrets import Secrets
from frazil.declaration import History, KeyFormat, Limits, Upsert
from frazil.declaration.document import canonical, document
from frazil.declaration.environment import Environment, environment_document
from frazil.errors import FrazilError, HistoryMismatch, InvalidInput, SparkFailed, TopicRecreated
from frazil.ingest.events import Reporter
from frazil.ingest.state_history import StateHistory
from frazil.job.failpoints import HISTORY_STEPS
from frazil.lake import ledger
from frazil.lake.commit.entries import entry, of
from frazil.lake.history import follow, history_columns
from frazil.lake.history.history_ledger import OF_SEQUENCE, OF_SNAPSHOT, Recorded
from frazil.lake.history.recorded import recorded
from frazil.lake.ledger import Entry
from frazil.lake.offsets import Offsets
from frazil.lake.past_state_sql import UNKNOWN, PastState
from frazil.lake.read.stored_tables import Lake
from frazil.lake.sql_engine import SqlEngine
from frazil.local.duckdb_query import ask
from frazil.maintain.expire import expire
from frazil.maintain.result import Status
from frazil.maintain.target import MaintenanceRun, Target
from frazil.recovery.apply import accept
from frazil.recovery.decisions import Accepted
from frazil.status.pipeline_status import pipeline_status
from tests.scenarios.test_debezium import debezium
from tests.scenarios.test_upserts import State, stored, verified
from tests.support import extra_catalogs, oracle
from tests.support.debezium_events import Source
from tests.support.past_states import PastStates
from tests.support.rest_catalog import rest_catalog
from tests.support.shop import ORDER, Shop, avro, frame
from tests.support.state_replay import StateReplay

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
ShopOf = Callable[..., Shop]
HISTORY = History(keep_days=30)
WITH_HISTORY = Upsert(history=HISTORY)
OWN = ("_op", "_changed_at", "_committed_at", "_sequence", "_end", "_before")
Row = dict[str, Any]


def changes(shop: Shop) -> list[Row]:
    rows = oracle.rows(shop.lake, shop.pipeline.table.history)
    return sorted(rows, key=lambda row: (row["_sequence"], str(row["_kafka_key"])))


def newest(shop: Shop) -> Recorded:
    found = recorded(shop.job().iceberg.load(shop.pipeline.table.history), shop.pipeline.name)
    assert found is not None
    return found


def check(shop: Shop, *, began: dict[str, Row] | None = None) -> list[Row]:
    """Assert that the changes, one after the other, lead from the rows that the history `began` with to those of the state."""
    state, now, seen = by_key(shop.landed()), dict(began or {}), set[tuple[Any, int]]()
    found = changes(shop)
    for row in found:
        place = (row["_kafka_key"], row["_sequence"])
        assert place not in seen
        seen.add(place)
        before, key = now.get(row["_kafka_key"]), row["_kafka_key"]
        assert row["_before"] == before, row
        after = {name: value for name, value in row.items() if name not in OWN}
        if row["_op"] == "d" and after.get("_deleted_at") is None:
            assert {name for name, value in after.items() if value not in (None, [])} == {"_kafka_key"}
            del now[key]
        else:
            now[key] = after
    assert now == state
    last = newest(shop)
    table = shop.job().iceberg.load(shop.pipeline.table.identifier)
    held = entry(table, shop.pipeline.name)
    assert held is not None
    assert held.keys is not None
    assert (last.entry.end, last.account.rows, last.account.hash) == (held.end, held.keys.rows, held.keys.hash)
    return found


def by_key(rows: list[Row]) -> dict[str, Row]:
    return {row["_kafka_key"]: row for row in rows}


def crash_at(step: str, hit: int = 1) -> Callable[[str], None]:
    hits: list[str] = []

    def reached(here: str) -> None:
        hits.append(here)
        if here == step and hits.count(step) == hit:
            raise FrazilError(f"crash at {step}")

    return reached


def state_of(shop_of: ShopOf, write: Upsert = WITH_HISTORY, **choices: Any) -> tuple[Shop, State]:
    shop = shop_of(write=write, key_format=KeyFormat.TEXT, **choices)
    return shop, State(shop)


@pytest.mark.parametrize(
    "too_large",
    [MemoryError(), MemoryError("a task died of memory")],
)
@pytest.mark.long
def test_a_commit_whose_changes_are_too_large_is_no_fault_of_the_batch(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch, too_large: MemoryError
) -> None:
    """The state has the changes: neither is the batch staged again, nor are later ones smaller."""
    shop, state = state_of(shop_of)
    state.put(0, "first")
    shop.drain()
    state.put(0, "second")
    ingestion = shop.ingestion()
    rows = ingestion.pace.rows

    def fails(*_: object, **__: object) -> None:
        raise too_large

    with monkeypatch.context() as patched:
        patched.setattr(follow, "stage", fails)
        with pytest.raises(SparkFailed, match="could not be recorded.*Give the driver"):
            ingestion.drain()
    assert ingestion.pace.rows >= rows
    assert len(changes(shop)) == 1
    assert pipeline_status(shop.pipeline, Lake(shop.lake, Secrets({}).read), None, commits=0).history_behind == 1
    shop.drain()
    state.check()
    assert [row["_op"] for row in check(shop)] == ["c", "u"]
    status = pipeline_status(shop.pipeline, Lake(shop.lake, Secrets({}).read), None, commits=0)
    assert (status.rows, status.history, status.history_behind) == (1, shop.pipeline.table.history, 0)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.long
def test_each_change_of_a_state_is_a_row_with_the_row_before_it(shop_of: ShopOf, version: int) -> None:
    shop, state = state_of(shop_of, table={"format_version": version})
    past = PastStates(shop)
    for number in range(4):
        state.put(number, "first")
    shop.drain()
    past.note()
    state.put(0, "second")
    state.put(1, "superseded")
    state.delete(1)
    state.put(5, "new")
    shop.drain()
    past.note()
    state.put(1, "again")
    state.delete(7)
    shop.drain()
    state.check()
    past.note()
    past.check()
    at, rows = past.noted[1]
    more = {partition: offset + 1 for partition, offset in at.items()}
    assert past.by_duckdb(more) == rows  # no commit ended between
    with pytest.raises(duckdb.Error, match=UNKNOWN):
        past.by_duckdb(dict.fromkeys(at, 1))
    with pytest.raises(Py4JJavaError, match=UNKNOWN):
        past.by_spark({next(iter(at)): 9})  # a partition that is not named has no records
    found = [(row["_kafka_key"], row["_op"], row["user"], (row["_before"] or {}).get("user")) for row in check(shop)]
    assert found == [
        *((f"k{number}", "c", "first", None) for number in range(4)),
        ("k0", "u", "second", "first"),
        ("k1", "d", None, "first"),
        ("k5", "c", "new", None),
        ("k1", "c", "again", None),
    ]
    account = newest(shop).account
    assert (account.began, account.inserted, account.updated, account.deleted) == (0, 6, 1, 1)


@pytest.mark.long
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    "write",
    [
        WITH_HISTORY,
        Upsert(on_tombstone="soft_delete", history=HISTORY),
        Upsert(order_by="_kafka_timestamp", on_tombstone="soft_delete", history=HISTORY),
    ],
    ids=["hard", "soft", "ordered"],
)
def test_any_changes_lead_from_nothing_to_the_state_and_back(shop_of: ShopOf, write: Upsert, version: int) -> None:
    """The rows before the changes lead back to the state of each commit, also where compaction came in between."""
    dice, past = random.Random(version), list[tuple[int, dict[str, Row]]]()
    shop = shop_of(write=write, key_format=KeyFormat.TEXT, table={"format_version": version})
    replay, states = StateReplay(shop, ordered_by=write.order_by[0] if write.order_by else None), PastStates(shop)
    for turn in range(6):
        for _ in range(dice.randrange(3, 25)):
            word = None if dice.random() < 0.3 else f"w{dice.randrange(1000)}"
            replay.produce(dice.randrange(6), word, at=dice.randrange(40))
        if turn == 3:
            shop.spark.sql(
                f"CALL lake.system.rewrite_data_files(table => '{shop.pipeline.table.identifier}', options => "
                "map('rewrite-all', 'true', 'delete-file-threshold', '1'))"
            )
        shop.drain()
        replay.check()
        past.append((newest(shop).sequence, by_key(shop.landed())))
        states.note()
        found = check(shop)
    for sequence, state in past:
        then = by_key(shop.landed())
        for row in reversed([row for row in found if row["_sequence"] > sequence]):
            then.pop(row["_kafka_key"], None)
            if row["_before"] is not None:
                then[row["_kafka_key"]] = row["_before"]
        assert then == state
    states.check()


@pytest.mark.parametrize("step", [pytest.param(s, marks=[pytest.mark.long]) for s in HISTORY_STEPS])
def test_a_driver_that_fails_at_any_step_leaves_what_the_next_one_finishes(shop_of: ShopOf, step: str) -> None:
    shop, state = state_of(shop_of)
    for turn in range(3):
        state.put(1, f"word {turn}")
        state.put(turn, f"word {turn}")
        with pytest.raises(FrazilError, match=r"crash at"):
            shop.drain(failpoint=crash_at("history.staged" if turn and step == "history.began" else step))
        shop.drain()
        state.check()
        check(shop)


@pytest.mark.long
@pytest.mark.parametrize("step", HISTORY_STEPS)
def test_a_driver_that_is_killed_leaves_what_the_next_one_finishes(shop_of: ShopOf, tmp_path: Path, step: str) -> None:
    shop, state = state_of(shop_of)
    state.put(1, "first")
    if step != "history.began":
        shop.drain()
        state.put(1, "second")
        state.delete(2)
    killed = shop.process(tmp_path, failpoints=f"{step}=kill")
    killed.communicate(timeout=200)
    assert killed.returncode == -9
    if step != "history.began":  # it begins before the first batch
        state.check()  # between the two commits the state is ahead of its history, never behind it
        behind = pipeline_status(shop.pipeline, Lake(shop.lake, Secrets({}).read), None, commits=0).history_behind
        assert behind == (0 if step == "history.committed" else 1)
    shop.drain()
    state.check()
    check(shop)


@pytest.mark.long
def test_two_drivers_record_each_commit_once(shop_of: ShopOf) -> None:
    shop, state = state_of(shop_of)
    state.put(1, "first")
    shop.drain()
    for number, step in enumerate(("history.staged", "history.filled")):
        state.put(1, f"word {number}")
        state.put(2 + number, "new")
        hits: list[str] = []

        def meanwhile(here: str, step: str = step, hits: list[str] = hits, number: int = number) -> None:
            if here == step and not hits:
                hits.append(here)
                state.put(7, f"of the other one, {number}")
                shop.drain()

        shop.drain(failpoint=meanwhile)
        assert hits
        shop.drain()
        check(shop)


@pytest.mark.long
def test_a_reader_beside_a_driver_sees_no_state_behind_its_history(shop_of: ShopOf) -> None:
    """The reader looks at the history and then at the state, again and again. The driver waits at its steps for one more look."""
    shop, state = state_of(shop_of, partitions=1, limits=Limits(first_rows=3, max_rows=3))
    state.put(0, "first", partition=0)
    shop.drain()
    for number, word in enumerate(("second", "third", "fourth")):
        state.put(0, word, partition=0)
        state.put(number + 1, word, partition=0)
        state.delete(number, partition=0)
    looks, looked = list[tuple[Any, Any]](), threading.Condition()

    def wait_for_a_look(step: str) -> None:
        if step in ("history.staged", "history.committed"):
            with looked:
                after_the_next = len(looks) + 2
                assert looked.wait_for(lambda: len(looks) >= after_the_next, timeout=60), "the reader ended"

    with ThreadPoolExecutor(1) as pool:
        driver = pool.submit(shop.drain, failpoint=wait_for_a_look)
        while not driver.done():
            history = oracle.table(shop.lake, shop.pipeline.table.history)
            look = (history, stored(shop))
            with looked:
                looks.append(look)
                looked.notify_all()
        driver.result()
    places, made = set[tuple[int, int]](), dict[int, dict[str, Row]]()
    for history, held in looks:
        last, head = history.current_snapshot(), newest_commit(held)
        recorded, end = (Offsets.parse(one.summary[ledger.END]).at[0] for one in (last, head))
        assert int(last.summary[OF_SEQUENCE]) <= head.sequence_number
        assert recorded <= end
        places.add((recorded, end))
        if recorded not in made:
            made[recorded] = made_by(history.scan().to_arrow().to_pylist())
            at = held.scan(snapshot_id=int(last.summary[OF_SNAPSHOT])).to_arrow().to_pylist()
            assert made[recorded] == by_key(at)
    ends = sorted(made)
    assert len(ends) > 3
    assert places == {*zip(ends, ends, strict=True), *pairwise(ends)}  # level, or one commit behind
    check(shop)


def newest_commit(table: Any) -> Any:
    """The newest snapshot that is no upkeep's."""
    return max((s for s in table.snapshots() if s.summary[ledger.END]), key=lambda s: s.sequence_number)


def made_by(found: list[Row]) -> dict[str, Row]:
    """The rows that changes make, one after the other."""
    now = dict[str, Row]()
    for row in sorted(found, key=lambda row: row["_sequence"]):
        now.pop(row["_kafka_key"], None)
        if row["_op"] != "d":
            now[row["_kafka_key"]] = {name: value for name, value in row.items() if name not in OWN}
    return now


@pytest.mark.long
def test_a_history_that_is_declared_later_begins_at_the_head(shop_of: ShopOf) -> None:
    shop, state = state_of(shop_of, Upsert())
    with_history = replace(shop.pipeline, write=WITH_HISTORY)
    for number in range(3):
        state.put(number, "first")
    shop.drain()
    began = by_key(shop.landed())
    shop.pipeline = with_history
    state.put(0, "second")
    state.delete(1)
    shop.drain()
    (event,) = shop.seen("history_began")
    assert event["rows_before"] == 3
    assert [row["_op"] for row in check(shop, began=began)] == ["u", "d"]
    shop.pipeline = replace(shop.pipeline, write=Upsert())
    state.put(0, "third")
    shop.drain()
    shop.pipeline = with_history
    shop.drain()
    assert [row["_op"] for row in check(shop, began=began)] == ["u", "d", "u"]


@pytest.mark.long
@pytest.mark.parametrize("event", [Accepted.ROLLED_BACK_REPLAY, Accepted.ROLLED_BACK_HOLD])
def test_changes_of_undone_commits_go(shop_of: ShopOf, event: Accepted) -> None:
    shop, state = state_of(shop_of, limits=Limits(first_rows=1, max_rows=1))
    heads = []  # a run may end with a commit of its upkeep, so batches are undone by the heads between runs
    for number in range(3):
        state.put(1, f"word {number}")
        state.put(number + 2, "new")
        shop.drain()
        table = shop.job().iceberg.load(shop.pipeline.table.identifier)
        heads.append(table.currentSnapshot().snapshotId())
    table.manageSnapshots().rollbackTo(heads[-2]).commit()
    accept(shop.pipeline, event, "as the test says", shop.job())
    found = verified(shop, deep=True)
    assert (found.findings, [note for note in found.notes if "undone" in note] != []) == ((), True)
    of, table = shop.pipeline, Lake(shop.lake, Secrets({}).read).table
    with pytest.raises(InvalidInput, match="not of the table's present rows"):
        PastState.of(
            of.name, table(of.table.identifier), table(of.table.history), of.table.history, is_at_snapshots=False
        )
    shop.drain()
    check(shop)
    state.put(1, "later")
    state.put(9, "later")
    shop.drain()
    check(shop)
    assert any(each["undone"] for each in shop.seen("history_recorded"))


@pytest.mark.long
def test_an_earlier_state_is_asked_for_by_the_offsets_of_the_present_topic(shop_of: ShopOf) -> None:
    shop, state = state_of(shop_of)
    for word in ("first", "second", "third"):
        for number in range(4):
            state.put(number, word)
        shop.drain()
    left = sorted((row["_kafka_key"], row["user"]) for row in shop.landed())
    shop.delete()
    shop.create()
    shop.new_producer(2)
    with pytest.raises(TopicRecreated):
        shop.drain()
    accept(shop.pipeline, Accepted.TOPIC_RECREATED, "as the test says", shop.job())
    past = PastStates(shop)
    for numbers in ((0, 1, 5), (1, 2)):
        for number in numbers:
            state.put(number, "of the new topic")
        shop.drain()
        past.note()
    check(shop)
    past.check()
    (first, _), (held, _) = past.noted
    assert first == {0: 1, 1: 2}
    assert held == {0: 2, 1: 3}
    assert past.by_duckdb({0: 1, 1: 1}) == left  # before the first commit of the new topic
    with pytest.raises(InvalidInput, match="its offsets went back once"):
        past.by_duckdb({0: 4, 1: 4})


@pytest.mark.long
def test_a_history_that_cannot_follow_stops_the_pipeline(shop_of: ShopOf) -> None:
    shop, state = state_of(shop_of)
    state.put(1, "first")
    shop.drain()
    shop.pipeline = replace(shop.pipeline, write=Upsert())
    for number in range(3):
        state.put(1, f"word {number}")
        shop.drain()
    shop.spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{shop.pipeline.table.identifier}', "
        "older_than => TIMESTAMP '2999-01-01', retain_last => 1)"
    )
    shop.pipeline = replace(shop.pipeline, write=WITH_HISTORY)
    state.put(1, "last")
    with pytest.raises(HistoryMismatch, match=r"Rename shop\.\w+__changes"):
        shop.drain()
    assert by_key(shop.landed())["k1"]["user"] == "word 2"
    history = shop.pipeline.table.history
    shop.spark.sql(f"ALTER TABLE lake.{history} RENAME TO {history}_until_now")
    began = by_key(shop.landed())
    shop.drain()
    assert [row["_op"] for row in check(shop, began=began)] == ["u"]


@pytest.mark.long
def test_a_history_of_another_table_stops_the_pipeline(shop_of: ShopOf) -> None:
    shop, state = state_of(shop_of)
    state.put(1, "first")
    shop.drain()
    shop.job().iceberg.drop(shop.pipeline.table.identifier, purge=False)
    with pytest.raises(HistoryMismatch, match="dropped and created again"):
        shop.drain()


@pytest.mark.long
def test_a_history_follows_the_columns_of_the_state(shop_of: ShopOf) -> None:
    narrow = {**ORDER, "fields": [{"name": "order_id", "type": "int"}, *ORDER["fields"][1:]]}
    shop = shop_of(write=WITH_HISTORY, key_format=KeyFormat.TEXT)
    first = shop.register(narrow)
    shop.produce([frame(first, avro(narrow, {"order_id": 1, "user": "first", "amount": None}))], partition=0, key=b"k1")
    shop.drain()
    wide = {
        **ORDER,
        "fields": [
            {"name": "order_id", "type": "long"},
            {"name": "buyer", "aliases": ["user"], "type": "string"},
            {"name": "amount", "type": ["null", "double"], "default": None},
            {"name": "note", "type": ["null", "string"], "default": None},
        ],
    }
    second = shop.register(wide)
    value = {"order_id": 2**40, "buyer": "second", "amount": 1.0, "note": "new"}
    shop.produce([frame(second, avro(wide, value))], partition=0, key=b"k1")
    shop.drain()
    found = changes(shop)
    assert "user" not in found[0]
    assert [(row["buyer"], row["order_id"], row["note"]) for row in found] == [
        ("first", 1, None),
        ("second", 2**40, "new"),
    ]
    assert (found[1]["_before"]["buyer"], found[1]["_before"]["order_id"]) == ("first", 1)


@pytest.mark.long
def test_a_default_that_another_engine_gives_a_column_is_the_value_before(shop_of: ShopOf) -> None:
    """Version 3 has defaults: rows of before have the value without being written again."""
    shop, state = state_of(shop_of, table={"format_version": 3})
    for number in (1, 2):
        state.put(number, "first")
    shop.drain()
    iceberg = shop.job().iceberg
    classes, table = iceberg.classes, iceberg.load(shop.pipeline.table.identifier)
    seven = classes.static("expressions.Literal", "of", (classes.java("java.lang.Integer").TYPE, 7))
    whole_number = classes.static("types.Types$IntegerType", "get")
    table.updateSchema().addColumn("more", whole_number, seven).commit()
    state.put(1, "second")
    state.delete(2)
    shop.drain()
    found = [(row["_op"], row["_before"]["more"]) for row in changes(shop) if row["_before"] is not None]
    assert found == [("u", 7), ("d", 7)]


@pytest.mark.long
@pytest.mark.parametrize("version", [2, 3])
def test_a_truncate_deletes_each_row(shop_of: ShopOf, version: int) -> None:
    write = Upsert(on_truncate="delete_all", history=HISTORY)
    shop = debezium(shop_of, write=write, partitions=1, table={"format_version": version})
    source = Source(shop)
    for number in range(4):
        source.write("c", number, customer="before", note=f"n{number}")
    shop.drain()
    source.write("u", 3, customer="updated")
    shop.drain()
    source.produce(None, source.event("t", None))
    source.rows.clear()
    source.write("c", 1, customer="behind")
    shop.drain()
    rows = sorted(oracle.rows(shop.lake, shop.pipeline.table.history), key=lambda row: (row["_sequence"], row["id"]))
    found = [(row["id"], row["_op"], (row["_before"] or {}).get("customer")) for row in rows]
    assert found == [
        *((number, "c", None) for number in range(4)),
        (3, "u", "before"),
        (0, "d", "before"),
        (1, "u", "before"),
        (2, "d", "before"),
        (3, "d", "updated"),
    ]
    proof = verify(shop.pipeline, Lake(shop.lake, Secrets({}).read), deep=True)
    assert proof.outcome == "proven", proof.findings


@pytest.mark.long
def test_a_driver_keeps_the_snapshots_that_its_history_needs(shop_of: ShopOf) -> None:
    shop, state = state_of(shop_of, table={"keep_snapshots": 1})
    state.put(1, "first")
    shop.drain()
    for number in range(3):
        state.put(1, f"word {number}")
        with pytest.raises(FrazilError, match=r"crash at"):
            shop.drain(failpoint=crash_at("history.filled"))
    shop.drain()
    state.check()
    check(shop)


@pytest.mark.long
def test_maintenance_deletes_old_changes_and_later_ones_still_lead_back(shop_of: ShopOf) -> None:
    shop, state = state_of(shop_of, Upsert(history=History(keep_days=2)))
    for number in range(3):
        state.put(1, f"word {number}")
        shop.drain()
    later = time.time() + 4 * 86_400
    for clock, left in ((time.time, 3), (lambda: later, 0)):
        run, history = MaintenanceRun(shop.job(clock=clock)), Target.of(shop.pipeline)[-1]
        done = {target.identifier: expire(run, target) for target in Target.of(shop.pipeline)}
        assert {outcome.ended for outcome in done.values()} == {Status.DONE}
        assert (history.identifier, done[history.identifier].rows) == (shop.pipeline.table.history, 3 - left)
        assert len(changes(shop)) == left
        found = newest(shop)
        assert (found.account.inserted, found.account.updated) == (1, 2)
    state.put(1, "after maintenance")
    shop.drain()
    state.check()
    assert [(row["_op"], row["_before"]["user"]) for row in changes(shop)] == [("u", "word 2")]


@pytest.mark.long
def test_maintenance_deletes_old_changes_in_the_order_of_their_commits(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the third commit's driver was behind that of the second one's, and midnight was between both."""
    now = time.time()
    midnight = now - now % 86_400 - 2 * 86_400
    clocks = iter([midnight - 7200, midnight + 20, midnight - 10, now])
    shop, state = state_of(shop_of, Upsert(history=History(keep_days=2)))
    past = PastStates(shop)
    at_ms: dict[int, int] = {}

    def patched(snapshot: Any) -> Entry:
        found = of(snapshot)
        if found.keys is not None and found.snapshot_id not in at_ms:
            at_ms[found.snapshot_id] = round(next(clocks) * 1000)
        return replace(found, at_ms=at_ms.get(found.snapshot_id, found.at_ms))

    monkeypatch.setattr(follow, "of", patched)
    for number in range(4):
        state.put(1, f"word {number}")
        shop.drain()
        if number:
            past.note()
    history = Target.of(shop.pipeline)[-1]
    for days, left in ((0, 3), (0, 3), (1, 1)):
        expire(MaintenanceRun(shop.job(clock=lambda days=days: now + days * 86_400)), history)
        assert [row["user"] for row in changes(shop)] == [f"word {number}" for number in range(4 - left, 4)]
        if left == 3:
            past.check()
        assert verified(shop, deep=True).outcome == "proven"


@pytest.mark.long
def test_a_look_at_the_state_that_is_too_old_takes_no_change_back(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another driver lands and records a commit, between the looks of this one at the state and at its history."""
    shop = shop_of(write=WITH_HISTORY, key_format=KeyFormat.TEXT)
    state = State(shop)
    state.put(1, "first")
    shop.drain()
    real, seen = history_columns.make, list[int]()

    def meanwhile(*given: Any) -> None:
        if not seen:
            seen.append(0)
            state.put(2, "second")
            shop.drain()
            seen.append(newest(shop).entry.snapshot_id)
        real(*given)

    monkeypatch.setattr(follow.history_columns, "make", meanwhile)
    shop.drain()
    assert [row["user"] for row in changes(shop)] == ["first", "second"]
    assert seen == [0, newest(shop).entry.snapshot_id]
    state.check()


@pytest.mark.long
@pytest.mark.parametrize(
    "statement", ["DELETE FROM {} WHERE order_id = 1", "UPDATE {} SET _kafka_key = 'x' WHERE order_id = 1"]
)
def test_verify_finds_a_state_that_its_history_does_not_make(shop_of: ShopOf, statement: str) -> None:
    """What another engine changes is in the history, and not in the account of the state's commits."""
    shop, state = state_of(shop_of)
    for number in range(3):
        state.put(number, "first")
    shop.drain()
    shop.spark.sql(statement.format(f"lake.{shop.pipeline.table.identifier}"))
    state.put(2, "second")
    shop.drain()
    found = verify(shop.pipeline, Lake(shop.lake, Secrets({}).read), deep=True)
    assert "history_differs" in [finding.flaw for finding in found.findings]


@pytest.mark.long
def test_what_another_engine_writes_is_a_change(shop_of: ShopOf) -> None:
    """Its UPDATE writes the file again and leaves the columns of the record as they were."""
    shop, state = state_of(shop_of)
    for number in range(3):
        state.put(number, "first")
    shop.drain()
    shop.spark.sql(f"UPDATE lake.{shop.pipeline.table.identifier} SET user = 'by hand' WHERE order_id = 1")
    state.put(2, "second")
    shop.drain()
    rows = [(row["_op"], row["order_id"], row["user"], row["_before"]["user"]) for row in check(shop) if row["_before"]]
    assert rows == [("u", 1, "by hand", "first"), ("u", 2, "second", "first")]


@pytest.mark.long
def test_a_rollback_to_a_compaction_behind_an_expired_commit_is_followed_or_asked_for(shop_of: ShopOf) -> None:
    shop, state = state_of(shop_of)
    state.put(1, "first")
    shop.drain()
    first = int(stored(shop).current_snapshot().snapshot_id)
    shop.spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{shop.pipeline.table.identifier}', options => map('rewrite-all', 'true'))"
    )
    compacted = int(stored(shop).current_snapshot().snapshot_id)
    state.put(1, "second")
    shop.drain()
    table = shop.job().iceberg.load(shop.pipeline.table.identifier)
    table.manageSnapshots().rollbackTo(compacted).commit()
    table = shop.job().iceberg.load(shop.pipeline.table.identifier)
    table.expireSnapshots().expireSnapshotId(first).cleanExpiredFiles(False).commit()
    accept(shop.pipeline, Accepted.ROLLED_BACK_REPLAY, "as the test says", shop.job())
    shop.drain()
    state.check()
    check(shop)


@pytest.mark.long
def test_a_later_version_with_a_name_of_the_history_changes_no_table(shop_of: ShopOf) -> None:
    shop, state = state_of(shop_of)
    state.put(1, "first")
    shop.drain()
    more = {"name": "_end", "type": ["null", "string"], "default": None}
    schema = {**ORDER, "fields": [*ORDER["fields"], more]}
    schema_id = shop.register(schema)
    value = avro(schema, {"order_id": 2, "user": "u", "amount": None, "_end": "x"})
    shop.produce([frame(schema_id, value)], key=b"k2", partition=0)
    with pytest.raises(InvalidInput, match="_end is Frazil's own in the history"):
        shop.drain()
    assert "_end" not in shop.landed()[0], "the state would keep it for ever"


def columns_changed(shop: Shop, *changes_: str) -> None:
    for change in changes_:
        shop.spark.sql(f"ALTER TABLE lake.{shop.pipeline.table.identifier} {change}")


@pytest.mark.long
def test_a_renamed_column_and_a_new_one_of_its_former_name_are_two(shop_of: ShopOf) -> None:
    """Between two batches, so that the history meets the renames at once; the second time two columns swap their names."""
    shop, state = state_of(shop_of)
    state.put(1, "first")
    shop.drain()
    columns_changed(shop, "RENAME COLUMN user TO buyer", "ADD COLUMN user string")
    state.put(1, "second")
    shop.drain()
    first, second = check(shop)
    assert (first["buyer"], first["user"]) == ("first", None)
    assert (second["buyer"], second["user"]) == (None, "second")
    assert (second["_before"]["buyer"], second["_before"]["user"]) == ("first", None)
    columns_changed(
        shop, "RENAME COLUMN user TO middle", "RENAME COLUMN buyer TO user", "RENAME COLUMN middle TO buyer"
    )
    state.put(1, "third")
    shop.drain()
    assert [(row["buyer"], row["user"]) for row in check(shop)] == [(None, "first"), ("second", None), (None, "third")]


@pytest.mark.long
def test_a_past_state_has_the_columns_of_its_commit_while_the_tables_have_newer_ones(shop_of: ShopOf) -> None:
    """On a topic without records another engine renames a column, and gives its name to another one."""
    shop, past = noted_states(shop_of)
    columns_changed(shop, "RENAME COLUMN user TO buyer")
    past.check(present=("_kafka_key", "buyer"))
    columns_changed(shop, "ADD COLUMN user string", "RENAME COLUMN _kafka_key TO name", "DROP COLUMN amount")
    past.check(present=("name", "buyer"))
    at, rows = past.noted[0]
    assert past.by_duckdb(at, ("name", "user")) == [(key, None) for key, _ in rows]
    query = past.past(is_at_snapshots=False).query(SqlEngine.DUCKDB, "s", "h", at)
    assert '"_before"."user" AS "buyer"' in query
    assert 'NULL AS "user"' in query


@pytest.mark.long
def test_a_past_state_has_the_columns_of_its_commit_while_a_batch_with_a_new_one_is_stopped(shop_of: ShopOf) -> None:
    """The columns are added before the batch is staged, and a bad record then stops it."""
    shop, past = noted_states(shop_of)
    more = {"name": "note", "type": ["null", "string"], "default": None}
    schema = {**ORDER, "fields": [*ORDER["fields"], more]}
    value = avro(schema, {"order_id": 2, "user": "u", "amount": None, "note": "n"})
    shop.produce([frame(shop.register(schema), value)], key=b"k2", partition=0)
    shop.produce([b"no frame"], key=b"k3", partition=0)
    with pytest.raises(FrazilError, match="wrong_magic"):
        shop.drain()
    assert "note" in oracle.table(shop.lake, shop.pipeline.table.identifier).schema().column_names
    past.check()
    at, rows = past.noted[0]
    assert past.by_duckdb(at, ("_kafka_key", "note")) == [(key, None) for key, _ in rows]


@pytest.mark.long
def test_a_past_state_has_values_of_a_column_that_got_another_name_before_the_history_followed(shop_of: ShopOf) -> None:
    """The state's snapshot has the former name, and the history's the new one; then the column is dropped."""
    shop, state = state_of(shop_of)
    past = PastStates(shop)
    state.put(1, "first")
    shop.drain()
    past.note()
    state.put(1, "second")
    with pytest.raises(FrazilError, match="crash at"):
        shop.drain(failpoint=crash_at("publish.committed"))
    past.note()
    columns_changed(shop, "RENAME COLUMN user TO buyer")
    shop.spark.sql(f"REFRESH TABLE lake.{shop.pipeline.table.identifier}")
    follow_state(shop)
    past.check(present=("_kafka_key", "buyer"))


@pytest.mark.long
def test_a_past_state_has_values_of_a_column_that_was_dropped_later(shop_of: ShopOf) -> None:
    shop, past = noted_states(shop_of)
    columns_changed(shop, "DROP COLUMN user")
    follow_state(shop)
    for at, rows in past.noted:
        assert past.by_spark(at) == past.by_duckdb(at, is_at_snapshots=True) == rows
    columns_changed(shop, "ADD COLUMN user string")
    at, rows = past.noted[0]
    assert past.by_spark(at) == rows
    assert past.by_duckdb(at) == [(key, None) for key, _ in rows]


@pytest.mark.long
def test_duckdb_reads_both_tables_at_their_snapshots_by_a_rest_service(
    shop_of: ShopOf, spark: SparkSession, rest_lake: Environment, tmp_path: Path
) -> None:
    """The text as the command prints it, between a change of columns and the next commit."""
    with rest_catalog(tmp_path, rest_lake) as environment:
        lake = extra_catalogs.added(spark, environment, "lake_of_rest")

        def there(**declared: Any) -> Shop:
            shop = shop_of(**declared)
            shop.lake = lake
            return shop

        shop, past = noted_states(there)
        for change in ("RENAME COLUMN user TO buyer", "ADD COLUMN user string"):
            spark.sql(f"ALTER TABLE lake_of_rest.{shop.pipeline.table.identifier} {change}")
        for at, rows in past.noted:
            assert past.by_attached_duckdb(at) == rows
        with pytest.raises(duckdb.Error, match=UNKNOWN):
            past.by_attached_duckdb(dict.fromkeys(past.noted[0][0], 0))


@pytest.mark.long
def test_the_command_prints_the_query_of_an_earlier_state(shop_of: ShopOf, tmp_path: Path) -> None:
    """Spark reads the tables by the names that the command knows, DuckDB by those that it is given."""
    shop = shop_of(write=WITH_HISTORY, key_format=KeyFormat.TEXT)
    replay, ends = StateReplay(shop), list[Mapping[int, int]]()
    for words in ({0: "a", 1: "b", 2: "c"}, {0: "d", 1: None}, {1: "e", 2: None, 3: "f"}):
        for key, word in words.items():
            replay.produce(key, word)
        shop.drain()
        end = newest(shop).entry.end
        assert end is not None
        ends.append(end.at)
    (tmp_path / "pipelines.json").write_bytes(canonical(document([shop.pipeline])))
    (tmp_path / "here.json").write_bytes(canonical(environment_document(shop.environment)))
    asked = [
        "history",
        shop.pipeline.name,
        "--pipelines",
        f"{tmp_path}/pipelines.json",
        "--env",
        f"{tmp_path}/here.json",
    ]

    def printed(at: Mapping[int, int], *more: str) -> str:
        ended = CliRunner().invoke(app, [*asked, "--at", ",".join(f"{p}:{offset}" for p, offset in at.items()), *more])
        assert ended.exit_code == 0, ended.output
        return ended.stdout.removesuffix(";\n")

    table = shop.pipeline.table
    files = [oracle.table(shop.lake, name).metadata_location for name in (table.identifier, table.history)]
    state, history = (f"iceberg_scan('{file.removeprefix('file://')}')" for file in files)
    in_duckdb = ("--engine", "duckdb", "--table", state, "--changes-table", history)
    assert len(ends) == 3
    for at in ends:
        made = replay.rows(record for record in replay.records if record.offset < at[record.partition])
        rows = sorted((f"k{key}", row.word) for key, row in made.items() if row.deleted_at is None)
        found = shop.spark.sql(printed(at)).collect()
        assert sorted((row["_kafka_key"], row["user"]) for row in found) == rows
        query = f'SELECT q._kafka_key, q."user" FROM ({printed(at, *in_duckdb)}) q'
        assert sorted(ask(files[0], query)[1]) == rows


def noted_states(shop_of: ShopOf) -> tuple[Shop, PastStates]:
    """Return a shop with a state that changed once, and that of each commit."""
    shop, state = state_of(shop_of)
    past = PastStates(shop)
    for word in ("first", "second"):
        for number in range(3):
            state.put(number, word)
        state.put(3 if word == "first" else 4, word)
        shop.drain()
        past.note()
    return shop, past


def follow_state(shop: Shop) -> None:
    StateHistory(shop.pipeline, shop.job(), Reporter(shop.events.append, "p", "t", "r", time.time)).catch_up()


@pytest.mark.long
def test_the_name_of_a_column_that_the_state_dropped_is_that_of_another_one(shop_of: ShopOf) -> None:
    """The history still has the dropped one's values: under another name, in both images."""
    shop, state = state_of(shop_of)
    state.put(1, "first")
    shop.drain()
    columns_changed(shop, "ADD COLUMN note int", "RENAME COLUMN user TO buyer", "ADD COLUMN user string")
    state.put(1, "second")
    shop.drain()
    columns_changed(shop, "DROP COLUMN buyer")
    state.put(1, "third")
    shop.drain()
    columns_changed(shop, "RENAME COLUMN note TO buyer", "ALTER COLUMN buyer TYPE bigint")
    state.put(1, "fourth")
    shop.drain()
    columns_changed(shop, "DROP COLUMN buyer", "ADD COLUMN buyer boolean")
    state.put(1, "fifth")
    shop.drain()
    found = changes(shop)
    assert [row["buyer_dropped"] for row in found] == ["first", None, None, None, None]
    assert [(row["_before"] or {}).get("buyer_dropped") for row in found] == [None, "first", None, None, None]
    assert [row["user"] for row in found] == [None, "second", "third", "fourth", "fifth"]
    assert {(row["buyer"], row["buyer_dropped1"]) for row in found} == {(None, None)}


@pytest.mark.long
def test_a_driver_that_knows_an_older_schema_renames_no_column(shop_of: ShopOf) -> None:
    """A column that it does not know is none that the state dropped."""
    shop, state = state_of(shop_of)
    state.put(1, "first")
    shop.drain()
    job, older = shop.job(), shop.job().iceberg.load(shop.pipeline.table.identifier)
    columns_changed(shop, "ADD COLUMN note string")
    state.put(1, "second")
    shop.drain()
    history_columns.make(job, shop.pipeline.table.history, older, {})
    state.put(1, "third")
    shop.drain()
    check(shop)
    assert not [name for name in changes(shop)[0] if "dropped" in name]


@pytest.mark.long
def test_a_field_that_a_struct_lost_is_null_in_later_changes(shop_of: ShopOf) -> None:
    shop = shop_of(write=WITH_HISTORY, key_format=KeyFormat.TEXT)
    fields = [{"name": name, "type": "string"} for name in ("street", "city")]
    more = [
        {"name": "address", "type": {"type": "record", "name": "Address", "fields": fields}},
        {"name": "places", "type": {"type": "array", "items": "Address"}},
    ]
    schema = {**ORDER, "fields": [*ORDER["fields"], *more]}
    schema_id = shop.register(schema)

    def put(street: str) -> None:
        at = {"street": street, "city": "Oslo"}
        value = {"order_id": 1, "user": "u", "amount": None, "address": at, "places": [at]}
        shop.produce([frame(schema_id, avro(schema, value))], key=b"k1", partition=0)

    put("first")
    shop.drain()
    put("second")
    with pytest.raises(FrazilError, match="crash at"):
        shop.drain(failpoint=crash_at("publish.committed"))
    columns_changed(shop, "DROP COLUMN address.city", "DROP COLUMN places.element.city")
    shop.spark.sql(f"REFRESH TABLE lake.{shop.pipeline.table.identifier}")
    follow_state(shop)
    first, second = changes(shop)
    assert (first["address"], first["places"][0]["city"]) == ({"street": "first", "city": "Oslo"}, "Oslo")
    assert (second["address"], second["places"]) == (
        {"street": "second", "city": None},
        [{"street": "second", "city": None}],
    )
    assert second["_before"]["address"] == {"street": "first", "city": None}


@pytest.mark.long
def test_a_commit_of_version_2_is_followed_in_a_table_of_version_3(shop_of: ShopOf) -> None:
    shop, state = state_of(shop_of)
    for number in range(3):
        state.put(number, "first")
    shop.drain()
    state.put(0, "second")
    state.delete(1)
    with pytest.raises(FrazilError, match="crash at"):
        shop.drain(failpoint=crash_at("publish.committed"))
    columns_changed(shop, "SET TBLPROPERTIES ('format-version' = '3')")
    shop.drain()
    state.check()
    assert [row["_op"] for row in check(shop)] == ["c", "c", "c", "u", "d"]


@pytest.mark.long
def test_verify_finds_a_history_that_was_rolled_back(shop_of: ShopOf) -> None:
    shop, state = state_of(shop_of)
    for word in ("first", "second"):
        state.put(1, word)
        shop.drain()
    history = shop.job().iceberg.load(shop.pipeline.table.history)
    history.manageSnapshots().rollbackTo(history.currentSnapshot().parentId()).commit()
    found = verify(shop.pipeline, Lake(shop.lake, Secrets({}).read))
    assert [finding.flaw for finding in found.findings] == ["history_differs"]


@pytest.mark.long
def test_verify_compares_a_history_that_is_behind_with_the_commit_that_it_follows(shop_of: ShopOf) -> None:
    """A driver ended between the two commits; so did the next one, after another engine had deleted a row."""

    def end_between() -> None:
        with pytest.raises(FrazilError, match="crash at"):
            shop.drain(failpoint=crash_at("publish.committed"))

    behind = "the history is 1 commits behind the table; the next run appends them"
    shop, state = state_of(shop_of)
    for number in range(3):
        state.put(number, "first")
    shop.drain()
    for number in (3, 4):
        state.put(number, "second")
    end_between()
    for deep in (False, True):
        proof = verified(shop, deep=deep)
        assert (proof.outcome, proof.findings) == ("proven", ())
        assert behind in proof.notes
    shop.spark.sql(f"DELETE FROM lake.{shop.pipeline.table.identifier} WHERE order_id = 1")
    state.put(5, "third")
    end_between()
    found = verified(shop)
    (what,) = (finding.what for finding in found.findings if finding.flaw == "history_differs")
    assert what == "its changes make 4 rows, and the table had 5 at the same offsets"
    assert behind in found.notes


@pytest.mark.long
def test_verify_finds_a_history_that_is_ahead_of_its_state(shop_of: ShopOf) -> None:
    """An older metadata file of the state was registered, which knows no later commit."""
    shop, state = state_of(shop_of)
    state.put(1, "first")
    shop.drain()
    older, name = stored(shop).metadata_location, shop.pipeline.table.identifier
    state.put(1, "second")
    shop.drain()
    lacking = newest(shop).snapshot_id
    shop.job().iceberg.drop(name, purge=False)
    shop.spark.sql(f"CALL lake.system.register_table(table => '{name}', metadata_file => '{older}')")
    (found,) = verified(shop).findings
    what = f"it has changes up to the state's snapshot {lacking}, which the state lacks"
    assert (found.flaw, found.what) == ("history_differs", what)


@pytest.mark.long
def test_verify_finds_a_history_that_was_dropped(shop_of: ShopOf) -> None:
    """Until another one begins. One that is not declared any more, and one that never began, are missed by nobody."""
    shop, state = state_of(shop_of, Upsert())
    state.put(1, "first")
    shop.drain()
    plain, lake = shop.pipeline, Lake(shop.lake, Secrets({}).read)
    shop.pipeline = replace(plain, write=WITH_HISTORY)
    proof = verify(shop.pipeline, lake)
    assert (proof.outcome, proof.findings) == ("proven", ())
    assert any("has not begun" in note for note in proof.notes)
    state.put(1, "second")
    shop.drain()
    assert verify(shop.pipeline, lake, deep=True).outcome == "proven"
    shop.spark.sql(f"DROP TABLE lake.{shop.pipeline.table.history}")
    (found,) = verify(shop.pipeline, lake).findings
    assert (found.flaw, "it was dropped" in found.what) == ("history_differs", True)
    assert verify(plain, lake).outcome == "proven"
    state.put(1, "third")
    shop.drain()
    assert verify(shop.pipeline, lake, deep=True).outcome == "proven"


@pytest.mark.long
@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("DELETE FROM {} WHERE _op = 'u'", "1 inserts, 0 updates"),
        ("INSERT INTO {0} SELECT * FROM {0} WHERE _op = 'u'", "rows too many"),
    ],
)
def test_a_deep_verification_reads_the_changes_of_a_history(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch, statement: str, what: str
) -> None:
    """The snapshot that changed them may have expired: nothing else says so then."""
    shop, state = state_of(shop_of)
    for number in range(3):
        state.put(number, "first")
        shop.drain()
    state.put(1, "second")
    state.put(9, "new")
    shop.drain()
    lake = Lake(shop.lake, Secrets({}).read)
    assert verify(shop.pipeline, lake, deep=True).outcome == "proven"
    shop.spark.sql(statement.format(f"lake.{shop.pipeline.table.history}"))
    monkeypatch.setattr("frazil.audit.history_account._is_foreign", lambda snapshot: False)
    assert verify(shop.pipeline, lake).outcome == "proven"
    found = verify(shop.pipeline, lake, deep=True).findings
    assert {finding.flaw for finding in found} == {"history_differs"}
    assert any(what in finding.what for finding in found), found


@pytest.mark.long
@pytest.mark.parametrize("order_by", [(), "_kafka_timestamp"])
def test_a_deep_verification_knows_that_the_row_of_a_soft_delete_stays(shop_of: ShopOf, order_by: Any) -> None:
    """It also knows a row that is deleted from the beginning, which an order needs, and one that comes back."""
    write = Upsert(on_tombstone="soft_delete", history=HISTORY, order_by=order_by)
    shop = shop_of(write=write, key_format=KeyFormat.TEXT)
    replay = StateReplay(shop, ordered_by="at" if order_by else None)
    for at, changes_of in enumerate(([(1, "a"), (2, "b")], [(1, None), (3, None), (4, "c")], [(1, "back"), (2, None)])):
        for key, word in changes_of:
            replay.produce(key, word, at=at)
        shop.drain()
    replay.check()
    check(shop)
    lake = Lake(shop.lake, Secrets({}).read)
    assert verify(shop.pipeline, lake, deep=True).outcome == "proven"
    shop.spark.sql(f"DELETE FROM lake.{shop.pipeline.table.history} WHERE _op = 'd'")
    assert "history_differs" in {finding.flaw for finding in verify(shop.pipeline, lake, deep=True).findings}


@pytest.mark.long
def test_verify_finds_rows_that_another_engine_deleted_from_a_history(shop_of: ShopOf) -> None:
    shop, state = state_of(shop_of)
    for word in ("first", "second"):
        state.put(1, word)
        shop.drain()
    shop.spark.sql(f"DELETE FROM lake.{shop.pipeline.table.history} WHERE _op = 'u'")
    (found,) = verify(shop.pipeline, Lake(shop.lake, Secrets({}).read)).findings
    assert found.flaw == "history_differs"
    assert "another writer's, and changed rows" in found.what


@pytest.mark.long
def test_a_value_with_a_name_of_the_history_is_refused(shop_of: ShopOf) -> None:
    shop = shop_of(write=WITH_HISTORY, key_format=KeyFormat.TEXT)
    more = {"name": "_before", "type": ["null", "string"], "default": None}
    schema = {**ORDER, "fields": [*ORDER["fields"], more]}
    schema_id = shop.register(schema)
    shop.produce([frame(schema_id, avro(schema, {"order_id": 1, "user": "u", "amount": None}))], key=b"k1")
    with pytest.raises(InvalidInput, match="_before is Frazil's own in the history"):
        shop.drain()
