"""`verify --replay`: a state's rows beside what its topic comes to when it is landed once more."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from frazil.audit.finding import Flaw
from frazil.audit.verification import Replayed
from frazil.cli.main import app
from frazil.cli.pipelines.verify import REPLAYS
from frazil.declaration import Append, ErrorMode, Latest, Limits, Order, Reading, Upsert
from frazil.declaration.options import Isolation, SchemaEvolution
from frazil.errors import InvalidInput, KeysMoved
from frazil.ingest.proof_landing import replay
from frazil.job.context import JobContext
from frazil.recovery.decisions import Accepted
from tests.scenarios.test_debezium import debezium
from tests.scenarios.test_kafka_events import transactional
from tests.scenarios.test_lost_deletes import DAY_MS
from tests.scenarios.test_upserts import State
from tests.support import compaction
from tests.support.debezium_events import PLACEHOLDER, Source
from tests.support.documents import written
from tests.support.keyed_topic import record
from tests.support.shop import Shop, ShopOf, avro, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
Ask = Callable[[Shop], Replayed]


@pytest.fixture
def replayed(tmp_path: Path) -> Ask:
    def ask(shop: Shop) -> Replayed:
        folder = tmp_path / shop.job().new_id()
        folder.mkdir()
        return replay(shop.pipeline, shop.job(), shop.registry(), shop.environment, folder)

    return ask


def flaws(found: Replayed) -> dict[str, int | None]:
    return {finding.flaw.value: finding.count for finding in found.findings}


@pytest.mark.long
def test_a_changed_value_is_found_that_the_proof_does_not_see(shop_of: ShopOf, replayed: Ask) -> None:
    shop = shop_of(write=Upsert(), key_format="text")
    state = State(shop)
    for word in ("first", "second"):
        state.land(word, range(8), gone=[0])
    state.put(9, "not landed yet")
    found = replayed(shop)
    assert (found.findings, found.rows, found.records) == ((), 7, 18)
    shop.sql("UPDATE {} SET user = 'other' WHERE order_id = 3")
    shop.assert_proven(deep=True)
    found = replayed(shop)
    assert flaws(found) == {"row_differs": 1}
    assert "partition 1 offset" in found.findings[0].what
    assert (found.rows, found.records) == (7, 18)


@pytest.mark.long
def test_the_command_lands_the_topic_again_and_says_what_it_found(
    shop_of: ShopOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a right table with the Spark of the tests, and of a wrong one with that which the command starts."""

    @contextmanager
    def shared(*_: Any, **__: Any) -> Iterator[JobContext]:
        yield shop.job()

    shop = shop_of(write=Upsert(), key_format="text")
    state, name = State(shop), shop.pipeline.name
    for word in ("first", "second"):
        state.land(word, range(4), gone=[0])
    monkeypatch.chdir(tmp_path)
    asked = ["verify", name, *written(tmp_path, [shop.pipeline], shop.environment), "--replay"]
    with monkeypatch.context() as patched:
        patched.setattr("frazil.cli.pipelines.verify.local_job", shared)
        right = CliRunner().invoke(app, asked)
    assert right.exit_code == 0, right.output
    assert right.stdout.splitlines() == [
        f"PROVEN {name} (values read): 10 read = 10 landed + 0 dead-lettered + 0 skipped",
        "the topic landed again: 10 records, the same 3 rows",
    ]
    shop.sql("UPDATE {} SET user = 'other' WHERE order_id = 3")
    command = [sys.executable, "-m", "frazil.cli.main", *asked, "--master", "local[1]", "--memory", "1g"]
    wrong = subprocess.run(command, capture_output=True, text=True, check=False)
    assert wrong.returncode == 1, wrong.stderr
    assert wrong.stdout.startswith(f"NOT PROVEN {name}: 1 row not of their keys' last records\nrow_differs: ")
    assert "landed again" not in wrong.stdout
    assert list((tmp_path / ".frazil" / REPLAYS).iterdir()) == []  # nothing of the second table is left


