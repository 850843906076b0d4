"""The estimate of a verification: what it has to read, and how long that takes."""

from __future__ import annotations

from dataclasses import asdict, dataclass

ROWS_PER_SECOND = 10_000_000.0
"""What one machine reads of compacted files, until a verification has measured it (docs/benchmarks.md)."""

SECONDS_PER_FILE = 0.02
"""What it takes to open a file, beside its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a verification has to read: files to open, their rows, the compressed size of the columns, and how long that
    takes. `files_known` are described by their manifests or by an earlier verification.
    """

    files: int = 0
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    files_known: int = 0
    windows: int = 0

    def document(self) -> dict[str, float]:
        """Return the estimate as JSON."""
        return asdict(self)
