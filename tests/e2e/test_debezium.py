"""An upsert table and its source: PostgreSQL's changes, captured by Debezium, against the database's `SELECT *`."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

from frazil.declaration import Changelog, Debezium, ErrorMode, Upsert
from frazil.declaration.environment import Environment
from frazil.errors import RejectedRecords
from frazil.ingest.reporting.events import Total
from frazil.local.services import CHANGE_DATA, LocalServices, up
from tests.e2e.test_kills import kill
from tests.support.captured_table import CapturedTable
from tests.support.connectors import Converter
from tests.support.json_schema_relay import JsonSchemaRelay
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
FORMATS = {
    Converter.AVRO: {"value_format": "avro", "key_format": "avro"},
    Converter.JSON_WITH_SCHEMA: {"value_format": "json_schema", "key_format": "json_schema"},
}
PLACEHOLDER = "__debezium_unavailable_value"
COLUMNS = """
    customer text, note varchar(40), price numeric(10, 2), is_paid boolean, weight double precision, count smallint,
    at timestamptz, local timestamp, day date, token uuid, raw bytea, tags text[], document jsonb
"""


@pytest.fixture(scope="session")
def change_data_world(local_world: LocalServices) -> LocalServices:
    """The session's broker and registry, with PostgreSQL and a Connect worker."""
    return up(local_world.home.parent, parts=CHANGE_DATA)


class Copied:
    """A table of PostgreSQL, and its copy; a relay writes the topic that is landed, if the connector does not."""

    def __init__(self, source: CapturedTable, shop: Shop, relay: JsonSchemaRelay | None = None) -> None:
        self.source, self.shop, self.relay = source, shop, relay

    def drain(self) -> Total:
        """Land all changes so far."""
        self.source.captured()
        if self.relay is not None:
            self.relay.copy()
        return self.shop.drain()

    def land(self) -> None:
        """Land all changes so far, and check that copy and source are equal."""
        self.drain()
        self.check()

    def check(self, *columns: str) -> None:
        """Check that the copy has the source's rows, in these columns or all that the source has, and is proven."""
        selected = self.source.selected(*columns)
        assert self.copied(*columns) == {row["id"]: plain(row) for row in selected}
        self.shop.assert_proven(deep=True)

    def copied(self, *columns: str) -> dict[int, dict[str, Any]]:
        """Return the copy's rows by key, in these columns or all that the source has."""
        names = columns or tuple(
            row["column_name"]
            for row in self.source.sql(
                f"SELECT column_name FROM information_schema.columns WHERE table_name = '{self.source.name}'"
            )
        )
        rows = [plain({name: row[name] for name in names}) for row in self.shop.landed()]
        assert len({row["id"] for row in rows}) == len(rows)
        return {row["id"]: row for row in rows}


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row's values as both sides can have them: a UUID is its text, JSON is what the text says."""
    values = dict(row)
    for name, value in row.items():
        if isinstance(value, UUID):
            values[name] = str(value)
        elif name == "ids" and value is not None:
            values[name] = [str(each) for each in value]
        elif name == "document" and isinstance(value, str):
            values[name] = json.loads(value)
        elif isinstance(value, datetime) and value.tzinfo is not None:
            values[name] = value.astimezone(UTC)
    return values


CopiedOf = Callable[..., Copied]


@pytest.fixture
def copied_of(
    change_data_world: LocalServices, spark: SparkSession, lake_environment: Environment, name: str
) -> Iterator[CopiedOf]:
    """Makes the test's table and its copy. The statements run before the connector takes its snapshot; `t` is the table."""
    sources: list[CapturedTable] = []

    def make(
        columns: str,
        /,
        *statements: str,
        converter: Converter = Converter.AVRO,
        is_relayed: bool = False,
        more: Mapping[str, str] = MappingProxyType({}),
        **declared: Any,
    ) -> Copied:
        source = CapturedTable(change_data_world, name, columns)
        sources.append(source)
        choices = {"write": Upsert(), "envelope": Debezium(), **FORMATS.get(converter, {}), "partitions": 1, **declared}
        table = {"identifier": f"captured.{name}", **choices.pop("table", {})}
        topic = f"{source.topic}.relayed" if is_relayed else source.topic
        shop = Shop(change_data_world, spark, lake_environment, topic, table=table, **choices)
        source.sql(*(statement.format(t=name) for statement in statements))
        source.capture(converter, more)
        return Copied(source, shop, JsonSchemaRelay(change_data_world, source.topic, topic) if is_relayed else None)

    yield make
    for source in sources:
        source.release()
        source.close()