@pytest.mark.long
def test_a_row_that_is_missing_or_left_is_found(shop_of: ShopOf, replayed: Ask) -> None:
    shop = shop_of(write=Upsert(), key_format="text")
    State(shop).land("first", range(8))
    shop.sql("UPDATE {} SET _kafka_key = 'k100' WHERE order_id = 3")
    shop.sql("UPDATE {} SET _kafka_key = 'k101' WHERE order_id = 4")
    shop.sql("DELETE FROM {} WHERE order_id = 5")
    assert flaws(replayed(shop)) == {"row_absent": 3, "row_left": 2}


@pytest.mark.long
@pytest.mark.parametrize("order_by", [(), ("amount",)])
def test_rows_marked_as_deleted_are_not_compared(shop_of: ShopOf, replayed: Ask, order_by: tuple[str, ...]) -> None:
    shop = shop_of(
        write=Upsert(order_by="_kafka_timestamp" if order_by else None, on_tombstone="soft_delete"),
        key_format="text",
        limits=Limits(first_rows=5, max_rows=5),
    )
    state = State(shop)
    for number in range(6):
        state.put(number, "first", timestamp=1_700_000_000_000 + number)
    state.delete(1, timestamp=1_700_000_001_000)
    state.delete(2, timestamp=1_700_000_001_000)
    state.put(2, "again", timestamp=1_700_000_002_000)
    shop.drain()
    found = replayed(shop)
    assert (found.findings, found.rows, found.records) == ((), 5, 9)
    shop.sql("UPDATE {} SET _deleted_at = NULL WHERE order_id = 1")
    assert flaws(replayed(shop)) == {"row_left": 1}


@pytest.mark.long
def test_ties_of_the_order_come_to_the_same_rows(shop_of: ShopOf, replayed: Ask) -> None:
    """The table was landed in three batches, its topic comes in one: the higher partition wins, then the higher offset."""
    shop = shop_of(write=Upsert(order_by="_kafka_timestamp"), key_format="text")
    state, tied = State(shop), {"timestamp": 1_700_000_000_000}
    state.put(1, "higher partition", partition=1, **tied)
    state.put(2, "lower offset", partition=0, **tied)
    shop.drain()
    state.put(1, "lower partition", partition=0, **tied)
    state.put(2, "higher offset", partition=0, **tied)
    shop.drain()
    state.put(2, "higher partition", partition=1, **tied)
    state.put(3, "lower partition", partition=0, **tied)
    state.put(3, "higher partition", partition=1, **tied)
    shop.drain()
    assert {row["user"] for row in shop.landed()} == {"higher partition"}
    found = replayed(shop)
    assert (found.findings, found.rows, found.records) == ((), 3, 7)
    shop.sql("UPDATE {} SET user = 'lower partition', _kafka_partition = 0, _kafka_offset = 1 WHERE order_id = 1")
    assert flaws(replayed(shop)) == {"row_differs": 1}


@pytest.mark.long
def test_values_that_were_left_out_are_compared(shop_of: ShopOf, replayed: Ask) -> None:
    shop = debezium(shop_of)
    source = Source(shop)
    for number in range(4):
        source.write("c", number, customer="first", note=f"n{number}")
    shop.drain()
    source.write("u", 1, customer="second", note=PLACEHOLDER)
    source.delete(2)
    shop.drain()
    found = replayed(shop)
    assert (found.findings, found.rows) == ((), 3)
    shop.sql("UPDATE {} SET note = 'other' WHERE id = 1")
    assert flaws(replayed(shop)) == {"row_differs": 1}


@pytest.mark.long
def test_records_that_were_rejected_make_no_difference(shop_of: ShopOf, replayed: Ask) -> None:
    shop = shop_of(write=Upsert(), key_format="text", on_error=ErrorMode.DEAD_LETTER, max_rejected_percent=100)
    state = State(shop)
    for number in range(4):
        state.put(number, "first")
    shop.produce([b"no frame"], key=b"k1", partition=1)
    shop.drain()
    found = replayed(shop)
    assert (found.findings, found.rows, found.records) == ((), 4, 5)


