"""The account of a table of current state: how many rows it has and the sum of their keys' hashes, carried on by each commit."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from frazil.lake.offsets import canonical


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAccount:
    """What a table holds after a commit, and what the commit did to it.

    `rows` is the number of rows, one a key, and `hash` the sum of their keys' hashes modulo 2^64. `records` is how many records
    took effect since the pipeline began, those that later ones superseded too; `late` of them changed nothing, as their keys had
    later rows. The next four are keys of the commit: `absent` were to be deleted and were not there.

    `staged` is when the newest of the rows were staged, `_ingested_at` in microseconds since 1970, and `until` what it was when an
    operator's decision last closed the account of a partition, or when all records had landed before which keys changed their
    partition: the partitions of rows up to it say nothing of those of today. It is 0 if that never was. `cleared` is how many rows
    the commit took away because the source's table was truncated, before its own keys. `doubled` is how many rows it took away
    beside one of each key: a key has several if another engine added them.

    `removed` is how many rows other engines deleted since the pipeline began, as operators accepted.
    """

    rows: int = 0
    hash: int = 0
    records: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    absent: int = 0
    staged: int = 0
    until: int = 0
    late: int = 0
    cleared: int = 0
    doubled: int = 0
    removed: int = 0

    def __str__(self) -> str:
        """Return canonical JSON, as the summary holds it; the hash is 16 hexadecimal digits."""
        counts = {"inserted": self.inserted, "updated": self.updated, "deleted": self.deleted, "absent": self.absent}
        more = {
            name: value for name in ("until", "late", "cleared", "doubled", "removed") if (value := getattr(self, name))
        }
        rows = {"rows": self.rows, "hash": f"{self.hash:016x}", "records": self.records, "staged": self.staged}
        return canonical({**rows, **more, **counts})

    @classmethod
    def parse(cls, text: str) -> KeyAccount:
        """Return the account that `str()` wrote."""
        document = json.loads(text)
        return cls(**{**document, "hash": int(document["hash"], 16)})

    @property
    def unchanged(self) -> KeyAccount:
        """The account after a commit that changes no row."""
        return replace(self, inserted=0, updated=0, deleted=0, absent=0, cleared=0, doubled=0)