INSERT = """
    INSERT INTO {t} SELECT n, 'customer ' || n % 7, CASE n % 3 WHEN 0 THEN 'é' END, n / 8.0, n % 2 = 0, n / 3.0, n % 100,
        '2026-01-02 03:04:05.678901Z'::timestamptz + n * interval '1 hour', '2026-01-02 03:04:05'::timestamp - n * interval '1 day',
        '2026-02-28'::date + n, md5(n::text)::uuid, decode(md5(n::text), 'hex'), ARRAY['a', n::text],
        jsonb_build_object('n', n, 'text', 'ä', 'none', NULL)
    FROM generate_series({{first}}, {{last}}) AS n
"""


def insert(first: int, last: int) -> str:
    """Return a statement that inserts these rows, with a value in nearly every column."""
    return INSERT.replace("{{first}}", str(first)).replace("{{last}}", str(last))


def test_the_table_is_what_the_source_selects(copied_of: CopiedOf) -> None:
    copied = copied_of(COLUMNS, insert(1, 40), "INSERT INTO {t} (id) VALUES (41)")
    name = copied.source.name
    copied.land()
    copied.source.sql(
        insert(50, 60).format(t=name),
        f"UPDATE {name} SET price = price + 1, note = NULL WHERE id % 4 = 0",
        f"UPDATE {name} SET id = id + 1000 WHERE id BETWEEN 10 AND 20",
        f"DELETE FROM {name} WHERE id % 5 = 0",
        f"INSERT INTO {name} (id, note) VALUES (5, 'again')",
        f"BEGIN; DELETE FROM {name} WHERE id = 6; INSERT INTO {name} (id) VALUES (6); COMMIT",
        f"BEGIN; INSERT INTO {name} (id) VALUES (7000); ROLLBACK",
    )
    copied.land()
    assert len(copied.copied()) > 40


@pytest.mark.long
def test_pipelines_of_one_connector_land_each_of_its_tables(
    change_data_world: LocalServices, spark: SparkSession, lake_environment: Environment, name: str
) -> None:
    orders = CapturedTable(change_data_world, name, "customer text")
    items = CapturedTable(change_data_world, f"{name}_items", "of_order bigint, price numeric(8, 2)", prefix=name)
    sources = (orders, items)
    declared = Debezium().tables(
        name,
        *(f"public.{source.name}" for source in sources),
        namespace="captured",
        write=Upsert(),
        overrides={f"public.{items.name}": {"partition_by": ("bucket(4, id)",), "format_version": 3}},
        value="avro",
        key="avro",
    )
    shops = []
    for source, pipeline in zip(sources, declared, strict=True):
        table = {"identifier": pipeline.table.identifier}
        shops.append(Shop(change_data_world, spark, lake_environment, source.topic, partitions=1, table=table))
        shops[-1].pipeline = pipeline
    orders.sql(f"INSERT INTO {orders.name} SELECT n, 'first' FROM generate_series(1, 20) AS n")
    orders.capture(Converter.AVRO, beside=[items.name])
    try:
        orders.sql(
            f"BEGIN; INSERT INTO {orders.name} VALUES (21, 'new'); INSERT INTO {items.name} VALUES (1, 21, 1.25), (2, 21, 2.5),"
            f" (3, 1, 9); UPDATE {orders.name} SET customer = 'changed' WHERE id < 4; DELETE FROM {orders.name} WHERE id = 7;"
            f" UPDATE {items.name} SET id = 30 WHERE id = 3; DELETE FROM {items.name} WHERE id = 2; COMMIT"
        )
        for source, shop in zip(sources, shops, strict=True):
            assert shop.pipeline.topic.name == source.topic
            Copied(source, shop).land()
        assert {row["id"] for row in shops[1].landed()} == {1, 30}
    finally:
        orders.release()
        for source in sources:
            source.close()


@pytest.mark.long
def test_random_changes_leave_what_the_source_selects(copied_of: CopiedOf, seed: int) -> None:
    random = Random(seed)
    copied = copied_of("note text, count int", "INSERT INTO {t} SELECT n, 'first', n FROM generate_series(1, 30) AS n")
    name = copied.source.name
    for _ in range(6):
        for _ in range(random.randrange(5, 60)):
            number, other = random.randrange(1, 60), random.randrange(1, 60)
            change = random.choice(
                (
                    f"INSERT INTO {name} VALUES ({number}, 'new', {other}) ON CONFLICT (id) DO UPDATE SET count = {other}",
                    f"UPDATE {name} SET count = count + 1, note = 'of {other}' WHERE id = {number}",
                    f"UPDATE {name} SET id = {other} WHERE id = {number}"
                    f" AND NOT EXISTS (SELECT FROM {name} WHERE id = {other})",
                    f"DELETE FROM {name} WHERE id = {number}",
                    f"UPDATE {name} SET note = md5(note) WHERE id BETWEEN {min(number, other)} AND {max(number, other)}",
                )
            )
            copied.source.sql(change)
        copied.land()