@pytest.mark.long
def test_a_topic_that_is_not_all_of_the_table_is_not_compared(shop_of: ShopOf, replayed: Ask) -> None:
    def why() -> str:
        found = replayed(shop)
        assert flaws(found) == {"not_replayed": None}
        return found.findings[0].what

    shop = shop_of(write=Upsert(), key_format="text")
    state, declared = State(shop), shop.pipeline
    state.land("first", range(4))
    shop.pipeline = replace(declared, start=Latest())
    assert "starts at latest" in why()
    shop.pipeline = replace(declared, table=replace(declared.table, schema_evolution=SchemaEvolution.FREEZE))
    assert "schema_evolution=freeze" in why()
    shop.pipeline = replace(declared, table=replace(declared.table, schema_evolution=SchemaEvolution.ADD_COLUMNS))
    assert "schema_evolution=add_columns" in why()
    shop.pipeline = declared
    state.put(2, "in another partition", partition=1)
    assert not replayed(shop).findings, "it is behind the table's offsets"
    shop.delete_records(1)
    assert "partition 0" in why()
    shop.delete()
    shop.create(2)
    assert "created again" in why()
    shop.accept(Accepted.TOPIC_RECREATED)
    shop.drain()
    assert "after topic-recreated, which an operator decided" in why()


@pytest.mark.long
def test_a_topic_whose_open_transaction_was_read_is_not_said_to_end_before(shop_of: ShopOf, replayed: Ask) -> None:
    shop = shop_of(
        write=Upsert(),
        key_format="text",
        partitions=1,
        transactional=True,
        kafka=Reading(isolation=Isolation.READ_UNCOMMITTED),
    )
    first, second = shop.orders(2, shop.register())
    _producer = transactional(shop, "open", first, key=b"1")
    shop.produce([second], key=b"2", partition=0)
    shop.drain()
    assert replayed(shop).findings == ()
    shop.pipeline = replace(shop.pipeline, kafka=Reading(isolation=Isolation.READ_COMMITTED))
    (found,) = replayed(shop).findings
    assert (found.flaw, "open transaction before offset 2" in found.what) == (Flaw.NOT_REPLAYED, True)


@pytest.mark.long
def test_keys_that_changed_their_partition_are_not_compared(shop_of: ShopOf, replayed: Ask) -> None:
    """The advice is not that of the pipeline: its decision was made."""
    shop = shop_of(write=Upsert(), key_format="text")
    state = State(shop).land("first", [1], partition=0)
    state.put(1, "second", partition=1)
    with pytest.raises(KeysMoved):
        shop.drain()
    shop.accept(Accepted.KEYS_MOVED)
    state.settle()
    (found,) = replayed(shop).findings
    assert found.flaw is Flaw.NOT_REPLAYED
    assert "an operator decided" in found.what
    assert "frazil accept" not in found.what


@pytest.mark.long
def test_a_table_that_is_not_there_is_not_compared(shop_of: ShopOf, replayed: Ask) -> None:
    found = replayed(shop_of(write=Upsert(), key_format="text"))
    assert flaws(found) == {"not_replayed": None}
    assert "the table does not exist" in found.findings[0].what


@pytest.mark.long
def test_a_lost_file_ends_no_verification(shop_of: ShopOf, replayed: Ask) -> None:
    shop = shop_of(write=Upsert(), key_format="text")
    State(shop).land("first", range(4))
    (file, *_) = shop.sql("SELECT file_path FROM {}.data_files").collect()
    Path(file.file_path.removeprefix("file:")).unlink()
    assert flaws(replayed(shop)) == {"not_replayed": None}


def test_a_table_that_appends_is_refused(shop_of: ShopOf, replayed: Ask) -> None:
    shop = shop_of(write=Append())
    with pytest.raises(InvalidInput, match="appends"):
        replayed(shop)


@pytest.mark.long
def test_a_compacted_topic_is_compared_only_at_its_end(shop_of: ShopOf, replayed: Ask) -> None:
    shop = shop_of(write=Upsert(), key_format="text", config={"cleanup.policy": "compact"})
    state = State(shop).land("first", range(4))
    assert not replayed(shop).findings
    state.put(1, "second")
    assert "compacted and has later records" in replayed(shop).findings[0].what
    shop.drain()
    assert not replayed(shop).findings


