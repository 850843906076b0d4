"""The size of a metadata file with many snapshots of a topic of many partitions: `python -m bench.metadata`.

No service is started. The summaries are those that a commit stores, written and compressed like Iceberg's files. The table
lists the megabytes of 100 snapshots of 1,000 partitions.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from frazil.lake.commit.request import CommitRequest
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Counts, Totals

TOPIC, TOPIC_ID, UUID = "orders", "3kq1k8m0TlSj4m4pWz9v2A", "6f7b2c0e-8f4e-4d53-9a0e-0d3f8f1f7a10"
SEED = 20261101
AT_MS = 1_790_000_000_000
Draw = Callable[[random.Random], int]


@dataclass(frozen=True, slots=True)
class Case:
    """A topic: its offsets, its first read offset, and the records and gaps of a batch in each partition."""

    says: str
    begin: Draw
    step: Draw
    from_zero: bool = True
    gaps: Draw | None = None


def seven_digits(draw: random.Random) -> int:
    return draw.randrange(1_000_000, 10_000_000)


def records(draw: random.Random) -> int:
    return draw.randrange(1, 1_000)


CASES = (
    Case("a new topic, one record a partition", lambda draw: 0, lambda draw: 1),
    Case("offsets of 7 digits, read from 0", seven_digits, records),
    Case("offsets of 7 digits, read from there", seven_digits, records, from_zero=False),
    Case(
        "... and one partition in ten moves", seven_digits, lambda d: records(d) * (d.random() < 0.1), from_zero=False
    ),
    Case(
        "... and gaps in each partition", seven_digits, records, from_zero=False, gaps=lambda draw: draw.randrange(20)
    ),
)


def summaries(case: Case, partitions: int, snapshots: int, *, seed: int) -> Iterator[dict[str, str]]:
    """Return the ledger's part of each snapshot's summary."""
    draw = random.Random(seed)
    at = {p: case.begin(draw) for p in range(partitions)}
    first = Offsets(TOPIC, TOPIC_ID, dict.fromkeys(at, 0) if case.from_zero else at)
    totals = Totals().after(first, first, Counts())
    for number in range(snapshots):
        start, end = (
            Offsets(TOPIC, TOPIC_ID, at),
            Offsets(TOPIC, TOPIC_ID, {p: o + case.step(draw) for p, o in at.items()}),
        )
        gaps = {p: n for p in at if case.gaps is not None and (n := case.gaps(draw))}
        counts = Counts(read=1_000_000, written=1_000_000, gaps=gaps)
        totals = totals.after(start, end, counts)
        batch = CommitRequest(
            pipeline=TOPIC,
            run=f"{draw.getrandbits(128):032x}",
            version="0.2.0",
            start=start,
            end=end,
            committed=start,
            topic_id=TOPIC_ID,
            counts=counts,
            schema_ids=(1,),
            valid_through=AT_MS + number,
            staged_us=AT_MS * 1000 + number,
        )
        yield {**batch.summary(UUID), ledger.TOTALS: str(totals)}
        at = end.at


def megabytes(made: list[dict[str, str]], *, seed: int) -> float:
    """Return the compressed size of a metadata file with these snapshots, in MB."""
    draw = random.Random(seed)
    document = {"snapshots": [_snapshot(n, summary, draw) for n, summary in enumerate(made)]}
    return len(gzip.compress(json.dumps(document, separators=(",", ":")).encode(), 6)) / 1e6


def _snapshot(number: int, summary: Mapping[str, str], draw: random.Random) -> dict[str, Any]:
    iceberg = {
        "added-data-files": "8",
        "added-records": "1000000",
        "added-files-size": str(draw.randrange(10**8)),
        "total-records": str(number * 1_000_000),
        "total-files-size": str(draw.randrange(10**10)),
        "total-data-files": str(8 * number),
        "engine-name": "spark",
    }
    return {
        "sequence-number": number + 1,
        "snapshot-id": draw.getrandbits(62),
        "parent-snapshot-id": draw.getrandbits(62),
        "timestamp-ms": AT_MS + number,
        "summary": {"operation": "append", **_as_java_orders(summary), **iceberg},
        "manifest-list": f"s3://lake/orders/metadata/snap-{draw.getrandbits(62)}-1-{draw.getrandbits(128):032x}.avro",
        "schema-id": 0,
    }


def _as_java_orders(summary: Mapping[str, str]) -> dict[str, str]:
    """Return the entries in the order of Java's `HashMap`, as Iceberg writes them. The order affects the compression."""
    buckets = 16
    while len(summary) > buckets * 3 // 4:
        buckets *= 2

    def bucket(key: str) -> int:
        code = 0
        for character in key:
            code = (31 * code + ord(character)) & 0xFFFFFFFF
        return (code ^ code >> 16) & (buckets - 1)

    return dict(sorted(summary.items(), key=lambda entry: bucket(entry[0])))


def main() -> None:
    for case in CASES:
        made = summaries(case, 1_000, 100, seed=SEED)
        stored = megabytes([ledger.stored(summary) for summary in made], seed=SEED)
        print(f"{case.says:40}{stored:10.2f}")


if __name__ == "__main__":
    main()
