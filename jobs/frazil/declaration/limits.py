"""The limits of one batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from frazil.declaration.constraints import at_least, between
from frazil.declaration.declared import declared
from frazil.declaration.problems import Problem


@declared
class Limits:
    """How much one batch may hold. Batches start small and grow, as far as they learn to keep to `target_seconds`."""

    target_seconds: Annotated[int, "The target duration of a batch, from read to commit.", between(1, 3600)] = 10
    first_rows: Annotated[
        int, "The maximum of records of the first batch. Slowness alone makes no later batch smaller.", at_least(1)
    ] = 20_000
    max_rows: Annotated[int, "The maximum of records of a batch.", at_least(1)] = 1_000_000
    max_bytes: Annotated[
        int, "The maximum of bytes of values and keys of a batch, estimated before it is read.", at_least(1)
    ] = 1024**3

    def _contradictions(self) -> Iterator[Problem]:
        if self.first_rows > self.max_rows:
            yield Problem("first_rows", f"it is more than max_rows, {self.max_rows}", "Lower it, or raise max_rows")
