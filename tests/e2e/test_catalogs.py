"""The whole way on the other two catalogs: REST on an object store, and Glue with its versions enforced."""

from __future__ import annotations

import hmac
from pathlib import Path

import psutil
import pytest

from frazil.audit.finding import Outcome
from frazil.audit.topic_tables import verify_topic
from frazil.clients.secrets import Secrets
from frazil.declaration import EventTime, Field, Hmac, Json, Secret, Shape, Table, Target, Topic, Upsert, routes
from frazil.declaration.environment import Environment
from frazil.lake.read.stored_tables import Lake
from tests.e2e.test_kills import kill
from tests.scenarios.test_patterns import Topics
from tests.support import concurrent_drivers, oracle
from tests.support.jobs import HMAC_KEY
from tests.support.paused_driver import paused
from tests.support.shop import ORDER, Shop, ShopOf, frame
from tests.support.variants import first_short

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
MORE = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}


@pytest.fixture(params=first_short(["glue_lake", "rest_lake"]))
def shop_lake(request: pytest.FixtureRequest) -> Environment:
    """Each catalog in turn."""
    chosen: Environment = request.getfixturevalue(request.param)
    return chosen


def test_a_topic_lands_changes_its_schema_and_is_proven(shop_of: ShopOf) -> None:
    shop = shop_of(table={"partition_by": ("bucket(4, order_id)", "days(_kafka_timestamp)")})
    first = shop.register()
    shop.produce([*shop.orders(50, first), b"bad!!", frame(first, b"\x02\xff")])
    assert shop.drain().rejected == {"wrong_magic": 1, "undecodable": 1}
    second = shop.register(MORE)
    shop.produce([*shop.orders(20, second, first=50, schema=MORE), None])
    assert (shop.drain().written, shop.drain().read) == (20, 0)
    shop.assert_each_record_once()
    rows = shop.landed()
    assert sorted(row["order_id"] for row in rows) == list(range(70))
    assert {row["note"] for row in rows} == {None}
    assert sorted(row["reason"] for row in shop.dead()) == ["tombstone", "undecodable", "wrong_magic"]
    found = shop.verified()
    assert (found.outcome, found.findings, found.sum_of("read")) == (Outcome.PROVEN, (), 73)


@pytest.mark.long
def test_a_condition_columns_masks_and_bounds_of_events_hold(shop_of: ShopOf) -> None:
    bounds = EventTime("at", oldest="1 day")
    select, mask = "at, cast(id as int) as id, who", {"who": Hmac(Secret(env="MASK_KEY"))}
    shape = Shape(where="id % 2 = 0", select=select, mask=mask, event_time=bounds)
    columns = {"value_format": "json", "columns": ("id long", "at timestamptz", "who string")}
    shop = shop_of(**columns, write=Upsert(key="id"), shape=shape, on_error="dead_letter", max_rejected_percent=100)
    for number, at in ((2, "2026-01-31"), (3, "2026-01-31"), (4, "2020-01-31"), (6, "2026-01-31")):
        value = f'{{"id": {number}, "at": "{at}T00:00:00Z", "who": "w"}}'.encode()
        shop.produce([value], timestamp=1_769_817_600_000)  # 2026-01-31
    assert shop.drain().rejected == {"event_time": 1}
    who = hmac.new(HMAC_KEY.encode(), b"w", "sha256").hexdigest()
    assert sorted((row["id"], row["who"]) for row in shop.landed()) == [(2, who), (6, who)]
    assert shop.verified(deep=True).outcome is Outcome.PROVEN


def test_topics_that_match_a_pattern_become_tables_and_keep_them(shop_of: ShopOf) -> None:
    topics = Topics(shop_of())
    topics.produce("a_b", range(3))
    topics.produce("gone", range(2))
    assert not any(outcome.error for outcome in topics.drain().values())
    topics.produce("a-b", range(5))
    topics.produce("new", [7])
    topics.delete("gone")
    ended = topics.drain()
    assert [name for name, outcome in ended.items() if outcome.error] == [f"topic {topics.shop.topic}.a-b"]
    assert [one["topic"] for one in topics.shop.seen("topic_gone")] == [f"{topics.shop.topic}.gone"]
    assert [topics.ids(of) for of in ("a_b", "gone", "new")] == [[0, 1, 2], [0, 1], [7]]


