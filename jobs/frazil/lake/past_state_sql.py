"""SQL over a table of current state and its history: the state as it was before offsets. Pure: text from the table's columns.

It is the state without the changes behind that point: the rows of keys that have none, and the rows before the first of them for
the others. The changes of the history are those of the newest days, so a point before the first of them is unknown. Where offsets
went back, they name commits of the topic as it is now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from frazil.errors import InvalidInput
from frazil.lake import ledger
from frazil.lake.history.history_columns import BEFORE, END, SEQUENCE, STATE_NAMES, state_names
from frazil.lake.history.history_ledger import HISTORY, Recorded, is_undone
from frazil.lake.history.set_backs import SetBack, present_from
from frazil.lake.offsets import Offsets
from frazil.lake.read.stored_tables import StoredTable
from frazil.lake.sql_engine import SqlEngine
from frazil.schemas.iceberg import column_names, field_ids, identifier_fields

_LATER, _LAST, _NUMBER = "_frazil_later", "_frazil_last", "_frazil_number"
UNKNOWN = "the history has no change at or before these offsets, so the state there is unknown"


@dataclass(frozen=True, slots=True)
class StateColumn:
    """A column of the state, by the names that it has in both tables: in the history itself, and in its rows before a change.

    A name is None if the history has no such column. Values of before are null then.
    """

    name: str
    changed: str | None
    before: str | None


@dataclass(frozen=True, slots=True)
class PastState:
    """A table of current state and its history: columns, key, the offsets that it `held`, and a snapshot of each of one commit.

    `set_backs` are as in `HistoryAccount`.
    """

    columns: tuple[StateColumn, ...]
    key: tuple[str, ...]
    held: Mapping[int, int]
    set_backs: tuple[SetBack, ...]
    state_snapshot: int
    history_snapshot: int

    @classmethod
    def of(
        cls, pipeline: str, state: StoredTable, history: StoredTable | None, name: str, *, is_at_snapshots: bool
    ) -> PastState:
        """Return it. Raises `InvalidInput` if the table has no history, or one of another table.

        `is_at_snapshots` says that the query reads both tables at their snapshots: by the names of then. Else it reads them as they
        are now.
        """
        newest = history.newest(pipeline) if history is not None else None
        if history is None or newest is None or history.properties.get(ledger.WRITE_MODE) != HISTORY:
            raise InvalidInput(
                "the table has no history yet",
                where=f"table {name}",
                do=f"Declare write=Upsert(history=History(keep_days=…)), and run `frazil run {pipeline}`",
            )
        last = Recorded.of(newest.entry)
        if last.table_uuid != state.uuid or last.snapshot_id not in state.snapshots or is_undone(state, last):
            raise InvalidInput(
                "the history is not of the table's present rows",
                where=f"table {name}",
                do=f"Run `frazil run {pipeline}`",
            )
        recorded = state.schema_at(last.snapshot_id)
        schema = recorded if is_at_snapshots else state.schema
        read = history.schema_at(newest.id) if is_at_snapshots else history.schema
        return cls(
            columns=_columns(schema, recorded, history, read),
            key=tuple(identifier_fields(schema)),
            held=Offsets.parse(newest.entry.summary[ledger.END]).at,
            set_backs=last.account.set_backs,
            state_snapshot=last.snapshot_id,
            history_snapshot=newest.id,
        )

    def query(self, engine: SqlEngine, state: str, history: str, at: Mapping[int, int]) -> str:
        """Return the query of the rows that the table had when it held the records before these offsets, by partition.

        It is that of the last commit that ended there or before; of a partition that is not named, no record counts. `state` and
        `history` are SQL of both tables as they were at one commit. The query fails if the history has no change so early. Raises
        `InvalidInput` if offsets went back, and these may be those of before.
        """
        q = engine.quoted
        sequence, end = q(SEQUENCE.name), q(END.name)
        ends = {partition: engine.number_in(end, str(partition)) for partition in sorted({*self.held, *at})}
        is_later = " OR ".join(f"COALESCE({ended}, 0) > {at.get(partition, 0):d}" for partition, ended in ends.items())
        if since := present_from(self.set_backs, at, self.held):
            is_later = f"{sequence} > {since:d} AND ({is_later})"
        last = f"MAX(CASE WHEN {_LATER} THEN NULL ELSE {sequence} END)"
        changed = {column.name: column.changed or column.name for column in self.columns}
        key = ", ".join(q(changed[name]) for name in self.key)
        same = " AND ".join(f"l.{q(changed[name])} = s.{q(name)}" for name in self.key)
        rows = ", ".join(f"s.{q(column.name)}" for column in self.columns)
        before = ", ".join(
            f"{engine.field(BEFORE, column.before) if column.before is not None else 'NULL'} AS {q(column.name)}"
            for column in self.columns
        )
        return (
            f"WITH changes AS (\n  SELECT *, ({is_later}) AS {_LATER}\n  FROM {history}\n),\n"
            f"point AS (\n  SELECT CASE WHEN COUNT(CASE WHEN {_LATER} THEN NULL ELSE 1 END) = 0\n"
            f"    THEN {engine.fails(UNKNOWN)} ELSE {last} END AS {_LAST}\n  FROM changes\n),\n"
            f"later AS (\n  SELECT c.*, ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {sequence}) AS {_NUMBER}\n"
            f"  FROM changes c CROSS JOIN point p\n  WHERE c.{sequence} > p.{_LAST}\n)\n"
            f"SELECT {rows}\nFROM {state} s\nWHERE NOT EXISTS (SELECT 1 FROM later l WHERE {same})\n"
            f"UNION ALL\nSELECT {before}\nFROM later\nWHERE {_NUMBER} = 1 AND {q(BEFORE)} IS NOT NULL"
        )


def _columns(
    schema: Mapping[str, Any], recorded: Mapping[str, Any], history: StoredTable, read: dict[str, Any]
) -> tuple[StateColumn, ...]:
    """Return the columns of a schema of the state, with their names in a schema of its history, which is `read`.

    The history knows the names of the state's columns by field id, as they were when it followed. A column that it does not know
    has its own name there if the state had it in the `recorded` commit: it was dropped later. If another column has the name since,
    that counts only for reads of what was before. A column that came later has no values of before.
    """
    known, ids, held = state_names(history.properties.get(STATE_NAMES)), field_ids(history.schema), field_ids(read)
    paths = {number: path for path, number in held.items()}
    then = column_names(recorded)

    def named(number: int, name: str, image: str) -> str | None:
        path = known.get(number)
        if path is None and number in then:
            if name in known.values():
                was_then = held.get(f"{image}{name}") not in (None, ids.get(f"{image}{name}"))
                return name if was_then else None
            path = name
        found = paths.get(ids.get(f"{image}{path}", 0)) if path is not None else None
        return found.removeprefix(image) if found is not None else None

    return tuple(
        StateColumn(name, named(number, name, ""), named(number, name, f"{BEFORE}."))
        for number, name in ((field["id"], field["name"]) for field in schema["fields"])
    )
