"""The tables of declared pipelines as views of a DuckDB session: which ones a statement needs, and how their files are read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from frazil.clients.daemon_threads import DaemonThreads
from frazil.clients.tokens import default_credentials
from frazil.declaration import Pipeline
from frazil.errors import CatalogUnavailable, InvalidInput
from frazil.lake.read.stored_tables import Lake, StoredTable
from frazil.local.duckdb_query import identifier, know_store, literal, scan

_PATHS = ("write.data.path", "write.object-storage.path", "write.metadata.path")
_S3 = ("s3", "s3a", "s3n")
_AT_ONCE = 8
LONGEST_SECONDS = 30.0
"""The time that the catalog may take to answer for all tables."""


@dataclass(frozen=True, slots=True)
class View:
    """A name of a table in SQL: its identifier, or in the schema `main` the name of its pipeline."""

    schema: str
    name: str
    table: str
    """The table's identifier in the catalog."""
    pipeline: str
    is_main: bool
    """True for the pipeline's table, not its dead letters."""

    @property
    def sql_name(self) -> str:
        """The name, quoted."""
        return f"{identifier(self.schema)}.{identifier(self.name)}"


def views(pipelines: Iterable[Pipeline]) -> tuple[View, ...]:
    """Return the views of all tables that pipelines write; no name is of two, and an identifier counts before a pipeline's."""
    found: dict[tuple[str, str], View] = {}
    by_pipeline: list[View] = []
    for pipeline in pipelines:
        for table in pipeline.tables:
            namespace, _, name = table.partition(".")
            suffix = table.removeprefix(pipeline.table.identifier)
            facts = (table, pipeline.name, not suffix)
            found.setdefault((namespace, name), View(namespace, name, *facts))
            by_pipeline.append(View("main", f"{pipeline.name}{suffix}", *facts))
    for view in by_pipeline:
        found.setdefault((view.schema, view.name), view)
    return tuple(found.values())


def needed(found: Iterable[View], statement: str) -> tuple[View, ...]:
    """Return the views whose names are words of a statement, all if it has none: it may list them, or misspell one.

    A column of a table's name costs a question to the catalog, and no name is missed.
    """
    words = {word.lower() for word in re.findall(r"\w+", statement)}
    everything = tuple(found)
    return tuple(view for view in everything if view.name in words) or everything


def load(lake: Lake, wanted: Iterable[View]) -> dict[str, StoredTable | None]:
    """Return the tables of views by their identifiers, a few at a time; None for one that does not exist yet.

    Raises `CatalogUnavailable`, also if the catalog has no answer within `LONGEST_SECONDS`: its client waits without an end.
    """
    names = list(dict.fromkeys(view.table for view in wanted))
    if not names:
        return {}
    threads, end = DaemonThreads(min(_AT_ONCE, len(names)), name="tables"), monotonic() + LONGEST_SECONDS
    try:
        first = threads.submit(partial(lake.table, names[0])).result(LONGEST_SECONDS)  # connects, once
        others = [threads.submit(partial(lake.table, name)) for name in names[1:]]
        found = [first, *(answer.result(max(end - monotonic(), 0)) for answer in others)]
    except TimeoutError:
        what = f"the catalog has no answer within {LONGEST_SECONDS:g} s"
        raise CatalogUnavailable(
            what, where="catalog", do="Check the network and the service: `frazil doctor`"
        ) from None
    return dict(zip(names, found, strict=True))


def needs_s3(tables: Iterable[StoredTable]) -> bool:
    """Return whether files of a table are in S3."""
    return any(urlsplit(place).scheme in _S3 for table in tables for place in places(table))


def places(table: StoredTable) -> tuple[str, ...]:
    """Return the folders that hold a table's files."""
    given = (table.properties.get(name) for name in _PATHS)
    metadata = table.version.rpartition("/")[0]
    return tuple(dict.fromkeys(place.rstrip("/") for place in (table.location, metadata, *given) if place))


def create(connection: Any, wanted: Iterable[View], tables: Mapping[str, StoredTable]) -> None:
    """Create the views of tables that exist, then close the session: it reads the folders of these tables and nothing else."""
    folders: list[str] = []
    for table in tables.values():
        for place in places(table):
            if urlsplit(place).scheme in _S3:
                _know(connection, table, f"{place}/")
            folders.append(f"{place.removeprefix('file://')}/")
    connection.execute(f"SET allowed_directories = [{', '.join(map(literal, dict.fromkeys(folders)))}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    for view in wanted:
        if view.table in tables:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {identifier(view.schema)}")
            connection.execute(f"CREATE VIEW {view.sql_name} AS {scan(tables[view.table].version)}")


def readable(connection: Any, rows: str) -> str:
    """Return the query of a table's rows with JSON in place of its variants, which have no printed form."""
    described = connection.execute(f"DESCRIBE {rows}").fetchall()
    variants = [identifier(str(name)) for name, kind, *_ in described if kind == "VARIANT"]
    if not variants:
        return rows
    # The cast alone makes the text null of no value.
    replaced = ", ".join(f"CASE WHEN {name} IS NOT NULL THEN {name}::JSON END AS {name}" for name in variants)
    return rows.replace("*", f"* REPLACE ({replaced})", 1)


def _know(connection: Any, table: StoredTable, scope: str) -> None:
    """Give the session the keys of a table's files, as PyIceberg has them: from the environment, or lent by the catalog.

    Without such keys, those of AWS's default chain.
    """
    given = {name: str(value) for name, value in table.iceberg.io.properties.items() if value}
    names = {"key_id": "access-key-id", "secret": "secret-access-key", "session_token": "session-token"}
    keys = {name: given.get(f"s3.{named}", "") for name, named in names.items()}
    if not keys["key_id"]:
        keys = _default_chain(table.identifier)
    is_path_style = given.get("s3.force-virtual-addressing", "").lower() == "false"
    region = given.get("s3.region") or given.get("client.region")
    know_store(
        connection, endpoint=given.get("s3.endpoint"), region=region, is_path_style=is_path_style, scope=scope, **keys
    )


def _default_chain(table: str) -> dict[str, str]:
    from botocore.exceptions import BotoCoreError

    try:
        found = default_credentials()
    except BotoCoreError as error:
        raise CatalogUnavailable(str(error), where=f"table {table}", do="Log in to AWS") from None
    if found is None:
        do = "Log in to AWS, or name keys in the environment's object_store"
        raise CatalogUnavailable("AWS's default chain has no credentials", where=f"table {table}", do=do)
    keys = found.get_frozen_credentials()
    return {"key_id": keys.access_key or "", "secret": keys.secret_key or "", "session_token": keys.token or ""}


def statement_of(word: str, found: Iterable[View]) -> str | None:
    """Return the query of a table's rows if the argument is a name of it and no statement.

    None for a statement. Raises `InvalidInput` for one word that is neither.
    """
    if not re.fullmatch(r"\w+(\.\w+)?", word):
        return None
    schema, _, name = word.lower().rpartition(".")
    listed = tuple(found)
    for view in listed:
        if (view.schema, view.name) == (schema or "main", name):
            return f"SELECT * FROM {view.sql_name}"  # noqa: S608 - the name is quoted
    known = sorted(view.name for view in listed if view.schema == "main")
    raise InvalidInput(f"there is no pipeline or table {word}", do=f"Name one of {', '.join(known)}, or write SQL")