@pytest.mark.long
def test_one_topic_becomes_several_tables(shop_of: ShopOf) -> None:
    shop = shop_of()
    topic = Topic(shop.topic, value=Json(columns=("type string", "id long")), key="text")
    tables = {name: Table(f"shop.{shop.topic}_{name}") for name in ("a", "b", "rest")}
    to = {"a": tables["a"], "b": Target(tables["b"], write=Upsert())}
    pipelines = routes(topic, by=Field("type"), to=to, otherwise=tables["rest"])
    for number in range(60):
        value = f'{{"type": "{"abc"[number % 3]}", "id": {number}}}'.encode()
        shop.produce([value], key=b"k%d" % (number % 9))
    shop.produce([None, b"{"], key=b"k1")
    assert [one.error for one in shop.drained(*pipelines).values()] == [None] * 3
    assert [len(oracle.rows(shop.lake, one.table.identifier)) for one in pipelines] == [20, 2, 20]
    assert [shop.verified(one, deep=True).outcome for one in pipelines] == [Outcome.PROVEN] * 3
    proof = verify_topic(pipelines, Lake(shop.lake, Secrets({}).read))
    assert (proof.outcome, proof.offsets, proof.landed, proof.dead_lettered) == (Outcome.PROVEN, 62, 40, 1)


@pytest.mark.long
@pytest.mark.parametrize("step", ["decide.written", "publish.filled", "decide.decided", "finish.started"])
def test_a_driver_killed_around_the_decision_loses_and_doubles_nothing(shop: Shop, step: str, tmp_path: Path) -> None:
    schema_id = shop.register()
    shop.produce(shop.orders(20, schema_id))
    shop.drain()
    shop.produce([*shop.orders(20, schema_id, first=20), b"bad!!", b"worse"])
    kill(shop, tmp_path, step)
    shop.drain()
    shop.assert_each_record_once()
    assert shop.verified().outcome is Outcome.PROVEN


@pytest.mark.long
def test_free_running_twins_share_a_topic_without_a_loss(shop_of: ShopOf, tmp_path: Path) -> None:
    concurrent_drivers.run_free(shop_of, tmp_path, orders=400)


@pytest.mark.long
@pytest.mark.parametrize("step", concurrent_drivers.STEPS)
def test_a_twin_that_commits_while_a_driver_pauses_fences_it(shop: Shop, tmp_path: Path, step: str) -> None:
    concurrent_drivers.commit_while_one_pauses(shop, tmp_path, step)


@pytest.mark.long
@pytest.mark.parametrize("step", concurrent_drivers.BEGINNINGS)
def test_a_twin_that_begins_first_fences_nobody_before_there_is_a_batch(shop: Shop, tmp_path: Path, step: str) -> None:
    concurrent_drivers.begin_while_one_pauses(shop, tmp_path, step)


@pytest.mark.long
def test_the_keys_are_in_no_argument_log_plan_or_event(shop: Shop, shop_lake: Environment, tmp_path: Path) -> None:
    """Everything that is written is looked through; that Spark's event log names the option shows that it could be there."""
    events = tmp_path / "events"
    events.mkdir()
    shop.produce([*shop.orders(5, shop.register()), b"bad!!"])
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }
    with paused(shop, tmp_path, "stage.written", settings=settings) as driver:
        family = [psutil.Process(driver.pid), *psutil.Process(driver.pid).children(recursive=True)]
        arguments = [told for process in family if (told := arguments_of(process))]
    assert any("java" in told for told in arguments)
    logged = "".join(file.read_text() for file in events.rglob("*") if file.is_file())
    assert f"spark.sql.catalog.{shop_lake.catalog.name}.s3.secret-access-key" in logged
    store = shop_lake.object_store
    assert store is not None
    for reference in (store.access_key_id, store.secret_access_key):
        assert reference is not None
        secret = Secrets({}).read(reference)
        for place, told in (("arguments", "\n".join(arguments)), ("log", driver.words), ("events", logged)):
            before, found, _ = told.partition(secret)
            assert not found, f"{place}: …{before[-300:]}"
        assert not any(secret in str(row) for row in shop.dead())


def arguments_of(process: psutil.Process) -> str:
    """What everyone on the machine can see of how it was started; nothing once it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@pytest.mark.long
@pytest.mark.parametrize("step", ["publish.decided", "publish.filled"])
def test_an_operator_who_decides_while_a_driver_pauses_is_obeyed(shop: Shop, tmp_path: Path, step: str) -> None:
    concurrent_drivers.decide_while_one_pauses(shop, tmp_path, step)
