"""`python -m stacks.workflow.monthly_bill --topics N --gb-a-day GB`: estimate a month of topics.

The deployment is that of a new project: drains every 15 minutes, a network with one NAT gateway, alarms of the group. Its
estimate is that of a review of such stacks. Exit codes: 0 printed, 2 invalid input. `frazil deploy cost` runs it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal

from frazil.declaration.checks.problems import InvalidDeclaration
from frazil.exit_codes import Exit
from frazil.release.manifest import Architecture
from frazil.rollout.group_jobs import INGEST, MAINTAIN
from policies.resources import TYPE, Resource
from policies.review.cost import SERVICES, Estimate, estimate_of, service_lines
from policies.review.data_effects.job_runs import Landed, run_of
from policies.review.prices import NotAssumed, Prices, price_table
from stacks.spec.job_settings import SMALL

GB_A_CORE_HOUR = Decimal(20)
"""GB that a vCPU of an executor lands in an hour; 43 were measured for Avro (docs/benchmarks.md)."""
_GROUP_ALARMS, _OTHER_ALARMS = 7, 4
"""Alarms with a time series for each pipeline; alarms of an environment and a reconciler, each on one metric."""
_UNUSED = ("busy_share", "unknown_zones")
_OF_TABLEFLOW = (
    "Tableflow's tables are as large as Frazil's, and its price includes its reads, requests and maintenance"
)


def bill(topics: int, gb_a_day: Decimal) -> tuple[Estimate, Estimate, Prices]:
    """Return a month of Frazil and of Tableflow, and the prices with the volume. Raises `NotAssumed`."""
    if topics < 1 or not gb_a_day > 0:
        raise NotAssumed("numbers above 0 are needed")
    hours = price_table().hours
    prices = price_table({"gb_a_month": gb_a_day * hours / 24})
    drained = hours * 60 / SMALL.ingest_minutes * prices.assumed("drain_minutes") / 60
    gb = topics * prices.assumed("gb_a_month")
    needed = int((gb / GB_A_CORE_HOUR / drained / SMALL.ingest.executor.cores).to_integral_value(ROUND_CEILING))
    usual = SMALL.ingest.least + (SMALL.ingest.most - SMALL.ingest.least) * prices.assumed("executor_share")
    workers = SMALL.ingest if needed <= usual else replace(SMALL.ingest, least=needed, most=needed)
    jobs = [
        run_of(INGEST, workers, every_minutes=SMALL.ingest_minutes),
        run_of(MAINTAIN, SMALL.maintain, every_minutes=SMALL.maintain_hours * 60),
    ]
    own = estimate_of(list(_resources()), jobs, [Landed(f"t{n}", None, 10) for n in range(topics)], prices)
    flows = [Resource(f"confluent_tableflow_topic.t{n}", "confluent_tableflow_topic", {}) for n in range(topics)]
    stored = next(line for line in own.lines if line.service == "S3" and "GB in the tables" in line.how)
    return own, Estimate(lines=(*service_lines(flows, prices), stored)), prices


def _resources() -> Iterator[Resource]:
    """Yield what costs of the stacks of a new project, besides its runs."""
    application = "aws_emrserverless_application"
    yield Resource(f"{application}.a", application, {"architecture": Architecture.ARM64.value})
    for kind in ("aws_nat_gateway", "aws_eip"):
        yield Resource(f"{kind}.nat", kind, {})
    expression = 'SELECT MAX(freshness_seconds) FROM SCHEMA("x", pipeline) GROUP BY pipeline'
    for n in range(_GROUP_ALARMS + _OTHER_ALARMS):
        query = {"metric_query": [{"expression": expression}]} if n < _GROUP_ALARMS else {}
        yield Resource(f"{TYPE}.a{n}", TYPE, query)


def main(arguments: Sequence[str]) -> int:
    """Print the bill and return the exit code that the module's docstring lists."""
    parser = argparse.ArgumentParser(prog="python -m stacks.workflow.monthly_bill")
    parser.add_argument("--topics", type=int, required=True)
    parser.add_argument("--gb-a-day", required=True)
    chosen = parser.parse_args(arguments)
    try:
        own, flow, prices = bill(chosen.topics, Decimal(chosen.gb_a_day))
    except (NotAssumed, ArithmeticError, InvalidDeclaration):
        what = f"no bill for {chosen.topics} topics of {chosen.gb_a_day} GB"
        print(f"error: {what}. Write numbers above 0", file=sys.stderr)
        return Exit.INVALID_INPUT
    print(_text(f"{chosen.topics} topics of {chosen.gb_a_day} GB a day each", own, flow, prices))
    return Exit.SUCCESS


def _text(what: str, own: Estimate, flow: Estimate, prices: Prices) -> str:
    amounts = {each: (own.of(each), flow.of(each)) for each in SERVICES if own.of(each) or flow.of(each)}
    rows = {**amounts, "total": (own.total, flow.total)}
    lines = [f"{what}. {prices.currency} a month, by list prices of {prices.region} of {prices.date}", ""]
    lines += [f"{'':<20}{'Frazil':>12}{'Tableflow':>12}"]
    lines += [f"{name:<20}{one:>12,.2f}{other:>12,.2f}" for name, (one, other) in rows.items()]
    for name, side in (("Frazil", own), ("Tableflow", flow)):
        lines += ["", f"{name}:", *(f"  {each.service} {each.amount:,.2f}: {each.how}" for each in side.lines)]
    assumed = (f"  {meaning}: {value}" for meaning, value in _assumed(prices).items())
    lines += ["", "Assumed:", *assumed, f"  {_OF_TABLEFLOW}"]
    return "\n".join([*lines, "", prices.note, f"Not counted: {prices.not_counted}."])


def _assumed(prices: Prices) -> dict[str, str]:
    """Return the assumptions of a bill by their meaning: tables are appended to, with a NAT gateway."""
    used = {name: each for name, each in prices.assumptions.items() if "_state_" not in name and name not in _UNUSED}
    known = {each.meaning: f"{round(each.value, 2).normalize():f}" for each in used.values()}
    return {**known, "GB that a vCPU of an executor lands in an hour": f"{GB_A_CORE_HOUR}"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
