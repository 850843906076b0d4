"""The proof of an upsert table: the account that its commits carry on, compared with what its files hold.

A row says nothing of the records that it superseded. So the records are proven by the ledger (read = landed + dead-lettered +
skipped + gaps, of which the commits carry on how many landed), and the rows by the number of live rows and the sum of their
keys' hashes, which every commit carries on too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from frazil.audit.accounts.balance import PartitionAccount
from frazil.audit.accounts.state_rows import StateRows, by_manifest, read_keys
from frazil.audit.files.count import Read
from frazil.audit.files.file_scan import Source
from frazil.audit.finding import SHOWN, Finding, Flaw
from frazil.lake.ledger.key_totals import KeyAccount
from frazil.lake.ledger.remembered_deletes import RememberedDeletes
from frazil.lake.read.data_files import lengths
from frazil.lake.read.stored_tables import StoredTable

_OF_RECORDS = (Flaw.MISSING, Flaw.EXCESS)


@dataclass(frozen=True, slots=True)
class State:
    """An upsert table: its files, and the account of its newest commit. `reads_keys`: every key is read."""

    source: Source
    account: KeyAccount
    reads_keys: bool

    def accounts(
        self, partitions: Iterable[PartitionAccount], findings: Iterable[Finding]
    ) -> tuple[tuple[PartitionAccount, ...], list[Finding]]:
        """Return the partitions with the records that landed, and what is wrong with all of them together.

        `partitions` and `findings` are of a count that saw no row, so to which all landed records are missing.
        """
        found = tuple(
            replace(one, landed=one.read - one.dead_lettered - one.pending - one.skipped - one.explained)
            for one in partitions
        )
        wrong = [finding for finding in findings if finding.flaw not in _OF_RECORDS]
        missing = sum(one.landed for one in found) - self.account.records
        if missing:
            flaw = Flaw.MISSING if missing > 0 else Flaw.EXCESS
            what = f"its commits landed {self.account.records} records, which is {abs(missing)} too "
            what += "few for the offsets that were read" if missing > 0 else "many for the offsets that were read"
            wrong.append(Finding(flaw=flaw, where=self._where, what=what, count=abs(missing)))
        return found, wrong

    def rows(self) -> tuple[Read, StateRows | None, list[Finding]]:
        """Return how the rows were counted, what they are if they could be read, and what is wrong with them.

        Manifests are enough if they give the number of the account; else, and if that is asked for, the keys are read.
        """
        files, table = self.source.files, self.source.table
        read = Read(table.identifier, None, files_with_deletes=sum(bool(file.deletes) for file in files))
        problems: list[Finding] = []
        known = by_manifest(self.source, problems)
        if problems:
            return read, None, problems
        if known.rows == self.account.rows and not self.reads_keys and not self.source.altered:
            return replace(read, files_by_manifest=len(files), rows_by_manifest=known.rows), known, []
        schema = table.iceberg.schema()
        # By id, as the driver has them: another engine may move a column, and the hash depends on their order.
        key: Sequence[str] = [schema.find_field(number).name for number in sorted(schema.identifier_field_ids)]
        found = read_keys(self.source, key, problems)
        read = replace(read, files_by_scan=len(files), rows_by_scan=found.rows)
        return read, None if problems else found, problems or self._compared(found)

    def _compared(self, found: StateRows) -> list[Finding]:
        findings = []
        if found.doubled:
            what = f"{found.doubled} rows too many: their keys have another row"
            findings.append(Finding(flaw=Flaw.DOUBLED, where=self._where, what=what, count=found.doubled))
        if (found.rows, found.hash) == (self.account.rows, self.account.hash):
            return findings  # the commits themselves left both rows of a key
        apart = found.rows - (found.doubled or 0) - self.account.rows
        if apart:
            what = f"it has {found.rows} rows, and its commits count {self.account.rows}"
            flaw = Flaw.EXCESS if apart > 0 else Flaw.MISSING
            findings.append(Finding(flaw=flaw, where=self._where, what=what, count=abs(apart)))
        elif not findings and found.hash != self.account.hash:
            what = "the keys of its rows are not those that its commits count, though there are as many"
            findings.append(Finding(flaw=Flaw.OTHER_KEYS, where=self._where, what=what))
        return findings

    @property
    def _where(self) -> str:
        return f"table {self.source.table.identifier}"


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
