"""A commit that is asked for, and the one that is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.key_totals import KeyAccount
from frazil.lake.ledger.next_offsets import Offsets, canonical
from frazil.lake.ledger.totals import Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """The offsets and the account of what was staged: all that a commit says beside its files.

    `committed` are the table's offsets when the batch was planned (`None`: no ledger yet); `topic_id` is the topic's id as asked
    again after staging. `windows` are those that an operator's
    decision begins, by their names in `ledger.WINDOWS`; other commits carry them on. `over_rollback` is an operator's word that
    a head behind the tag is meant. `staged_us` is when the batch was staged, microseconds since 1970: its dead letters have it
    as `rejected_at`. `on` is the snapshot whose entry the commit was decided on, where equal offsets are not enough; `on_head`
    is the head that it was decided on. `settled` is the snapshot of the entry whose decision on dead letters is known to be
    finished. `keys` is the account of the keys that an operator's decision makes; other commits carry it on. `mode` is
    the write mode of the rows with their key, as `ledger.made_for` gives it; None for a commit without rows. `replay` is
    the value of `ledger.REPLAY` for a commit of dead letters.
    """

    pipeline: str
    run: str
    version: str
    start: Offsets
    end: Offsets
    committed: Offsets | None
    topic_id: str
    counts: Counts = field(default_factory=Counts)
    schema_ids: tuple[int, ...] = ()
    valid_through: int | None = None
    accepted: str | None = None
    windows: Mapping[str, Offsets] = field(default_factory=dict)
    over_rollback: bool = False
    staged_us: int | None = None
    on: int | None = None
    on_head: int | None = None
    settled: int | None = None
    keys: KeyAccount | None = None
    mode: str | None = None
    replay: str | None = None

    def summary(self, table_uuid: str) -> dict[str, str]:
        """Return the snapshot's summary entries."""
        entries = {
            ledger.FORMAT: ledger.FORMAT_VERSION,
            ledger.PIPELINE: self.pipeline,
            ledger.COMMIT_ID: self.commit_id(table_uuid),
            ledger.START: str(self.start),
            ledger.END: str(self.end),
            ledger.COUNTS: str(self.counts),
            ledger.SCHEMA_IDS: canonical(list(self.schema_ids)),
            ledger.RUN: self.run,
            ledger.VERSION: self.version,
        }
        if self.valid_through is not None:
            entries[ledger.VALID_THROUGH] = str(self.valid_through)
        if self.accepted is not None:
            entries[ledger.EVENTS] = self.accepted
        if self.staged_us is not None:
            entries[ledger.STAGED_AT] = str(self.staged_us)
        if self.replay is not None:
            entries[ledger.REPLAY] = self.replay
        return entries

    def commit_id(self, table_uuid: str) -> str:
        """See `ledger.commit_id`."""
        return ledger.commit_id(self.pipeline, table_uuid, self.start, self.end, self.replay)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Data files of a table that are `gone`, and the `files` that replace them: the same rows with other values."""

    gone: tuple[Java, ...]
    files: tuple[Java, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """The further entries and actions of a commit.

    `summary` has further entries; if it names a decision on dead letters, that gets the next number, which is above
    `numbered_from` too. A commit that `finishes` one is of the dead-letter table, and has no totals of its own. With `restore` the
    head is first set back to the newest entry, over a rollback that only moved it; with `clear` all rows go first. `rewritten`
    returns the files of a loaded table that others replace in the same commit; None if none is to be replaced.
    """

    summary: Mapping[str, str] = field(default_factory=dict)
    numbered_from: int = 0
    finishes: bool = False
    restore: bool = False
    clear: bool = False
    rewritten: Callable[[Java], Rewritten | None] = lambda table: None


NOTHING = Extra()


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that exists: its snapshot, and whether it was found rather than made.

    `number` is that of the table's newest decision on its dead-letter table, as the commit has it. `sizes` are those of the
    table after the commit, by the names of an event; an earlier commit that was found has none.
    """

    snapshot_id: int
    found: bool
    number: int | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)


class Committer(Protocol):
    """A job as far as a commit needs it; `frazil.job.context.JobContext` is one.

    `stopping` says whether the job is to end. `run` and `version` are written into the ledger. `clock` is in seconds since
    1970. `wait` sleeps for a number of seconds, and ends early if the job is to stop. `failpoint` marks a step at which a test
    may interfere (see `frazil.job.failpoints`).
    """

    @property
    def iceberg(self) -> Iceberg:
        """The catalog."""

    @property
    def run(self) -> str:
        """The run's name."""

    @property
    def version(self) -> str:
        """The version of Frazil."""

    def stopping(self) -> bool:
        """Return whether the job is to end."""

    def clock(self) -> float:
        """Return the time."""

    def new_id(self) -> str:
        """Return a new name that no other file has."""

    def wait(self, seconds: float, /) -> None:
        """Wait."""

    def failpoint(self, step: str, /) -> None:
        """Mark a step."""
