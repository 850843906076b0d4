"""SQL over a changelog, for each engine: the time in which each row was valid, and the state. Pure: text from the table's columns.

A change is valid until the next change of its key. The order of a key's changes is that of `_order`, partition and offset; without
an order it is that of time, partition and offset, where time never goes back within a partition. Rows of deletes are omitted:
they end what was before them. A truncate ends the rows before it: by offset in its own partition, by time in others. Changes of
one transaction have one time in the source; there the source's log or the record's time decides, and a row stays if both are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frazil.errors import InvalidInput
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entry import Properties
from frazil.lake.sql.sql_engine import SqlEngine, Value
from frazil.schemas.iceberg import column_names, row_type
from frazil.schemas.metadata import CHANGED_AT, OP, ORDER, UNAVAILABLE
from frazil.schemas.types import Field, ListOf, MapOf, Primitive, Struct

VALID_FROM, VALID_TO = "valid_from", "valid_to"
HISTORY, STATE = "__history", "__state"
"""The suffixes of the views' names, after the name of the table."""
PARTITION, OFFSET, TIMESTAMP = "_kafka_partition", "_kafka_offset", "_kafka_timestamp"
SOURCE, LSN = "_source", "lsn"
_LIFE, _NEXT, _TRUNCATED, _TIME = "_frazil_life", "_frazil_next", "_frazil_truncated", "_frazil_time"
_SO_FAR = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


