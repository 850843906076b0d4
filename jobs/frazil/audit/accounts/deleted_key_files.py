"""Whether the files of the deleted keys that a table remembers are what its newest commit names: no manifest lists them."""

from __future__ import annotations

from frazil.audit.finding import SHOWN, Finding, Flaw
from frazil.lake.ledger.remembered_deletes import RememberedDeletes
from frazil.lake.read.data_files import lengths
from frazil.lake.read.stored_tables import StoredTable


def of_remembered_deletes(table: StoredTable, pipeline: str, known: RememberedDeletes) -> list[Finding]:
    """Return the files that do not exist, and those of another size than was written."""
    sizes = lengths(table, known.locations)
    lost = [file.location for file in known.files if sizes[file.location] is None]
    altered = [file.location for file in known.files if sizes[file.location] not in (None, file.bytes)]
    do = f"restore them, or `frazil accept {pipeline} remembered-deletes-lost --reason …` continues without them"
    return [
        Finding(
            flaw=flaw,
            where=f"table {table.identifier}",
            what=f"{len(files)} files of remembered deletes {what}: {', '.join(files[:SHOWN])}; {do}",
            count=len(files),
        )
        for flaw, files, what in (
            (Flaw.FILE_LOST, lost, "do not exist"),
            (Flaw.FILE_ALTERED, altered, "have another size than was written"),
        )
        if files
    ]
