"""Rules about plans that lose data."""

from __future__ import annotations

from collections.abc import Iterator

from policies.finding import Finding
from policies.holds_data import HOLDS_DATA
from policies.resource_values import Facts
from policies.resources import Reviewed


def data_lost(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """What holds data cannot be made again by applying the code once more. A replacement is a destruction with another after it."""
    for change in reviewed.changes:
        if change.verb in {"delete", "replace"} and change.type in HOLDS_DATA:
            forced = f", forced by {', '.join(change.forced_by)}" if change.forced_by else ""
            done = "destroyed" if change.verb == "delete" else "destroyed and made again"
            what = f"it is {done}{forced}; with it goes {HOLDS_DATA[change.type]}"
            do = "Undo what causes it; if it is meant, empty it by hand first, and turn both keys"
            yield Finding("data_lost", change.address, what, do)


def partitions_lowered(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Kafka takes no partition away: Terraform deletes the topic with all its records, and makes one whose offsets begin at 0."""
    for change in reviewed.changes:
        before, after = change.before.get("partitions_count"), change.after.get("partitions_count")
        if change.type == "confluent_kafka_topic" and before and after and int(after) < int(before):
            what = f"partitions go from {before} to {after}"
            yield Finding("partitions_lowered", change.address, what, f"Leave it at {before}, or use a new topic")
