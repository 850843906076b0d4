"""Rules about how long Kafka retains records that are not landed yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from policies.finding import Finding
from policies.resource_values import Facts
from policies.resources import Reviewed

RULE = "retention_under_lag"
_KAFKAS_OWN_MS = 7 * 86_400_000  # retention.ms of a topic that does not set it


def retention_under_lag(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report too short retention: a record that Kafka deletes before it is landed is lost, and the pipeline stops.

    The limit is that of the pipeline's freshness alarm. A shorter retention of a topic without such an alarm is reported too.
    """
    for topic in reviewed.of("confluent_kafka_topic"):
        name, kept_ms = topic.text("topic_name"), _retention_ms(topic.values)
        lag = facts.lag_seconds(name)
        if lag is not None and 0 <= kept_ms < lag * 1000:
            what = f"records are kept for {kept_ms // 1000} s, rows may come {lag} s late"
            yield Finding(RULE, topic.address, what, f"Keep them longer than {lag} s, several times as long is usual")
    for change in reviewed.changes:
        if change.type != "confluent_kafka_topic" or change.verb != "update":
            continue
        before, after = _retention_ms(change.before), _retention_ms(change.after)
        is_cut = 0 <= after < before or (before < 0 <= after)
        if is_cut and facts.lag_seconds(str(change.after.get("topic_name"))) is None:
            what = f"retention is cut to {after // 1000} s, and nothing says how late rows of this topic may be"
            yield Finding(
                RULE, change.address, what, "Give its pipeline's documents and alarms to the review, or leave it"
            )


def _retention_ms(values: Mapping[str, Any]) -> int:
    """Return the retention in milliseconds; -1 for no deletion, also for compaction without deletion."""
    config: Mapping[str, Any] = values.get("config") or {}
    if config.get("cleanup.policy") == "compact":
        return -1
    return int(config.get("retention.ms", _KAFKAS_OWN_MS))
