"""Remember what was counted, so that the next verification reads only files that are new or have changed.

A proof is a segment of offsets, what it holds, and a digest of every file that can hold any of it. It counts only while
the digest is the same: compaction, a delete or a rollback changes the files, and the segment is read again.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from frazil.audit.files.file_scan import Source
from frazil.audit.files.window import Found, Tally
from frazil.audit.files.windows import Boxes, Claim, Stretch
from frazil.audit.finding import SHOWN, Depth, Outcome, Range
from frazil.lake.ledger.next_offsets import canonical
from frazil.lake.read.data_files import DataFile

RULE = 2
"""The version of the way of counting. Proofs of another version are not used."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The contents of a segment, by its parts, as counted in files of this digest."""

    digest: str
    tallies: tuple[tuple[Stretch, Tally], ...]

    @property
    def parts(self) -> tuple[Stretch, ...]:
        """The offsets that it is about."""
        return tuple(part for part, _ in self.tallies)

    def __len__(self) -> int:
        return sum(map(len, self.parts))


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a verification, for people: `at` is in seconds since 1970, `snapshot` that of the pipeline's table."""

    at: float
    outcome: Outcome
    depth: Depth
    snapshot: int | None


@dataclass(frozen=True, slots=True)
class Remembered:
    """The knowledge that a verification leaves for the next one.

    `claims` are those of commits, whose snapshots may expire, of files that still exist, by role and snapshot. `read_at` is, by
    role, the snapshot at which the keys of all rows were read last, and were right.
    """

    proofs: tuple[Proof, ...] = ()
    claims: Mapping[str, Mapping[int, Claim]] = field(default_factory=dict)
    read_at: Mapping[str, int] = field(default_factory=dict)
    result: Result | None = None


class Digests:
    """Digests of the files that can hold offsets of a segment. A file of which nothing says so belongs to each."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._boxes: list[tuple[Boxes, list[bytes]]] = []
        for source in sources:
            self._boxes.append((source.boxes(source.files), [_token(source, file) for file in source.files]))

    def of(self, parts: Sequence[Stretch]) -> str:
        """Return the digest of the files that touch stretches, in whatever order they are listed."""
        tokens = [
            tokens[index] for boxes, tokens in self._boxes for index in boxes.touching(parts).nonzero()[0].tolist()
        ]
        return hashlib.sha256(b"".join(sorted(tokens))).hexdigest()


class ProofFolder:
    """Proofs as files in a folder of this machine, which only its owner may read and write.

    They are never kept with the table: anyone who may write the table could then forge a proof.
    """

    def __init__(self, folder: Path, *, now: Callable[[], float] = time.time) -> None:
        self._folder, self.now = folder, now

    def load(self, key: Mapping[str, Any]) -> Remembered:
        """Return what is remembered under exactly this key; nothing if there is none or the file is damaged."""
        try:
            document = json.loads(self._file(key).read_bytes())
            body = document["body"]
            if document["sha256"] != _sum(body) or body["key"] != dict(key):
                return Remembered()
            proofs = tuple(_proof(one) for one in body["proofs"])
            claims = {
                role: {int(id_): {p: Range(a, b) for p, a, b in parts} for id_, parts in of.items()}
                for role, of in body["claims"].items()
            }
            return Remembered(proofs, claims, dict(body["read_at"]), _result(body.get("result")))
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
            return Remembered()

    def store(self, key: Mapping[str, Any], remembered: Remembered) -> None:
        """Replace what is remembered under a key. A folder that cannot be written keeps nothing."""
        body = {
            "key": dict(key),
            "proofs": [_document(proof) for proof in remembered.proofs],
            "claims": {
                role: {str(id_): [[p, r.start, r.end] for p, r in claim.items()] for id_, claim in of.items()}
                for role, of in remembered.claims.items()
            },
            "read_at": dict(remembered.read_at),
            "result": remembered.result and asdict(remembered.result),
        }
        file = self._file(key)
        new = file.with_suffix(f".{os.getpid()}")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            new.touch(mode=0o600)
            new.write_text(canonical({"body": body, "sha256": _sum(body)}))
            new.replace(file)
        except OSError:
            return

    def _file(self, key: Mapping[str, Any]) -> Path:
        return self._folder / f"{_sum(dict(key))[:32]}.json"


def without_most(proofs: Sequence[Proof], digests: Digests, *, at_most: int, limit: int) -> tuple[Proof, ...]:
    """Return the proofs, neighbours joined while there are more than `at_most`, up to `limit` offsets each."""
    kept = list(proofs)
    while len(kept) > at_most:
        sizes = [len(a) + len(b) for a, b in pairwise(kept)]
        at = min(range(len(sizes)), key=sizes.__getitem__)
        if sizes[at] > limit:
            break
        tallies = _joined([*kept[at].tallies, *kept[at + 1].tallies])
        kept[at : at + 2] = [Proof(digests.of([part for part, _ in tallies]), tallies)]
    return tuple(kept)


def _joined(tallies: Sequence[tuple[Stretch, Tally]]) -> tuple[tuple[Stretch, Tally], ...]:
    """Return parts and tallies in order, those of touching parts as one."""
    found: list[tuple[Stretch, Tally]] = []
    for part, tally in sorted(tallies, key=lambda one: (one[0].partition, one[0].range.start)):
        before = found[-1][0] if found else None
        if before and (before.partition, before.range.end) == (part.partition, part.range.start):
            merged = Stretch(part.partition, Range(before.range.start, part.range.end))
            found[-1] = (merged, found[-1][1] + tally)
        else:
            found.append((part, tally))
    return tuple(found)


def _token(source: Source, file: DataFile) -> bytes:
    """Return what a proof depends on of a file. Files are immutable: their path and size name their bytes."""
    deletes = sorted(
        (d.file_path, d.file_size_in_bytes, d.record_count, str(getattr(d, "content_offset", None)))
        for d in file.deletes
    )
    bounds = {name: [str(b.low), str(b.high), b.nulls] for name, b in file.bounds.items()}
    stated = [source.role, file.path, file.format, file.bytes, file.rows, bounds, deletes, file.path in source.altered]
    return hashlib.sha256(canonical(stated).encode()).digest()


def _document(proof: Proof) -> dict[str, Any]:
    parts = [
        [
            part.partition,
            part.range.start,
            part.range.end,
            tally.landed,
            tally.dead_lettered,
            tally.absent.number,
            [[r.start, r.end] for r in tally.absent.ranges],
        ]
        for part, tally in proof.tallies
    ]
    return {"digest": proof.digest, "parts": parts}


def _proof(document: Mapping[str, Any]) -> Proof:
    """Return a proof. Raises `ValueError` if its numbers contradict each other."""
    tallies = []
    for partition, start, end, landed, dead, absent, ranges in document["parts"]:
        shown = tuple(Range(a, b) for a, b in ranges)
        if min(landed, dead, absent) < 0 or landed + dead + absent != end - start or len(shown) > SHOWN:
            raise ValueError(document["digest"])
        tally = Tally(landed=landed, dead_lettered=dead, absent=Found(absent, shown))
        tallies.append((Stretch(partition, Range(start, end)), tally))
    return Proof(document["digest"], tuple(tallies))


def _result(document: Mapping[str, Any] | None) -> Result | None:
    """Return the result that a file has. Files of earlier versions have none."""
    if document is None:
        return None
    outcome, depth = Outcome(document["outcome"]), Depth(document["depth"])
    return Result(float(document["at"]), outcome, depth, document["snapshot"])


def _sum(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()
