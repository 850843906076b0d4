"""A range of offsets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Range:
    """The offsets from `start` up to and without `end`."""

    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return str(self.start) if len(self) == 1 else f"{self.start} to {self.end - 1}"
