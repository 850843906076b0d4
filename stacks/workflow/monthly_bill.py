"""`python -m stacks.workflow.monthly_bill --topics N --gb-a-day GB`: estimate a month of topics.

The deployment is that of a new project: drains every 15 minutes, a network with one NAT gateway, a dashboard, alarms of the group.
Its estimate is that of a review of such stacks. Exit codes: 0 printed, 2 invalid input. `frazil deploy cost` runs it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal

from frazil.declaration import Pipeline, Table, Topic
from frazil.declaration.checks.problems import InvalidDeclaration
from frazil.exit_codes import Exit
from frazil.release.manifest import Architecture
from frazil.rollout.desired import INGEST, MAINTAIN
from policies.resources import TYPE, Resource
from policies.review.cost import Estimate, Run, confluent_services, estimate_of, storage
from policies.review.prices import NotAssumed, Prices, price_table
from stacks.spec.job_settings import SMALL

GB_A_CORE_HOUR = Decimal(20)
"""GB that a vCPU of an executor lands in an hour; 43 were measured for Avro (docs/benchmarks.md)."""
_GROUP_ALARMS, _OTHER_ALARMS = 9, 4
"""Alarms with a time series for each pipeline; alarms of an environment and a reconciler, each on one metric."""
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
        Run(job=INGEST, every_minutes=SMALL.ingest_minutes, workers=workers),
        Run(job=MAINTAIN, every_minutes=SMALL.maintain_hours * 60, workers=SMALL.maintain),
    ]
    pipelines = [Pipeline(topic=Topic(f"t{n}", value="avro"), table=Table(f"b.t{n}")) for n in range(topics)]
    flows = [Resource(f"confluent_tableflow_topic.t{n}", "confluent_tableflow_topic", {}) for n in range(topics)]
    stored = storage((each.name for each in pipelines), prices)
    flow = Estimate(amounts={"S3": stored, **confluent_services(flows, prices)})
    return estimate_of(list(_resources()), jobs, pipelines, prices), flow, prices


def _resources() -> Iterator[Resource]:
    """Yield what costs of the stacks of a new project, besides its runs."""
    application = "aws_emrserverless_application"
    yield Resource(f"{application}.a", application, {"architecture": Architecture.ARM64.value})
    for kind in ("aws_nat_gateway", "aws_eip", "aws_cloudwatch_dashboard"):
        yield Resource(f"{kind}.one", kind, {})
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
    rows = {each: (amount, flow.of(each)) for each, amount in own.amounts.items() if amount or flow.of(each)}
    rows["total"] = (own.total, flow.total)
    lines = [f"{what}. {prices.currency} a month, by list prices of {prices.region} of {prices.date}", ""]
    lines += [f"{'':<20}{'Frazil':>12}{'Tableflow':>12}"]
    lines += [f"{name:<20}{one:>12,.2f}{other:>12,.2f}" for name, (one, other) in rows.items()]
    # Tables are appended to, with a NAT gateway.
    used = [each for name, each in prices.assumptions.items() if "_state_" not in name and name != "busy_share"]
    lines += ["", "Assumed:", *(f"  {each.meaning}: {round(each.value, 2).normalize():f}" for each in used)]
    lines += [f"  GB that a vCPU of an executor lands in an hour: {GB_A_CORE_HOUR}", f"  {_OF_TABLEFLOW}", ""]
    return "\n".join([*lines, prices.note, f"Not counted: {prices.not_counted}."])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