@pytest.mark.long
def test_columns_that_come_change_their_name_and_go(copied_of: CopiedOf) -> None:
    copied = copied_of("note text, gone int", "INSERT INTO {t} SELECT n, 'n' || n, n FROM generate_series(1, 20) AS n")
    name = copied.source.name
    copied.land()

    # An added column is null in rows without an event; with a default, PostgreSQL changes those rows without an event.
    copied.source.sql(f"ALTER TABLE {name} ADD COLUMN more int", f"UPDATE {name} SET more = id WHERE id < 5")
    copied.land()
    copied.source.sql(
        f"ALTER TABLE {name} ADD COLUMN state text DEFAULT 'open'", f"UPDATE {name} SET more = 0 WHERE id IN (7, 8)"
    )
    copied.drain()
    copied.check("id", "note", "gone", "more")
    assert {row["state"] for row in copied.source.selected("state")} == {"open"}
    assert {number for number, row in copied.copied().items() if row["state"] == "open"} == {7, 8}
    copied.source.snapshot_incrementally()
    copied.shop.drain()
    copied.check()

    # A renamed column is a new one, which only rows with an event have; the old one keeps its values.
    copied.source.sql(
        f"ALTER TABLE {name} RENAME COLUMN note TO remark", f"UPDATE {name} SET remark = 'renamed' WHERE id = 3"
    )
    copied.drain()
    copied.check("id", "gone", "more", "state")
    assert {number for number, row in copied.copied().items() if row["remark"] is not None} == {3}
    assert {row["id"]: row["note"] for row in copied.shop.landed()} == {n: f"n{n}" for n in range(1, 21)} | {3: None}
    copied.source.snapshot_incrementally()
    copied.shop.drain()
    copied.check()

    # A dropped column stays in the copy, null in rows of later events.
    copied.source.sql(f"ALTER TABLE {name} DROP COLUMN gone", f"INSERT INTO {name} (id) VALUES (100)")
    copied.land()
    assert {row["gone"] for row in copied.shop.landed() if row["id"] == 100} == {None}
    assert {row["gone"] for row in copied.shop.landed() if row["id"] == 2} == {2}


LIMITS_OF_TYPES = {
    "smallint": "-32768",
    "bigint": "9223372036854775807",
    "real": "1.5",
    "numeric(38, 10)": "1234567890123456789012345678.0123456789",
    "char(5)": "'ab'",
    "date": "'0001-01-01'",
    "timestamp": "'0001-01-01 00:00:00.000001'",
    "timestamp(3)": "'9999-12-31 23:59:59.999'",
    "timestamptz": "'0001-06-01 00:00:00Z'",
    "int[]": "ARRAY[1, NULL, -2147483648]",
    "numeric(10, 2)[]": "ARRAY[1.50, NULL]",
    "date[]": "ARRAY['9999-12-31'::date]",
    "timestamp[]": "ARRAY['2026-01-02 03:04:05.678901'::timestamp]",
    "timestamptz[]": "ARRAY['2026-01-02 03:04:05.678901+02'::timestamptz]",
}


TIMES = {"day": "date", "at": "timestamptz", "local": "timestamp", "short": "timestamp(3)"}


def infinite(name: str, first: int) -> list[str]:
    """Return statements that insert both infinities of each type of `TIMES`, in rows of their own, and a finite row."""
    values = [(column, value) for column in TIMES for value in ("infinity", "-infinity")]
    rows = [(first + place, *each) for place, each in enumerate([*values, ("day", "2026-01-01")])]
    return [f"INSERT INTO {name} (id, {column}) VALUES ({number}, '{value}')" for number, column, value in rows]


@pytest.mark.long
def test_infinite_times_are_dead_letters(copied_of: CopiedOf, name: str) -> None:
    """In the snapshot and in later changes: no column holds them, and null would be another value."""
    columns = ", ".join(f"{column} {of}" for column, of in TIMES.items())
    copied = copied_of(columns, *infinite(name, 0), on_error=ErrorMode.DEAD_LETTER)
    assert copied.shop.drain().rejected == {"undecodable": 8}
    copied.source.sql(*infinite(name, 20), f"UPDATE {name} SET day = NULL WHERE id = 0")
    assert copied.drain().rejected == {"undecodable": 8}
    finite = copied.source.sql(f"SELECT * FROM {name} WHERE id IN (0, 8, 28)")
    assert copied.copied() == {row["id"]: plain(row) for row in finite}


