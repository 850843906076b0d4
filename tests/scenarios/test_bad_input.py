"""What may come in and what becomes of it: each row of `bad_input.md` is a test here, and each test a row there."""

from __future__ import annotations

import json
import math
import re
import uuid
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from frazil.clients.registry.http import RetryPolicy
from frazil.clients.registry.schemas import SchemaType
from frazil.declaration.environment import Environment
from frazil.declaration.options import Tombstones
from frazil.errors import RegistryUnavailable
from frazil.ingest.reporting.events import Total
from frazil.local.services import LocalServices
from frazil.schemas.evolution.column_names import claimed
from frazil.schemas.reasons import Reason
from tests.support.jobs import once
from tests.support.keyed_topic import record
from tests.support.proto import framed as framed_message
from tests.support.registry_server import Misbehaviour, RegistryServer, hangs, says
from tests.support.shop import ORDER, Shop, ShopOf, avro, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def lands(shop: Shop, schema: Any, *values: Any) -> list[dict[str, Any]]:
    """Produce values, or bodies, of one schema or of none; the rows that landed, in their order."""
    kind, subject = shop.pipeline.topic.value.kind, f"{shop.topic}-value"
    if kind == "avro":
        schema_id = shop.register(schema)
        bodies = [frame(schema_id, v if isinstance(v, bytes) else avro(schema, v)) for v in values]
    elif kind == "json_schema":
        described = json.dumps({"type": "object", "properties": schema})
        schema_id = shop.registry_admin.register(subject, described, SchemaType.JSON)
        bodies = [frame(schema_id, v if isinstance(v, bytes) else json.dumps(v).encode()) for v in values]
    else:
        bodies = list(values)
    shop.produce(bodies, partition=0)
    shop.drain()
    shop.assert_each_record_once()
    return sorted(shop.landed(), key=lambda row: row["_kafka_offset"])


def reasons(shop: Shop) -> dict[int, str]:
    """The reason of each dead letter, by offset."""
    return {row["offset"]: row["reason"] for row in shop.dead()}


# ── Frames ──────────────────────────────────────────────────────────────────────────────────────
@pytest.fixture(scope="module")
def framed(local_world: LocalServices, spark: SparkSession, lake_environment: Environment) -> Shop:
    """One batch of good and bad frames, each journalled under the case that its header names."""
    shop = Shop(local_world, spark, lake_environment, f"t{uuid.uuid4().hex[:10]}", partitions=1)
    schema_id = shop.register()
    foreign = shop.registry_admin.register(f"{shop.topic}-elsewhere", json.dumps({**ORDER, "name": "Elsewhere"}))
    (good,) = shop.orders(1, schema_id)
    cases = {
        "good": good,
        **{f"cut {length}": good[:length] for length in range(6)},
        "magic": b"\x01" + good[1:],
        "json": b'{"order_id": 1}',
        "unknown": frame(2_000_000_000, good[5:]),
        "largest": frame(2**32 - 1, good[5:]),
        "foreign": frame(foreign, good[5:]),
        "body": frame(schema_id, b"\x02\xff"),
        "cut body": good[:-1],
    }
    for case, value in cases.items():
        shop.produce([value], headers=[("case", case.encode())])
    shop.produce([good], key=None, headers=[("case", b"no key")])
    shop.drain()
    return shop


@pytest.mark.parametrize(
    ("reason", "cases"),
    [
        ("too_short", [f"cut {length}" for length in range(5)]),
        ("undecodable", ["cut 5", "body", "cut body"]),
        ("wrong_magic", ["magic", "json"]),
        ("unknown_schema", ["unknown", "largest"]),
        ("foreign_schema", ["foreign"]),
    ],
)
def test_a_value_without_the_frame_of_its_schema_is_a_dead_letter(framed: Shop, reason: str, cases: list[str]) -> None:
    dead = {row["headers"][0]["value"].decode() for row in framed.dead() if row["reason"] == reason}
    assert dead == set(cases)


