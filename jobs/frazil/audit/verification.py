"""The result of a verification: what was compared, and what was found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from frazil.audit.accounts.balance import PartitionAccount
from frazil.audit.accounts.state_rows import StateRows
from frazil.audit.files.count import Estimate, Read
from frazil.audit.finding import Depth, Finding, Outcome, worst


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A second landing of a state's topic: how many records it read, to how many rows they came, and what differs."""

    records: int = 0
    rows: int = 0
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result of a verification, and what was compared.

    `reads` say for each table how its files were counted, `estimate` what was to be read; `notes` is what a reader of the
    proof should know, and `cautions` are those of them that are always printed. `is_deep` says that every file was to be read,
    whatever its manifest and earlier proofs say, and `depth` what was read. `live` are the rows of an upsert table as they were
    counted. `replayed` is of a state whose topic was landed once more. `stale_keys` of a state have a newest record that was
    rejected, and `unknown_keys` rejected records have a key that cannot be read; both are None if that was not counted.
    """

    pipeline: str
    table: str
    dead_letters: str
    topic: str
    outcome: Outcome
    is_deep: bool
    partitions: tuple[PartitionAccount, ...] = ()
    reads: tuple[Read, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    commits: int = 0
    seconds: float = 0.0
    estimate: Estimate = field(default_factory=Estimate)
    replayed: Replayed | None = None
    stale_keys: int | None = None
    unknown_keys: int | None = None
    depth: Depth = Depth.COUNTED
    live: StateRows | None = None

    def with_replay(self, replayed: Replayed) -> Verification:
        """Return the verification with what a second landing found."""
        findings = (*self.findings, *replayed.findings)
        return replace(self, findings=findings, outcome=worst(findings), replayed=replayed)

    @property
    def exit_code(self) -> int:
        """Return the exit code: 0 proven, 1 not proven, 5 could not be checked."""
        return self.outcome.exit_code

    @property
    def verdict(self) -> str:
        """Return the outcome as it is printed: what was counted and not read is `counted`, not `proven`."""
        is_counted = self.outcome is Outcome.PROVEN and self.depth is Depth.COUNTED
        return Depth.COUNTED.value if is_counted else self.outcome.value

    def sum_of(self, name: str) -> int:
        """Return the sum of one column of the accounts: `read`, `landed`, `dead_lettered`, …"""
        return sum(getattr(one, name) for one in self.partitions)

    def document(self) -> dict[str, Any]:
        """Return the verification as JSON."""
        return {**asdict(self), "outcome": self.verdict, "exit_code": self.exit_code}
