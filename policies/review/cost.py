"""The monthly cost of an environment, estimated from its resources, its runs and assumptions about its use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from policies.resources import TYPE, Resource, Watch, embedded, watch
from policies.review.data_effects.job_runs import Landed, Run, Size, pipelines, runs
from policies.review.prices import Prices


@dataclass(frozen=True, slots=True)
class Line:
    """One part of the bill: a month's amount, and the arithmetic that it comes from, in words."""

    service: str
    amount: Decimal
    how: str


def service_lines(resources: Sequence[Resource], prices: Prices) -> Iterator[Line]:
    """Yield the lines of the cluster and of Tableflow."""
    for each in resources:
        if each.type == "confluent_kafka_cluster" and each.blocks("standard"):
            amount = prices.hours * prices.price("kafka_standard_hour")
            yield Line("Kafka cluster", amount, "a standard cluster, its first eCKU")
    topics = sum(each.type == "confluent_tableflow_topic" for each in resources)
    if topics:
        gb = topics * prices.assumed("gb_a_month")
        amount = topics * prices.hours * prices.price("tableflow_topic_hour") + gb * prices.price("tableflow_gb")
        how = f"{topics} topics for {prices.hours:f} h, and {round(gb, 2).normalize():,f} GB"
        yield Line("Tableflow", Decimal(amount), how)


