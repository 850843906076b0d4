"""The next offset to read in each partition of a topic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from frazil.lake.ledger.last_records import LastRecords


def canonical(value: Any) -> str:
    """Return canonical JSON: sorted keys, no spaces, so that equal values are equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Offsets:
    """The next offset to read of each partition, and the topic they are offsets of.

    `last` are the last records before these offsets, None if they were not asked for. They are no part of the summary, nor of
    equality: a table property holds them (`last_records`).
    """

    topic: str
    topic_id: str
    at: Mapping[int, int]
    last: LastRecords | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """Return canonical JSON, as the summary holds it."""
        return canonical(
            {"topic": self.topic, "topic_id": self.topic_id, "offsets": {str(p): o for p, o in self.at.items()}}
        )

    @classmethod
    def parse(cls, text: str) -> Offsets:
        """Return the offsets that `str()` wrote. Raises `ValueError`, `KeyError` and others for a text that it did not write."""
        document = json.loads(text)
        topic, topic_id, at = (document[name] for name in ("topic", "topic_id", "offsets"))
        at = {int(p): int(o) for p, o in at.items()}
        if not (isinstance(topic, str) and isinstance(topic_id, str)) or min((*at, *at.values()), default=0) < 0:
            raise ValueError(f"{text} are no offsets of a topic")
        return cls(topic, topic_id, dict(sorted(at.items())))

    def same_as(self, other: Offsets | None) -> bool:
        """Return whether both name the same offsets of the same topic; an absent partition equals only an absent one."""
        return other is not None and (self.topic_id, dict(self.at)) == (other.topic_id, dict(other.at))

    def reaches(self, other: Offsets) -> bool:
        """Return whether every partition of `other` is here, at the same offset or past it."""
        return self.topic_id == other.topic_id and all(self.at.get(p, -1) >= o for p, o in other.at.items())
