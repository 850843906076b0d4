"""The SQL over a changelog, run by Spark and DuckDB, returns what a replay of its rows returns."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from pyspark.sql import SparkSession

from frazil.errors import InvalidInput
from frazil.lake.ledger import entry as ledger
from frazil.lake.sql.changelog_sql import ChangelogTable
from frazil.lake.sql.order_values import order_values
from frazil.lake.sql.sql_engine import SqlEngine
from frazil.schemas.iceberg import row_type, schema_json
from frazil.schemas.types import Field, Kind, ListOf, Primitive, Struct
from tests.support import change_replay

LONG, INT, TEXT = Primitive(Kind.LONG), Primitive(Kind.INT), Primitive(Kind.STRING)
INSTANT = Primitive(Kind.TIMESTAMPTZ)
COLUMNS = (
    Field("id", LONG),
    Field("line it's", INT),
    Field("word", TEXT),
    Field("note's", TEXT),
    Field("_kafka_partition", INT),
    Field("_kafka_offset", LONG),
    Field("_kafka_timestamp", INSTANT),
    Field("_op", TEXT),
    Field("_changed_at", INSTANT),
)
KEY = ("id", "line it's")
SHOWN = (*KEY, "word", "note's", "_op", "_kafka_partition", "_kafka_offset")
ARROW = {
    "id": pa.int64(),
    "line it's": pa.int32(),
    "word": pa.string(),
    "note's": pa.string(),
    "_kafka_partition": pa.int32(),
    "_kafka_offset": pa.int64(),
    "_kafka_timestamp": pa.timestamp("us", "UTC"),
    "_op": pa.string(),
    "_changed_at": pa.timestamp("us", "UTC"),
    "_unavailable": pa.list_(pa.string()),
    "_source": pa.struct([("db", pa.string()), ("lsn", pa.int64())]),
}
ORDERS = {
    "one": (Field("_order", LONG), pa.int64()),
    "several": (
        Field("_order", Struct((Field("version", LONG), Field("at's", LONG)))),
        pa.struct([("version", pa.int64()), ("at's", pa.int64())]),
    ),
}
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
Rows = list[dict[str, Any]]
Run = Callable[[str, pa.Table], list[tuple[Any, ...]]]


def changelog(*more: Field) -> ChangelogTable:
    return ChangelogTable(Struct((*COLUMNS, *more)), KEY)


def made(
    seed: int,
    *,
    many: int = 120,
    partitions: int = 2,
    letters: str = "wwwd",
    order: str | None = None,
    placed: bool = False,
) -> Rows:
    """Return rows of few keys: equal times, times that go back, keys in several partitions.

    Of change data, records are later than their changes, and many deletes have a tombstone behind them.
    """
    chosen, offsets, rows = random.Random(seed), dict.fromkeys(range(partitions), 0), []
    for number in range(many):
        partition, op = chosen.randrange(partitions), chosen.choice(letters)
        row: dict[str, Any] = dict.fromkeys(ARROW)
        row |= {"_kafka_partition": partition, "_kafka_offset": offsets[partition], "_op": op}
        row |= {"_changed_at": EPOCH + timedelta(milliseconds=chosen.randrange(max(0, number - 9), number + 9) // 3)}
        offsets[partition] += chosen.choice((1, 1, 3))
        if op != "t":
            row |= {"id": chosen.randrange(5), "line it's": chosen.randrange(2)}
        if op not in "dt":
            row |= {"word": f"w{number}", "note's": chosen.choice((None, f"n{number}"))}
        lag = timedelta(milliseconds=chosen.randrange(1, 5))
        row |= {"_kafka_timestamp": row["_changed_at"] + (lag if "u" in letters else timedelta(0))}
        if placed and chosen.random() < 0.9:
            row["_source"] = {"db": "shop", "lsn": number + chosen.randrange(3)}
        if op == "u" and chosen.random() < 0.5:
            row |= {"note's": None, "_unavailable": ["note's"]}
        if order is not None:
            version = chosen.randrange(12)
            row["_order"] = version if order == "one" else (version, chosen.randrange(3))
        rows.append(row)
        if op == "d" and "u" in letters and chosen.random() < 0.7:
            at = row["_kafka_timestamp"] + timedelta(milliseconds=chosen.randrange(9))
            bare = {"_kafka_offset": offsets[partition], "_kafka_timestamp": at, "_changed_at": at, "_source": None}
            rows.append({**row, **bare, "is_tombstone": True})
            offsets[partition] += 1
    return rows


def table_of(rows: Rows, columns: Sequence[str], order: str | None = None) -> pa.Table:
    types = {**ARROW, **({"_order": ORDERS[order][1]} if order else {})}
    named = ["version", "at's"]
    values = {
        name: [
            dict(zip(named, row[name], strict=True)) if isinstance(row.get(name), tuple) else row.get(name)
            for row in rows
        ]
        for name in columns
    }
    return pa.table({name: pa.array(values[name], types[name]) for name in columns})


def by_duckdb(query: str, rows: pa.Table) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("changelog", rows)
        answer: pa.Table = connection.execute(query).to_arrow_table()
        return [tuple(row.values()) for row in answer.to_pylist()]


@pytest.fixture
def by_spark(spark: SparkSession) -> Run:
    def run(query: str, rows: pa.Table) -> list[tuple[Any, ...]]:
        spark.createDataFrame(rows).createOrReplaceTempView("changelog")
        answer: pa.Table = spark.sql(query).toArrow()
        return [tuple(row.values()) for row in answer.to_pylist()]

    return run


def shown(table: ChangelogTable, answer: Sequence[tuple[Any, ...]], more: int) -> list[tuple[Any, ...]]:
    """Return the values of `SHOWN`, and of the `more` columns behind those of the table."""
    names = [field.name for field in table.columns.fields]
    places = [names.index(name) for name in SHOWN]
    return [(tuple(row[place] for place in places), *row[len(names) : len(names) + more]) for row in answer]


def check(table: ChangelogTable, rows: Rows, engine: SqlEngine, run: Run, order: str | None = None) -> None:
    arrow = table_of(rows, [field.name for field in table.columns.fields], order)
    wanted = change_replay.intervals(rows, KEY, SHOWN, ordered=order is not None)
    found = shown(table, run(table.history(engine, "changelog"), arrow), 2)
    assert sorted(found, key=repr) == sorted(wanted, key=repr)
    now = shown(table, run(table.state(engine, "changelog"), arrow), 0)
    assert sorted(now) == sorted((values,) for values, _, end in wanted if end is None)
    at = {0: 20, 1: 35}
    before = shown(table, run(table.state(engine, "changelog", at), arrow), 0)
    left = change_replay.landed(rows, at)
    assert sorted(before) == sorted((v,) for v in change_replay.state(left, KEY, SHOWN, ordered=order is not None))
    assert before != now


UNAVAILABLE = Field("_unavailable", ListOf(TEXT))
SOURCE = Field("_source", Struct((Field("db", TEXT), Field("lsn", LONG))))
CASES: Mapping[str, tuple[tuple[Field, ...], dict[str, Any]]] = {
    "a keyed topic": ((), {}),
    "ordered by one column": ((ORDERS["one"][0],), {"order": "one"}),
    "ordered by several": ((ORDERS["several"][0],), {"order": "several"}),
    "change data": ((UNAVAILABLE,), {"letters": "rcuuuud", "partitions": 1}),
    "change data with truncates": ((UNAVAILABLE,), {"letters": "cuuuuuuudt", "partitions": 2}),
    "change data with its source": ((SOURCE, UNAVAILABLE), {"letters": "cuuuuuuudt", "placed": True}),
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case, marks=() if case in ("ordered by several", "change data with its source") else pytest.mark.long
        )
        for case in CASES
    ],
)
def test_duckdb_returns_what_a_replay_returns(case: str) -> None:
    more, how = CASES[case]
    for seed in range(8):
        check(changelog(*more), made(seed, **how), SqlEngine.DUCKDB, by_duckdb, how.get("order"))


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("case", CASES)
def test_spark_returns_what_a_replay_returns(case: str, by_spark: Run) -> None:
    more, how = CASES[case]
    for seed in range(8, 10):
        check(changelog(*more), made(seed, **how), SqlEngine.SPARK, by_spark, how.get("order"))


@pytest.mark.parametrize("order", ORDERS)
def test_the_state_at_an_order_is_that_of_the_changes_up_to_it(order: str) -> None:
    """Also as far as some offsets: what was known then of that order."""
    check_orders(order, SqlEngine.DUCKDB, by_duckdb, range(2), (-1, 4, 11))


@pytest.mark.long
@pytest.mark.spark
def test_spark_returns_the_state_at_an_order(by_spark: Run) -> None:
    check_orders("several", SqlEngine.SPARK, by_spark, range(1), (5,))


def check_orders(order: str, engine: SqlEngine, run: Run, seeds: Iterable[int], versions: Iterable[int]) -> None:
    table = changelog(ORDERS[order][0])
    for seed in seeds:
        rows = made(seed, order=order)
        arrow = table_of(rows, [field.name for field in table.columns.fields], order)
        for version in versions:
            for until in ((version,),) if order == "one" else ((version,), (version, 1)):
                for at in (None, {0: 40, 1: 55}):
                    left = [row for row in rows if _first(row["_order"], len(until)) <= until]
                    left = left if at is None else change_replay.landed(left, at)
                    wanted = change_replay.state(left, KEY, SHOWN, ordered=True)
                    found = shown(table, run(table.state(engine, "changelog", at, until), arrow), 0)
                    assert sorted(found) == sorted((values,) for values in wanted)


def _first(order: Any, count: int) -> tuple[Any, ...]:
    return order[:count] if isinstance(order, tuple) else (order,)


HOSTILE = (
    "it's",
    "' OR '1' = '1",
    "\\' OR 1 = 1 -- ",
    "\\",
    "\\\\' ; DROP TABLE changelog; --",
    "${spark.app.name}",
    "${env:HOME}",
    "$\\{x}",
    'é\n\t%_"`$$',
)


def check_texts(engine: SqlEngine, run: Run) -> None:
    texts = sorted((*HOSTILE, "", "a"), key=str.encode)
    table = ChangelogTable(Struct((*COLUMNS, Field("_order", TEXT))), KEY)
    rows = [{**event("w", number, (0, number), 1, record=1), "_order": text} for number, text in enumerate(texts)]
    arrow = table_of(rows, [field.name for field in COLUMNS])
    arrow = arrow.append_column("_order", pa.array(texts))
    for number, text in enumerate(texts):
        (until,) = (order_values([text], table.order, "s.t"),)
        found = shown(table, run(table.state(engine, "changelog", None, until), arrow), 0)
        assert sorted(values[0] for (values,) in found) == list(range(number + 1)), text


def test_no_text_leaves_its_quotes() -> None:
    check_texts(SqlEngine.DUCKDB, by_duckdb)


@pytest.mark.long
@pytest.mark.spark
def test_no_text_leaves_its_quotes_in_spark(by_spark: Run) -> None:
    check_texts(SqlEngine.SPARK, by_spark)


@pytest.mark.parametrize("engine", [SqlEngine.TRINO, SqlEngine.ATHENA, SqlEngine.SNOWFLAKE])
def test_no_text_leaves_its_quotes_in_engines_that_are_parsed(engine: SqlEngine) -> None:
    for text in HOSTILE:
        written = engine.literal(text)
        inside = written[1:-1].replace("\\\\", "") if engine is SqlEngine.SNOWFLAKE else written[1:-1]
        assert "'" not in inside.replace("''", "")
        assert (written[0], written[-1]) == ("'", "'")
        assert "\\" not in inside or engine is not SqlEngine.SNOWFLAKE


@pytest.mark.long
def test_at_each_time_a_key_has_one_row_at_most() -> None:
    """Intervals are half open: the row that ends at a time is not valid then, and the one that begins then is."""
    table, rows = changelog(), made(3)
    arrow = table_of(rows, [field.name for field in COLUMNS])
    query = table.history(SqlEngine.DUCKDB, "changelog")
    for moment in sorted({row["_changed_at"] for row in rows}):
        so_far = f"valid_from <= '{moment.isoformat()}' AND (valid_to > '{moment.isoformat()}' OR valid_to IS NULL)"
        valid = shown(table, by_duckdb(f"SELECT * FROM ({query}) WHERE {so_far}", arrow), 0)
        assert len({values[:2] for (values,) in valid}) == len(valid)
        wanted = [
            (values,)
            for values, begin, end in change_replay.intervals(rows, KEY, SHOWN)
            if begin <= moment and (end is None or moment < end)
        ]
        assert sorted(valid) == sorted(wanted)


@pytest.mark.long
def test_the_state_is_that_of_the_source_at_each_offset() -> None:
    """A source whose changes are applied to a dictionary, the truncates too: one partition, as a connector writes."""
    chosen, source, rows = random.Random(5), dict[tuple[int, int], tuple[Any, ...]](), Rows()
    states = [dict(source)]
    for offset in range(80):
        row: dict[str, Any] = dict.fromkeys(ARROW)
        row |= {"_kafka_partition": 0, "_kafka_offset": offset, "_changed_at": EPOCH + timedelta(seconds=offset // 4)}
        key = (chosen.randrange(4), 0)
        here = source.get(key)
        op = chosen.choice("ud") if here else "c"
        if offset % 23 == 22:
            row["_op"] = "t"
            source.clear()
        elif op == "d":
            row |= {"id": key[0], "line it's": key[1], "_op": "d"}
            source.pop(key)
        else:
            is_left_out = here is not None and here[1] is not None and chosen.random() < 0.5
            note = here[1] if here is not None and is_left_out else chosen.choice((None, f"n{offset}"))
            row |= {"id": key[0], "line it's": key[1], "_op": op, "word": f"w{offset}"}
            row |= {"note's": None, "_unavailable": ["note's"]} if is_left_out else {"note's": note}
            source[key] = (f"w{offset}", note)
        rows.append(row)
        states.append(dict(source))
    table = changelog(UNAVAILABLE)
    arrow = table_of(rows, [field.name for field in table.columns.fields])
    for landed, state in enumerate(states):
        answer = shown(table, by_duckdb(table.state(SqlEngine.DUCKDB, "changelog", {0: landed}), arrow), 0)
        assert {values[:2]: values[2:4] for (values,) in answer} == state, landed
        assert len(answer) == len(state)


def event(
    op: str, number: int, place: tuple[int, int], at: float, *, record: float, lsn: int | None = None
) -> dict[str, Any]:
    """Return the change of a source at a second, and the record that it is at another; a truncate is of no key."""
    row: dict[str, Any] = dict.fromkeys(ARROW)
    row |= {"_op": op, "_kafka_partition": place[0], "_kafka_offset": place[1]}
    times = {"_changed_at": at, "_kafka_timestamp": record}
    row |= {name: EPOCH + timedelta(seconds=seconds) for name, seconds in times.items()}
    row["_source"] = {"db": "shop", "lsn": lsn}
    return row if op == "t" else {**row, "id": number, "line it's": 0, "word": None if op == "d" else f"{op}{number}"}


def spans(rows: Rows, *more: Field) -> list[tuple[str, float, float | None]]:
    """Return the word of each row, and its interval in seconds."""
    table = changelog(*more, UNAVAILABLE)
    arrow = table_of(rows, [field.name for field in table.columns.fields])
    answer = shown(table, by_duckdb(table.history(SqlEngine.DUCKDB, "changelog"), arrow), 2)
    return sorted(
        (values[2], (begin - EPOCH).total_seconds(), end and (end - EPOCH).total_seconds())
        for values, begin, end in answer
    )


def test_rows_behind_the_truncate_of_their_transaction_stay() -> None:
    """A truncate and the inserts behind it, in one transaction: PostgreSQL gives all of them the time of its commit."""
    before = event("c", 0, (1, 0), 3, record=4)
    for record in (10, 10.001):  # the records of the inserts may have the time of the truncate's
        inserts = [event("c", number, (number, 7), 9, record=record) for number in range(1, 3)]
        rows = [before, event("t", 0, (0, 0), 9, record=10), *inserts]
        assert spans(rows) == [("c0", 3, 9), ("c1", 9, None), ("c2", 9, None)]


def test_a_row_before_the_truncate_of_its_transaction_ends() -> None:
    earlier = event("c", 1, (1, 0), 9, record=10, lsn=100)
    by_record = event("t", 0, (0, 0), 9, record=10.001, lsn=50)
    assert spans([earlier, by_record]) == [("c1", 9, 9)]
    by_log = event("t", 0, (0, 0), 9, record=10, lsn=150)
    assert spans([earlier, by_log]) == [("c1", 9, None)]  # the table does not have the log's places
    assert spans([earlier, by_log], SOURCE) == [("c1", 9, 9)]
    assert spans([earlier, by_record], SOURCE) == [("c1", 9, None)]
    unplaced = {**by_record, "_source": None}
    assert spans([earlier, unplaced], SOURCE) == [("c1", 9, 9)]


def test_a_tombstone_behind_its_delete_has_the_time_of_that() -> None:
    """A connector that is an hour late: its tombstones have the time of the records."""
    hour = 3600.0
    rows = [
        event("r", 1, (0, 0), 5, record=hour + 5),
        event("d", 1, (0, 1), 10, record=hour + 10),
        event("d", 1, (0, 2), hour + 10, record=hour + 10),
        event("c", 1, (0, 3), 10, record=hour + 10),
        event("u", 1, (0, 4), 20, record=hour + 20),
    ]
    assert spans(rows) == [("c1", 10, 20), ("r1", 5, 10), ("u1", 20, None)]
    truncate = event("t", 0, (1, 0), 1800, record=hour + 1800)
    assert spans([*rows, truncate]) == [("c1", 10, 20), ("r1", 5, 10), ("u1", 20, 1800)]
    moved = {**rows[3], "_kafka_partition": 2}
    assert spans([*rows[:3], moved]) == [("c1", 10, None), ("r1", 5, 10)]


def test_a_tombstone_without_its_delete_ends_the_row() -> None:
    """Compaction may have removed the delete: the record's time is all that is known."""
    rows = [event("c", 1, (0, 0), 10, record=12), event("d", 1, (0, 1), 30, record=30)]
    assert spans([*rows, event("d", 1, (0, 2), 40, record=40)]) == [("c1", 10, 30)]
    again = event("d", 1, (0, 2), 40, record=45)  # of the source, which is no tombstone
    assert spans([*rows, again, event("c", 1, (0, 3), 35, record=50)]) == [("c1", 10, 30), ("c1", 40, None)]


