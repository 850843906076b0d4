"""List the data files of a snapshot to count, and report those that are lost or altered."""

from __future__ import annotations

from dataclasses import replace

from frazil.audit.files.count import claims_of
from frazil.audit.files.file_scan import Columns, Source, unlike
from frazil.audit.files.window import Role
from frazil.audit.finding import SHOWN, Finding, Flaw
from frazil.lake.read.data_files import Contents, contents, lengths, missing
from frazil.lake.read.stored_tables import Snapshot, StoredTable


def files_of(
    role: Role, table: StoredTable, snapshot: Snapshot | None, columns: Columns
) -> tuple[Source, list[Finding]]:
    """Return the files of a snapshot that exist, and what is wrong with the others."""
    found = contents(table, snapshot, columns.all)
    sizes = lengths(table, [*found.delete_files, *(file.path for file in found.files)])
    files = tuple(file for file in found.files if sizes[file.path] is not None)
    altered = frozenset(file.path for file in files if sizes[file.path] != file.bytes)
    source = Source(role, table, columns, files, altered)
    source = replace(source, claims=claims_of(source))
    deletes = {delete.file_path: delete for file in files for delete in file.deletes}
    wrong = [
        unlike(source, Flaw.FILE_ALTERED, name, f"has {sizes[name]} bytes, {delete.file_size_in_bytes} were written")
        for name, delete in deletes.items()
        if sizes[name] not in (None, delete.file_size_in_bytes)
    ]
    return source, wrong + _of_files(source, found, {path for path, size in sizes.items() if size is None}, sizes)


def _of_files(source: Source, found: Contents, lost: set[str], sizes: dict[str, int | None]) -> list[Finding]:
    where = f"table {source.table.identifier}"
    absent = missing(source.table, found.lost)  # which are found for all snapshots
    damaged = [unlike(source, Flaw.MANIFEST_LOST, name, "cannot be read") for name in found.lost if name not in absent]
    findings = damaged + [
        unlike(source, Flaw.FILE_ALTERED, file.path, f"has {sizes[file.path]} bytes, {file.bytes} were written")
        for file in source.files
        if file.path in source.altered
    ]
    if found.has_equality_deletes:
        what = "rows are deleted by value (equality deletes), which only an engine applies: compact, then verify again"
        findings.append(Finding(flaw=Flaw.EQUALITY_DELETES, where=where, what=what))
    if lost:
        rows = {file.path: file.rows for file in found.files}
        shown = ", ".join(sorted(lost)[:SHOWN])
        what = f"{len(lost)} files of {sum(rows.get(path, 0) for path in lost)} rows do not exist: {shown}"
        findings.append(Finding(flaw=Flaw.FILE_LOST, where=where, what=what, count=len(lost)))
    return findings