OF_JSON_SCHEMA = {
    "boolean": "true",
    "double precision": "1e-300",
    "numeric": "-12345.6789",
    "varchar(9)": "'é\"\\'",
    "timestamp(0)": "'2026-01-02 03:04:05'",
    "time": "'10:00:00.000001'",
    "time(3)": "'10:00:00.001'",
    "timetz": "'10:00:01+02'",
    "interval": "'1 month 2 seconds'",
    "json": "'{\"a\": [1.50]}'",
    "jsonb": "'{\"a\": [1.50]}'",
    "uuid": "'c7cd37b9-708c-4340-8234-6ae52c5c460e'",
    "bytea": "'\\x0001ff'",
    "bit(9)": "B'111111111'",
    "varbit(12)": "B'1111'",
    "money": "12.34",
    "inet": "'127.0.0.1'",
    "xml": "'<a/>'",
    "int4range": "'[1,5)'",
    "text[]": "ARRAY['a', NULL, '']",
    "boolean[]": "ARRAY[true, NULL]",
    "double precision[]": "ARRAY[0.1, NULL]",
    "uuid[]": "ARRAY['c7cd37b9-708c-4340-8234-6ae52c5c460e'::uuid]",
}
"""Types beside `LIMITS_OF_TYPES`."""
LANDS_AS = {
    "numeric": "{c}::text",
    "time": "(extract(epoch FROM {c}) * 1000000)::bigint",
    "time(3)": "(extract(epoch FROM {c}) * 1000)::int",
    "timetz": "({c} AT TIME ZONE 'UTC')::time::text || 'Z'",
    "interval": "(30.4375 * 86400 * 1000000 + 2000000)::bigint",
    "json": "{c}::text",
    "jsonb": "{c}::text",
    "bit(9)": "'\\xff01'::bytea",
    "varbit(12)": "'\\x0f'::bytea",
    "money": "{c}::numeric(38, 2)",
    "inet": "host({c})",
    "xml": "{c}::text",
    "int4range": "{c}::text",
    "uuid[]": "{c}::text[]",
}
"""The column's value as PostgreSQL says it, of types that no table has."""


DECLARED = {
    "smallint": "int",
    "bigint": "long",
    "real": "float",
    "numeric(38, 10)": "decimal(38, 10)",
    "date": "io.debezium.time.Date",
    "timestamp": "io.debezium.time.MicroTimestamp",
    "timestamp(3)": "io.debezium.time.Timestamp",
    "timestamp(0)": "io.debezium.time.Timestamp",
    "timestamptz": "io.debezium.time.ZonedTimestamp",
    "int[]": "list<int>",
    "numeric(10, 2)[]": "list<decimal(10, 2)>",
    "date[]": "list<io.debezium.time.Date>",
    "timestamp[]": "list<io.debezium.time.MicroTimestamp>",
    "timestamptz[]": "list<io.debezium.time.ZonedTimestamp>",
    "boolean": "boolean",
    "double precision": "double",
    "numeric": "io.debezium.data.VariableScaleDecimal",
    "time": "long",
    "time(3)": "int",
    "interval": "long",
    "bytea": "binary",
    "bit(9)": "binary",
    "varbit(12)": "binary",
    "money": "decimal(38, 2)",
    "text[]": "list<string>",
    "boolean[]": "list<boolean>",
    "double precision[]": "list<double>",
    "uuid[]": "list<string>",
}
"""The column to declare for a type, if decimals are numbers; of other types it is a string."""
AS_TEXT = {"numeric(38, 10)": "string", "numeric(10, 2)[]": "list<string>", "numeric": "string", "money": "string"}
"""The same with `decimal.handling.mode=string`."""
OF_CONNECT = {"converter": Converter.JSON_WITH_SCHEMA, "value_format": "connect_json", "key_format": "connect_json"}
SCHEMALESS = {
    "json": {"converter": Converter.JSON, "value_format": "json", "key_format": "json"},
    "connect_json": OF_CONNECT,
    "json_schema": {"converter": Converter.JSON_WITH_SCHEMA, "is_relayed": True},
    "schemas_inside": OF_CONNECT,
}
WITH_COLUMNS = {"json", "connect_json"}
"""Those whose columns are declared."""


