"""The rows of a statement over the tables of declared pipelines."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from frazil.declaration import Pipeline
from frazil.errors import CatalogUnavailable, InvalidInput
from frazil.inference.sample import installed
from frazil.lake.read.stored_tables import Lake, StoredTable
from frazil.local.duckdb_query import EXTENSIONS, session
from frazil.local.query.table_views import View, create, load, needed, needs_s3, readable, statement_of, views

_DO = "Write one SELECT, WITH, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN"


def check_statement(text: str) -> None:
    """Raise `InvalidInput` if the text is not one statement that only reads."""
    duckdb = installed()
    try:
        text.encode()
        found = duckdb.extract_statements(text)
    except UnicodeEncodeError:
        raise InvalidInput("the text is not UTF-8", where="SQL", do="Write it as UTF-8") from None
    except duckdb.Error as error:
        raise sql_error(error) from None
    if len(found) != 1:
        what = "there is no statement" if not found else "there are several statements, or a PIVOT without IN"
        raise InvalidInput(what, where="SQL", do=_DO)
    kind: str = found[0].type.name
    if kind == "EXPLAIN":
        kind = _explained(text)
    if kind != "SELECT":
        raise InvalidInput(f"a statement {kind} does more than read", where="SQL", do=_DO)


def sql_error(error: Exception) -> InvalidInput:
    """Return DuckDB's error about a statement, without its drawing of the place."""
    lines = [line.strip() for line in str(error).split("\nLINE ")[0].splitlines() if line.strip()]
    return InvalidInput(" ".join(lines)[:500].rstrip(".!"), where="SQL")


def _explained(text: str) -> str:
    """Return the type of the statement that is explained: EXPLAIN ANALYZE would run it."""
    duckdb = installed()
    for position, _ in duckdb.tokenize(text):
        try:
            found = duckdb.extract_statements(text.encode()[position:].decode())
        except (duckdb.Error, UnicodeDecodeError):
            continue
        if len(found) == 1 and found[0].type.name != "EXPLAIN":
            return str(found[0].type.name)
    return "EXPLAIN"


ROWS = 100
"""The most rows of a statement, unless another number is asked for."""
FIRST_ROWS = 20
"""The same of a table that is named without a statement."""

_NUMBER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*")
_UNPRINTABLE = re.compile(r"\b(VARIANT|UHUGEINT|BIT|BIGNUM|TIME WITH TIME ZONE)\b")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an answer: its name, and DuckDB's name of its type."""

    name: str
    type: str

    @property
    def is_number(self) -> bool:
        """True if its values are numbers."""
        return _NUMBER.fullmatch(self.type) is not None


@dataclass(frozen=True, slots=True)
class Answer:
    """Columns and rows. `has_more` if the statement has more rows than were asked for."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    has_more: bool


def answer(question: str, pipelines: Iterable[Pipeline], lake: Lake, *, limit: int | None = None) -> Answer:
    """Return at most `limit` rows of a statement, or of a table that is named instead.

    Raises `InvalidInput` for a statement that is wrong or does more than read, `CatalogUnavailable` if files cannot be read.
    """
    found = views(pipelines)
    of_table = statement_of(question.strip(), found)
    statement = of_table or question
    most = limit or (FIRST_ROWS if of_table else ROWS)
    duckdb = installed()
    check_statement(statement)
    wanted = needed(found, statement)
    loaded = load(lake, wanted)
    tables = {name: table for name, table in loaded.items() if table is not None}
    extensions = EXTENSIONS if needs_s3(tables.values()) else tuple(name for name in EXTENSIONS if name != "httpfs")
    with session(extensions if tables else ()) as connection:
        try:
            create(connection, wanted, tables)
            if of_table:
                statement = readable(connection, of_table)
        except duckdb.Error as error:
            raise _unreadable(error) from None
        try:
            reader = connection.execute(statement)
            described = reader.description or ()
            columns = tuple(Column(str(one[0]), str(one[1])) for one in described)
            _refuse_unprintable(columns)
            rows = _rows(reader, most + 1)
        except (duckdb.IOException, duckdb.HTTPException) as error:
            raise _unreadable(error) from None
        except duckdb.CatalogException as error:
            raise _unknown(sql_error(error), wanted, loaded) from None
        except duckdb.Error as error:
            raise sql_error(error) from None
    return Answer(columns, tuple(rows[:most]), len(rows) > most)


def _unknown(wrong: InvalidInput, wanted: Iterable[View], loaded: Mapping[str, StoredTable | None]) -> InvalidInput:
    """Return the error about a name, with the tables that exist, or how those that are missing come to exist."""
    absent = [view for view in wanted if loaded[view.table] is None and view.is_main]
    there = [view.table for view in wanted if loaded[view.table] is not None]
    runs = [f"{view.table} does not exist yet: `frazil run {view.pipeline} --once` creates it" for view in absent]
    listed = [f"Tables are {', '.join(dict.fromkeys(there))}"] if there else []
    return InvalidInput(wrong.what, where=wrong.where, do=". ".join(dict.fromkeys([*runs, *listed])))


def _rows(reader: Any, count: int) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for batch in reader.to_arrow_reader(min(count, 2048)):
        columns = [[_value(scalar) for scalar in column.slice(0, count - len(rows))] for column in batch.columns]
        rows += zip(*columns, strict=True)
        if len(rows) >= count:
            break
    return rows


def _value(scalar: Any) -> Any:
    """Return a value as JSON has it: texts for what JSON does not know, and for NaN and infinity."""
    import pyarrow as pa

    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_struct(kind):
        return {name: _value(member) for name, member in scalar.items()}
    if pa.types.is_map(kind):
        return [{"key": _value(pair["key"]), "value": _value(pair["value"])} for pair in scalar.values]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [_value(member) for member in scalar.values]
    try:
        value = None if pa.types.is_timestamp(kind) and kind.unit == "ns" else scalar.as_py()
    except (OverflowError, ValueError):  # a year that Python does not have
        value = None
    if value is None:
        return scalar.cast(pa.string()).as_py()
    match value:
        case bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return "".join(chr(byte) if 32 <= byte < 127 and byte != 92 else f"\\x{byte:02X}" for byte in value)
        case datetime():
            return value.isoformat(sep=" ")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case Decimal() if pa.types.is_decimal(kind) and kind.scale == 0:
            return int(value)  # sums of integers are of 128 bits, which Arrow has as decimals
        case (int(months), int(days), int(nanoseconds)):
            return f"{months} months {days} days {timedelta(microseconds=nanoseconds // 1000)}"
        case _:
            return str(value)


def _refuse_unprintable(columns: Iterable[Column]) -> None:
    """Raise `InvalidInput` for a column whose type Arrow does not have, or of which it would make another value."""
    for column in columns:
        if found := _UNPRINTABLE.search(re.sub('"[^"]*"', "", column.type)):
            what = f"the column {column.name} is of type {found[0]}, which cannot be printed"
            raise InvalidInput(what, where="SQL", do=f"Cast it to {'JSON' if found[0] == 'VARIANT' else 'VARCHAR'}")


def _unreadable(error: Exception) -> CatalogUnavailable:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return CatalogUnavailable(" ".join(lines[:2]), where="files of the tables", do="Check the object store's settings")