@pytest.mark.long
def test_what_compaction_left_of_a_topic_comes_to_the_same_rows(shop_of: ShopOf, replayed: Ask) -> None:
    """The broker removed superseded records, and deletes too: their keys are in no record."""
    shop = shop_of(write=Upsert(), key_format="text", partitions=1, config=compaction.COMPACTED)
    compaction.eager(shop.world.bootstrap)
    state = State(shop).land("first", range(5), partition=0)
    state.delete(0, partition=0)
    for number in (1, 2, 3):
        state.put(number, "second", partition=0)
    state.delete(3, partition=0)
    shop.drain()
    of_topic = (shop.world.bootstrap, shop.topic)
    compaction.compact(*of_topic, 0, below=10, most=3, roll=lambda: state.put(99, "filler", partition=0))
    compaction.keep_deletes(*of_topic, DAY_MS)
    shop.drain()
    left = compaction.offsets(*of_topic, 0)
    assert [offset for offset in left if offset < 10] == [4, 6, 7]
    found = replayed(shop)
    assert (found.findings, found.rows, found.records) == ((), 4, len(left))
    shop.sql("UPDATE {} SET user = 'other' WHERE order_id = 1")
    shop.sql("UPDATE {} SET _kafka_key = 'k0' WHERE order_id = 4")
    assert flaws(replayed(shop)) == {"row_differs": 1, "row_absent": 1, "row_left": 1}


@pytest.mark.long
def test_a_column_that_was_dropped_is_found(shop_of: ShopOf, replayed: Ask) -> None:
    shop = shop_of(write=Upsert(), key_format="text")
    State(shop).land("first", range(4))
    shop.sql("ALTER TABLE {} DROP COLUMN amount")
    assert not replayed(shop).findings, "it was null in all rows"
    shop.sql("ALTER TABLE {} DROP COLUMN user")
    found = replayed(shop)
    assert flaws(found) == {"row_differs": None}
    assert "lacks columns that its topic has values of: user" in found.findings[0].what


@pytest.mark.long
def test_headers_that_are_kept_later_make_no_difference(shop_of: ShopOf, replayed: Ask) -> None:
    shop = shop_of(write=Upsert(), key_format="text", headers=False)
    state = State(shop)
    for number in range(4):
        state.put(number, "first", headers=[("h", b"1")])
    shop.drain()
    shop.pipeline = replace(shop.pipeline, headers=True)
    assert not replayed(shop).findings


@pytest.mark.long
def test_a_version_that_would_make_another_table_is_said(shop_of: ShopOf, replayed: Ask) -> None:
    shop = shop_of(write=Upsert(key=("id",)))
    versions = [record("R", id="long", a=of) for of in ("int", ["int", "string"])]
    shop.produce([frame(shop.register(versions[0]), avro(versions[0], {"id": 1, "a": 1}))])
    shop.drain()
    assert replayed(shop).findings == ()
    shop.register(versions[1])
    (found,) = replayed(shop).findings
    assert (found.flaw, "the column a is int in the table" in found.what) == ("not_replayed", True)


@pytest.mark.long
def test_a_hash_in_a_name_and_rows_that_a_decision_gave_up_are_said(shop_of: ShopOf, replayed: Ask) -> None:
    shop = shop_of(write=Upsert(key=("id",)), table={"partition_by": ("bucket(4, id)",)})
    versions = [record("R", id="long"), record("R", id="long", id_bucket=["null", "int"])]
    for number, version in enumerate(versions):
        value = {"id": number, **({"id_bucket": 3} if number else {})}
        shop.produce([frame(shop.register(version), avro(version, value))])
        shop.drain()
    assert "which the versions that are registered now make id_bucket" in replayed(shop).findings[0].what
    shop.roll_back()
    shop.accept(Accepted.ROLLED_BACK_HOLD)
    assert "after rolled-back-hold, which" in replayed(shop).findings[0].what