@pytest.mark.long
@pytest.mark.parametrize("mode", ["precise", "string"])
@pytest.mark.parametrize("written", ["avro", *SCHEMALESS])
def test_each_type_is_what_the_source_selects(copied_of: CopiedOf, written: str, mode: str) -> None:
    types = {**LIMITS_OF_TYPES, **OF_JSON_SCHEMA}
    values, more = ", ".join(types.values()), {"decimal.handling.mode": mode}
    choices: dict[str, Any] = dict(SCHEMALESS.get(written, {}))
    if written in WITH_COLUMNS:
        more["value.converter.decimal.format"] = "NUMERIC"
        declared = {**DECLARED, **AS_TEXT} if mode == "string" else DECLARED
        columns = (f"c{place} {declared.get(of, 'string')}" for place, of in enumerate(types))
        choices |= {"columns": ("id long", *columns), "key_columns": ("id long",)}
    copied = copied_of(
        ", ".join(f"c{place} {of}" for place, of in enumerate(types)),
        "INSERT INTO {t} VALUES (1, " + values.replace("{", "{{").replace("}", "}}") + ")",
        more=more,
        **choices,
    )
    name = copied.source.name
    copied.source.sql(f"INSERT INTO {name} VALUES (2, {values})", f"INSERT INTO {name} (id) VALUES (3)")
    copied.drain()
    texts = {"numeric(38, 10)", "numeric(10, 2)[]", "money"} if mode == "string" else set()
    asked = []
    for place, of in enumerate(types):
        said = LANDS_AS.get(of, "{c}").format(c=f"c{place}")
        said += ("::text[]" if of.endswith("[]") else "::text") if of in texts else ""
        asked.append(f"CASE WHEN c{place} IS NOT NULL THEN {said} END AS c{place}")
    wanted = {row["id"]: plain(row) for row in copied.source.selected("id", *asked)}
    landed = copied.copied(*wanted[1])
    for key, row in wanted.items():
        for (column, value), of in zip(list(row.items())[1:], types, strict=True):
            assert landed[key][column] == value, (key, of)
    assert set(landed) == set(wanted)
    assert len(landed) == 3
    assert list(copied.shop.landed()[0])[: len(types) + 1] == ["id", *(f"c{place}" for place in range(len(types)))]


LONG_DECLARED = (
    "id long",
    "note long",
    "long string",
    "raw binary",
    "tags list<string>",
    "document string",
    "ids list<string>",
    "numbers list<int>",
    "price decimal(8, 2)",
)


@pytest.mark.long
@pytest.mark.parametrize("written", SCHEMALESS)
def test_changes_in_json_leave_what_the_source_selects(copied_of: CopiedOf, written: str) -> None:
    first = "INSERT INTO {t} " + LONG_ROWS.format(first=1, last=6)
    choices: dict[str, Any] = dict(SCHEMALESS[written])
    if written in WITH_COLUMNS:
        choices |= {"columns": LONG_DECLARED, "key_columns": ("id long",)}
        choices["more"] = {"value.converter.decimal.format": "NUMERIC", "decimal.handling.mode": "precise"}
    copied = copied_of(LONG_COLUMNS, first, **choices)
    copied.land()
    left_out = change_rows_with_long_values(copied.source, with_keys=False)
    assert [left_out[key] for key in (1, 11, 4)] == [LONG_NAMES] * 3
    assert left_out[2] == LONG_NAMES - {"long"}
    copied.land()
    name = copied.source.name
    copied.source.sql(
        f"ALTER TABLE {name} ADD COLUMN price numeric(8, 2)",
        f"ALTER TABLE {name} ALTER COLUMN note TYPE bigint",
        f"UPDATE {name} SET price = 1.25, note = 5000000000 WHERE id = 2",
        f"UPDATE {name} SET id = 1002, long = 'short', raw = NULL, tags = NULL, document = NULL, ids = NULL,"
        " numbers = NULL WHERE id = 2",
        f"DELETE FROM {name} WHERE id = 4",
    )
    copied.land()


FLATTENED = {
    "transforms": "unwrap",
    "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
    "transforms.unwrap.delete.tombstone.handling.mode": "rewrite-with-tombstone",
    "transforms.unwrap.add.fields": "op",
}
ORDERS_DECLARED = (
    *(
        "id long",
        "customer string",
        "note string",
        "price decimal(10, 2)",
        "is_paid boolean",
        "weight double",
        "count int",
    ),
    *("at io.debezium.time.ZonedTimestamp", "local io.debezium.time.MicroTimestamp", "day io.debezium.time.Date"),
    *("token string", "raw binary", "tags list<string>", "document string"),
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("written", "deleted"),
    [
        *((each, "rewrite-with-tombstone") for each in ("avro", *SCHEMALESS)),
        *((each, "tombstone") for each in ("avro", "json", "connect_json")),
        ("avro", "rewrite"),
    ],
)
def test_flattened_changes_leave_what_the_source_selects(copied_of: CopiedOf, written: str, deleted: str) -> None:
    """A converter may write a delete as null in JSON, and not as a record without a value."""
    flattened = {**FLATTENED, "transforms.unwrap.delete.tombstone.handling.mode": deleted}
    choices: dict[str, Any] = {**SCHEMALESS.get(written, {"converter": Converter.AVRO}), "more": flattened}
    if written in WITH_COLUMNS:
        marks = ("__op string", "__deleted string") if deleted != "tombstone" else ("__op string",)
        choices |= {"columns": (*ORDERS_DECLARED, *marks), "key_columns": ("id long",)}
        choices["more"] = {**flattened, "value.converter.decimal.format": "NUMERIC", "decimal.handling.mode": "precise"}
    copied = copied_of(COLUMNS, insert(1, 20), "INSERT INTO {t} (id) VALUES (41)", **choices)
    name = copied.source.name
    copied.land()
    copied.source.sql(
        f"UPDATE {name} SET price = price + 1, note = NULL WHERE id % 4 = 0",
        f"UPDATE {name} SET id = id + 1000 WHERE id BETWEEN 10 AND 12",
        f"DELETE FROM {name} WHERE id % 5 = 0",
        f"INSERT INTO {name} (id, note) VALUES (5, 'again')",
    )
    copied.land()
    assert len(copied.copied()) > 15


