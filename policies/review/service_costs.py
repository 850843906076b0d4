"""The monthly cost of services that do not depend on runs: the Kafka cluster and Tableflow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from policies.resources import Resource
from policies.review.prices import Prices


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One part of the bill: a month's amount, and the arithmetic that it comes from, in words."""

    service: str
    amount: Decimal
    how: str


def service_lines(resources: Sequence[Resource], prices: Prices) -> Iterator[Line]:
    """Yield the lines of these services."""
    for each in resources:
        if each.type == "confluent_kafka_cluster" and each.blocks("standard"):
            amount = prices.hours * prices.price("kafka_standard_hour")
            yield Line(service="Kafka cluster", amount=amount, how="a standard cluster, its first eCKU")
    topics = sum(each.type == "confluent_tableflow_topic" for each in resources)
    if topics:
        gb = topics * prices.assumed("gb_a_month")
        amount = topics * prices.hours * prices.price("tableflow_topic_hour") + gb * prices.price("tableflow_gb")
        yield Line(
            service="Tableflow",
            amount=Decimal(amount),
            how=f"{topics} topics for {prices.hours:f} h, and {round(gb, 2).normalize():,f} GB",
        )
