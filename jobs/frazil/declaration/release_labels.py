"""The EMR release labels that the jobs may run on: what each brings, and how long it is kept. One row a label."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

SOON_DAYS = 180
"""How many days before the end of its support a label is told of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseLabel:
    """One label of EMR Serverless. Sources: the label's page in the EMR Release Guide."""

    name: str
    spark: str
    iceberg: str
    scala: str
    java: int
    python: str
    supported_until: date

    def ends_soon(self, today: date) -> bool:
        """Whether its support ends within `SOON_DAYS`, or has ended."""
        return (self.supported_until - today).days <= SOON_DAYS

    @property
    def slug(self) -> str:
        """The label as part of a name: dots are not allowed everywhere."""
        return self.name.replace(".", "-")


_ROWS = (
    ReleaseLabel(
        name="emr-spark-8.1.0",
        spark="4.1.1",
        iceberg="1.11.0",
        scala="2.13",
        java=17,
        python="3.11",
        supported_until=date(2029, 9, 1),
    ),
)

RELEASE_LABELS = {row.name: row for row in _ROWS}
"""Labels by name. A label whose Spark is of another minor version needs another set of jars, hence another release."""