@pytest.mark.long
def test_an_incremental_snapshot_beside_changes_leaves_what_the_source_selects(copied_of: CopiedOf) -> None:
    copied = copied_of("note text", "INSERT INTO {t} SELECT n, 'first' FROM generate_series(1, 1000) AS n")
    name = copied.source.name
    copied.land()
    copied.source.begin_incremental_snapshot()
    for number in range(1, 1000, 5):
        copied.source.sql(
            f"UPDATE {name} SET note = 'during' WHERE id = {number}", f"DELETE FROM {name} WHERE id = {number + 1}"
        )
    copied.source.snapshot_incrementally()
    copied.shop.drain()
    copied.check()


LONG = "(SELECT string_agg(md5((n * 1000 + m)::text), '') FROM generate_series(1, 200) AS m)"
"""A text of 6,400 characters that does not compress: PostgreSQL stores it outside its row."""


LONG_COLUMNS = "note int, long text, raw bytea, tags text[], document jsonb, ids uuid[], numbers int[]"
LONG_ROWS = (
    f"SELECT n, 0, {LONG}, convert_to({LONG}, 'UTF8'), ARRAY[{LONG}, 'b'], jsonb_build_object('a', {LONG}),"
    " (SELECT array_agg(md5((n * 1000 + m)::text)::uuid) FROM generate_series(1, 400) AS m),"
    " (SELECT array_agg(hashint8(n * 1000 + m)) FROM generate_series(1, 2000) AS m)"
    " FROM generate_series({first}, {last}) AS n"
)


def placeholders(placeholder: str) -> dict[str, list[Any]]:
    """Return what the connector writes for a value that it leaves out, by column; bytes are in base64 in JSON."""
    octets = placeholder.encode()
    named = UUID(bytes=hashlib.md5(octets, usedforsecurity=False).digest(), version=3)  # as Java names it
    return {
        "long": [placeholder],
        "raw": [octets, b64encode(octets).decode()],
        "tags": [[placeholder]],
        "document": [placeholder],
        "ids": [[str(named)]],
        "numbers": [[int.from_bytes([octet], signed=True) for octet in octets]],
    }


LONG_NAMES = set(placeholders(PLACEHOLDER))


def change_rows_with_long_values(
    source: CapturedTable, *, with_keys: bool, placeholder: str = PLACEHOLDER
) -> dict[int, set[str]]:
    """Change rows without their long values. Return the columns that an event of a key leaves out, if any.

    The row is in the table; it is in the same batch; a value is new; the row is deleted and is there again; `with_keys` the key is
    new.
    """
    name = source.name
    of_key = [f"UPDATE {name} SET id = 103 WHERE id = 3", f"UPDATE {name} SET note = 4 WHERE id = 103"]
    source.sql(
        *(of_key if with_keys else ()),
        f"UPDATE {name} SET note = 1 WHERE id = 1",
        f"INSERT INTO {name} {LONG_ROWS.format(first=11, last=12)}",
        f"UPDATE {name} SET note = 2 WHERE id = 11",
        f"UPDATE {name} SET long = 'short' WHERE id = 2",
        f"UPDATE {name} SET note = 3 WHERE id = 2",
        f"DELETE FROM {name} WHERE id = 4",
        f"INSERT INTO {name} {LONG_ROWS.format(first=4, last=4)}",
        f"UPDATE {name} SET note = 5 WHERE id = 4",
    )
    found: dict[int, set[str]] = {}
    for event in source.captured():
        for column, written in placeholders(placeholder).items() if event.after and event.operation == "u" else ():
            if event.after[column] in written:
                found.setdefault(event.number, set()).add(column)
    return found


@pytest.mark.long
def test_with_its_whole_identity_the_source_leaves_no_value_out(copied_of: CopiedOf) -> None:
    first = "INSERT INTO {t} " + LONG_ROWS.format(first=1, last=6)
    copied = copied_of(LONG_COLUMNS, "ALTER TABLE {t} REPLICA IDENTITY FULL", first)
    copied.land()
    assert change_rows_with_long_values(copied.source, with_keys=True) == {}
    copied.land()


