"""States of a table as its history gives them, by Spark and DuckDB, against those that the table had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from frazil.clients.secrets import Secrets
from frazil.lake.changelog_views import table_name
from frazil.lake.past_state_sql import PastState
from frazil.lake.read.stored_tables import Lake
from frazil.lake.sql_engine import SqlEngine
from frazil.local.duckdb_query import ask
from tests.support.shop import Shop

SHOWN = ("_kafka_key", "user")
Rows = list[tuple[Any, ...]]


@dataclass
class PastStates:
    """The states of a shop's table, as they were noted; each with the offsets behind its records."""

    shop: Shop
    noted: list[tuple[Mapping[int, int], Rows]] = field(default_factory=list)

    def note(self) -> None:
        """Note the state that the table has now."""
        table = Lake(self.shop.lake, Secrets({}).read).table(self.shop.pipeline.table.identifier)
        newest = table.newest(self.shop.pipeline.name) if table is not None else None
        assert newest is not None
        assert newest.entry.end is not None
        rows = sorted(tuple(row[name] for name in SHOWN) for row in self.shop.landed())
        self.noted.append((newest.entry.end.at, rows))

    def check(self) -> None:
        """Check that each of them is what the printed queries return."""
        for at, rows in self.noted:
            assert self.by_spark(at) == rows, at
            assert self.by_duckdb(at) == rows, at

    def by_spark(self, at: Mapping[int, int]) -> Rows:
        """Return the state before these offsets, as Spark has it."""
        found = self.shop.spark.sql(self.named(SqlEngine.SPARK, at)).toArrow().to_pylist()
        return sorted(tuple(row[name] for name in SHOWN) for row in found)

    def named(self, engine: SqlEngine, at: Mapping[int, int]) -> str:
        """Return the query of the state before these offsets, with the tables as the command names them."""
        past, table, catalog = self._past(), self.shop.pipeline.table, self.shop.job().iceberg.name
        state = engine.at_snapshot(table_name(engine, catalog, table.identifier), past.state_snapshot)
        history = engine.at_snapshot(table_name(engine, catalog, table.history), past.history_snapshot)
        names = ", ".join(f"q.{engine.quoted(name)}" for name in SHOWN)
        return f"SELECT {names} FROM ({past.query(engine, state, history, at)}) q"

    def by_duckdb(self, at: Mapping[int, int]) -> Rows:
        """Return the state before these offsets, as DuckDB has it."""
        lake, table = Lake(self.shop.lake, Secrets({}).read), self.shop.pipeline.table
        locations = [
            found.version.removeprefix("file://")
            for name in (table.identifier, table.history)
            if (found := lake.table(name)) is not None
        ]
        state, history = (f"iceberg_scan('{location}')" for location in locations)
        query = self._past().query(SqlEngine.DUCKDB, state, history, at)
        names = ", ".join(f'q."{name}"' for name in SHOWN)
        return sorted(ask(locations[0], f"SELECT {names} FROM ({query}) q")[1])

    def _past(self) -> PastState:
        lake, pipeline = Lake(self.shop.lake, Secrets({}).read), self.shop.pipeline
        history, state = lake.table(pipeline.table.history), lake.table(pipeline.table.identifier)
        assert state is not None
        return PastState.of(pipeline.name, state, history, pipeline.table.history)
