"""The endpoint and the file, as Prometheus's own programs read them."""

from __future__ import annotations

import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from frazil.errors import InvalidInput
from frazil.metrics.metric_registry import METRICS
from frazil.metrics.prometheus_export import Address, samples_of, served, write_file
from tests.metrics.test_readings import LANDED, Run
from tests.support.debian import program


@pytest.fixture
def run() -> Run:
    run = Run()
    run.event("batch_committed", **{**LANDED, "masked": 7, "filtered": {"where": 1}})
    run.event("batch_retried")
    return run


def scraped(address: Address) -> str:
    with urllib.request.urlopen(str(address), timeout=5) as answer:
        return str(answer.read().decode())


def test_the_endpoint_has_all_metrics(run: Run) -> None:
    with served(run.readings, Address("127.0.0.1", 0)) as address:
        families = list(text_string_to_metric_families(scraped(address)))
        run.event("batch_committed", **LANDED)
        again = scraped(address)
    named = {family.name + ("_total" if family.type == "counter" else "") for family in families}
    assert named == {metric.name for metric in METRICS}
    assert {family.name: family.documentation for family in families} == {
        metric.name.removesuffix("_total"): metric.meaning for metric in METRICS
    }
    assert 'frazil_records_read_total{group="",pipeline="orders",topic="Orders"} 20.0' in again


def test_promtool_finds_no_fault_in_the_metrics(run: Run) -> None:
    with served(run.readings, Address("127.0.0.1", 0)) as address:
        text = scraped(address)
    checked = subprocess.run(
        [program("promtool"), "check", "metrics"], input=text, text=True, capture_output=True, timeout=60, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_the_endpoint_ends_with_the_run(run: Run) -> None:
    with served(run.readings, Address("127.0.0.1", 0)) as address:
        pass
    with pytest.raises(OSError, match="refused"):
        scraped(address)


def test_a_port_that_is_taken_is_refused(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInput, match="cannot be bound"), served(run.readings, Address("127.0.0.1", port)):
            pass


@pytest.mark.parametrize(
    "text", ["", "9464", ":9464", "localhost", "localhost:", "localhost:x", "h:70000", "h:-1", "h:²"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="HOST:PORT"):
        Address.parse(text)


def test_an_address_may_be_one_of_ipv6() -> None:
    assert str(Address.parse("[::1]:9464")) == "http://[::1]:9464/metrics"


def test_two_drivers_of_a_pipeline_are_told_apart(run: Run) -> None:
    """Prometheus adds the address that it scraped; the run is in a metric of its own."""
    other = Run()
    other.event("fenced")
    with (
        served(run.readings, Address("127.0.0.1", 0)) as first,
        served(other.readings, Address("127.0.0.1", 0)) as second,
    ):
        assert first != second
        assert "frazil_lag_offsets{" in scraped(first)
        assert "frazil_lag_offsets{" not in scraped(second)


def values(path: Path) -> Iterator[tuple[str, float]]:
    return ((name, value) for name, labels, value in samples_of(path) if labels.get("pipeline") == "orders")


def test_the_counters_of_a_file_go_on_with_the_next_run(run: Run, tmp_path: Path) -> None:
    """Else Prometheus would see a drain of 10 records after one of 10 as no record."""
    path = tmp_path / "frazil.prom"
    write_file(run.readings, path)
    assert dict(values(path))["frazil_records_read_total"] == 10
    following = Run()
    following.readings.continue_from(samples_of(path))
    following.event("batch_committed", **LANDED)
    write_file(following.readings, path)
    found = dict(values(path))
    assert (found["frazil_records_read_total"], found["frazil_commits_total"]) == (20, 2)
    assert found["frazil_lag_offsets"] == 4


def test_a_pipeline_of_an_earlier_run_only_has_no_state(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "frazil.prom"
    write_file(run.readings, path)
    following = Run()
    following.readings.continue_from(samples_of(path))
    following.event("batch_committed", "payments", **LANDED)
    write_file(following.readings, path)
    states = [labels["pipeline"] for name, labels, _ in samples_of(path) if name == "frazil_pipeline_state"]
    assert states == ["payments"]


def test_the_files_of_two_jobs_have_no_series_in_common(run: Run, tmp_path: Path) -> None:
    """The node exporter would drop one of them."""
    other = Run("r2")
    other.event("batch_committed", "payments", **LANDED)
    found = []
    for number, one in enumerate((run, other)):
        write_file(one.readings, tmp_path / f"{number}.prom")
        found.append({(name, *sorted(labels.items())) for name, labels, _ in samples_of(tmp_path / f"{number}.prom")})
    assert not found[0] & found[1]


def test_a_file_that_is_no_file_of_metrics_is_refused_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("buy { milk")
    with pytest.raises(InvalidInput, match="cannot be read as metrics"):
        list(samples_of(path))
    assert path.read_text() == "buy { milk"


def test_a_folder_that_does_not_exist_is_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_file(run.readings, tmp_path / "none" / "frazil.prom")