@pytest.mark.long
def test_with_its_whole_identity_each_change_has_the_row_before(copied_of: CopiedOf) -> None:
    """The same table in a changelog: what the source selected before each change is in it, and a default identity is found."""
    first = "INSERT INTO {t} " + LONG_ROWS.format(first=1, last=3)
    copied = copied_of(
        f"{LONG_COLUMNS}, is_paid boolean NOT NULL DEFAULT false",
        "ALTER TABLE {t} REPLICA IDENTITY FULL",
        first,
        write=Changelog(),
        envelope=Debezium(replica_identity="full"),
    )
    source, name = copied.source, copied.source.name
    before = {row["id"]: plain(row) for row in source.selected()}
    source.sql(
        f"UPDATE {name} SET is_paid = true WHERE id = 1",
        f"UPDATE {name} SET id = 12 WHERE id = 2",
        f"DELETE FROM {name} WHERE id = 3",
        f"ALTER TABLE {name} ADD COLUMN extra int",
        f"UPDATE {name} SET extra = 7 WHERE id = 1",
    )
    copied.drain()
    rows = sorted(copied.shop.landed(), key=lambda row: row["_kafka_offset"])
    changes = [row for row in rows if row["_op"] in "ud" and row["id"] > 0]  # a mark of the test has another id
    images = [(row["_op"], row["id"], row["_before"] and plain(row["_before"])) for row in changes]
    paid = {**before[1], "is_paid": True, "extra": None}
    assert images == [
        ("u", 1, {**before[1], "extra": None}),
        ("d", 2, {**before[2], "extra": None}),
        ("d", 2, None),
        ("d", 3, {**before[3], "extra": None}),
        ("d", 3, None),
        ("u", 1, paid),
    ]
    source.sql(
        f"ALTER TABLE {name} REPLICA IDENTITY DEFAULT",
        f"INSERT INTO {name} (id) VALUES (20)",
        f"DELETE FROM {name} WHERE id = 12",
    )
    copied.drain()
    gone = [row for row in copied.shop.landed() if (row["_op"], row["id"]) == ("d", 12)]
    assert [row["_before"] for row in gone] == [None, None], "what the connector invented does not land"
    source.sql(f"UPDATE {name} SET is_paid = true WHERE id = 20")
    with pytest.raises(RejectedRecords, match="before_missing"):
        copied.drain()


@pytest.mark.long
@pytest.mark.parametrize("placeholder", [PLACEHOLDER, "ünavailable"])
def test_values_that_the_source_leaves_out_are_those_of_the_row(copied_of: CopiedOf, placeholder: str) -> None:
    copied = copied_of(
        LONG_COLUMNS,
        "INSERT INTO {t} " + LONG_ROWS.format(first=1, last=6),
        more={"unavailable.value.placeholder": placeholder},
        envelope=Debezium(unavailable_value=placeholder),
    )
    copied.land()
    left_out = change_rows_with_long_values(copied.source, with_keys=False, placeholder=placeholder)
    assert [left_out[key] for key in (1, 11, 4)] == [LONG_NAMES] * 3
    assert left_out[2] == LONG_NAMES - {"long"}
    copied.land()


WITHOUT_PLACEHOLDER = {
    "smallint[]": "ARRAY[7::smallint]",
    "numeric(10, 2)[]": "ARRAY[7.25]",
    "timestamptz[]": "ARRAY['2026-01-01Z'::timestamptz]",
    "timestamp[]": "ARRAY['2026-01-01'::timestamp]",
    "boolean[]": "ARRAY[true]",
    "real[]": "ARRAY[1.5::real]",
    "double precision[]": "ARRAY[1.5::float8]",
    "varbit": "repeat('10', 40000)::varbit",
}


@pytest.mark.long
@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_large_values_of_other_types_are_null_where_the_source_leaves_them_out(
    copied_of: CopiedOf, identity: str
) -> None:
    """As docs/change-data.md says: the connector has no placeholder for them. With its whole identity the source leaves none out."""
    columns = [f"c{place} {of}" for place, of in enumerate(WITHOUT_PLACEHOLDER)]
    values = [
        f"array_fill(({value})[1], ARRAY[9000])" if of.endswith("[]") else value
        for of, value in WITHOUT_PLACEHOLDER.items()
    ]
    external = (f"ALTER TABLE {{t}} ALTER COLUMN {each.split()[0]} SET STORAGE EXTERNAL" for each in columns)
    copied = copied_of(
        "note int, " + ", ".join(columns),
        *external,
        f"ALTER TABLE {{t}} REPLICA IDENTITY {identity}",
        f"INSERT INTO {{t}} SELECT 1, 0, {', '.join(values)}",
    )
    copied.drain()
    names = [each.split()[0] for each in columns]
    assert all(copied.copied()[1][name] is not None for name in names)
    copied.source.sql(f"UPDATE {copied.source.name} SET note = 1")
    copied.drain()
    assert copied.copied()[1]["note"] == 1
    assert {copied.copied()[1][name] is None for name in names} == {identity == "DEFAULT"}


