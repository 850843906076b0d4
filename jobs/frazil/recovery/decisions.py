"""The decisions of an operator after a refusal, and the ledger that each makes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import reduce

from pyspark.sql import DataFrame

from frazil.clients.kafka import Span
from frazil.declaration import Pipeline
from frazil.declaration.formats import Bytes
from frazil.declaration.write_modes import WriteMode
from frazil.errors import InvalidInput
from frazil.job.context import JobContext
from frazil.lake.layout import prefix_of
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entry import Ranges
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.remembered_deletes import RememberedDeletes
from frazil.lake.ledger.stop import Stop
from frazil.lake.row_offsets import places


class Accepted(StrEnum):
    """The decisions of an operator, each after the refusal that names it.

    `TOPIC_RECREATED`: land the new topic from its beginning. `LOG_TRUNCATED`: continue from the ledger's offsets, or from the
    topic's end where it is before them; records that replaced others before it are not read. `LOG_TRUNCATED_REPLAY`: land these,
    from the first that is another one. `OFFSETS_LOST`: record the gap that retention made and continue after it.
    `ROLLED_BACK_REPLAY`: the rollback was meant to land the records again. `ROLLED_BACK_HOLD`: it was meant to remove the
    rows; continue from the ledger's offsets. The same two after a rollback of the dead-letter table: put its dead letters back, or
    give them up. `LEDGER_LOST`: take the offsets from the rows themselves. `SIDE_TABLE_REPLACED`: give up the dead letters that
    the dead-letter table lacks. `REJECTED_RECORDS`: keep the rejected records that the stop named as dead letters. Up to the
    topic's ends now, `REJECTED_SHARE` lands batches however much is rejected, `LATE_RECORDS` omits late records however many
    they are, `KEYS_MOVED` takes a key's records from several partitions, and after these each key may have another one than
    before, `DELETES_LOST` continues, though the deletes of some rows may be lost, and `SOURCE_TRUNCATED` keeps the rows that the
    source has truncated: truncates are dead letters. `REMEMBERED_DELETES_LOST` continues without the deleted keys whose files are
    gone or damaged. `MASK_FROM_NOW_ON` takes other masks than those of the table.
    """

    TOPIC_RECREATED = "topic-recreated"
    LOG_TRUNCATED = "log-truncated"
    LOG_TRUNCATED_REPLAY = "log-truncated-replay"
    OFFSETS_LOST = "offsets-lost"
    ROLLED_BACK_REPLAY = "rolled-back-replay"
    ROLLED_BACK_HOLD = "rolled-back-hold"
    LEDGER_LOST = "ledger-lost"
    SIDE_TABLE_REPLACED = "side-table-replaced"
    REJECTED_RECORDS = "rejected-records"
    REJECTED_SHARE = "rejected-share"
    LATE_RECORDS = "late-records"
    KEYS_MOVED = "keys-moved"
    DELETES_LOST = "deletes-lost"
    SOURCE_TRUNCATED = "source-truncated"
    REMEMBERED_DELETES_LOST = "remembered-deletes-lost"
    MASK_FROM_NOW_ON = "mask-from-now-on"


ENDS_OF_LOGS = (Accepted.TOPIC_RECREATED, Accepted.LOG_TRUNCATED, Accepted.LOG_TRUNCATED_REPLAY)
"""Decisions since which the offsets of a topic may be those of other records than before, whether they go back or not."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The ledger before, of the rows that the table has, and after; the offsets given up, by partition.

    `windows` are the offsets up to which it counts, by their name in `ledger.WINDOWS`; `remembered` are the deleted keys that the
    table remembers from now on, None for those of before; `records` are those that become dead letters. `rows` is how many rows
    another engine deleted, if the decision is about them.
    """

    event: str
    before: Offsets
    after: Offsets
    lost: Mapping[int, int] = field(default_factory=dict)
    windows: Mapping[str, Offsets] = field(default_factory=dict)
    remembered: RememberedDeletes | None = None
    records: Ranges | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        """Raise `InvalidInput` if what is given up is no number of records of one topic: no ledger may hold such a gap."""
        is_foreign = self.before.topic_id != self.after.topic_id
        if self.lost and (is_foreign or any(n <= 0 for n in self.lost.values())):
            what = f"{self.event} would record a wrong number of abandoned records, by partition: {dict(self.lost)}"
            do = "Nothing was changed. `frazil verify PIPELINE --deep` counts rows and dead letters"
            raise InvalidInput(what, where=f"topic {self.after.topic}", do=do)

    @property
    def goes_back(self) -> bool:
        """Return whether offsets will be read again that the ledger had passed, or offsets of another topic."""
        if self.event is Accepted.ROLLED_BACK_REPLAY or self.before.topic_id != self.after.topic_id:
            return True
        return any(self.after.at.get(p, 0) < o for p, o in self.before.at.items())

    @property
    def is_in_dead_letter_table(self) -> bool:
        """Return whether the dead-letter table gets the decision too: it says which dead letters cannot be landed again."""
        return self.goes_back or self.event in ENDS_OF_LOGS


def topic_recreated(committed: Offsets, topic: str, topic_id: str, spans: Mapping[int, Span]) -> Acceptance:
    """Return the new topic, from its beginning; `topic` is its name, another one if the pipeline was moved to another topic."""
    _happened(committed.topic_id != topic_id, Accepted.TOPIC_RECREATED, committed)
    at = {p: span.earliest for p, span in sorted(spans.items())}
    return Acceptance(Accepted.TOPIC_RECREATED, committed, Offsets(topic, topic_id, at))


def log_truncated(
    committed: Offsets, topic_id: str, spans: Mapping[int, Span], other: Collection[int] = ()
) -> Acceptance:
    """Return the ledger, with the topic's ends where it is past them. `other` partitions have grown again since."""
    at = {p: min(committed.at.get(p, 0), span.stable) for p, span in sorted(spans.items())}
    cut = {*other, *shorter(committed, spans)}
    _happened(committed.topic_id == topic_id and bool(cut), Accepted.LOG_TRUNCATED, committed)
    return Acceptance(Accepted.LOG_TRUNCATED, committed, _forgotten(committed, at, cut))


