"""What commits say of the offsets of the files that they added.

The bounds of a file of several partitions span all offsets in between. Its commit knows the range of each partition.
"""

from __future__ import annotations

from dataclasses import replace

from frazil.audit.files.file_scan import Source
from frazil.audit.files.offset_ranges import Range
from frazil.audit.files.proofs import Remembered
from frazil.audit.files.windows import Claim
from frazil.lake.ledger import entry as ledger


def claims_of(source: Source) -> dict[int, Claim]:
    """Return what the commits that are kept say of files of several partitions."""
    claims: dict[int, Claim] = {}
    for id_ in {file.snapshot_id for file in source.files if source.is_wide(file)}:
        snapshot = source.table.snapshots.get(id_) if id_ is not None else None
        if snapshot is None or snapshot.operation != "append" or ledger.EVENTS in snapshot.summary:
            continue  # an operator's decision may append what was decided before it
        start, end = snapshot.entry.start, snapshot.entry.end
        if start is not None and end is not None and start.topic_id == end.topic_id:
            claims[snapshot.id] = {p: Range(start.at.get(p, upto), upto) for p, upto in end.at.items()}
    return claims


def with_claims(source: Source, before: Remembered) -> Source:
    """Return a source with the claims of commits that have expired since they were remembered, too."""
    wanted = {file.snapshot_id for file in source.files if source.is_wide(file)}
    known = {id_: claim for id_, claim in before.claims.get(source.role, {}).items() if id_ in wanted}
    return replace(source, claims={**known, **source.claims})
