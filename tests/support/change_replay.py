"""What the queries of a changelog must return: its rows applied one after the other, in memory."""

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


def _begun(changes: Sequence[Row], *, ordered: bool) -> list[tuple[Any, Row]]:
    """Return the changes of a key in their order, each with its begin: time never goes back in a partition."""
    place = lambda row: (row["_kafka_partition"], row["_kafka_offset"])  # noqa: E731
    if ordered:
        orders = lambda row: row["_order"] if isinstance(row["_order"], tuple) else (row["_order"],)  # noqa: E731
        return [(orders(row)[0], row) for row in sorted(changes, key=lambda row: (*orders(row), *place(row)))]
    newest: dict[int, Any] = {}
    begun = []
    for row in sorted(changes, key=place):
        partition, at = row["_kafka_partition"], row["_changed_at"]
        newest[partition] = max(at, newest.get(partition, at))
        begun.append((newest[partition], row))
    return sorted(begun, key=lambda one: (one[0], *place(one[1])))


def _cut(row: Row, begin: Any, truncates: Iterable[Row]) -> Any:
    """Return when the first truncate behind a row ended it: by offset in its partition, by time in others."""
    behind = [
        each["_changed_at"]
        for each in truncates
        if (
            each["_kafka_offset"] > row["_kafka_offset"]
            if each["_kafka_partition"] == row["_kafka_partition"]
            else each["_changed_at"] >= begin
        )
    ]
    return max(min(behind), begin) if behind else None
