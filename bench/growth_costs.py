"""The price of a TB with Frazil on EMR Serverless and with Tableflow, by list prices, and every assumption behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from bench.growth_model import TB, Cost, Parts, Setting, always_full, continuous, drained, tableflow
from bench.request_figures import billed, billed_of_a_commit, in_series, price
from frazil.declaration.engines import Limits
from frazil.rollout.desired import Workers
from policies.review.prices import Prices

LATENCY_SECONDS = 0.05
START_SECONDS = 90.0
VOLUMES = (1000.0, 100.0, 10.0)
"""GB a day."""
_GIB = 2**30
MODES = ("`follow`, a batch a minute", "`drain` every 15 minutes", "`drain` every hour")
FULL_SECONDS = 10.0
"""The least interval of batches of workers that are always busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the table: what a TB costs at a volume in each mode, and what Tableflow's list price is.

    A mode that cannot keep up has no cost. Workers that are always busy have the first mode only.
    """

    gb_a_day: float
    costs: tuple[Cost | None, ...]
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
    full = always_full(parts, deployed, FULL_SECONDS)
    if full is not None:
        yield _line(full.gb_a_day, (full,), prices)
    for volume in VOLUMES:
        drains = (drained(parts, deployed, seconds, volume) for seconds in (900.0, 3600.0))
        yield _line(volume, (continuous(parts, deployed, 60.0, volume), *drains), prices)


def _line(volume: float, costs: tuple[Cost | None, ...], prices: Prices) -> Line:
    listed = tableflow(prices.price("tableflow_gb"), prices.price("tableflow_topic_hour"), volume)
    return Line(gb_a_day=volume, costs=costs, tableflow=listed)


def assumptions(append: Mapping[str, Any], prices: Prices) -> Iterator[str]:
    """Yield every assumption of the prices."""
    workers, deployed = Workers(), setting(append, prices)
    egress = prices.price("egress_gb") * Decimal(TB) / _GIB
    yield (
        f"List prices of {prices.region} in {prices.currency} of {prices.date} (`policies/review/prices.json`; some are unverified), no free tiers. "
        f"Both sides pay for one topic's bytes before compression."
    )
    yield (
        f"A driver and one executor of {workers.executor.cores} vCPU and {workers.executor.memory_gb} GB each, x86, {deployed.hourly:.3f} an hour. "
        f"In the first line of a shape they are always busy, with a batch at least every {FULL_SECONDS:.0f} s. "
        f"A vCPU does the work of one measured core. Batches have at most {deployed.most_rows:,.0f} rows, and do not overlap."
    )
    yield (
        f"{in_series(append):.1f} requests of a commit (append, one data file) wait for one another, each for {LATENCY_SECONDS * 1000:.0f} ms. "
        f"A `drain` is paid for {START_SECONDS:.0f} s before its first batch."
    )
    yield (
        f"Omitted for Frazil: reads from Confluent's cluster (up to {egress:.0f} a TB), NAT or endpoints, maintenance, logs. "
        f"Tableflow's price is taken to include reads and maintenance. Omitted for both: storage, Kafka, queries."
    )
