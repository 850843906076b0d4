"""What is wanted, as an object: read as written, named by content, refused with every problem."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.declaration import InvalidDeclaration
from frazil.rollout.desired import Worker, Workers, desired_document, parse_desired
from tests.support.rollout_world import DOCUMENT, desired


def test_what_is_written_is_read() -> None:
    wanted = desired(3, arguments=("--every-seconds=5",), workers=Workers(driver=Worker(cores=1, memory_gb=4), most=9))
    assert parse_desired(desired_document(wanted)) == wanted


def test_two_that_differ_in_anything_have_other_names() -> None:
    different: list[dict[str, Any]] = [
        {},
        {"generation": 2},
        {"release": f"releases/1.0.1/{'a' * 64}/manifest.json"},
        {"environment": DOCUMENT},
        {"arguments": ("--every-seconds=5",)},
        {"workers": Workers(most=5)},
        {"workers": Workers(driver=Worker(cores=2, memory_gb=8))},
        {"is_stopped": True},
        {"stopped": ("orders",)},
        {"application": "app2"},
        {"log_group": "/x"},
    ]
    names = {desired(**{"generation": 1, **given}).digest for given in different}
    assert len(names) == len(different)


def test_a_field_that_is_left_out_and_one_that_has_its_default_are_the_same() -> None:
    document = json.loads(desired_document(desired()))
    sparse = {key: value for key, value in document.items() if key not in ("grace_seconds", "workers", "mode")}
    assert parse_desired(sparse).digest == desired().digest


def test_the_runs_name_in_the_ledger_can_be_part_of_a_files_name() -> None:
    assert desired(12).run_prefix.startswith("orders-12-")
    assert desired(12).run_prefix.replace("-", "").isalnum()


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"job": "Orders"}, "job"),
        ({"generation": 0}, "generation"),
        ({"label": "emr-7.0.0"}, "label"),
        ({"release": "latest"}, "release"),
        ({"document": "documents/latest.json"}, "document"),
        ({"execution_role": "ingest"}, "execution_role"),
        ({"log_uri": "logs/"}, "log_uri"),
        ({"arguments": ["--follow"]}, "arguments[0]"),
        ({"arguments": ["--document=x"]}, "arguments[0]"),
        ({"arguments": ["a b"]}, "arguments[0]"),
        ({"arguments": ["--without"]}, "arguments[0]"),
        ({"stopped": ["--run"]}, "stopped[0]"),
        ({"grace_seconds": 14}, "grace_seconds"),
        ({"calm_seconds": 900, "proof_seconds": 600}, "calm_seconds"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_what_cannot_run_is_refused_with_its_path(wrong: dict[str, Any], path: str) -> None:
    document = {**json.loads(desired_document(desired())), **wrong}
    with pytest.raises(InvalidDeclaration) as refusal:
        parse_desired(document)
    assert [problem.path for problem in refusal.value.problems] == [path]


@pytest.mark.parametrize(("cores", "memory_gb"), [(1, 9), (2, 3), (4, 31), (8, 18), (16, 36), (3, 8)])
def test_a_size_that_is_not_sold_is_refused(cores: int, memory_gb: int) -> None:
    with pytest.raises(InvalidDeclaration):
        Worker(cores=cores, memory_gb=memory_gb)


def test_the_most_that_workers_take_counts_the_driver() -> None:
    workers = Workers(driver=Worker(cores=2, memory_gb=8), executor=Worker(cores=4, memory_gb=16), least=1, most=3)
    assert (workers.most_cores, workers.most_memory_gb) == (14, 56)


@pytest.mark.parametrize("wrong", [{"least": 5, "most": 4}, {"least": 0}, {"most": 1001}])
def test_bounds_that_contradict_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidDeclaration):
        Workers(**wrong)
