"""`frazil metrics`: the metrics of runs, and files by which Prometheus, Alertmanager and Grafana use them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from frazil.cli.console import out, say, show_json, table
from frazil.cli.options import AsJson, flag
from frazil.errors import InvalidInput
from frazil.metrics import alarm_rules, dashboard, notifications
from frazil.metrics.alarm_rules import FRESHNESS_SECONDS
from frazil.metrics.metric_registry import METRICS
from frazil.metrics.notifications import Receiver


def list_(as_json: AsJson = False) -> None:
    """List the metrics of runs.

    For example: frazil metrics list

    Each metric of a pipeline also has the labels pipeline, topic and group.

    Exit codes: 0 listed
    """
    if as_json:
        show_json({"metrics": [asdict(metric) for metric in METRICS]})
        return
    shown = table("metric", "kind", "labels", "meaning", drop=("meaning",))
    for metric in METRICS:
        shown.add_row(metric.name, metric.kind.value, ", ".join(metric.labels), metric.meaning)
    out().print(shown)


def write(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the files; it is made if needed.")],
    freshness: Annotated[
        int, flag("--freshness", "Age of rows at which they are late.", "SECONDS", min=1)
    ] = FRESHNESS_SECONDS,
    to: Annotated[Receiver, flag("--to", "Receiver of notifications.")] = Receiver.WEBHOOK,
) -> None:
    """Write alarms, notifications and a dashboard.

    For example: frazil metrics write monitoring --to slack

    Writes frazil-rules.yml for Prometheus.
    Writes alertmanager.yml for Alertmanager, with example addresses.
    Writes frazil-dashboard.json for Grafana.
    Replaces files of these names.

    Exit codes: 0 written; 2
    """
    files = {
        "frazil-rules.yml": alarm_rules.rules(freshness),
        "alertmanager.yml": notifications.configuration(to),
        "frazil-dashboard.json": dashboard.dashboard(),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)
            say(f"wrote {folder / name}")
    except OSError as error:
        raise InvalidInput(
            f"{folder} cannot be written: {error.strerror or error}", where="FOLDER", do="Give another folder"
        ) from None