@dataclass(frozen=True, slots=True)
class ChangelogTable:
    """A changelog as far as its SQL depends on it: its columns, and those of the key."""

    columns: Struct
    key: tuple[str, ...]

    @classmethod
    def of(cls, identifier: str, schema: dict[str, Any], properties: Properties) -> ChangelogTable:
        """Raise `InvalidInput` for a table of another write mode, without its key, or with a column that the views add."""
        columns = row_type(schema)
        key, names = ledger.key_of(properties, column_names(schema)), {field.name for field in columns.fields}
        if properties.get(ledger.WRITE_MODE) != ledger.CHANGELOG or not key:
            raise InvalidInput(
                f"the table was made for write mode {ledger.made_for(properties)}, which keeps no history",
                where=f"table {identifier}",
                do="Name a pipeline with write=Changelog()",
            )
        if lost := set(key) - names:
            raise InvalidInput(
                f"the table lacks a column of its key: {', '.join(sorted(lost))}",
                where=f"table {identifier}",
                do="Name another table: the pipeline lands the topic into it from the declared start",
            )
        if taken := {VALID_FROM, VALID_TO} & names:
            raise InvalidInput(
                f"the table has a column {', '.join(sorted(taken))} of its own, which the views add",
                where=f"table {identifier}",
                do="Rename the field of the value",
            )
        return cls(columns, key)

    def history(
        self, engine: SqlEngine, table: str, at: Mapping[int, int] | None = None, until: Sequence[Value] = ()
    ) -> str:
        """Return the query of all rows with the time in which each was valid, `table` being SQL.

        `at` omits changes from these offsets on, by partition, and partitions that it does not name. `until` omits
        changes of a later order: it has a value for each column of the order, or for the first ones.
        """
        q, names = engine.quoted, [field.name for field in self.columns.fields]
        landed = f" AND {_before(engine, at)}" if at is not None else ""
        landed += (
            f" AND {_not_later(self._orders(engine), [engine.literal(value) for value in until])}" if until else ""
        )
        key = ", ".join(map(q, self.key))
        over = f"PARTITION BY {key} ORDER BY {self._sequence(engine)}"
        values = {name: q(name) for name in names}
        steps = self._changes(engine, table, landed)
        source = "changes"
        if filled := self._filled(engine):
            life = f"SUM(CASE WHEN {q(OP.name)} = 'd' THEN 1 ELSE 0 END) OVER ({over} {_SO_FAR})"
            steps.append(f"lives AS (\n  SELECT *, {life} AS {_LIFE}\n  FROM changes\n)")
            source = "lives"
            known = f"PARTITION BY {key}, {_LIFE} ORDER BY {self._sequence(engine)} {_SO_FAR}"
            for name, left_out in filled.items():
                value = f"CASE WHEN {left_out} THEN {engine.last_known(q(name), known)} ELSE {q(name)} END"
                values[name] = f"{value} AS {q(name)}"
        listed = ",\n    ".join(values.values())
        following = f"LEAD({VALID_FROM}) OVER ({over}) AS {_NEXT}"
        steps.append(f"intervals AS (\n  SELECT\n    {listed},\n    {VALID_FROM},\n    {following}\n  FROM {source}\n)")
        columns = ", ".join(f"i.{q(name)}" for name in names)
        until, joined = f"i.{_NEXT}", ""
        if self._has_changes:
            steps.append(self._truncated(engine, table, landed))
            until, joined = _ends(), _JOIN.format(p=q(PARTITION), o=q(OFFSET))
        chosen = f"SELECT {columns}, i.{VALID_FROM}, {until} AS {VALID_TO}\nFROM intervals i{joined}"
        return f"WITH {_COMMA.join(steps)}\n{chosen}\nWHERE i.{q(OP.name)} <> 'd'"

    def state(
        self, engine: SqlEngine, table: str, at: Mapping[int, int] | None = None, until: Sequence[Value] = ()
    ) -> str:
        """Return the query of the row that each key has now, or had before offsets, or at an order: as in `history`."""
        columns = ", ".join(f"h.{engine.quoted(field.name)}" for field in self.columns.fields)
        nested = self.history(engine, table, at, until).replace("\n", "\n  ")
        return f"SELECT {columns}, h.{VALID_FROM}\nFROM (\n  {nested}\n) h\nWHERE h.{VALID_TO} IS NULL"

    @property
    def order(self) -> tuple[Field, ...]:
        """The columns that order the changes of a key; none where offsets do."""
        order = next((field for field in self.columns.fields if field.name == ORDER), None)
        if order is None:
            return ()
        return order.type.fields if isinstance(order.type, Struct) else (order,)

    def _orders(self, engine: SqlEngine) -> list[str]:
        """Return what `_order` is made of; nothing where rows have no order."""
        return [engine.quoted(ORDER) if f.name == ORDER else engine.field(ORDER, f.name) for f in self.order]

    def _changes(self, engine: SqlEngine, table: str, landed: str) -> list[str]:
        """Return the steps that give each change its begin.

        Debezium's tombstone directly after the `d` of its key has the record's time. That is later than the change by the
        connector's lag, so it does not count: the changes after it would begin late.
        """
        orders, q = self._orders(engine), engine.quoted
        begin, source, steps = next(iter(orders), ""), table, list[str]()
        chosen = f"WHERE {q(OP.name)} <> 't'{landed}"
        if not orders:
            key, time = ", ".join(map(q, (*self.key, PARTITION))), q(CHANGED_AT.name)
            over = f"PARTITION BY {key} ORDER BY {q(OFFSET)}"
            if self._has_changes:
                before = f"LAG({q(OP.name)}) OVER ({over})"
                is_tombstone = f"{q(OP.name)} = 'd' AND {time} = {q(TIMESTAMP)} AND {before} = 'd'"
                timed = f"CASE WHEN {is_tombstone} THEN NULL ELSE {time} END AS {_TIME}"
                steps.append(f"timed AS (\n  SELECT *, {timed}\n  FROM {table}\n  {chosen}\n)")
                source, chosen, time = "timed", "", _TIME
            begin = f"MAX({time}) OVER ({over} {_SO_FAR})"
        lines = [f"SELECT *, {begin} AS {VALID_FROM}", f"FROM {source}", *([chosen] if chosen else [])]
        return [*steps, "changes AS (\n  " + "\n  ".join(lines) + "\n)"]

    @property
    def _has_changes(self) -> bool:
        """Return whether the rows are change data, which may have truncates, omitted values and tombstones after deletes."""
        return any(field.name == UNAVAILABLE.name for field in self.columns.fields)

    def _sequence(self, engine: SqlEngine) -> str:
        return ", ".join([*(self._orders(engine) or [VALID_FROM]), engine.quoted(PARTITION), engine.quoted(OFFSET)])

    def _filled(self, engine: SqlEngine) -> dict[str, str]:
        """Return the columns whose value a source may omit, with whether it did."""
        if not self._has_changes:
            return {}
        can_be = [f.name for f in self.columns.fields if isinstance(f.type, Primitive | ListOf | MapOf)]
        own = {*self.key, OP.name, CHANGED_AT.name, UNAVAILABLE.name, "_ingested_at"}
        names = [name for name in can_be if name not in own and not name.startswith("_kafka_")]
        return {name: engine.has(engine.quoted(UNAVAILABLE.name), name) for name in names}

    def _truncated(self, engine: SqlEngine, table: str, landed: str) -> str:
        p, o, at, op = map(engine.quoted, (PARTITION, OFFSET, CHANGED_AT.name, OP.name))
        is_later = f"c.{VALID_FROM} < t.{at} OR (c.{VALID_FROM} = t.{at} AND {self._precedes(engine)})"
        return (
            f"truncated AS (\n  SELECT c.{p}, c.{o}, MIN(t.{at}) AS {_TRUNCATED}\n  FROM changes c\n"
            f"  JOIN (SELECT * FROM {table} WHERE {op} = 't'{landed}) t\n"
            f"    ON (c.{p} = t.{p} AND c.{o} < t.{o}) OR (c.{p} <> t.{p} AND ({is_later}))\n"
            f"  GROUP BY c.{p}, c.{o}\n)"
        )

    def _precedes(self, engine: SqlEngine) -> str:
        """Return whether the change `c` was before the truncate `t` of the same time.

        PostgreSQL's truncate locks the table until its transaction ends, so places in the log have the order of the changes.
        """
        record = f"c.{engine.quoted(TIMESTAMP)} < t.{engine.quoted(TIMESTAMP)}"
        source = next((field.type for field in self.columns.fields if field.name == SOURCE), None)
        if not isinstance(source, Struct) or all(field.name != LSN for field in source.fields):
            return record
        lsn = engine.field(SOURCE, LSN)
        return f"COALESCE(c.{lsn} < t.{lsn}, {record})"