@pytest.mark.parametrize("engine", list(SqlEngine))
def test_names_are_those_of_the_engine(engine: SqlEngine) -> None:
    quote = "`" if engine is SqlEngine.SPARK else '"'
    query = changelog(UNAVAILABLE).history(engine, "T")
    assert f"{quote}line it's{quote}" in query
    assert ('"_KAFKA_OFFSET"' if engine is SqlEngine.SNOWFLAKE else f"{quote}_kafka_offset{quote}") in query
    ordered = changelog(ORDERS["several"][0]).history(engine, "T")
    dot = ('"_ORDER":"version"', "`_order`.`version`", '"_order"."version"')
    assert dot[0 if engine is SqlEngine.SNOWFLAKE else 1 if engine is SqlEngine.SPARK else 2] in ordered
    assert "IGNORE NULLS" in query
    known = "contains(" if engine in (SqlEngine.TRINO, SqlEngine.ATHENA) else "array_contains("
    assert known in (query.lower() if engine is SqlEngine.SNOWFLAKE else query)


@pytest.mark.parametrize("case", ["one", "several", "none"])
def test_databricks_parses_the_text_of_spark(case: str) -> None:
    """No engine of Databricks runs here. What its parser does not know it would take as a command."""
    more = [ORDERS[case][0]] if case in ORDERS else [UNAVAILABLE]
    table = changelog(*more)
    for query in (table.history(SqlEngine.SPARK, "lake.shop.orders"), table.state(SqlEngine.SPARK, "lake.shop.orders")):
        (parsed,) = sqlglot.parse(query, read="databricks")
        assert isinstance(parsed, sqlglot.exp.Query)