def log_truncated_replay(
    committed: Offsets, topic_id: str, spans: Mapping[int, Span], same_up_to: Mapping[int, int]
) -> Acceptance:
    """Return the ledger, with the offset up to which the log is the one that was read, where it is another one after it."""
    _happened(committed.topic_id == topic_id and bool(same_up_to), Accepted.LOG_TRUNCATED_REPLAY, committed)
    at = {p: committed.at.get(p, 0) for p in sorted(spans)} | dict(same_up_to)
    return Acceptance(Accepted.LOG_TRUNCATED_REPLAY, committed, _forgotten(committed, at, same_up_to.keys()))


def shorter(committed: Offsets, spans: Mapping[int, Span]) -> list[int]:
    """Return the partitions whose log ends before the ledger, or is gone."""
    return [p for p, offset in committed.at.items() if p not in spans or offset > spans[p].stable]


def _forgotten(committed: Offsets, at: Mapping[int, int], partitions: Collection[int]) -> Offsets:
    last = committed.last.forgotten(partitions) if committed.last is not None else None
    return Offsets(committed.topic, committed.topic_id, dict(sorted(at.items())), last)


def offsets_lost(committed: Offsets, topic_id: str, spans: Mapping[int, Span]) -> Acceptance:
    """Go on from the topic's first offsets where the ledger is before them; what lies between is lost.

    A partition that the ledger does not name was added after it began, so it is lost from offset 0. The last records stay known.
    """
    lost = {p: n for p, span in sorted(spans.items()) if (n := span.earliest - committed.at.get(p, 0)) > 0}
    _happened(committed.topic_id == topic_id and bool(lost), Accepted.OFFSETS_LOST, committed)
    before = {**dict.fromkeys(lost, 0), **committed.at}
    at = {**committed.at, **{p: spans[p].earliest for p in lost}}
    start = Offsets(committed.topic, topic_id, dict(sorted(before.items())))
    end = replace(start, at=dict(sorted(at.items())), last=committed.last)
    return Acceptance(Accepted.OFFSETS_LOST, start, end, lost)


