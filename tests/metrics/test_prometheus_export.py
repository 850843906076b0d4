"""The endpoint and the file, as Prometheus's own programs read them."""

from __future__ import annotations

import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from frazil.cli.pipelines.measured_run import Outputs, measured
from frazil.errors import CatalogUnavailable, InvalidInput
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


def test_a_file_keeps_state_and_gauges_of_the_earlier_run_until_the_first_event(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "frazil.prom"
    run.event("pipeline_finished")
    write_file(run.readings, path)
    before = dict(values(path))
    following = Run("r2")
    following.now += 86_000
    following.readings.continue_from(samples_of(path))
    write_file(following.readings, path)
    lost = {"frazil_lag_offsets", "frazil_freshness_seconds"}
    assert dict(values(path)) == {name: value for name, value in before.items() if name not in lost}
    following.event("pipeline_started")
    assert (following.state, following.value("last_look_timestamp_seconds")) == ("running", following.now)
    assert following.value("table_rows") == 7
    following.event("idle", lag=0, freshness_seconds=0.0)
    following.event("pipeline_finished")
    assert (following.state, following.value("table_files data")) == ("finished", 2)


@pytest.mark.parametrize("earlier", ["decision_required", "pipeline_failed", "service_unavailable", "fenced"])
def test_the_state_of_an_earlier_run_ends_with_the_first_event(earlier: str, tmp_path: Path) -> None:
    run, following, path = Run(), Run("r2"), tmp_path / "frazil.prom"
    run.event(earlier)
    before = run.state
    write_file(run.readings, path)
    following.readings.continue_from(samples_of(path))
    assert following.state == before
    following.event("pipeline_started")
    assert following.state == "running"


@pytest.mark.parametrize("fails", [True, False])
def test_a_run_that_fails_at_its_start_keeps_the_state_and_one_that_ends_drops_that_of_others(
    run: Run, tmp_path: Path, fails: bool
) -> None:
    """A pipeline that the job does not have any more would else stay in its file."""
    path, following = tmp_path / "frazil.prom", Run("r2")
    write_file(run.readings, path)
    job: Any = SimpleNamespace(run="r2", version="1", clock=lambda: 2_000.0, spark=None, redact=str)
    with suppress(CatalogUnavailable), measured(lambda _: None, job, Outputs(file=path), lambda *_: None) as sink:
        if fails:
            raise CatalogUnavailable("no answer", where="catalog")
        following.readings = sink  # type: ignore[assignment] # it takes events, too
        following.event("batch_committed", "payments", **LANDED)
    states = {labels["pipeline"] for name, labels, _ in samples_of(path) if name == "frazil_pipeline_state"}
    assert states == ({"orders"} if fails else {"payments"})
    assert dict(values(path))["frazil_records_read_total"] == 10
    assert ("frazil_last_look_timestamp_seconds" in dict(values(path))) == fails


def test_a_run_that_ends_before_it_begins_keeps_the_state(run: Run, tmp_path: Path) -> None:
    path, following = tmp_path / "frazil.prom", Run("r2")
    write_file(run.readings, path)
    following.readings.continue_from(samples_of(path))
    following.readings.end()
    assert following.state == "running"


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
