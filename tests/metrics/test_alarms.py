"""Each fault raises its alarm, and no other one: `promtool` evaluates the rules on series of each fault."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from frazil.metrics.alarm_rules import ALARMS, rules
from frazil.metrics.metric_registry import METRICS
from tests.support.debian import program

OF = 'pipeline="orders", topic="Orders", instance="a:1", job="frazil"'
MINUTES = 180


def series(name: str, values: str, labels: str = "") -> dict[str, str]:
    return {"series": f"{name}{{{OF}{', ' + labels if labels else ''}}}", "values": values}


def state(name: str, minutes: int = MINUTES) -> dict[str, str]:
    return series("frazil_pipeline_state", f"1x{minutes}", f'state="{name}"')


HEALTHY = [
    state("running"),
    series("frazil_freshness_seconds", f"20x{MINUTES}"),
    series("frazil_last_look_timestamp_seconds", f"0+60x{MINUTES}"),
    series("frazil_last_rejected_timestamp_seconds", f"60x{MINUTES}", 'reason="undecodable"'),
    series("frazil_last_event_timestamp_seconds", f"60x{MINUTES}", 'event="schema_incompatible"'),
    series("frazil_retention_used_ratio", f"0.2x{MINUTES}"),
    series("frazil_table_bytes", f"80000000000x{MINUTES}"),
    series("frazil_table_files", f"800x{MINUTES}", 'content="data"'),
    series("frazil_table_files", f"2x{MINUTES}", 'content="deletes"'),
]


def with_(*changed: dict[str, str]) -> list[dict[str, str]]:
    """Return the series of a healthy pipeline with some of them replaced, by name, or by name and label."""
    names = {
        (one["series"].split("{")[0], re.search('(reason|event|content)="[^"]*"', one["series"])) for one in changed
    }
    of = {(name, label.group() if label else "") for name, label in names}

    def is_kept(one: dict[str, str]) -> bool:
        label = re.search('(reason|event|content)="[^"]*"', one["series"])
        return (one["series"].split("{")[0], label.group() if label else "") not in of

    return [*filter(is_kept, HEALTHY), *changed]


STOPPED_LOOKS = series("frazil_last_look_timestamp_seconds", f"0x{MINUTES}")
FAULTS: dict[str, tuple[list[dict[str, str]], set[str]]] = {
    "healthy": (HEALTHY, set()),
    "late rows": (with_(series("frazil_freshness_seconds", f"900x{MINUTES}")), {"FrazilFreshness"}),
    "rows that are late 2 minutes of 15": (
        with_(series("frazil_freshness_seconds", "_ " + "900 " + " ".join(["20x5 900 20x6 900"] * 12))),
        {"FrazilFreshnessSlow"},
    ),
    "rows that were late an hour ago": (
        with_(series("frazil_freshness_seconds", "900x60 20x119")),
        set(),
    ),
    "a driver that begins with some late minutes": (
        [
            *(one for one in with_() if "freshness" not in one["series"]),
            series("frazil_freshness_seconds", "_x174 900x5"),
        ],
        set(),
    ),
    "a driver that is late before and after a restart": (
        [
            *(one for one in with_() if "freshness" not in one["series"]),
            series("frazil_freshness_seconds", "20x150 900x15 _x14"),
            {"series": f"frazil_freshness_seconds{{{OF.replace('a:1', 'b:1')}}}", "values": "_x168 900x11"},
        ],
        {"FrazilFreshness"},
    ),
    "a dead letter": (
        with_(series("frazil_last_rejected_timestamp_seconds", "60x170 10200x9", 'reason="undecodable"')),
        {"FrazilDeadLetters"},
    ),
    "the first dead letter of a new driver": (
        with_(series("frazil_last_rejected_timestamp_seconds", "_x175 10500x4", 'reason="too_short"')),
        {"FrazilDeadLetters"},
    ),
    "old dead letters of a driver that was not scraped": (
        with_(series("frazil_last_rejected_timestamp_seconds", "60x160 _x12 60x7", 'reason="undecodable"')),
        set(),
    ),
    "a decision that an operator must make": (
        with_(state("suspended"), STOPPED_LOOKS, series("frazil_freshness_seconds", f"0+60x{MINUTES}")),
        {"FrazilSuspended"},
    ),
    "a failure": (
        with_(state("failed"), STOPPED_LOOKS, series("frazil_freshness_seconds", f"0+60x{MINUTES}")),
        {"FrazilFailed"},
    ),
    "an outage": (
        with_(state("retrying"), STOPPED_LOOKS, series("frazil_freshness_seconds", f"0+60x{MINUTES}")),
        {"FrazilServiceUnavailable"},
    ),
    "a short outage": (
        with_(
            series("frazil_pipeline_state", "1x169 _x10", 'state="running"'),
            series("frazil_pipeline_state", "_x170 1x9", 'state="retrying"'),
        ),
        set(),
    ),
    "an incompatible schema": (
        with_(series("frazil_last_event_timestamp_seconds", "60x175 10560x4", 'event="schema_incompatible"')),
        {"FrazilSchemaIncompatible"},
    ),
    "a batch that does not end": (
        with_(series("frazil_last_look_timestamp_seconds", "0+60x160 9600x19")),
        {"FrazilNoProgress"},
    ),
    "a driver that is gone": (
        [{**one, "values": f"{one['values'].split('x')[0]}x160"} for one in HEALTHY],
        {"FrazilNoDriver"},
    ),
    "a driver that another one replaced": (
        [
            *({**one, "values": f"{one['values'].split('x')[0]}x160"} for one in HEALTHY),
            *({**one, "series": one["series"].replace("a:1", "b:1")} for one in HEALTHY),
        ],
        set(),
    ),
    "a drain that ended, whose file stays": (
        with_(state("finished"), STOPPED_LOOKS, series("frazil_freshness_seconds", f"900x{MINUTES}")),
        set(),
    ),
    "a drain that did not start again": (
        with_(state("finished"), series("frazil_last_look_timestamp_seconds", f"-86400x{MINUTES}")),
        {"FrazilNoDriver"},
    ),
    "a drain that waits for its topic, whose file stays": (with_(state("waiting"), STOPPED_LOOKS), set()),
    "a drain that waited and did not start again": (
        with_(state("waiting"), series("frazil_last_look_timestamp_seconds", f"-86400x{MINUTES}")),
        {"FrazilNoDriver"},
    ),
    "the file of a drain that ended, beside a driver that hangs": (
        [
            *(with_(state("finished"), STOPPED_LOOKS)),
            {**state("running"), "series": state("running")["series"].replace("a:1", "b:1")},
            {**STOPPED_LOOKS, "series": STOPPED_LOOKS["series"].replace("a:1", "b:1")},
            {"series": f"frazil_freshness_seconds{{{OF.replace('a:1', 'b:1')}}}", "values": f"900x{MINUTES}"},
        ],
        {"FrazilNoProgress", "FrazilFreshness"},
    ),
    "a drain that ended without a file": ([state("finished", 160)], set()),
    "records that Kafka deletes soon": (
        with_(series("frazil_retention_used_ratio", f"0.7x{MINUTES}")),
        {"FrazilRetention"},
    ),
    "small files": (with_(series("frazil_table_bytes", f"80000000x{MINUTES}")), {"FrazilSmallFiles"}),
}


def evaluated(
    folder: Path, cases: dict[str, tuple[list[dict[str, str]], set[str]]]
) -> subprocess.CompletedProcess[str]:
    """Have promtool evaluate the rules on the series of each case, and compare the alarms of the last minute."""
    (folder / "rules.yml").write_text(rules())
    tests: list[dict[str, Any]] = []
    for name, (given, raised) in cases.items():
        expected = []
        for alarm in ALARMS:
            # The annotations and labels have a test of their own: here only which alarms are raised counts.
            expr = f'count(ALERTS{{alertname="{alarm.name}", alertstate="firing"}}) > bool 0 or vector(0)'
            value = 1 if alarm.name in raised else 0
            expected.append(
                {"expr": expr, "eval_time": f"{MINUTES - 1}m", "exp_samples": [{"labels": "{}", "value": value}]}
            )
        tests.append({"name": name, "interval": "1m", "input_series": given, "promql_expr_test": expected})
    document = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests}
    (folder / "tests.yml").write_text(json.dumps(document))
    command = [program("promtool"), "test", "rules", "tests.yml"]
    return subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=120, check=False)


def test_each_fault_raises_its_alarm_and_no_other(tmp_path: Path) -> None:
    result = evaluated(tmp_path, FAULTS)
    assert result.returncode == 0, result.stdout + result.stderr
    raised = {name for _, names in FAULTS.values() for name in names}
    assert raised == {alarm.name for alarm in ALARMS}


def test_a_fault_without_its_alarm_fails_the_test(tmp_path: Path) -> None:
    assert evaluated(tmp_path, {"late rows": (FAULTS["late rows"][0], set())}).returncode != 0


def test_an_alarm_has_a_summary_and_a_runbook(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(rules(60))
    command = [program("promtool"), "check", "rules", "rules.yml"]
    checked = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, timeout=60, check=False)
    assert checked.returncode == 0, checked.stdout
    record, *alerts = (rule for group in yaml.safe_load(rules(60))["groups"] for rule in group["rules"])
    assert "> bool 60" in record["expr"]
    for alert, alarm in zip(alerts, ALARMS, strict=True):
        assert alert["annotations"]["runbook_url"] == f"docs/guides/alarms.md#{alarm.name.lower()}"
        assert alert["annotations"]["summary"].startswith("{{ $labels.pipeline }}: ")


def test_rules_use_metrics_of_the_registry() -> None:
    used = set(re.findall(r"\bfrazil_[a-z_]+", " ".join(alarm.expression for alarm in ALARMS)))
    assert used <= {metric.name for metric in METRICS}


@pytest.mark.parametrize("alarm", ALARMS, ids=lambda alarm: alarm.name)
def test_each_alarm_has_a_runbook(alarm: Any, root: Path) -> None:
    page, _, anchor = alarm.runbook.partition("#")
    headings = [
        line.removeprefix("## ").lower() for line in (root / page).read_text().splitlines() if line[:3] == "## "
    ]
    assert anchor in headings
