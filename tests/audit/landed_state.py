"""An upsert table and its account as the ingest leaves them, made by PyIceberg in milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg.expressions import In
from pyiceberg.manifest import DataFile

from frazil.declaration import ErrorMode, Upsert
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.key_totals import KeyAccount, StaleKeys
from frazil.lake.ledger.totals import Counts
from frazil.upsert.key_hash import hashes
from tests.audit.audited_table import Landed

KEY = "order_id"


class LandedState(Landed):
    """A pipeline of one Kafka partition whose table has one row for each key, an integer. `stale` goes into later commits."""

    key = (KEY,)

    def __init__(self, folder: Path) -> None:
        self.keys, self.now, self.stale = KeyAccount(), set[int](), StaleKeys()
        super().__init__(folder, partitions=1)
        self.pipeline = replace(self.pipeline, write=Upsert(key=KEY), on_error=ErrorMode.SUSPEND)

    def change(self, put: Iterable[int], delete: Iterable[int] = (), **counts: Any) -> None:
        """Land one batch that writes and deletes rows of these keys, each in one record. `counts` are further counts."""
        put, delete = sorted(put), sorted(delete)
        inserted, deleted = set(put) - self.now, set(delete) & self.now
        replaced = (set(put) & self.now) | deleted
        if replaced:
            self.table.delete(In(KEY, replaced), snapshot_properties={ledger.RUN: "run"})
        self.now = (self.now | inserted) - deleted
        landed = Counts(read=len(put) + len(delete), written=len(put), deletes=len(delete), **counts)
        self.keys = replace(
            self.keys.unchanged,
            rows=len(self.now),
            hash=hash_of(self.now),
            records=self.keys.records + landed.landed,
            late=self.keys.late + landed.late,
            inserted=len(inserted),
            updated=len(put) - len(inserted),
            deleted=len(deleted),
            absent=len(delete) - len(deleted),
        )
        begin = self.held[0]
        rows = [{**self.row(0, begin + at), KEY: key} for at, key in enumerate(put)]
        self.commit({0: begin + landed.read}, landed, {}, self.written(self.table, rows) if rows else ())

    def append(
        self, identifier: str, files: Iterable[DataFile], summary: Mapping[str, str], *, tag: bool = True
    ) -> None:
        """One snapshot with these files; with the account if it is one of the pipeline's."""
        if ledger.COUNTS in summary and identifier == self.pipeline.table.identifier:
            summary = {**summary, ledger.KEYS: str(self.keys), ledger.STALE_KEYS: str(self.stale)}
        super().append(identifier, files, summary, tag=tag)

    def add_rows(self, keys: Iterable[int]) -> None:
        """Insert rows of these keys as another engine does."""
        rows = [{**self.row(0, 0), KEY: key} for key in keys]
        self.append(self.pipeline.table.identifier, self.written(self.table, rows), {}, tag=False)

    def edit(self, **account: Any) -> None:
        """Change the account of the newest commit in the table's metadata file, by hand."""

        def newest(document: dict[str, Any]) -> None:
            *_, last = (s for s in document["snapshots"] if ledger.END in s["summary"])
            last["summary"][ledger.KEYS] = str(replace(self.keys, **account))

        self.edit_metadata(newest)


def hash_of(keys: Iterable[int]) -> int:
    """Return the sum of the keys' hashes modulo 2^64."""
    return int(hashes([pa.array(sorted(keys), pa.int64())]).sum(dtype=np.uint64))
