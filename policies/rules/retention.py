"""Rules about lost data: what a plan deletes, and how long Kafka retains records that are not landed yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policies.resource_changes import Change
from policies.resource_values import Facts
from policies.resources import HOLDS_DATA, Finding, Reviewed


def data_lost(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report the destruction or replacement of resources that hold data: applying the code again does not restore the data."""
    for change in reviewed.changes:
        if change.verb in {"delete", "replace"} and change.type in HOLDS_DATA:
            forced = f", forced by {', '.join(change.forced_by)}" if change.forced_by else ""
            done = "deleted" if change.verb == "delete" else "replaced"
            what = f"it is {done}{forced}; this loses {HOLDS_DATA[change.type]}"
            do = "Undo its cause. If it is intended, empty it by hand first, and turn both keys"
            yield Finding("data_lost", change.address, what, do)


def partitions_lowered(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report fewer partitions: Kafka cannot remove one, so Terraform deletes the topic with all records and creates it again."""
    for change in reviewed.changes:
        before, after = change.before.get("partitions_count"), change.after.get("partitions_count")
        if change.type == "confluent_kafka_topic" and before and after and int(after) < int(before):
            what = f"partitions go from {before} to {after}, so the topic is replaced and loses all records that are not landed"
            yield Finding("partitions_lowered", change.address, what, f"Leave it at {before}, or use a new topic")


RULE = "retention_under_lag"
_NEVER = -1
_DEFAULTS = {
    # Kafka's own, of a topic that does not set it
    "retention.ms": 7 * 86_400_000,
    "retention.bytes": _NEVER,
    "min.compaction.lag.ms": 0,
    "delete.retention.ms": 86_400_000,
}
_GIVE = "Give its pipeline's documents and alarms to the review, or leave it"


def retention_under_lag(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report too short retention: a record that Kafka deletes before it is landed is lost, and the pipeline may not notice.

    The limit is that of the pipeline's freshness alarm. A shorter retention of a topic without such an alarm is reported too.
    So is a new limit of its size, because no declaration says how many bytes come in that time.

    Compaction deletes a record that is not the newest one of its key, once it is `min.compaction.lag.ms` old. Only a table of
    the topic's current state needs no other record. It needs the deletes: Kafka keeps them `delete.retention.ms` longer.
    `segment.ms`, `segment.bytes` and `max.compaction.lag.ms` decide how much later Kafka deletes, and never how early.
    """
    for topic in reviewed.of("confluent_kafka_topic"):
        yield from _under_lag(topic.address, topic.text("topic_name"), _kept(topic.values), facts)
    for change in reviewed.changes:
        if change.type == "confluent_kafka_topic" and change.verb == "update":
            yield from _cut(change, _kept(change.before), _kept(change.after), facts)


@dataclass(frozen=True, slots=True)
class _Kept:
    """The time for which Kafka keeps a record at least; `_NEVER` is no limit."""

    records_ms: int
    """The age from which it deletes a record."""
    partition_bytes: int
    """The size of a partition from which it deletes the oldest records."""
    replaced_ms: int
    """The time for which compaction keeps a record that a newer one of its key replaces."""
    deletes_ms: int
    """The time for which compaction keeps a record without a value."""


def _kept(values: Mapping[str, Any]) -> _Kept:
    config = {**_DEFAULTS, **(values.get("config") or {})}
    cleanup = {each.strip() for each in str(config.get("cleanup.policy", "delete")).split(",")}  # may be both
    replaced_ms = int(config["min.compaction.lag.ms"]) if "compact" in cleanup else _NEVER
    return _Kept(
        records_ms=int(config["retention.ms"]) if "delete" in cleanup else _NEVER,
        partition_bytes=int(config["retention.bytes"]) if "delete" in cleanup else _NEVER,
        replaced_ms=replaced_ms,
        deletes_ms=replaced_ms + int(config["delete.retention.ms"]) if "compact" in cleanup else _NEVER,
    )


def _under_lag(address: str, name: str, kept: _Kept, facts: Facts) -> Iterator[Finding]:
    """Yield what a topic keeps for a shorter time than its rows may be late."""
    lag = facts.lag_seconds(name)
    if lag is None:
        return
    late = f"rows may come {lag} s late"
    if 0 <= kept.records_ms < lag * 1000:
        what = f"records are kept for {kept.records_ms // 1000} s, {late}"
        yield Finding(RULE, address, what, f"Keep them longer than {lag} s, several times as long is usual")
    if 0 <= kept.deletes_ms < lag * 1000 and facts.needs_deletes(name):
        what = f"deletes are kept for {kept.deletes_ms // 1000} s, {late}, and a row stays if its delete is never read"
        yield Finding(RULE, address, what, f"Set delete.retention.ms to more than {lag} s")


def _cut(change: Change, before: _Kept, after: _Kept, facts: Facts) -> Iterator[Finding]:
    """Yield what a changed topic keeps for a shorter time than before, unless the lag allows it."""
    name = str(change.after.get("topic_name"))
    lag = facts.lag_seconds(name)
    unknown = "and nothing says how late rows of this topic may be"
    if lag is None and _is_cut(before.records_ms, after.records_ms):
        what = f"retention is cut to {after.records_ms // 1000} s, {unknown}"
        yield Finding(RULE, change.address, what, _GIVE)
    if lag is None and 0 <= after.deletes_ms < before.deletes_ms and facts.needs_deletes(name):
        what = f"deletes are kept for {after.deletes_ms // 1000} s only, {unknown}"
        yield Finding(RULE, change.address, what, _GIVE)
    if _is_cut(before.partition_bytes, after.partition_bytes):
        what = f"a partition keeps {after.partition_bytes} bytes only: Kafka deletes a record by the size of what follows, "
        what += "whatever its age and whether it is landed"
        yield Finding(RULE, change.address, what, "Leave it, or set retention.ms, which is held against the lag")
    is_too_soon = _is_cut(before.replaced_ms, after.replaced_ms) and (lag is None or after.replaced_ms < lag * 1000)
    if is_too_soon and not facts.needs_last_records_only(name):
        what = f"compaction {'is new' if before.replaced_ms == _NEVER else 'begins sooner'}, and removes a record as soon as "
        what += f"a newer one has its key, {after.replaced_ms // 1000} s after it was written at the earliest, "
        what += "and nothing says how late rows may come" if lag is None else f"and rows may come {lag} s late"
        do = "Leave it, or set min.compaction.lag.ms to more than rows may be late. Only an upsert without key and order_by "
        do += "loses nothing by it"
        yield Finding(RULE, change.address, what, do)


def _is_cut(before: int, after: int) -> bool:
    """Return whether a limit is new or lower."""
    return after >= 0 and (before < 0 or after < before)
