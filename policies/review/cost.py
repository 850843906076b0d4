"""The monthly cost of an environment, estimated from its resources, its runs and assumptions about its use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from frazil.declaration import Pipeline, Spark
from frazil.declaration.checks.problems import InvalidDeclaration
from frazil.declaration.documents.from_json import from_json
from frazil.rollout.desired import INGEST, MAINTAIN, Worker, Workers, job_name
from frazil.rollout.function_settings import EXECUTION
from policies.resources import TYPE, Json, Resource, Watch, embedded, policy, watch
from policies.review.prices import Prices

_FREE_DISK_GB = 20
_FREE_GLUE = Decimal(1_000_000)
_CONF = re.compile(r"--conf (spark\.[^\s=]+)=(\S+)")
_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_MINUTES = {"minute": 1, "hour": 60, "day": 1440}
_UNREADABLE = (InvalidDeclaration, KeyError, TypeError, ValueError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The runs of a job. `every_minutes` is None for a continuous run."""

    job: str
    every_minutes: int | None
    workers: Workers
    application: str = ""
    """The id of the application on which they start; empty or a placeholder if it is not known yet."""

    @property
    def is_maintenance(self) -> bool:
        """True for runs of a maintenance job."""
        return self.job.partition("-")[0] == MAINTAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The estimate of a month: the amount of each service. `pipelines` are the landed ones.

    `missing` names schedules and desired states that could not be counted.
    """

    amounts: Mapping[str, Decimal]
    missing: tuple[str, ...] = ()
    pipelines: tuple[str, ...] = ()

    @property
    def total(self) -> Decimal:
        """The sum of all services."""
        return sum(self.amounts.values(), Decimal(0))

    def of(self, service: str) -> Decimal:
        """Return the amount of one service."""
        return self.amounts.get(service, Decimal(0))


def estimate(
    resources: Sequence[Resource], pipelines: Iterable[Pipeline], prices: Prices, *, left: Sequence[str] = ()
) -> Estimate:
    """Estimate the monthly cost of resources. `left` names removed pipelines, whose tables stay."""
    found, missing = _runs(resources)
    return replace(estimate_of(resources, found, pipelines, prices, left=left), missing=tuple(missing))


def estimate_of(
    resources: Sequence[Resource],
    found: Sequence[Run],
    pipelines: Iterable[Pipeline],
    prices: Prices,
    *,
    left: Sequence[str] = (),
) -> Estimate:
    """Estimate the monthly cost of resources, of runs, and of the pipelines that they land."""
    ingest = {run.job: run for run in found if not run.is_maintenance}
    declared = list(pipelines)
    batches = list(_batches(declared, ingest, prices))
    landed = [each.name for each, _ in batches]
    gb = sum(map(prices.gb_of, landed), Decimal(0))

    def requests(what: str) -> Decimal:
        names = {True: f"{what}_a_state_batch", False: f"{what}_a_batch"}
        return sum((count * prices.assumed(names[each.write.replaces_rows]) for each, count in batches), Decimal(0))

    written = requests("puts") * prices.price("s3_put_1000") + requests("gets") * prices.price("s3_get_1000")
    charged = max(Decimal(0), requests("glue_requests") - _FREE_GLUE)
    series = sum(_series(watch(each), declared) for each in resources if each.type == TYPE)
    metrics = len(landed) * prices.assumed("metrics_a_pipeline") * prices.price("metric_month")
    dashboards = sum(each.type == "aws_cloudwatch_dashboard" for each in resources) * prices.price("dashboard_month")
    return Estimate(
        amounts={
            "EMR Serverless": sum(
                (_emr(run, _architecture(resources, run.application), prices) for run in found), Decimal(0)
            ),
            "S3": storage({*landed, *left}, prices) + written / 1000,
            "Glue": charged / 1_000_000 * prices.price("glue_million_requests"),
            "NAT gateway": _nat(resources, gb, prices),
            "CloudWatch": metrics + dashboards + series * prices.price("alarm_series_month"),
            **confluent_services(resources, prices),
            "Confluent egress": gb * prices.price("egress_gb"),
        },
        pipelines=tuple(landed),
    )


def storage(pipelines: Iterable[str], prices: Prices) -> Decimal:
    """Return the cost of the files of pipelines' tables."""
    share = prices.assumed("stored_share") * prices.assumed("months_stored")
    return sum((prices.gb_of(each) * share for each in pipelines), Decimal(0)) * prices.price("s3_gb_month")


def confluent_services(resources: Iterable[Resource], prices: Prices) -> dict[str, Decimal]:
    """Return the cost of the cluster and of Tableflow."""
    listed = list(resources)
    clusters = sum(each.type == "confluent_kafka_cluster" and bool(each.blocks("standard")) for each in listed)
    topics = sum(each.type == "confluent_tableflow_topic" for each in listed)
    flow = prices.hours * prices.price("tableflow_topic_hour")
    flow += prices.assumed("gb_a_month") * prices.price("tableflow_gb")
    return {"Kafka cluster": clusters * prices.hours * prices.price("kafka_standard_hour"), "Tableflow": topics * flow}


def _batches(
    pipelines: Iterable[Pipeline], ingest: Mapping[str, Run], prices: Prices
) -> Iterator[tuple[Pipeline, Decimal]]:
    """Yield each pipeline that a job lands, and its batches in a month."""
    for each in pipelines:
        run = ingest.get(job_name(INGEST, each.group))
        if run is None or not isinstance(each.engine, Spark):
            continue
        if run.every_minutes is not None:
            yield each, _starts(run, prices)
        else:
            seconds = prices.hours * 3600 * prices.assumed("busy_share")
            yield each, seconds / each.engine.limits.target_seconds


