"""The dashboard for Grafana, made from the registry.

The model: https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from frazil.metrics import metric_registry as registry
from frazil.metrics.metric_registry import Metric

OF = '{pipeline=~"$pipeline"}'
"""The pipelines that the reader has chosen."""
_SOURCE = {"type": "prometheus", "uid": "${source}"}
_WIDTH, _HEIGHT, _COLUMNS = 12, 8, 24


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel: its title, its query in PromQL, the legend of a series, and Grafana's unit."""

    title: str
    query: str
    legend: str
    unit: str
    about: str = ""


def _now(title: str, metric: Metric, unit: str, legend: str = "{{pipeline}}") -> Panel:
    return Panel(title, f"{metric.name}{OF}", legend, unit, metric.meaning)


def _rate(title: str, metric: Metric, unit: str, label: str = "") -> Panel:
    by = ", ".join(filter(None, ("pipeline", label)))
    legend = "{{pipeline}}" + (f" {{{{{label}}}}}" if label else "")
    return Panel(title, f"sum by ({by}) (rate({metric.name}{OF}[$__rate_interval]))", legend, unit, metric.meaning)


PANELS = (
    _now("Freshness", registry.FRESHNESS, "s"),
    _now("Lag", registry.LAG, "short"),
    _now("State", registry.STATE, "short", "{{pipeline}} {{state}}"),
    _rate("Records read", registry.READ, "cps"),
    _rate("Rows written", registry.LANDED, "wps"),
    _rate("Dead letters", registry.REJECTED, "cps", "reason"),
    _rate("Filtered and late", registry.FILTERED, "cps", "reason"),
    _rate("Seconds of batches by step", registry.BATCH_SECONDS, "percentunit", "step"),
    _rate("Events that need attention", registry.EVENTS, "cps", "event"),
    _now("Unread part of what Kafka has", registry.RETENTION, "percentunit"),
    _now("Table: bytes", registry.TABLE_BYTES, "bytes"),
    _now("Table: files", registry.FILES, "short", "{{pipeline}} {{content}}"),
    Panel(
        "CPU seconds for a million records",
        f"1e6 * sum(rate({registry.CPU.name}[$__rate_interval])) / sum(rate({registry.READ.name}[$__rate_interval]))",
        "all drivers",
        "s",
        registry.CPU.meaning,
    ),
)


def dashboard() -> str:
    """Return the dashboard as JSON, to import in Grafana."""
    variable = {"type": "query", "multi": True, "includeAll": True, "current": {"text": "All", "value": "$__all"}}
    query = f"label_values({registry.STATE.name}, pipeline)"
    document = {
        "uid": "frazil",
        "title": "Frazil",
        "tags": ["frazil"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"type": "datasource", "name": "source", "label": "Prometheus", "query": "prometheus"},
                {
                    **variable,
                    "name": "pipeline",
                    "label": "Pipeline",
                    "query": query,
                    "datasource": _SOURCE,
                    "refresh": 2,
                },
            ]
        },
        "panels": [_panel(number, panel) for number, panel in enumerate(PANELS)],
    }
    return json.dumps(document, indent=2) + "\n"


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    each = _COLUMNS // _WIDTH
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "gridPos": {"h": _HEIGHT, "w": _WIDTH, "x": number % each * _WIDTH, "y": number // each * _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [{"refId": "A", "expr": panel.query, "legendFormat": panel.legend, "datasource": _SOURCE}],
    }