def test_a_state_before_no_offset_is_empty() -> None:
    arrow = table_of(made(1), [field.name for field in COLUMNS])
    assert by_duckdb(changelog().state(SqlEngine.DUCKDB, "changelog", {}), arrow) == []


def test_only_a_changelog_has_these_queries() -> None:
    schema = schema_json(Struct(COLUMNS))
    properties = ledger.mode_properties(ledger.CHANGELOG, (), key=(1, 2))
    assert ChangelogTable.of("s.t", schema, properties) == ChangelogTable(row_type(schema), KEY)
    renamed = schema_json(Struct((replace(COLUMNS[0], name="number"), *COLUMNS[1:])))
    assert ChangelogTable.of("s.t", renamed, properties).key == ("number", "line it's")
    with pytest.raises(InvalidInput, match="lacks a column of its key: dropped column 99"):
        ChangelogTable.of("s.t", schema, ledger.mode_properties(ledger.CHANGELOG, (), key=(1, 99)))
    for other in ({}, ledger.mode_properties(ledger.UPSERT, ("at",))):
        with pytest.raises(InvalidInput, match="which keeps no history"):
            ChangelogTable.of("s.t", schema, other)
    with pytest.raises(InvalidInput, match="a column valid_to of its own"):
        ChangelogTable.of("s.t", schema_json(Struct((*COLUMNS, Field("valid_to", TEXT)))), properties)
