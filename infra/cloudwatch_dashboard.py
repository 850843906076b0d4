"""The CloudWatch dashboard of an environment: the metrics that jobs write, by pipeline."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from frazil.metrics.emf import UNITS
from frazil.metrics.metric_registry import COUNTED, FRESHNESS, LAG, LANDED, METRICS, READ, RETENTION, SAMPLES, Metric
from infra.tf import CloudwatchDashboard, Construct

PERIOD_SECONDS = 300
"""The period of a point. CloudWatch keeps points of this period for 63 days, and those of a minute for 15."""
_WIDTH, _HEIGHT, _COLUMNS = 12, 6, 2
"""The size of a widget on CloudWatch's grid of 24 columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Widget:
    """A graph of metrics, with a series for each value of the dimensions besides `group`."""

    title: str
    metrics: tuple[str, ...]
    statistic: str
    by: tuple[str, ...] = ("pipeline",)


def widgets() -> tuple[Widget, ...]:
    """Return the widgets, those that an operator looks at first at the top."""
    by_reason = [each for each in METRICS if each.emf and each.labels == ("reason",)]
    steps = tuple(name for name in SAMPLES if name in UNITS)
    return (
        _gauge("Freshness, seconds", FRESHNESS),
        _gauge("Lag, offsets", LAG),
        Widget(title="Records read", metrics=(READ.emf,), statistic="Sum"),
        Widget(title="Rows written", metrics=(LANDED.emf,), statistic="Sum"),
        *(
            Widget(
                title=f"Records {each.emf}, by reason",
                metrics=(each.emf,),
                statistic="Sum",
                by=("pipeline", "reason"),
            )
            for each in by_reason
        ),
        Widget(title="Longest batch by step, seconds", metrics=steps, statistic="Maximum"),
        Widget(title="Events that need attention", metrics=COUNTED, statistic="Sum"),
        _gauge("Unread part of what Kafka has. At 1, records are lost", RETENTION),
    )


def _gauge(title: str, metric: Metric) -> Widget:
    return Widget(title=title, metrics=(metric.emf,), statistic="Maximum")


class Dashboard(Construct):
    """The dashboard of an environment. A new pipeline or group appears with its first report.

    The syntax: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
    """

    def __init__(self, scope: Construct, name: str, *, dashboard: str, namespace: str, region: str) -> None:
        """`dashboard` is its name, which is unique in the account: dashboards have no region."""
        super().__init__(scope, name)
        body = {"widgets": [_drawn(at, each, namespace, region) for at, each in enumerate(widgets())]}
        # Labels have CloudWatch's own `${…}`, which Terraform must not evaluate.
        text = json.dumps(body).replace("${", "$${")
        CloudwatchDashboard(self, "dashboard", dashboard_name=dashboard, dashboard_body=text)


def _drawn(at: int, widget: Widget, namespace: str, region: str) -> dict[str, Any]:
    row, column = divmod(at, _COLUMNS)
    return {
        "type": "metric",
        "x": column * _WIDTH,
        "y": row * _HEIGHT,
        "width": _WIDTH,
        "height": _HEIGHT,
        "properties": {
            "title": widget.title,
            "region": region,
            "view": "timeSeries",
            "stat": widget.statistic,
            "period": PERIOD_SECONDS,
            "yAxis": {"left": {"min": 0}},
            "metrics": [[each] for each in _searches(widget, namespace)],
        },
    }


def _searches(widget: Widget, namespace: str) -> Iterator[dict[str, str]]:
    """Yield a search for the pipelines without a group, and one for those of groups, whose metrics have one dimension more.

    The syntax: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/search-expression-syntax.html. A search returns
    at most 500 series.
    """
    names = " OR ".join(f'"{each}"' for each in widget.metrics)
    for id_, dimensions in (("plain", widget.by), ("grouped", ("group", *widget.by))):
        found = f'{{"{namespace}",{",".join(dimensions)}}} MetricName=({names})'
        yield {
            "id": id_,
            "expression": f"SEARCH('{found}', '{widget.statistic}', {PERIOD_SECONDS})",
            "label": _label(dimensions, is_named=len(widget.metrics) > 1),
        }


def _label(dimensions: Sequence[str], *, is_named: bool) -> str:
    shown = [*(f"Dim.{each}" for each in dimensions), *(["MetricName"] if is_named else [])]
    return " ".join(f"${{PROP('{each}')}}" for each in shown)