_COMMA = ",\n"
_JOIN = "\nLEFT JOIN truncated t ON i.{p} = t.{p} AND i.{o} = t.{o}"


def _ends() -> str:
    """Return the end of a row that a later change or a truncate ends, whichever comes first, and never before it begins."""
    by, following = f"t.{_TRUNCATED}", f"i.{_NEXT}"
    return (
        f"CASE\n  WHEN {by} IS NULL OR {following} <= {by} THEN {following}\n"
        f"  WHEN {by} < i.{VALID_FROM} THEN i.{VALID_FROM}\n  ELSE {by}\nEND"
    )


def _before(engine: SqlEngine, at: Mapping[int, int]) -> str:
    p, o = engine.quoted(PARTITION), engine.quoted(OFFSET)
    parts = [f"({p} = {partition:d} AND {o} < {offset:d})" for partition, offset in sorted(at.items())]
    return f"({' OR '.join(parts) or '1 = 0'})"


def _not_later(columns: Sequence[str], values: Sequence[str]) -> str:
    """Return whether the first of these columns are not after the values, in their order."""
    column, value = columns[0], values[0]
    if len(values) == 1:
        return f"{column} <= {value}"
    return f"({column} < {value} OR ({column} = {value} AND {_not_later(columns[1:], values[1:])}))"
