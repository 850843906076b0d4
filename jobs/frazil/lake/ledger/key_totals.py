"""The totals of an upsert table that each commit carries on: its rows and the sum of their keys' hashes, and its stale keys."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from frazil.lake.ledger.next_offsets import canonical

_OF_SOME = ("until", "late", "cleared", "doubled", "removed")
"""Numbers that are not stored if they are 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAccount:
    """The rows of a table after a commit, and what the commit did to them.

    `rows` is the number of rows, one a key, and `hash` the sum of their keys' hashes modulo 2^64. `records` is how many records
    took effect since the pipeline began, those that later ones superseded too; `late` of them changed nothing, as their keys had
    later rows. The next four are keys of the commit: `absent` were to be deleted and were not there.

    `staged` is when the newest of the rows were staged, `_ingested_at` in microseconds since 1970, and `until` what it was when an
    operator's decision last closed the account of a partition, or when all records had landed before which keys changed their
    partition: the partitions of rows up to it say nothing of those of today. It is 0 if that never was. `cleared` is how many rows
    the commit took away because the source's table was truncated, before its own keys. `doubled` is how many rows it took away
    next to one of each key: a key has several if another engine added them.

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
        numbers = {name: value for name, value in asdict(self).items() if value or name not in _OF_SOME}
        return canonical({**numbers, "hash": f"{self.hash:016x}"})

    @classmethod
    def parse(cls, text: str) -> KeyAccount:
        """Return the account that `str()` wrote."""
        document = json.loads(text)
        return cls(**{**document, "hash": int(document["hash"], 16)})

    @property
    def unchanged(self) -> KeyAccount:
        """The account after a commit that changes no row."""
        return replace(self, inserted=0, updated=0, deleted=0, absent=0, cleared=0, doubled=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleKeys:
    """The stale keys of a table after a commit.

    `unknown` rejected records have a key that cannot be read: each may make one more key stale. `file` has the hashes of the stale
    keys, empty if there are none. Both are counted since the pipeline began, or `since` a batch was staged, microseconds since
    1970, if the file was lost.
    """

    keys: int = 0
    unknown: int = 0
    file: str = ""
    since: int = 0

    def __str__(self) -> str:
        """Return canonical JSON, as the summary holds it."""
        more = {name: value for name in ("file", "since") if (value := getattr(self, name))}
        return canonical({"keys": self.keys, "unknown": self.unknown, **more})

    @property
    def notes(self) -> list[str]:
        """Sentences for a reader of the table; none if no key is stale, as far as is known."""
        since = f" since {datetime.fromtimestamp(self.since / 1e6, UTC):%Y-%m-%d %H:%M} UTC" if self.since else ""
        found = []
        if self.keys:
            counted = f" (counted{since})" if since else ""
            found.append(f"{self.keys:,} keys are stale: their newest record was rejected{counted}")
        if self.unknown:
            found.append(
                f"{self.unknown:,} rejected records{since} have a key that cannot be read; each may make a key stale"
            )
        return found

    @classmethod
    def parse(cls, text: str) -> StaleKeys:
        """Return what `str()` wrote."""
        return cls(**json.loads(text))
