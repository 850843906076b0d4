"""What one batch reads of one partition."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets from `start` up to and without `end` of one partition."""

    partition: int
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start
