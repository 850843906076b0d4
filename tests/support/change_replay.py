"""What the queries of a changelog must return: its rows applied one after the other, in memory.

A row that its maker marked with `is_tombstone` is the tombstone behind Debezium's `d`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
Interval = tuple[tuple[Any, ...], Any, Any]
"""The values of the columns, and from when until when they were valid."""


def intervals(
    rows: Sequence[Row], key: Sequence[str], columns: Sequence[str], *, ordered: bool = False
) -> list[Interval]:
    """Return the interval of each row that writes. A left-out value is the last one of its key that is not null, up to a delete."""
    found: list[Interval] = []
    truncates = [row for row in rows if row["_op"] == "t"]
    for changes in _by_key(rows, key).values():
        begun = _begun(changes, ordered=ordered)
        known: dict[str, Any] = {}
        for number, (begin, row) in enumerate(begun):
            if row["_op"] == "d":
                known = {}
                continue
            left_out = row.get("_unavailable") or ()
            values = {name: known.get(name) if name in left_out else row[name] for name in columns}
            known |= {name: value for name, value in values.items() if value is not None}
            end = begun[number + 1][0] if number + 1 < len(begun) else None
            cut = _cut(row, begin, truncates)
            if cut is not None and (end is None or cut < end):
                end = cut
            found.append((tuple(values[name] for name in columns), begin, end))
    return found


def state(rows: Sequence[Row], key: Sequence[str], columns: Sequence[str], **how: bool) -> list[tuple[Any, ...]]:
    """Return the rows that are valid now."""
    return [values for values, _, end in intervals(rows, key, columns, **how) if end is None]


def landed(rows: Iterable[Row], at: Mapping[int, int]) -> list[Row]:
    """Return the rows before these offsets, by partition."""
    return [row for row in rows if row["_kafka_offset"] < at.get(row["_kafka_partition"], 0)]


def _by_key(rows: Iterable[Row], key: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["_op"] != "t":
            found.setdefault(tuple(row[name] for name in key), []).append(row)
    return found


def _place(row: Row) -> tuple[int, int]:
    return row["_kafka_partition"], row["_kafka_offset"]


def _orders(row: Row) -> tuple[Any, ...]:
    return row["_order"] if isinstance(row["_order"], tuple) else (row["_order"],)


def _begun(changes: Sequence[Row], *, ordered: bool) -> list[tuple[Any, Row]]:
    """Return the changes of a key in their order, each with its begin: time never goes back in a partition.

    A tombstone behind a `d` happened when that did.
    """
    if ordered:
        return [(_orders(row)[0], row) for row in sorted(changes, key=lambda row: (*_orders(row), *_place(row)))]
    newest: dict[int, Any] = {}
    ops: dict[int, str] = {}
    begun = []
    for row in sorted(changes, key=_place):
        partition, at = row["_kafka_partition"], row["_changed_at"]
        if row.get("is_tombstone") and ops.get(partition) == "d":
            at = newest[partition]
        newest[partition] = max(at, newest.get(partition, at))
        ops[partition] = row["_op"]
        begun.append((newest[partition], row))
    return sorted(begun, key=lambda one: (one[0], *_place(one[1])))


def _cut(row: Row, begin: Any, truncates: Iterable[Row]) -> Any:
    """Return when the first truncate behind a row ended it: by offset in its partition, by time in others."""
    behind = [each["_changed_at"] for each in truncates if _is_before(row, begin, each)]
    return max(min(behind), begin) if behind else None


def _is_before(row: Row, begin: Any, truncate: Row) -> bool:
    """Return whether a truncate is behind a row. Of one source time, the log decides, then the records' times; else it is not."""
    if truncate["_kafka_partition"] == row["_kafka_partition"]:
        return bool(row["_kafka_offset"] < truncate["_kafka_offset"])
    if begin != truncate["_changed_at"]:
        return bool(begin < truncate["_changed_at"])
    mine, its = (each.get("_source") or {} for each in (row, truncate))
    if mine.get("lsn") is not None and its.get("lsn") is not None:
        return bool(mine["lsn"] < its["lsn"])
    return bool(row["_kafka_timestamp"] < truncate["_kafka_timestamp"])
