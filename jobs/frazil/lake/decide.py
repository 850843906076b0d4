"""Several tables, one decision: the first table's commit decides for the side tables too, and whoever comes next finishes.

The side tables' data files are named in a small JSON file in the first table's metadata folder, and the first table's commit
names that file (`frazil.side`). A side table's own summary carries the commit id of the decision that it has finished.
Nothing is decoded twice, so a crash or a new release in between changes no verdict.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from py4j.protocol import Py4JJavaError

from frazil.errors import CatalogUnavailable, Fenced, TableReplaced
from frazil.lake import ledger
from frazil.lake.fence import Batch
from frazil.lake.jvm import Iceberg, Java, ancestors, entries, thrown
from frazil.lake.ledger import Entry, Offsets
from frazil.lake.publish import ANCESTORS, Published, entry, publish
from frazil.lake.stage import Staged


def decide_and_finish(
    iceberg: Iceberg,
    staged: Staged,
    sides: Sequence[Staged],
    batch: Batch,
    *,
    clock: Callable[[], float] = time.time,
    wait: Callable[[float], None] = time.sleep,
    reach: Callable[[str], None] = lambda step: None,
) -> Published:
    """Publish `staged`, and with it the decision on `sides`; then append each of `sides` to its own table."""
    sides = [side for side in sides if not side.is_empty]
    if not sides:
        return publish(iceberg, staged, batch, clock=clock, wait=wait, reach=reach)
    table = iceberg.load(staged.table)
    # JSON, but called `.stats`: table buckets refuse files in `metadata/` whose ending is none of Iceberg's own, and readers
    # that search the folder take `.metadata.json` for the table's.
    location = f"{table.location()}/metadata/frazil-side-{batch.commit_id(staged.table_uuid)}-{batch.run}.stats"
    decision = _document(iceberg, staged, sides, batch)
    _write_once(iceberg, table, location, json.dumps(decision))
    reach("decide.written")
    published = publish(iceberg, staged, batch, extra={ledger.SIDE: location}, clock=clock, wait=wait, reach=reach)
    reach("decide.decided")
    _finish(iceberg, decision, batch, reach=reach, wait=wait)
    table.io().deleteFile(location)
    return published


def finish_open(
    iceberg: Iceberg,
    table: str,
    side_table: str,
    pipeline: str,
    *,
    run: str,
    version: str,
    reach: Callable[[str], None] = lambda step: None,
    wait: Callable[[float], None] = time.sleep,
) -> int:
    """Finish what the last decision on `table` left open for `side_table`; returns how many rows that appended.

    0 means that all was done. Raises `CatalogUnavailable` if the decision's file is gone before it was finished.
    """
    main = iceberg.load(table)
    last = entry(main, pipeline)
    if last is None or last.side is None or last.start is None or last.end is None:
        return 0
    batch = Batch(
        pipeline=pipeline,
        run=run,
        version=version,
        start=last.start,
        end=last.end,
        held=None,
        topic_id=last.end.topic_id,
    )
    if _is_finished(iceberg.load(side_table), pipeline, last.commit_id, last.end):
        return 0
    decision = _read(iceberg, main, last, side_table, pipeline)
    if decision is None:
        return 0
    rows = _finish(iceberg, decision, batch, reach=reach, wait=wait)
    main.io().deleteFile(last.side)
    return rows


def open_decision(iceberg: Iceberg, table: str, side_table: str, pipeline: str) -> tuple[str, ...] | None:
    """The files that the last decision on `table` still needs: its own, and the data files it names. None: it is finished.

    Raises `CatalogUnavailable` if it is open and its file cannot be read.
    """
    main = iceberg.load(table)
    last = entry(main, pipeline)
    if last is None or last.side is None or last.end is None:
        return None
    if iceberg.exists(side_table) and _is_finished(iceberg.load(side_table), pipeline, last.commit_id, last.end):
        return None
    decision = _read(iceberg, main, last, side_table, pipeline)
    if decision is None:
        return None
    return (last.side, *(file["file-path"] for side in decision["tables"] for file in side["files"]))


def _read(iceberg: Iceberg, main: Java, last: Entry, side_table: str, pipeline: str) -> dict[str, Any] | None:
    """The decision that `last` names; None if somebody else finished it just now."""
    try:
        parsed: dict[str, Any] = json.loads(iceberg.read_text(main, str(last.side)))
        return parsed
    except Py4JJavaError as error:
        if iceberg.exists(side_table) and _is_finished(iceberg.load(side_table), pipeline, last.commit_id, last.end):
            return None
        raise CatalogUnavailable(
            f"the last decision's file {last.side} cannot be read ({thrown(error)}), and its rows are not in {side_table} yet",
            where=f"pipeline {pipeline}, table {main.name()}",
            do="Restore the file from the bucket's versions, then run the pipeline again",
        ) from None


def _document(iceberg: Iceberg, staged: Staged, sides: Sequence[Staged], batch: Batch) -> dict[str, Any]:
    tables = []
    for side in sides:
        table = iceberg.load(side.table)
        tables.append(
            {
                "table": side.table,
                "uuid": side.table_uuid,
                "field_ids": side.field_ids,
                "rows": side.rows,
                "at": side.at,
                "files": [iceberg.file_json(table, f) for f in side.files],
            }
        )
    return {
        "version": 1,
        "commit_id": batch.commit_id(staged.table_uuid),
        "table_uuid": staged.table_uuid,
        "counts": json.loads(str(batch.counts)),
        "tables": tables,
    }


def _write_once(iceberg: Iceberg, table: Any, location: str, text: str) -> None:
    try:
        iceberg.write_text(table, location, text)
    except Py4JJavaError as error:
        if thrown(error) != "AlreadyExistsException":
            raise
        table.io().deleteFile(location)  # ours, of a try before: the name holds commit id and run
        iceberg.write_text(table, location, text)


def _finish(
    iceberg: Iceberg,
    decision: dict[str, Any],
    batch: Batch,
    *,
    reach: Callable[[str], None],
    wait: Callable[[float], None],
) -> int:
    appended = 0
    for side in decision["tables"]:
        # One look at the table says both whether it is finished and what it holds: whoever finishes it after that fences us.
        while not _is_finished(
            found := _same_table(iceberg, side, batch), batch.pipeline, decision["commit_id"], batch.end
        ):
            last = entry(found, batch.pipeline)
            staged = Staged(
                table=side["table"],
                table_uuid=side["uuid"],
                field_ids=side["field_ids"],
                files=(),
                rows=side["rows"],
                bytes=0,
                at=time.time(),  # a decision does not age: its files are protected by being named in it
                documents=tuple(side["files"]),
            )
            reach("finish.started")
            try:
                publish(
                    iceberg,
                    staged,
                    replace(batch, held=last.end if last else None),
                    extra={ledger.COMMIT_ID: decision["commit_id"], ledger.COUNTS: json.dumps(decision["counts"])},
                    is_side=True,
                    wait=wait,
                    reach=reach,
                )
                appended += side["rows"]
            except Fenced:
                continue  # somebody else finished it, or a decision before it: ask again
        reach("finish.finished")
    return appended


def _same_table(iceberg: Iceberg, side: dict[str, Any], batch: Batch) -> Java:
    table = iceberg.load(side["table"])
    if str(table.uuid()) != side["uuid"]:
        raise TableReplaced(
            f"the table was dropped and created again while {side['rows']} of its rows were decided and not yet appended",
            where=f"table {side['table']}",
            do=f"Restore it, or `frazil accept {batch.pipeline} side-table-replaced --reason …` lets those rows go",
        )
    return table


def _is_finished(side: Java, pipeline: str, commit_id: str | None, end: Offsets | None) -> bool:
    """Whether a side table, as loaded, has the rows of the decision `commit_id`, whose offsets end at `end`."""
    last = entry(side, pipeline)
    if last is None:
        return False
    if last.end is not None and end is not None and last.end.reaches(end):
        return True
    for snapshot in islice(ancestors(side, last.snapshot_id), ANCESTORS):
        summary = entries(snapshot.summary())
        if ledger.EVENTS in summary:
            return False  # an operator had the ledger go back: the same records, delivered before, are another decision
        if commit_id is not None and summary.get(ledger.COMMIT_ID) == commit_id:
            return True
    return False