def up_to_the_ends(event: Accepted, committed: Offsets, topic_id: str, spans: Mapping[int, Span]) -> Acceptance:
    """Return the ledger as it is, with the topic's ends, up to which the decision counts."""
    if committed.topic_id != topic_id:
        raise not_happened(event, f"topic {committed.topic}")
    ends = {p: max(span.stable, committed.at.get(p, 0)) for p, span in sorted(spans.items())}
    return Acceptance(
        event, committed, committed, windows={ledger.window_of(event): Offsets(committed.topic, topic_id, ends)}
    )


def rejected_records(committed: Offsets, topic_id: str, stop: Stop | None) -> Acceptance:
    """Return the ledger as it is, with the records at which the pipeline stopped."""
    is_so = stop is not None and stop.topic_id == committed.topic_id == topic_id and stop.at == committed.at
    if stop is None or not is_so or not stop.records or stop.until is None:
        raise not_happened(Accepted.REJECTED_RECORDS, f"topic {committed.topic}")
    until = Offsets(committed.topic, topic_id, stop.until)
    windows = {ledger.window_of(Accepted.REJECTED_RECORDS): until}
    return Acceptance(Accepted.REJECTED_RECORDS, committed, committed, windows=windows, records=stop.records)


def remembered_deletes_lost(committed: Offsets, known: RememberedDeletes, gone: Sequence[str]) -> Acceptance:
    """Return the ledger as it is, with the remembered deletes but for those in the files that are `gone`, or damaged."""
    _happened(bool(gone), Accepted.REMEMBERED_DELETES_LOST, committed)
    return Acceptance(Accepted.REMEMBERED_DELETES_LOST, committed, committed, remembered=known.without(gone))


def rolled_back_hold(committed: Offsets, head: Offsets, kept: Mapping[int, int]) -> Acceptance:
    """Return the ledger as the tag has it. `kept` counts, by partition, what of the offsets in between is accounted for: dead
    letters, declared skips, gaps; the rest is lost, as it was meant.
    """
    # A partition that the head does not name was added after it, so its records begin at 0.
    head = Offsets(head.topic, head.topic_id, {p: head.at.get(p, 0) for p in sorted({*head.at, *committed.at})})
    passed = {p: o - head.at[p] for p, o in committed.at.items()}
    lost = {p: n - kept.get(p, 0) for p, n in passed.items() if n - kept.get(p, 0)}
    return Acceptance(Accepted.ROLLED_BACK_HOLD, head, committed, lost)


def can_happen(event: Accepted, write: WriteMode) -> bool:
    """Return whether an event of the rows can happen in a table of this write mode."""
    if event in (Accepted.LATE_RECORDS, Accepted.REMEMBERED_DELETES_LOST):
        return write.replaces_rows and bool(write.order_columns)
    if event is Accepted.SOURCE_TRUNCATED and write.keeps_changes:
        return False  # a truncate is a row of it
    if event is Accepted.KEYS_MOVED:
        return write.replaces_rows and not write.order_columns
    return event is not Accepted.DELETES_LOST or write.has_key


def not_happened(event: Accepted, where: str) -> InvalidInput:
    """Return the error for an event that has not happened."""
    what = f"there is nothing to accept: {event} has not happened, or was accepted and no run has followed"
    return InvalidInput(what, where=where, do="Run the pipeline; a refusal names the command that decides it")


def _happened(is_so: bool, event: Accepted, committed: Offsets) -> None:
    if not is_so:
        raise not_happened(event, f"topic {committed.topic}")


LETTERS = ""  # what the columns of a dead letter's place begin with


def places_of_both(pipeline: Pipeline, job: JobContext, topic: str) -> DataFrame:
    """Return the places of all rows and dead letters of a topic, as `row_offsets.places` does."""
    table = pipeline.table
    has_key = isinstance(pipeline.topic.key, Bytes)
    rows = job.spark.table(f"{job.iceberg.name}.{table.identifier}")
    both = [places(rows, topic, prefix_of(pipeline), has_key=has_key)]
    if job.iceberg.exists(table.dead_letters):
        letters = job.spark.table(f"{job.iceberg.name}.{table.dead_letters}")
        both.append(places(letters, topic, LETTERS, has_key=True))
    return reduce(DataFrame.unionByName, both)
