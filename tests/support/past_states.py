"""States of a table as its history gives them, by Spark and DuckDB, against those that the table had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from frazil.clients.secrets import Secrets
from frazil.declaration.catalogs import RestCatalog
from frazil.lake.changelog_views import table_name
from frazil.lake.past_state_sql import PastState
from frazil.lake.read.stored_tables import Lake
from frazil.lake.sql_engine import SqlEngine
from frazil.local.duckdb_query import ask, identifier, know_store, literal, session
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

    def check(self, shown: Sequence[str] = SHOWN, present: Sequence[str] = SHOWN) -> None:
        """Check that each of them is what the printed queries return. Columns have the names of the commit, and present ones."""
        for at, rows in self.noted:
            assert self.by_spark(at, shown) == rows, at
            assert self.by_duckdb(at, shown, is_at_snapshots=True) == rows, at
            assert self.by_duckdb(at, present) == rows, at

    def by_spark(self, at: Mapping[int, int], shown: Sequence[str] = SHOWN) -> Rows:
        """Return the state before these offsets, as Spark has it."""
        found = self.shop.spark.sql(self.named(SqlEngine.SPARK, at, shown)).toArrow().to_pylist()
        return sorted(tuple(row[name] for name in shown) for row in found)

    def named(self, engine: SqlEngine, at: Mapping[int, int], shown: Sequence[str] = SHOWN) -> str:
        """Return the query of the state before these offsets, with the tables as the command names them."""
        past, table = self.past(is_at_snapshots=True), self.shop.pipeline.table
        catalog = self.shop.job().iceberg.name
        state = engine.at_snapshot(table_name(engine, catalog, table.identifier), past.state_snapshot)
        history = engine.at_snapshot(table_name(engine, catalog, table.history), past.history_snapshot)
        names = ", ".join(f"q.{engine.quoted(name)}" for name in shown)
        return f"SELECT {names} FROM ({past.query(engine, state, history, at)}) q"

    def by_duckdb(self, at: Mapping[int, int], shown: Sequence[str] = SHOWN, *, is_at_snapshots: bool = False) -> Rows:
        """Return the state before these offsets, as DuckDB has it: by the metadata files as they are, or their snapshots."""
        lake, table = Lake(self.shop.lake, Secrets({}).read), self.shop.pipeline.table
        locations = [
            found.version.removeprefix("file://")
            for name in (table.identifier, table.history)
            if (found := lake.table(name)) is not None
        ]
        past = self.past(is_at_snapshots=is_at_snapshots)
        ids = (past.state_snapshot, past.history_snapshot)
        state, history = (
            f"iceberg_scan('{location}'{f', snapshot_from_id={snapshot}' * is_at_snapshots})"
            for location, snapshot in zip(locations, ids, strict=True)
        )
        query = past.query(SqlEngine.DUCKDB, state, history, at)
        names = ", ".join(f'q."{name}"' for name in shown)
        return sorted(ask(locations[0], f"SELECT {names} FROM ({query}) q")[1])

    def by_attached_duckdb(self, at: Mapping[int, int]) -> Rows:
        """Return the state before these offsets by the text that the command prints for DuckDB, with the REST catalog attached."""
        catalog, store, resolve = self.shop.lake.catalog, self.shop.lake.object_store, Secrets({}).read
        assert isinstance(catalog, RestCatalog)
        assert store is not None
        assert store.access_key_id is not None
        assert store.secret_access_key is not None
        with session() as connection:
            know_store(
                connection,
                endpoint=store.endpoint,
                region=store.region,
                is_path_style=store.path_style,
                access_key_id=resolve(store.access_key_id),
                secret_access_key=resolve(store.secret_access_key),
            )
            connection.execute(
                f"ATTACH {literal(catalog.warehouse)} AS {identifier(catalog.name)} (TYPE iceberg, "
                f"ENDPOINT {literal(catalog.uri)}, AUTHORIZATION_TYPE 'none', ACCESS_DELEGATION_MODE 'none')"
            )
            return sorted(connection.execute(self.named(SqlEngine.DUCKDB, at)).fetchall())

    def past(self, *, is_at_snapshots: bool) -> PastState:
        """Return the state and its history as they are."""
        lake, pipeline = Lake(self.shop.lake, Secrets({}).read), self.shop.pipeline
        history, state = lake.table(pipeline.table.history), lake.table(pipeline.table.identifier)
        assert state is not None
        return PastState.of(pipeline.name, state, history, pipeline.table.history, is_at_snapshots=is_at_snapshots)