SERVICES = (
    "EMR Serverless", "S3", "Glue", "NAT gateway", "Interface endpoints", "CloudWatch", "Kafka cluster", "Tableflow",
    "Confluent egress",
)  # fmt: skip
_Landings = Sequence[tuple[Landed, Decimal]]  # pipelines, and how many batches each lands in a month
_FREE_DISK_GB = 20
_FREE_GLUE = Decimal(1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The estimate of a month. `missing` names items that could not be counted, `pipelines` the landed pipelines."""

    lines: tuple[Line, ...] = ()
    missing: tuple[str, ...] = ()
    pipelines: tuple[str, ...] = ()

    @property
    def total(self) -> Decimal:
        """The sum of all lines."""
        return sum((line.amount for line in self.lines), Decimal(0))

    def of(self, service: str) -> Decimal:
        """Return the lines of one service."""
        return sum((line.amount for line in self.lines if line.service == service), Decimal(0))


def estimate(resources: Iterable[Resource], prices: Prices, *, left: Sequence[str] = ()) -> Estimate:
    """Estimate the monthly cost of resources. `left` names removed pipelines, whose tables stay."""
    listed = list(resources)
    found, missing = runs(listed)
    made = estimate_of(listed, found, list(pipelines(embedded(listed))), prices, left=left)
    return replace(made, missing=tuple(missing))


def estimate_of(
    resources: Sequence[Resource],
    found: Sequence[Run],
    landed: Sequence[Landed],
    prices: Prices,
    *,
    left: Sequence[str] = (),
) -> Estimate:
    """Estimate the monthly cost of resources, of runs, and of the pipelines that they land."""
    ingest = {run.job: run for run in found if not run.is_maintenance}
    reads = {each.name: prices.gb_of(each.name) for each in landed if each.job in ingest}
    batches = [(each, _batches(each, ingest[each.job], prices)) for each in landed if each.job in ingest]
    kept = [*reads, *(name for name in left if name not in reads)]
    gb = sum(reads.values(), Decimal(0))
    egress = f"{_n(gb)} GB read by {_count(len(reads), 'pipeline')}"
    lines = [
        *(_emr(run, _architecture(resources, run.application), prices) for run in found),
        *_s3(kept, batches, prices),
        _glue(2 * len(kept), batches, prices),
        *_network(resources, gb, prices),
        *_cloudwatch(resources, landed, len(reads), prices),
        *service_lines(resources, prices),
        Line("Confluent egress", gb * prices.price("egress_gb"), egress),
    ]
    return Estimate(lines=tuple(line for line in lines if line.amount), pipelines=tuple(reads))


def _batches(pipeline: Landed, run: Run, prices: Prices) -> Decimal:
    """Return the batches of a pipeline in a month."""
    if run.every_minutes is not None:
        return _times(run, prices)
    return prices.hours * 3600 / pipeline.target_seconds * prices.assumed("busy_share")


def _requests(what: str, batches: _Landings, prices: Prices) -> Decimal:
    """Return how many requests batches make, of the kinds of `Prices.of_a_batch`."""
    made = (count * prices.of_a_batch(what, is_state=each.is_state) for each, count in batches)
    return sum(made, Decimal(0))


def _cloudwatch(
    resources: Sequence[Resource], landed: Sequence[Landed], running: int, prices: Prices
) -> Iterator[Line]:
    """Yield the metrics of pipelines that run, and the alarms. An alarm on a query costs as much as one for each time series."""
    metrics = running * prices.assumed("metrics_a_pipeline")
    how = f"{_n(metrics)} metrics of {_count(running, 'pipeline')}"
    yield Line("CloudWatch", metrics * prices.price("metric_month"), how)
    alarms = [each for each in resources if each.type == TYPE]
    series = sum(_series(watch(each), landed) for each in alarms)
    how = f"{_count(len(alarms), 'alarm')} on {_count(series, 'time series', 'time series')}"
    yield Line("CloudWatch", series * prices.price("alarm_series_month"), how)


def _series(watched: Watch | None, landed: Sequence[Landed]) -> int:
    if watched is None or watched.pipeline is not None:
        return 1
    return sum(watched.covers(each.name, each.group) for each in landed)


def _emr(run: Run, architecture: str, prices: Prices) -> Line:
    hours = _hours(run, prices)
    executors = run.least + (run.most - run.least) * prices.assumed("executor_share")
    kind = "arm" if architecture == "ARM64" else "x86"

    def summed(of: Mapping[str, Decimal]) -> Decimal:
        return of["driver"] + executors * of["executor"]

    sizes = {"driver": run.driver, "executor": run.executor}
    cores = summed({who: Decimal(size.cores) for who, size in sizes.items()})
    memory = summed({who: size.memory_gb for who, size in sizes.items()})
    disk = summed({who: Decimal(max(0, size.disk_gb - _FREE_DISK_GB)) for who, size in sizes.items()})
    hourly = (
        cores * prices.price(f"emr_{kind}_vcpu_hour")
        + memory * prices.price(f"emr_{kind}_gb_hour")
        + disk * prices.price("emr_disk_gb_hour")
    )
    how = (
        f"{run.job}: {_n(hours)} h a month ({_often(run, prices)}), a driver of {_told(run.driver)} and on average "
        f"{_n(executors)} executors of {_told(run.executor)}, {architecture}"
    )
    return Line("EMR Serverless", hours * hourly, how)


def _s3(kept: Sequence[str], batches: _Landings, prices: Prices) -> Iterator[Line]:
    share = prices.assumed("stored_share") * prices.assumed("months_stored")
    stored = sum((prices.gb_of(name) * share for name in kept), Decimal(0))
    how = f"{_n(stored)} GB in the tables of {_count(len(kept), 'pipeline')}"
    yield Line("S3", stored * prices.price("s3_gb_month"), how)
    puts, gets = (_requests(what, batches, prices) for what in ("puts", "gets"))
    amount = puts / 1000 * prices.price("s3_put_1000") + gets / 1000 * prices.price("s3_get_1000")
    count = sum((count for _, count in batches), Decimal(0))
    yield Line("S3", amount, f"{_n(count)} batches: {_n(puts)} writes and {_n(gets)} reads")


def _glue(tables: int, batches: _Landings, prices: Prices) -> Line:
    requests = _requests("glue_requests", batches, prices)
    amount = max(Decimal(0), requests - _FREE_GLUE) / 1_000_000 * prices.price("glue_million_requests")
    return Line("Glue", amount, f"{_n(requests)} requests and {tables} tables; the first million of either is free")


def _network(resources: Sequence[Resource], gb: Decimal, prices: Prices) -> Iterator[Line]:
    gateways, addresses = (sum(each.type == kind for each in resources) for kind in ("aws_nat_gateway", "aws_eip"))
    endpoints = [
        each
        for each in resources
        if each.type == "aws_vpc_endpoint" and each.values.get("vpc_endpoint_type") == "Interface"
    ]
    through = gb + prices.assumed("service_gb") if gb else Decimal(0)
    if gateways:
        hours = gateways * prices.hours
        amount = hours * prices.price("nat_hour") + through * prices.price("nat_gb")
        yield Line("NAT gateway", amount, f"{gateways} for {_n(hours)} h, and {_n(through)} GB through it")
        through = Decimal(0)
    if addresses:
        amount = addresses * prices.hours * prices.price("public_ip_hour")
        yield Line("NAT gateway", amount, _count(addresses, "public address", "public addresses"))
    if endpoints:
        zones = sum((_zones(each, prices) for each in endpoints), Decimal(0))
        amount = zones * prices.hours * prices.price("endpoint_hour") + through * prices.price("endpoint_gb")
        how = f"{len(endpoints)} in {_n(zones)} zones together, for {_n(prices.hours)} h, and {_n(through)} GB through them"
        yield Line("Interface endpoints", amount, how)


def _zones(endpoint: Resource, prices: Prices) -> Decimal:
    subnets = endpoint.values.get("subnet_ids")
    return Decimal(len(subnets)) if isinstance(subnets, list) and subnets else prices.assumed("unknown_zones")


def _architecture(resources: Sequence[Resource], application: str) -> str:
    """Return the processors of an application by its id. If its id is not known yet, this deployment creates it."""
    found = [each for each in resources if each.type == "aws_emrserverless_application" and each.text("architecture")]
    by_id = {each.text("id"): each.text("architecture") for each in reversed(found)}
    new = by_id.get("", next(iter(reversed(by_id.values())), "X86_64"))
    return by_id.get(application, new)


def _times(run: Run, prices: Prices) -> Decimal:
    """Return the runs per month."""
    return prices.hours * 60 / run.every_minutes if run.every_minutes else Decimal(1)


def _minutes(run: Run, prices: Prices) -> Decimal:
    """Return how long a run of a schedule lasts; at most until the next one."""
    assert run.every_minutes is not None
    name = "maintain_minutes" if run.is_maintenance else "drain_minutes"
    return min(prices.assumed(name), Decimal(run.every_minutes))


def _hours(run: Run, prices: Prices) -> Decimal:
    if run.every_minutes is None:
        return prices.hours
    return _times(run, prices) * _minutes(run, prices) / 60


def _often(run: Run, prices: Prices) -> str:
    if run.every_minutes is None:
        return "always"
    return f"{_n(_minutes(run, prices))} min each {run.every_minutes} min"


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number} {one}" if number == 1 else f"{number} {several or one + 's'}"


def _told(size: Size) -> str:
    return f"{size.cores} vCPU and {_n(size.memory_gb)} GB"


def _n(number: Decimal) -> str:
    """Format a number: `2,920`, `1.25`."""
    return f"{number:,.2f}".rstrip("0").rstrip(".")
