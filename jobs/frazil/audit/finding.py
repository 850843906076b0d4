"""The findings of a verification, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from frazil.exit_codes import Exit

SHOWN = 20  # ranges that a finding names; it counts all


class Outcome(StrEnum):
    """The result of a verification.

    `PROVEN`: each record that was read is where sentence 3 of the design says, as far as `Depth` goes. `NOT_PROVEN`: something is
    found that contradicts it. `UNCHECKED`: nothing contradicts it, and something that the proof needs could not be known.
    """

    PROVEN = "proven"
    NOT_PROVEN = "not_proven"
    UNCHECKED = "unchecked"

    @property
    def exit_code(self) -> int:
        """Return the exit code: 0 proven, 1 not proven, 5 could not be checked."""
        return {Outcome.PROVEN: Exit.SUCCESS, Outcome.NOT_PROVEN: Exit.DECISION_REQUIRED}.get(self, Exit.UNCHECKED)


class Depth(StrEnum):
    """The part of the counted rows that a verification read; public, as `--json` prints it.

    `COUNTED`: commits and manifests agree; some rows were not read, or were read by an earlier verification. `KEYS_READ`: the
    key of each row of an upsert table, and topic, partition and offset of each row of the other tables. `VALUES_READ`: all columns
    of all files, with the checksums of their pages.
    """

    COUNTED = "counted"
    KEYS_READ = "keys_read"
    VALUES_READ = "values_read"


class Flaw(StrEnum):
    """The kinds of findings; public, as `--json` prints them.

    Records: `MISSING` ones are in neither table, nor skipped, nor explained; `EXCESS` ones are, and were also counted
    as skipped or explained; `DOUBLED` ones are twice in one table, `IN_BOTH` ones in the table and in its dead
    letters; `OUT_OF_RANGE` ones are of offsets that the ledger does not say were read; `UNPLACED` rows do not say which
    record they were. `OTHER_KEYS`: the rows of an upsert table are as many as its commits count, and of other keys.

    Files: `FILE_LOST`, a data or delete file of the current snapshot; `MANIFEST_LOST`, a manifest or manifest list of
    any snapshot that is kept; `FILE_ALTERED` exists with another size or other rows than was written;
    `FILE_UNREADABLE` is no data file any more.

    The ledger: `HOLE`, a commit does not start where the one before it ended; `MISCOUNTED`, what a commit says of
    itself does not add up; `UNTAGGED`, a commit that the pipeline's tag does not follow; `ROLLED_BACK`, the head of
    either table is behind its last commit; `MISMATCH`, the dead-letter table is not the one that got the earlier dead
    letters. `UNFINISHED`, a decision's dead letters are not appended yet: no loss, the next run appends them;
    `DECISION_LOST`, they cannot be, as its file does not exist. `SIDE_AHEAD`, there are dead letters of commits that the table
    does not have: it was rolled back, and its tag was moved too.

    A second landing of the topic: `ROW_ABSENT`, keys that the topic has and the table has not; `ROW_LEFT`, keys that the table
    has and the topic has not; `ROW_DIFFERS`, rows with other values than their key's last record.

    Unchecked: `NO_TABLE`, `NO_LEDGER` or `NO_TOTALS` (a ledger that does not reach back to the beginning) leave nothing
    to compare with; `EQUALITY_DELETES`, rows deleted by value, which only an engine can apply; `FORMAT_NOT_READ`, another engine's
    data file of a format, or with values, that only an engine reads; `NOT_REPLAYED`, the topic does not
    have all that the table is made of, or could not be landed again. `NOT_COMPARED`: the tables of a topic have no offsets that all
    of them read by one and the same route.
    """

    MISSING = "missing"
    EXCESS = "excess"
    DOUBLED = "doubled"
    IN_BOTH = "in_both"
    OUT_OF_RANGE = "out_of_range"
    UNPLACED = "unplaced"
    OTHER_KEYS = "other_keys"
    FILE_LOST = "file_lost"
    MANIFEST_LOST = "manifest_lost"
    FILE_ALTERED = "file_altered"
    FILE_UNREADABLE = "file_unreadable"
    HOLE = "hole"
    MISCOUNTED = "miscounted"
    UNTAGGED = "untagged"
    ROLLED_BACK = "rolled_back"
    MISMATCH = "mismatch"
    UNFINISHED = "unfinished"
    DECISION_LOST = "decision_lost"
    SIDE_AHEAD = "side_ahead"
    NO_TABLE = "no_table"
    NO_LEDGER = "no_ledger"
    NO_TOTALS = "no_totals"
    EQUALITY_DELETES = "equality_deletes"
    FORMAT_NOT_READ = "format_not_read"
    ROW_ABSENT = "row_absent"
    ROW_LEFT = "row_left"
    ROW_DIFFERS = "row_differs"
    NOT_REPLAYED = "not_replayed"
    NOT_COMPARED = "not_compared"

    @property
    def outcome(self) -> Outcome:
        """The outcome of a verification with such a finding."""
        return Outcome.UNCHECKED if self in _UNKNOWN else Outcome.NOT_PROVEN


_UNKNOWN = frozenset(
    {
        Flaw.NO_TABLE,
        Flaw.NO_LEDGER,
        Flaw.NO_TOTALS,
        Flaw.EQUALITY_DELETES,
        Flaw.FORMAT_NOT_READ,
        Flaw.NOT_REPLAYED,
        Flaw.NOT_COMPARED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong: where it is, what it is as a sentence, and which records, as far as they are known.

    `ranges` are the first offsets concerned, `count` is how many records are. For a flaw of files, `count` is theirs.
    """

    flaw: Flaw
    where: str
    what: str
    partition: int | None = None
    ranges: tuple[Range, ...] = ()
    count: int | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def worst(findings: tuple[Finding, ...]) -> Outcome:
    """Return the outcome of all findings: a contradiction outweighs what could not be known."""
    outcomes = {finding.flaw.outcome for finding in findings}
    return next((one for one in (Outcome.NOT_PROVEN, Outcome.UNCHECKED) if one in outcomes), Outcome.PROVEN)


@dataclass(frozen=True, slots=True)
class Range:
    """The offsets from `start` up to and without `end`."""

    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return str(self.start) if len(self) == 1 else f"{self.start} to {self.end - 1}"
