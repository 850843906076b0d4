"""The rows of a history, read from its data files: as many as its commits count, and none twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from frazil.audit.file_scan import Source, noted
from frazil.audit.finding import Finding, Flaw
from frazil.audit.gapless_files import Columns
from frazil.audit.snapshot_files import files_of
from frazil.audit.state_rows import READERS, read_keys
from frazil.audit.window import Role
from frazil.lake.history.history_ledger import HistoryAccount, Recorded
from frazil.lake.read.data_files import DataFile, each
from frazil.lake.read.scan import batches
from frazil.lake.read.stored_tables import StoredTable
from frazil.schemas.metadata import DELETED_AT

OP, SEQUENCE, BEFORE = "_op", "_sequence", "_before"
_PLACE = Columns("_kafka_topic", "_kafka_partition", "_kafka_offset")
Changes = Counter[str]
"""Number of changes by operation."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the commits that a history keeps say of its changes, by sequence number of the state's commit.

    Up to `begins`, the oldest of them, there are `early` changes at most: maintenance deletes old ones, and its commits expire.
    """

    begins: int = 0
    early: Changes = field(default_factory=Changes)
    later: dict[int, Changes] = field(default_factory=dict)


def wanted(commits: Sequence[Recorded]) -> Wanted:
    """Return what commits say, oldest first. One that is not behind the one before took back what undone commits changed."""
    if not commits:
        return Wanted()
    begins = min(commit.sequence for commit in commits)
    account = [commit.account for commit in commits if commit.sequence == begins][-1]
    later: dict[int, Changes] = {}
    for older, newer in pairwise(commits):
        if newer.sequence > older.sequence:
            later[newer.sequence] = _counts(newer.account) - _counts(older.account)
        else:
            later = {sequence: changes for sequence, changes in later.items() if sequence <= newer.sequence}
    return Wanted(begins, _counts(account), later)


def differences(found: dict[int, Changes], said: Wanted, *, is_shortened: bool) -> list[str]:
    """Return how the changes that were found differ from what is said of them.

    If maintenance deleted old changes (`is_shortened`), those of the first commits are gone, each with all of its changes.
    """
    early = sum((changes for sequence, changes in found.items() if sequence <= said.begins), Changes())
    wrong = []
    if early - said.early:
        wrong.append(
            f"it has {_text(early)} up to the state's commit {said.begins}, and its commits count {_text(said.early)}"
        )
    may_be_gone = is_shortened and not early
    for sequence in sorted({*said.later, *(one for one in found if one > said.begins)}):
        here, there = found.get(sequence, Changes()), said.later.get(sequence, Changes())
        may_be_gone = may_be_gone and not here
        if here != there and not may_be_gone:
            wrong.append(f"it has {_text(here)} of the state's commit {sequence}, which made {_text(there)}")
    return wrong


def of_rows(
    history: StoredTable, state: StoredTable, commits: Sequence[Recorded], *, is_shortened: bool
) -> list[Finding]:
    """Read key, operation and sequence number of all rows, in bounded memory; return what is wrong with them."""
    schema = state.iceberg.schema()
    key = [schema.find_field(number).name for number in sorted(schema.identifier_field_ids)]
    source, problems = files_of(Role.TABLE, history, history.head, _PLACE)
    names = {column.name for column in history.columns.fields}
    # The history gets the names of the state's columns when it follows the next commit.
    has_key = set(key) <= names
    is_soft = DELETED_AT.name in names
    found = _by_sequence(source, key[0] if is_soft and has_key else None, problems)
    rows = read_keys(source, [*key, SEQUENCE], problems) if has_key and not problems else None
    if problems:
        return problems
    wrong = differences(found, wanted(commits), is_shortened=is_shortened) if has_key or not is_soft else []
    if rows is not None and rows.doubled:
        wrong.append(f"it has {rows.doubled} rows too many: their keys have another row of the same commit")
    return [Finding(flaw=Flaw.HISTORY_DIFFERS, where=f"table {history.identifier}", what=what) for what in wrong]


def _by_sequence(source: Source, key: str | None, problems: list[Finding]) -> dict[int, Changes]:
    """Count changes by the state's commit. With `key`, a column of it, deletes may be soft.

    The operation of a soft delete is `d`, and its row stays: commits count rows that came, changed and went.
    """
    was = f"{BEFORE}.{key}"

    def of(file: DataFile) -> list[tuple[int, str, int]]:
        import pyarrow as pa

        counted: Counter[tuple[int, str]] = Counter()
        with noted(source, file.path, problems):
            for batch in batches(source.table, file, [SEQUENCE, OP, *([DELETED_AT.name, was] if key else [])]):
                rows = pa.Table.from_batches([batch])
                if key:
                    rows = rows.set_column(1, OP, of_soft_deletes(rows[OP], rows[DELETED_AT.name], rows[was]))
                grouped = rows.group_by([SEQUENCE, OP]).aggregate([([], "count_all")])
                for row in grouped.to_pylist():
                    counted[row[SEQUENCE], row[OP]] += row["count_all"]
        return [(sequence, op, number) for (sequence, op), number in counted.items()]

    found: dict[int, Changes] = {}
    for counted in each(of, source.files, parallel=READERS):
        for sequence, op, number in counted:
            found.setdefault(sequence, Changes())[op] += number
    return found


def of_soft_deletes(operation: Any, deleted_at: Any, before: Any) -> Any:
    """Return the operations on rows: `d` if the row went, `c` if there was none, else `u`."""
    import pyarrow.compute as pc

    went = pc.and_(pc.equal(operation, "d"), pc.is_null(deleted_at))
    return pc.if_else(went, "d", pc.if_else(pc.is_null(before), "c", "u"))


def _counts(account: HistoryAccount) -> Changes:
    return Changes(c=account.inserted, u=account.updated, d=account.deleted)


def _text(changes: Changes) -> str:
    return f"{changes['c']} inserts, {changes['u']} updates and {changes['d']} deletes"
