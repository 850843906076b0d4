"""The account of a table of current state: how many rows it has and the sum of their keys' hashes, carried on by each commit."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from frazil.lake.offsets import canonical


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAccount:
    """What a table holds after a commit, and what the commit did to it.

    `rows` is the number of rows, one a key, and `hash` the sum of their keys' hashes modulo 2^64. `records` is how many records
    took effect since the pipeline began, those that later ones superseded too. The others are keys of the commit: `absent` were to
    be deleted and were not there.
    """

    rows: int = 0
    hash: int = 0
    records: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    absent: int = 0

    def __str__(self) -> str:
        """Return canonical JSON, as the summary holds it; the hash is 16 hexadecimal digits."""
        counts = {"inserted": self.inserted, "updated": self.updated, "deleted": self.deleted, "absent": self.absent}
        return canonical({"rows": self.rows, "hash": f"{self.hash:016x}", "records": self.records, **counts})

    @classmethod
    def parse(cls, text: str) -> KeyAccount:
        """Return the account that `str()` wrote."""
        document = json.loads(text)
        return cls(**{**document, "hash": int(document["hash"], 16)})

    @property
    def unchanged(self) -> KeyAccount:
        """The account after a commit that changes no row."""
        return replace(self, inserted=0, updated=0, deleted=0, absent=0)
