"""`python -m stacks.workflow.monthly_bill --topics N --gb-a-day GB`: estimate a month of topics.

The deployment is that of a new project: drains every 15 minutes, a network with one NAT gateway, alarms of the group. Its
estimate is that of a review of such stacks. Exit codes: 0 printed, 2 invalid input. `frazil deploy cost` runs it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from decimal import ROUND_CEILING, Decimal

from frazil.declaration.checks.problems import InvalidDeclaration
from frazil.declaration.documents.to_json import to_json
from frazil.exit_codes import Exit
from frazil.release.manifest import Architecture
from frazil.rollout.desired import Workers
from frazil.rollout.function_settings import EXECUTION
from frazil.rollout.group_jobs import INGEST, MAINTAIN
from policies.resources import TYPE, Resource
from policies.review.cost import SERVICES, Estimate, estimate, service_lines
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
    own = estimate(_resources(topics, workers), prices)
    flows = [Resource(f"confluent_tableflow_topic.t{n}", "confluent_tableflow_topic", {}) for n in range(topics)]
    stored = next(line for line in own.lines if line.service == "S3" and "GB in the tables" in line.how)
    return own, Estimate(lines=(*service_lines(flows, prices), stored)), prices


def _resources(topics: int, workers: Workers) -> Iterator[Resource]:
    """Yield what costs of the stacks of a new project with these topics."""
    named = [{"name": f"t{n}", "topic": {"name": f"t{n}"}} for n in range(topics)]
    yield _document("pipelines", {"pipelines": named})
    yield Resource(
        "aws_emrserverless_application.a", "aws_emrserverless_application", {"architecture": Architecture.ARM64.value}
    )
    for job, sizes, rate in (
        (INGEST, workers, f"rate({SMALL.ingest_minutes} minutes)"),
        (MAINTAIN, SMALL.maintain, f"rate({SMALL.maintain_hours} hours)"),
    ):
        yield _document(job, {"job": job, "mode": "drain", "workers": to_json(sizes)})
        target = {"input": json.dumps({"job": job, EXECUTION: "x"})}
        called = {"schedule_expression": rate, "target": [target]}
        yield Resource(f"aws_scheduler_schedule.{job}", "aws_scheduler_schedule", called)
    for kind in ("aws_nat_gateway", "aws_eip"):
        yield Resource(f"{kind}.nat", kind, {})
    query = {
        "metric_query": [{"expression": 'SELECT MAX(freshness_seconds) FROM SCHEMA("x", pipeline) GROUP BY pipeline'}]
    }
    for n in range(_GROUP_ALARMS + _OTHER_ALARMS):
        yield Resource(f"{TYPE}.a{n}", TYPE, query if n < _GROUP_ALARMS else {})


def _document(name: str, content: dict[str, object]) -> Resource:
    return Resource(f"aws_s3_object.{name}", "aws_s3_object", {"content": json.dumps({"version": 1, **content})})


def main(arguments: Sequence[str]) -> int:
    """Print the bill and return the exit code that the module's docstring lists."""
    parser = argparse.ArgumentParser(prog="python -m stacks.workflow.monthly_bill")
    parser.add_argument("--topics", type=int, required=True)
    parser.add_argument("--gb-a-day", required=True)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    try:
        own, flow, prices = bill(chosen.topics, Decimal(chosen.gb_a_day))
    except (NotAssumed, ArithmeticError, InvalidDeclaration):
        print(
            f"error: no bill for {chosen.topics} topics of {chosen.gb_a_day} GB. Write numbers above 0", file=sys.stderr
        )
        return Exit.INVALID_INPUT
    if chosen.json:
        sides = {"frazil": own, "tableflow": flow}
        both = {name: {"total": side.total, "lines": list(map(asdict, side.lines))} for name, side in sides.items()}
        table = {"date": prices.date, "region": prices.region, "currency": prices.currency}
        print(
            json.dumps(
                {
                    **table,
                    **both,
                    "assumed": _assumed(prices),
                    "note": _OF_TABLEFLOW,
                    "not_counted": prices.not_counted,
                },
                default=str,
            )
        )
    else:
        print(_text(f"{chosen.topics} topics of {chosen.gb_a_day} GB a day each", own, flow, prices))
    return Exit.SUCCESS


def _text(what: str, own: Estimate, flow: Estimate, prices: Prices) -> str:
    lines = [f"{what}. {prices.currency} a month, by list prices of {prices.region} of {prices.date}", ""]
    lines += [f"{'':<20}{'Frazil':>12}{'Tableflow':>12}"]
    lines += [
        f"{each:<20}{own.of(each):>12,.2f}{flow.of(each):>12,.2f}" for each in SERVICES if own.of(each) or flow.of(each)
    ]
    lines += [f"{'total':<20}{own.total:>12,.2f}{flow.total:>12,.2f}"]
    for name, side in (("Frazil", own), ("Tableflow", flow)):
        lines += ["", f"{name}:", *(f"  {each.service} {each.amount:,.2f}: {each.how}" for each in side.lines)]
    lines += [
        "",
        "Assumed:",
        *(f"  {meaning}: {value}" for meaning, value in _assumed(prices).items()),
        f"  {_OF_TABLEFLOW}",
    ]
    return "\n".join([*lines, "", prices.note, f"Not counted: {prices.not_counted}."])


def _assumed(prices: Prices) -> dict[str, str]:
    """Return the assumptions of a bill by their meaning: tables are appended to, behind NAT."""
    used = {name: each for name, each in prices.assumptions.items() if "_state_" not in name and name not in _UNUSED}
    known = {each.meaning: f"{round(each.value, 2).normalize():f}" for each in used.values()}
    return {**known, "GB that a vCPU of an executor lands in an hour": f"{GB_A_CORE_HOUR}"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
