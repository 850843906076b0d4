"""The EMR releases that Frazil's releases can be built for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from frazil.errors import InvalidInput

SOON_DAYS = 180
"""Days before the end of its support from which a label is reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """The content of an EMR release. `supported_until` is the first day without standard support.

    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/release-versions.html
    """

    name: str
    spark: str
    scala: str
    python: str
    supported_until: date

    def ends_soon(self, today: date) -> bool:
        """Return whether the label's support ends within `SOON_DAYS` or has ended."""
        return (self.supported_until - today).days <= SOON_DAYS


LABELS = (
    Label(
        name="emr-spark-8.1.0",
        spark="4.1.1",
        scala="2.13",
        python="3.11",
        supported_until=date(2029, 9, 1),
    ),
)
NEWEST = LABELS[0].name


def label(name: str) -> Label:
    """Return the row of a label. Raises `InvalidInput` if no release can be built for it."""
    for row in LABELS:
        if row.name == name:
            return row
    known = ", ".join(row.name for row in LABELS)
    raise InvalidInput(f"{name} is not supported", where="EMR release label", do=f"Choose one of {known}")
