"""Write docs/reference/metrics.md from the registry: python -m tests.support.metrics_page"""

from __future__ import annotations

from pathlib import Path

from frazil.metrics.emf import UNITS
from frazil.metrics.metric_registry import COUNTED, METRICS, Metric

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
TOP = """# Metrics

`python -m tests.support.metrics_page` writes this page from the registry. `frazil metrics list` prints the same. Names and labels are a contract: they change with a major version only. [Monitoring](../guides/monitoring.md) has
the ways to get them.

Each metric of a pipeline has the labels `pipeline`, `topic` and `group`. `frazil_run_info` and `frazil_cpu_seconds_total` are of the process.

| Prometheus, OpenTelemetry | kind | unit | further labels | CloudWatch | meaning |
| --- | --- | --- | --- | --- | --- |
"""
CLOUDWATCH = """
OpenTelemetry has no `_total`. CloudWatch's metrics are in the namespace of the environment, with the dimension `pipeline`, and `group` if the pipeline has one; those by reason have `reason`, too. CloudWatch also counts these events:
"""


def page() -> str:
    """Return the page."""
    rows = (
        f"| `{m.name}` | {m.kind} | {m.unit.value} | {', '.join(m.labels)} | {_in_cloudwatch(m)} | {m.meaning} |"
        for m in METRICS
    )
    counted = ", ".join(f"`{name}`" for name in COUNTED)
    return f"{TOP}" + "\n".join(rows) + f"\n{CLOUDWATCH}{counted}.\n"


def _in_cloudwatch(metric: Metric) -> str:
    if metric.name == "frazil_batch_seconds_total":
        return ", ".join(f"`{name}`" for name in UNITS if name.endswith("_seconds") and name != "freshness_seconds")
    return f"`{metric.emf}`" if metric.emf else ""


if __name__ == "__main__":
    PAGE.write_text(page())