def _series(watched: Watch | None, pipelines: Iterable[Pipeline]) -> int:
    """Return the time series of an alarm. An alarm on a query costs as much as one for each time series."""
    if watched is None or watched.pipeline is not None:
        return 1
    return sum(watched.covers(each.name, each.group) for each in pipelines)


def _emr(run: Run, architecture: str, prices: Prices) -> Decimal:
    kind, workers = "arm" if architecture == "ARM64" else "x86", run.workers
    executors = workers.least + (workers.most - workers.least) * prices.assumed("executor_share")
    hourly = Decimal(0)
    for count, size in ((Decimal(1), workers.driver), (executors, workers.executor)):
        disk = max(0, size.disk_gb - _FREE_DISK_GB) * prices.price("emr_disk_gb_hour")
        cores = size.cores * prices.price(f"emr_{kind}_vcpu_hour")
        hourly += count * (cores + size.memory_gb * prices.price(f"emr_{kind}_gb_hour") + disk)
    if run.every_minutes is None:
        return prices.hours * hourly
    minutes = prices.assumed("maintain_minutes" if run.is_maintenance else "drain_minutes")
    return _starts(run, prices) * min(minutes, Decimal(run.every_minutes)) / 60 * hourly


def _starts(run: Run, prices: Prices) -> Decimal:
    return prices.hours * 60 / run.every_minutes if run.every_minutes else Decimal(1)


def _nat(resources: Sequence[Resource], gb: Decimal, prices: Prices) -> Decimal:
    """Return the cost of NAT gateways, of their addresses, and of the traffic through them."""
    gateways, addresses = (sum(each.type == kind for each in resources) for kind in ("aws_nat_gateway", "aws_eip"))
    nat = prices.hours * (gateways * prices.price("nat_hour") + addresses * prices.price("public_ip_hour"))
    through = gb + prices.assumed("service_gb") if gb and gateways else Decimal(0)
    return nat + through * prices.price("nat_gb")


def _architecture(resources: Sequence[Resource], application: str) -> str:
    """Return the processors of an application by its id. If its id is not known yet, this deployment creates it."""
    found = [each for each in resources if each.type == "aws_emrserverless_application" and each.text("architecture")]
    by_id = {each.text("id"): each.text("architecture") for each in reversed(found)}
    new = by_id.get("", next(iter(reversed(by_id.values())), "X86_64"))
    return by_id.get(application, new)


def _runs(resources: Iterable[Resource]) -> tuple[list[Run], list[str]]:
    """Return the declared runs, and the names of schedules and desired states that could not be parsed."""
    listed = list(resources)
    desired = {str(each.get("job", "")): each for each in embedded(listed) if "workers" in each}
    found: list[Run] = []
    unread: list[str] = []
    for each in listed:
        if each.type == "aws_scheduler_schedule" and each.values.get("state", "ENABLED") == "ENABLED":
            request = next((policy(target.get("input")) for target in each.blocks("target")), None) or {}
            if set(request) == {"job"}:
                continue  # a pass of the reconciler, which starts nothing by itself
            try:
                found.append(_scheduled(each, request, desired))
            except _UNREADABLE:
                unread.append(each.address)
    for job, document in desired.items():
        if document.get("mode", "follow") == "follow" and not document.get("is_stopped"):
            try:
                found.append(_desired(document, None))
            except _UNREADABLE:
                unread.append(f"desired state of {job}")
    return sorted(found, key=lambda run: run.job), sorted(unread)


def _scheduled(schedule: Resource, request: Json, desired: Mapping[str, Json]) -> Run:
    """Return the runs that a schedule starts itself, or lets the reconciler start with the workers of the desired state."""
    rate = _RATE.fullmatch(schedule.text("schedule_expression"))
    if rate is None:
        raise ValueError(schedule.text("schedule_expression"))
    minutes = int(rate[1]) * _MINUTES[rate[2]]
    if set(request) == {"job", EXECUTION}:
        return _desired(desired[request["job"]], minutes)
    settings = dict(_CONF.findall(request["JobDriver"]["SparkSubmit"]["SparkSubmitParameters"]))
    return Run(
        job=str((request.get("Tags") or {}).get("frazil:job") or schedule.text("name")),
        every_minutes=minutes,
        workers=Workers(
            driver=_worker(settings, "driver"),
            executor=_worker(settings, "executor"),
            least=int(settings["spark.dynamicAllocation.minExecutors"]),
            most=int(settings["spark.dynamicAllocation.maxExecutors"]),
        ),
        application=str(request.get("ApplicationId") or ""),
    )


def _desired(document: Json, every_minutes: int | None) -> Run:
    return Run(
        job=str(document.get("job", "")),
        every_minutes=every_minutes,
        workers=from_json(Workers, document["workers"], "workers"),
        application=str(document.get("application", "")),
    )


def _worker(settings: Mapping[str, str], who: str) -> Worker:
    sizes = (settings[f"spark.{who}.{part}"] for part in ("memory", "memoryOverhead"))
    memory_mb = sum(int(size[:-1]) * (1024 if size[-1].lower() == "g" else 1) for size in sizes)
    disk = settings.get(f"spark.emr-serverless.{who}.disk", "20G")
    return Worker(
        cores=int(settings[f"spark.{who}.cores"]), memory_gb=memory_mb // 1024, disk_gb=int(disk.rstrip("gG"))
    )
