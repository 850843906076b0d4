"""The bill of `frazil deploy cost`, worked out by hand, and equal to the estimate of real stacks."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from policies.resources import read, together
from policies.review.cost import Estimate, estimate
from policies.review.prices import price_table
from stacks.workflow.monthly_bill import bill, main
from tests.stacks.synthesised import EXAMPLE, stacks_of
from tests.support import missing_packages


def cents(side: Estimate) -> dict[str, str]:
    return {name: f"{amount:.2f}" for name, amount in side.amounts.items() if amount}


def test_fifty_topics_of_5_gb_a_day_by_hand() -> None:
    """50 x 5 x 730 / 24 = 7,604.17 GB a month. 2,920 drains of 6 min are 292 h. 7,604.17 / 20 = 380.2 core-hours need 2 executors:
    3 vCPU and 12 GB on ARM64, 3 x 0.048422 + 12 x 0.005314 = 0.209034, x 292 = 61.04; maintenance 40.56 h x 0.1567755 = 6.36.
    S3: 7,604.17 x 0.6 x 12 = 54,750 GB x 0.0245 = 1,341.375; 146,000 batches x 10 = 1.46 M: 7.884 + 0.6278.
    Glue: 22,000 beyond the first million. NAT: 730 x 0.052 + 7,605.17 x 0.052 = 433.43, and 730 x 0.005. CloudWatch: 50 x 8 x 0.30
    and (50 x 9 + 4) x 0.10 and a dashboard for 3. Egress: 7,604.17 x 0.05. Tableflow: 50 x 730 x 0.10 + 7,604.17 x 0.04, and the same tables."""
    own, flow, prices = bill(50, Decimal(5))
    assert cents(own) == {
        "EMR Serverless": "67.40",
        "S3": "1349.89",
        "Glue": "0.02",
        "NAT gateway": "437.08",
        "CloudWatch": "168.40",
        "Confluent egress": "380.21",
    }
    assert cents(flow) == {"S3": "1341.38", "Tableflow": "3954.17"}
    assert (f"{own.total:.2f}", f"{flow.total:.2f}") == ("2402.99", "5295.54")
    assert prices.assumptions["gb_a_month"].is_given


def test_the_bill_of_two_topics_is_the_estimate_of_the_stacks_of_dev() -> None:
    assert len(EXAMPLE) == 2
    synthesised = together(read(stack) for stack in stacks_of("dev").values())
    wanted = estimate(synthesised.resources, EXAMPLE, price_table())
    own, _, _ = bill(2, Decimal(50) * 24 / 730)
    assert cents(own) == cents(wanted)


def test_it_prints_the_date_the_assumptions_and_what_is_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--topics", "50", "--gb-a-day", "5"]) == 0
    printed = capsys.readouterr().out
    table = price_table()
    assert printed.startswith(
        f"50 topics of 5 GB a day each. USD a month, by list prices of {table.region} of {table.date}\n"
    )
    lines = [line.split() for line in printed.splitlines()]
    assert ["total", "2,402.99", "5,295.54"] in lines
    assert f"Not counted: {table.not_counted}." in printed
    for name in ("stored_share", "months_stored", "drain_minutes", "puts_a_batch"):
        assert table.assumptions[name].meaning in printed
    assert "GB that a vCPU of an executor lands in an hour: 20" in printed


@pytest.mark.parametrize(
    ("topics", "gb"), [("0", "5"), ("5", "0"), ("5", "-1"), ("5", "NaN"), ("5", "x"), ("90000", "900")]
)
def test_a_volume_that_is_none_or_that_no_job_lands_is_2(
    topics: str, gb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([f"--topics={topics}", f"--gb-a-day={gb}"]) == 2
    assert "Write numbers above 0" in capsys.readouterr().err


def test_the_command_needs_neither_project_nor_account_nor_the_packages_of_deployment(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "frazil.cli.main", "deploy", "cost", "--topics", "50", "--gb-a-day", "5"]
    (tmp_path / "sitecustomize.py").write_text(missing_packages.BLOCKED)
    shell = {"PYTHONPATH": str(tmp_path), "BLOCKED": "cdktf_cdktf_provider_aws"}
    ended = subprocess.run(command, cwd=tmp_path, env=shell, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert ["total", "2,402.99", "5,295.54"] in [line.split() for line in ended.stdout.splitlines()]