def test_a_record_without_a_key_lands(framed: Shop) -> None:
    framed.assert_each_record_once()
    landed = {row["_kafka_headers"][0]["value"]: row for row in framed.landed()}
    assert (landed.keys(), landed[b"no key"]["_kafka_key"]) == ({b"good", b"no key"}, None)


@pytest.mark.parametrize(
    ("choice", "rows", "rejected", "skipped"),
    [
        (Tombstones.DEAD_LETTER, 1, {"tombstone": 1}, {}),
        pytest.param(Tombstones.NULL_ROW, 2, {}, {}, marks=pytest.mark.long),
        pytest.param(Tombstones.SKIP, 1, {}, {"tombstone": 1}, marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("version", [2, pytest.param(3, marks=pytest.mark.long)])
def test_a_tombstone_becomes_what_is_declared(
    shop_of: ShopOf, version: int, choice: Tombstones, rows: int, rejected: dict[str, int], skipped: dict[str, int]
) -> None:
    shop = shop_of(tombstones=choice, table={"format_version": version})
    shop.produce([*shop.orders(1, shop.register()), None], key=b"k")
    total = shop.drain()
    assert (total.written, total.rejected, total.skipped) == (rows, rejected, skipped)
    landed = shop.landed()
    assert all(row["_kafka_key"] == b"k" for row in landed)
    assert [row["order_id"] for row in landed if row["user"] is None] == [None] * (rows - 1)


# ── Sizes ───────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.long
def test_a_value_of_20_mb_lands_or_is_kept_whole(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1, config={"max.message.bytes": str(32 << 20)})
    text = "x" * (20 << 20)
    schema_id = shop.register()
    good = frame(schema_id, avro(ORDER, {"order_id": 1, "user": text, "amount": None}))
    bad = good[:-2]
    producer = Producer({"bootstrap.servers": shop.world.bootstrap, "message.max.bytes": 32 << 20})
    for offset, value in enumerate((good, bad, *shop.orders(1, schema_id))):
        producer.produce(shop.topic, value)
        assert producer.flush(30) == 0
        shop.journal[0, offset] = value
    assert shop.drain().rejected == {"undecodable": 1}
    shop.assert_each_record_once()
    assert sorted(len(row["user"]) for row in shop.landed()) == [2, 20 << 20]
    assert [row["value"] == bad for row in shop.dead()] == [True]


@pytest.mark.long
def test_a_record_of_1000_fields_lands_as_1000_columns(shop: Shop) -> None:
    names = [f"f{number:03}" for number in range(1_000)]
    schema = record("R", **dict.fromkeys(names, "long"))
    (row,) = lands(shop, schema, {name: number for number, name in enumerate(names)})
    assert [row[name] for name in names] == list(range(1_000))


# ── Values ──────────────────────────────────────────────────────────────────────────────────────
DEEP = b"[" * 5_000 + b"]" * 5_000
INTEGER, NUMBER, STRING = {"type": "integer"}, {"type": "number"}, {"type": "string"}
TIMES = record(
    "R",
    day={"type": "int", "logicalType": "date"},
    millis={"type": "long", "logicalType": "timestamp-millis"},
    micros={"type": "long", "logicalType": "timestamp-micros"},
)
PLAIN_TIMES = record("R", day="int", millis="long", micros="long")
PRICE = record("R", price={"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2})
MANY = record("R", l={"type": "array", "items": "string"}, m={"type": "map", "values": record("I", s="string")})
BEHIND = (b" x", b'{"n": 9}', b'],"z":[2', b'],"v":[{"n": 9}', b'],"e":true}', b'],"e":[]}} [')
Bodies = tuple[str, Any, Sequence[Any], Sequence[bytes], Sequence[Any]]
BODIES: dict[str, Bodies] = {
    "text, no UTF-8": ("text", None, [b"good"], [b"a\xff", b"\xed\xa0\x80", b"\xc0\x80"], [{"value": "good"}]),
    "JSON, nested": (*("json", None, [b"1"], [DEEP, b'{"a": ' * 5_000 + b"1" + b"}" * 5_000]), [{"value": "1"}]),
    "JSON, text behind": (
        *("json", None, [b'{"n": 1}'], [b'{"n": 2} x', b'{"n": 3}{"n": 4}', b"5 6", b"7],[8"]),
        [{"value": '{"n": 1}'}],
    ),
    "JSON of a schema, nested": (
        *("json_schema", {"a": {}, "n": INTEGER}, [{"n": 1}, {"n": 3}], [b'{"a": ' + DEEP + b', "n": 2}']),
        [{"n": 1}, {"n": 3}],
    ),
    "JSON of a schema, text behind": (
        *("json_schema", {"n": INTEGER}, [{"n": 1}], [b'{"n": 2}' + text for text in BEHIND]),
        [{"n": 1}],
    ),
    "JSON of a schema, no UTF-8": (
        *("json_schema", {"a": STRING}, [{"a": "grüße"}], [b'{"a": "\xff"}']),
        [{"a": "grüße"}],
    ),
    "JSON of a schema, NaN": (
        *("json_schema", {"a": NUMBER, "i": INTEGER}, [{"a": 1.5}, b'{"a": NaN}', b'{"a": "-Infinity"}']),
        [b'{"i": NaN}', b'{"a": "no"}'],
        [{"a": 1.5}, {"a": math.nan}, {"a": -math.inf}],
    ),
    "JSON of a schema, too large": (
        *("json_schema", {"n": NUMBER, "s": STRING, "i": INTEGER}, [b'{"n": 1e308, "s": "?", "i": 1.0}']),
        [b'{"n": 1e400}', b'{"n": -1e400}', rb'{"s": "\ud800"}', b'{"i": 9223372036854775808}'],
        [{"n": 1e308, "s": "?", "i": 1}],
    ),
    "Avro, no UTF-8": ("avro", record("R", a="string"), [{"a": "grüße"}], [b"\x02\xff"], [{"a": "grüße"}]),
    "Avro, no UTF-8 in a list, a key or a value": (
        *("avro", MANY, [{"l": ["ä"], "m": {"ö": {"s": "ü"}}}, {"l": [], "m": {}}]),
        [b"\x02\x02\xff\x00\x00", b"\x00\x02\x02\xff\x02x\x00", b"\x00\x02\x02k\x02\xff\x00"],
        [{"l": ["ä"]}, {"l": []}],
    ),
    "Avro, too many digits": (
        *("avro", PRICE, [{"price": Decimal("12.34")}, {"price": Decimal("-99.99")}]),
        [b"\x08" + (1_234_567).to_bytes(4, "big")],
        [{"price": Decimal("12.34")}, {"price": Decimal("-99.99")}],
    ),
    "Avro, too late": (
        *("avro", TIMES, [{"day": date(2026, 1, 1), "millis": 0, "micros": 0}]),
        [avro(PLAIN_TIMES, {"day": 0, "millis": 2**63 - 1, "micros": 0})],
        [{"day": date(2026, 1, 1)}],
    ),
}
"""Format, schema, values that land, bodies that do not, and what rows have."""


@pytest.mark.long
@pytest.mark.parametrize("case", BODIES)
def test_a_body_that_no_column_holds_is_a_dead_letter(shop_of: ShopOf, case: str) -> None:
    value_format, schema, good, bad, wanted = BODIES[case]
    shop = shop_of(value_format=value_format, partitions=1)
    rows = lands(shop, schema, *good, *bad)
    found = [{name: row[name] for name in one} for row, one in zip(rows, wanted, strict=True)]
    assert repr(found) == repr(wanted)  # NaN is no equal of itself
    assert reasons(shop) == dict.fromkeys(range(len(good), len(good) + len(bad)), "undecodable")


def test_nan_and_infinity_land_as_they_are(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    values = [math.nan, math.inf, -math.inf, -0.0]
    rows = lands(shop, record("R", a="double", b="float"), *({"a": v, "b": v} for v in values))
    for column in ("a", "b"):
        assert [str(row[column]) for row in rows] == ["nan", "inf", "-inf", "-0.0"]


@pytest.mark.long
def test_what_protobuf_allows_lands_as_protobuf_says(shop_of: ShopOf) -> None:
    shop = shop_of(value_format="protobuf", partitions=1)
    text = """syntax = "proto3"; import "google/protobuf/timestamp.proto";
    message M { map<string, N> m = 1; google.protobuf.Timestamp t = 2; oneof o { int32 a = 3; string b = 4; } }
    message N { int32 n = 1; }"""
    schema_id = shop.registry_admin.register(f"{shop.topic}-value", text, SchemaType.PROTOBUF)
    bodies = [b"\x0a\x03\x0a\x01k", b"\x12\x02\x08\x05\x12\x03\x10\xe8\x07", b"\x18\x01\x22\x01b"]
    shop.produce([framed_message(schema_id, body) for body in bodies], partition=0)
    assert shop.drain().rejected == {}
    rows = sorted(shop.landed(), key=lambda row: row["_kafka_offset"])
    assert dict(rows[0]["m"]) == {"k": {"n": 0}}
    assert rows[1]["t"] == datetime(1970, 1, 1, 0, 0, 5, 1, tzinfo=UTC)
    assert (rows[2]["a"], rows[2]["b"]) == (None, "b")


def test_the_year_9999_lands(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1, table={"partition_by": ("years(micros)",)})
    last, first = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)
    rows = lands(
        shop,
        TIMES,
        {"day": date(9999, 12, 31), "millis": last, "micros": last},
        {"day": date(1, 1, 1), "millis": first, "micros": first},
    )
    assert [row["day"] for row in rows] == [date(9999, 12, 31), date(1, 1, 1)]
    assert [row["millis"] for row in rows] == [row["micros"] for row in rows] == [last, first]


@pytest.mark.long
def test_a_year_that_no_reader_knows_is_a_dead_letter(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    lists = {"type": "array", "items": {"type": "int", "logicalType": "date"}}
    micros = {"type": "long", "logicalType": "local-timestamp-micros"}
    plain = record("R", day="int", days={"type": "array", "items": "int"}, here="long")
    schema = record("R", day={"type": "int", "logicalType": "date"}, days=lists, here=micros)
    last, first, last_here = 2_932_896, -719_162, 253_402_300_799_999_999
    values = [(last, [last, first], last_here), (0, [], 0), (last + 1, [], 0), (first - 1, [], 0)]
    values += [(0, [0, last + 1], 0), (0, [first - 1, 0], 0), (0, [], last_here + 1), (0, [], -62_135_596_800_000_001)]
    bodies = [avro(plain, {"day": day, "days": days, "here": here}) for day, days, here in values]
    rows = lands(shop, schema, *bodies)
    assert [row["days"] for row in rows] == [[date(9999, 12, 31), date(1, 1, 1)], []]
    assert reasons(shop) == dict.fromkeys(range(2, 8), "undecodable")


# ── Names ───────────────────────────────────────────────────────────────────────────────────────
def columns_of(*sources: str) -> dict[str, str]:
    """The column of each field, in the order in which a schema has them."""
    found: dict[str, str] = {}
    for source in sources:
        found[source] = claimed(source, set(found.values()), top=True)
    return found


def test_fields_that_differ_in_case_only_land_beside_each_other(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    names = columns_of("Id", "id", "ID")
    (row,) = lands(shop, record("R", Id="long", id="long", ID="long"), {"Id": 1, "id": 2, "ID": 3})
    assert names["Id"] == "id"
    assert [row[column] for column in names.values()] == [1, 2, 3]


ODD = ["Id", "id", "a.b", 'say "hi"', "it's", "tick`tock", "select", "from", "🎉", "", " ", "größe", "x" * 300, "1st"]


def test_odd_field_names_land_under_names_that_every_engine_can_say(shop_of: ShopOf) -> None:
    shop = shop_of(value_format="json_schema", partitions=1)
    (row,) = lands(shop, dict.fromkeys(ODD, INTEGER), {name: number for number, name in enumerate(ODD)})
    # The order of a JSON object's properties is not kept by every registry: values prove which field is which column.
    columns = {value: column for column, value in row.items() if not column.startswith(("_kafka", "_ingested"))}
    assert set(columns) == set(range(len(ODD)))
    assert all(re.fullmatch("[a-z0-9_]{1,128}", column) for column in columns.values())
    assert columns[ODD.index("select")] == "select"
    assert columns[ODD.index("größe")] == "gro_e"


RESERVED = ["_kafka_offset", "_kafka_partition", "_ingested_at", "_decoded", "_file", "_pos", "_kafka"]


def test_a_field_with_a_reserved_name_lands_beside_the_reserved_column(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    names = columns_of(*RESERVED)
    assert not set(names.values()) & set(RESERVED)
    (row,) = lands(shop, record("R", **dict.fromkeys(RESERVED, "string")), {name: f"mine: {name}" for name in RESERVED})
    assert [row[column] for column in names.values()] == [f"mine: {name}" for name in RESERVED]
    assert (row["_kafka_partition"], row["_kafka_offset"]) == (0, 0)


def test_a_topic_with_dots_and_upper_case_lands(
    local_world: LocalServices, spark: SparkSession, lake_environment: Environment, name: str
) -> None:
    shop = Shop(local_world, spark, lake_environment, f"Shop.Orders-V1.{name}", table={"identifier": f"shop.{name}"})
    shop.produce(shop.orders(3, shop.register()))
    shop.drain()
    assert shop.drain().read == 0  # the ledger is found again
    shop.assert_each_record_once()
    assert {row["_kafka_topic"] for row in shop.landed()} == {shop.topic}
    assert shop.pipeline.name == name
    assert shop.pipeline.tag in shop.stored.refs()


# ── The registry ────────────────────────────────────────────────────────────────────────────────
SHORT = RetryPolicy(total_seconds=3, attempt_seconds=0.5, attempts=3, first_pause_seconds=0.01)


class Away:
    """A shop whose registry can misbehave: it is a thread of the test, and asked with a short timeout."""

    def __init__(self, shop: Shop, server: RegistryServer) -> None:
        self.shop, self.server = shop, server
        self.server.store.register(f"{shop.topic}-value", json.dumps({**ORDER, "name": "Unused"}))
        self.schema_id = self.server.store.register(f"{shop.topic}-value", json.dumps(ORDER))

    def drain(self, *, url: str = "", retry: RetryPolicy = SHORT, **overrides: Any) -> Total:
        registry = self.shop.registry(url or self.server.url, retry=retry, sleep=lambda seconds: None)
        return self.shop.drain(registry=registry, **overrides)


@pytest.fixture
def away(shop_of: ShopOf, registry: RegistryServer) -> Away:
    return Away(shop_of(partitions=1), registry)


OUTAGES: dict[str, Misbehaviour] = {
    "hangs": hangs,
    "500": says(500, '{"error_code": 50001, "message": "no store"}'),
    "401": says(401, '{"error_code": 401, "message": "Unauthorized"}'),
    "HTML": says(200, "<html>sign in</html>", Content_Type="text/html"),
    "404 of a proxy": says(404, "<html>no such page</html>", Content_Type="text/html"),
}


def fails_clearly(away: Away, **overrides: Any) -> None:
    with pytest.raises(RegistryUnavailable) as raised:
        away.drain(**overrides)
    told = str(raised.value)
    assert "\n" not in told
    assert "127.0.0.1" in told


@pytest.mark.long
def test_a_registry_that_fails_at_the_start_ends_the_run_and_rejects_nothing(away: Away) -> None:
    away.shop.produce(away.shop.orders(3, away.schema_id))
    for outage in OUTAGES.values():
        away.server.always = outage
        fails_clearly(away)
    away.server.always = None
    with pytest.raises(RegistryUnavailable, match="it did not answer within"):
        away.drain(url="http://127.0.0.1:9/base")
    total = away.drain()
    assert (total.written, total.rejected) == (3, {})
    away.shop.assert_each_record_once()


@pytest.mark.long
def test_a_registry_that_fails_when_a_new_id_comes_rejects_nothing(away: Away) -> None:
    away.shop.produce(away.shop.orders(3, away.schema_id))
    away.drain()
    newer = away.server.store.register(f"{away.shop.topic}-value", json.dumps({**ORDER, "doc": "newer"}))
    away.shop.produce(away.shop.orders(2, newer, first=3))

    # The registry tells the versions as they were, then fails: the batch meets an id that nobody knows.
    known = away.server.store.versions[f"{away.shop.topic}-value"]
    away.server.store.versions[f"{away.shop.topic}-value"] = known[:-1]

    for outage in OUTAGES.values():
        away.server.always = None
        fails_clearly(away, failpoint=once("stage.started", partial(setattr, away.server, "always", outage)))
        assert away.server.always == outage, "the registry answered until the batch was staged"
        assert away.shop.dead() == []
        assert len(away.shop.landed()) == 3
    away.server.always, away.server.store.versions[f"{away.shop.topic}-value"] = None, known
    total = away.drain()
    assert (total.written, total.rejected) == (2, {})
    away.shop.assert_each_record_once()


@pytest.mark.long
def test_a_registry_that_is_slow_is_waited_for(away: Away) -> None:
    away.shop.produce(away.shop.orders(3, away.schema_id))
    away.server.misbehaviours.extend([hangs, says(503), says(429, Retry_After="1")])
    assert away.drain(retry=RetryPolicy(total_seconds=20, attempt_seconds=0.5, attempts=6)).written == 3
    assert away.shop.dead() == []


# ── The page ────────────────────────────────────────────────────────────────────────────────────
def test_the_page_names_each_of_these_tests_and_no_other(root: Path) -> None:
    files: dict[str, list[str]] = {}
    file = "tests/scenarios/test_bad_input.py"
    for line in (root / "tests" / "scenarios" / "bad_input.md").read_text().splitlines():
        if named := re.search(r"`(tests/[\w/]+\.py)`", line):
            file = named[1]
        elif line.startswith("## "):
            file = "tests/scenarios/test_bad_input.py"
        elif line.startswith("| ") and not line.startswith("| input"):
            found = re.search(r"`(test_\w+)` \|$", line)
            assert found, f"a row names no test: {line}"
            files.setdefault(file, []).append(found[1])
    here = {name for name in globals() if name.startswith("test_") and not name.startswith("test_the_page")}
    assert {*files.pop("tests/scenarios/test_bad_input.py")} == here
    for other, names in files.items():
        assert {*names} <= {*re.findall(r"^def (test_\w+)", (root / other).read_text(), re.MULTILINE)}, other


def test_the_page_has_each_reason_and_each_is_tested(root: Path) -> None:
    codes = re.findall(r"`(\w+)` \| `test_", (root / "tests" / "scenarios" / "bad_input.md").read_text())
    rejections = {*Reason} - {Reason.ROUTE}  # another table's record
    assert {*codes} == rejections
    rows = [line for line in (root / "docs" / "bad-input.md").read_text().splitlines() if line.startswith("| `")]
    assert {code for row in rows for code in re.findall(r"`(\w+)`", row.split(" | ")[0])} == rejections
