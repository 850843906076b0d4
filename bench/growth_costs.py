"""The price of a TB with Frazil on EMR Serverless and with Tableflow, by list prices, and every assumption behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from bench.growth_model import TB, Cost, Parts, Setting, always_full, continuous, drained, tableflow
from bench.request_figures import GLUE, READS, WRITES, billed, billed_of_a_commit, in_series, price
from frazil.declaration.engines import Limits
from frazil.rollout.desired import Workers
from policies.review.prices import Prices

LATENCY_SECONDS = 0.05
START_SECONDS = 90.0
VOLUMES = (1000.0, 100.0, 10.0)
"""GB a day."""
_GIB = 2**30
_WHITE_PAPER = (
    "docs.aws.amazon.com/whitepapers/latest/s3-optimizing-performance-best-practices/"
    "timeouts-and-retries-for-latency-sensitive-applications.html"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the table: how Frazil runs, what a TB costs, and what Tableflow's list price is at the same volume."""

    says: str
    gb_a_day: float
    cost: Cost | None
    tableflow: Decimal


def setting(append: Mapping[str, Any], prices: Prices) -> Setting:
    """Return the deployment: the workers that a group has by default, with one executor, and the requests of an append."""
    workers = Workers()
    cores = workers.driver.cores + workers.executor.cores
    memory = workers.driver.memory_gb + workers.executor.memory_gb
    starts = append["starts"]
    return Setting(
        cores=workers.executor.cores,
        hourly=cores * prices.price("emr_x86_vcpu_hour") + memory * prices.price("emr_x86_gb_hour"),
        commit_seconds=in_series(append) * LATENCY_SECONDS,
        commit_price=price(billed_of_a_commit(append), prices),
        start_seconds=START_SECONDS,
        start_price=sum((price(billed(starts[of]["requests"]), prices) for of in ("proof", "idle")), Decimal(0)),
        most_rows=Limits().max_rows,
    )


def cost_lines(parts: Parts, deployed: Setting, prices: Prices) -> Iterator[Line]:
    """Yield the lines of one shape: full workers, then volumes that they do not fill."""
    for seconds in (10.0, 60.0):
        full = always_full(parts, deployed, seconds)
        if full is not None:
            says = f"`follow`, workers always busy, a batch at least every {seconds:.0f} s"
            yield _line(says, full.gb_a_day, full, prices)
    for volume in VOLUMES:
        cost = continuous(parts, deployed, 60.0, volume)
        yield _line("`follow`, a batch every minute", volume, cost, prices)
        yield _line("`drain` every 15 minutes", volume, drained(parts, deployed, 900.0, volume), prices)
        yield _line("`drain` every hour", volume, drained(parts, deployed, 3600.0, volume), prices)


def _line(says: str, volume: float, cost: Cost | None, prices: Prices) -> Line:
    listed = tableflow(prices.price("tableflow_gb"), prices.price("tableflow_topic_hour"), volume)
    return Line(says=says, gb_a_day=volume, cost=cost, tableflow=listed)


def assumptions(append: Mapping[str, Any], prices: Prices) -> Iterator[str]:
    """Yield every assumption behind the prices, one sentence each."""
    workers, deployed = Workers(), setting(append, prices)
    counted = billed_of_a_commit(append)
    egress = prices.price("egress_gb") * Decimal(TB) / _GIB
    yield f"Prices are list prices of {prices.region} in {prices.currency}, as known on {prices.date} (`policies/review/prices.json`): no discount, no free tier."
    for name in (
        "emr_x86_vcpu_hour",
        "emr_x86_gb_hour",
        "s3_put_1000",
        "s3_get_1000",
        "glue_million_requests",
        "tableflow_gb",
        "tableflow_topic_hour",
    ):
        one = prices.prices[name]
        yield f"`{name}`: {one.amount:f} for {one.unit}; source: {one.source}."
    yield (
        f"The workers are a driver and one executor of {workers.executor.cores} vCPU and {workers.executor.memory_gb} GB each, "
        f"x86, which is the default with `least=1`: {deployed.hourly:.3f} an hour. Both are paid from start to end, busy or not."
    )
    yield f"A vCPU does the work of one measured core, and the {deployed.cores} of the executor share the rows of a batch evenly."
    yield "The fixed part of a batch runs on the driver alone. Batches do not overlap, though Frazil stages one while it commits another."
    yield f"A batch has at most {deployed.most_rows:,.0f} rows, as by default."
    yield (
        f"A commit makes {counted[WRITES]:.1f} writes, {counted[READS]:.1f} reads and {counted[GLUE]:.1f} Glue requests, as counted for "
        f"an append of one data file. A batch that writes more files makes more."
    )
    yield (
        f"{in_series(append):.1f} of these wait for one another, each for {LATENCY_SECONDS * 1000:.0f} ms. AWS names tens of milliseconds "
        f"as the usual median of requests below 512 KB ({_WHITE_PAPER})."
    )
    yield f"A `drain` is paid for {START_SECONDS:.0f} s before its first batch: EMR's start and Spark's. No such start was measured."
    yield "A record has its measured size before compression, frame and key included. Both sides are paid by these bytes."
    yield "One topic is landed. Several share the workers of a job, and each pays for its own topic-hours of Tableflow."
    yield (
        f"Left out for Frazil: the reads from Confluent's cluster (up to {egress:.0f} a TB at the list price of egress), NAT or endpoints, "
        f"maintenance runs, logs. Tableflow's price is taken to include its reads and its maintenance."
    )
    yield "Left out on both sides: storage, the Kafka cluster, queries."
