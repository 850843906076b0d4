"""Rules about plans that lose data."""

from __future__ import annotations

from collections.abc import Iterator

from policies.finding import Finding
from policies.holds_data import HOLDS_DATA
from policies.resource_values import Facts
from policies.resources import Reviewed


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