@pytest.mark.long
def test_a_column_that_was_renamed_since_the_last_commit_is_compared(shop_of: ShopOf, replayed: Ask) -> None:
    shop = shop_of(write=Upsert(key=("id",)))
    key, names = {"name": "id", "type": "long"}, ({"name": "a"}, {"name": "b", "aliases": ["a"]})
    first, renamed = ({"type": "record", "name": "R", "fields": [key, {**name, "type": "int"}]} for name in names)
    shop.produce([frame(shop.register(first), avro(first, {"id": 1, "a": 1}))])
    shop.drain()
    shop.register(renamed)
    (found,) = replayed(shop).findings
    assert "the table has the column a, and the versions that are registered now make b" in found.what
    shop.drain()
    assert replayed(shop).findings == ()


@pytest.mark.long
def test_a_column_that_a_registered_version_widens_is_compared(shop_of: ShopOf, replayed: Ask) -> None:
    shop = shop_of(write=Upsert(key=("id",)))
    inner = {"type": "record", "name": "In", "fields": [{"name": "x", "type": "float"}]}
    old = record("R", id="long", a="float", b={"type": "array", "items": inner}, c={"type": "map", "values": "float"})
    shop.produce([frame(shop.register(old), avro(old, {"id": 1, "a": 0.1, "b": [{"x": 0.1}], "c": {"k": 0.1}}))])
    shop.drain()
    shop.register(json.loads(json.dumps(old).replace("float", "double")))
    assert replayed(shop).findings == ()


@pytest.mark.long
@pytest.mark.parametrize("is_late", [False, True])
def test_a_row_whose_record_was_compacted_away_is_no_fault(shop_of: ShopOf, replayed: Ask, is_late: bool) -> None:
    """The key's last record is late, or was rejected: the row of an earlier one, which the broker removed, stays."""
    write = Upsert(order_by=Order("rank")) if is_late else Upsert()
    more: dict[str, Any] = {"config": compaction.COMPACTED, "on_error": ErrorMode.DEAD_LETTER}
    shop = shop_of(write=write, key_format="text", partitions=1, **more)
    compaction.eager(shop.world.bootstrap)
    value = record("Order", order_id="long", rank="long")
    schema = shop.register(value)

    def put(number: int, rank: int) -> None:
        shop.produce([frame(schema, avro(value, {"order_id": number, "rank": rank}))], key=b"%d" % number, partition=0)

    put(1, 5)
    shop.drain()
    put(1, 2) if is_late else shop.produce([b"bad!!"], key=b"1", partition=0)
    shop.drain()
    assert not replayed(shop).findings
    of_topic = (shop.world.bootstrap, shop.topic)
    compaction.compact(*of_topic, 0, below=2, most=1, roll=lambda: put(99, 1))
    shop.drain()
    assert (1, 5) in [(row["order_id"], row["rank"]) for row in shop.landed()]
    (found,) = replayed(shop).findings
    assert (found.flaw, "the topic is compacted" in found.what) == (Flaw.NOT_REPLAYED, True)


@pytest.mark.long
def test_a_column_of_another_engine_that_no_version_fits_is_not_compared(shop_of: ShopOf, replayed: Ask) -> None:
    shop = shop_of(write=Upsert(), key_format="text", partitions=1, on_error=ErrorMode.DEAD_LETTER)
    old = record("Order", order_id="long")
    shop.produce([frame(shop.register(old), avro(old, {"order_id": 1}))], key=b"1")
    shop.drain()
    shop.sql("ALTER TABLE {} ADD COLUMN more string")
    new = record("Order", order_id="long", more=["null", "int"])
    new["fields"][1]["default"] = None
    shop.produce([frame(shop.register(new), avro(new, {"order_id": 2, "more": 1}))], key=b"1")
    assert shop.drain().rejected == {"incompatible_schema": 1}
    (found,) = replayed(shop).findings
    assert "the column more is string in the table" in found.what
    shop.sql("ALTER TABLE {} RENAME COLUMN _kafka_key TO id")
    (found,) = replayed(shop).findings
    assert (found.flaw, "Spark job failed" in found.what) == (Flaw.NOT_REPLAYED, False), found.what