@pytest.mark.long
@pytest.mark.parametrize("mode", ["precise", "string"])
@pytest.mark.parametrize("written", ["avro", "schemas_inside", "json_schema"])
def test_a_scale_that_grows_stops_the_pipeline_or_is_text(copied_of: CopiedOf, written: str, mode: str) -> None:
    choices: dict[str, Any] = SCHEMALESS.get(written, {})
    more = {"decimal.handling.mode": mode}
    copied = copied_of("price numeric(10, 2)", "INSERT INTO {t} VALUES (1, 1.25), (2, 2.5)", more=more, **choices)
    name, price = copied.source.name, "price::text" if mode == "string" else "price"
    copied.drain()
    assert {row["id"]: row["price"] for row in copied.shop.landed()} == {
        row["id"]: row["price"] for row in copied.source.selected("id", price)
    }
    copied.source.sql(
        f"ALTER TABLE {name} ALTER COLUMN price TYPE numeric(14, 3)", f"INSERT INTO {name} VALUES (3, 3.125)"
    )
    if mode == "string":
        copied.drain()
        assert [row["price"] for row in copied.shop.landed() if row["id"] == 3] == ["3.125"]
        return
    with pytest.raises(RejectedRecords, match="incompatible_schema"):
        copied.drain()
    incompatible = copied.shop.seen("schema_incompatible")[-1]
    assert "price: decimal(10, 2) cannot become decimal(14, 3)" in incompatible["message"]
    assert sorted(row["id"] for row in copied.shop.landed()) == [1, 2]


@pytest.mark.long
@pytest.mark.parametrize("written", ["avro", "schemas_inside", "replaced"])
def test_null_in_a_column_with_a_default_is_null_if_the_converter_lets_it(copied_of: CopiedOf, written: str) -> None:
    """As docs/change-data.md says. Apicurio's converter has no such setting."""
    more = {} if written == "replaced" else {"value.converter.replace.null.with.default": "false"}
    choices: dict[str, Any] = SCHEMALESS["schemas_inside"] if written != "avro" else {}
    columns = "note text DEFAULT 'open', count int DEFAULT 7, at timestamptz DEFAULT '2026-01-01Z', price numeric(8, 2) DEFAULT 1.25"
    copied = copied_of(columns, "INSERT INTO {t} VALUES (1, NULL, NULL, NULL, NULL)", more=more, **choices)
    name = copied.source.name
    copied.source.sql(
        f"INSERT INTO {name} (id) VALUES (2), (3)", f"UPDATE {name} SET note = NULL, price = NULL WHERE id = 3"
    )
    if written == "schemas_inside":
        copied.land()
        return
    copied.drain()
    assert {(row["note"], row["count"]) for row in copied.copied().values()} == {("open", 7)}
    assert {(row["note"], row["count"]) for row in copied.source.selected()} == {("open", 7), (None, None), (None, 7)}


@pytest.mark.long
def test_values_that_are_left_out_of_a_row_with_a_new_key_stop_the_pipeline(copied_of: CopiedOf) -> None:
    copied = copied_of(LONG_COLUMNS, "INSERT INTO {t} " + LONG_ROWS.format(first=1, last=6))
    copied.land()
    assert change_rows_with_long_values(copied.source, with_keys=True)[103] == LONG_NAMES
    with pytest.raises(RejectedRecords, match="value_unavailable"):
        copied.shop.drain()


@pytest.mark.long
def test_a_killed_driver_loses_and_doubles_no_change(copied_of: CopiedOf, tmp_path: Path) -> None:
    copied = copied_of("note text", "INSERT INTO {t} SELECT n, 'first' FROM generate_series(1, 50) AS n")
    name = copied.source.name
    copied.land()
    for step in ("publish.searched", "publish.filled", "publish.committed"):
        copied.source.sql(
            f"UPDATE {name} SET note = '{step}' WHERE id % 3 = 0",
            f"DELETE FROM {name} WHERE id = (SELECT min(id) FROM {name})",
            f"UPDATE {name} SET id = id + 1000 WHERE id = (SELECT min(id) FROM {name})",
        )
        copied.source.captured()
        kill(copied.shop, tmp_path, step)
        copied.land()


@pytest.mark.long
def test_a_truncate_deletes_all_rows_where_that_is_declared(copied_of: CopiedOf) -> None:
    copied = copied_of(
        "note text",
        "INSERT INTO {t} SELECT n, 'first' FROM generate_series(1, 50) n",
        write=Upsert(on_truncate="delete_all"),
    )
    copied.land()
    name = copied.source.name
    copied.source.sql(
        f"UPDATE {name} SET note = 'before' WHERE id < 5",
        f"TRUNCATE {name}",
        f"INSERT INTO {name} VALUES (3, 'behind')",
    )
    copied.land()
    assert [row["id"] for row in copied.shop.landed()] == [3]
    copied.source.sql(f"TRUNCATE {name}")
    copied.land()
    assert copied.shop.landed() == []
