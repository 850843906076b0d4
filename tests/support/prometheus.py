"""Prometheus and Alertmanager as local processes, and a receiver of notifications."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

from frazil.local.ports import HOST, free_ports
from frazil.local.process import answers, await_ready, start, stop
from tests.support.debian import program
from tests.support.local_server import LocalServer, QuietHandler

SECONDS = 60


class Prometheus:
    """A Prometheus that scrapes and evaluates each second."""

    def __init__(self, url: str) -> None:
        self._url = url

    def query(self, expression: str) -> list[Mapping[str, Any]]:
        """Return the series of an expression now."""
        found = self._get(f"/api/v1/query?{urllib.parse.urlencode({'query': expression})}")
        return list(found["data"]["result"])

    def scrapes(self) -> int:
        """Return how many samples each target has so far, the fewest of all."""
        return min((int(one["value"][1]) for one in self.query("count_over_time(up[1h])")), default=0)

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(self._url + path, timeout=5) as answer:
            return json.load(answer)


@contextmanager
def prometheus(folder: Path, target: str, *, rules: str = "", alertmanager: str = "") -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes `target`, HOST:PORT, with these rules; it ends with the block."""
    (folder / "rules.yml").write_text(rules)
    document = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"] if rules else [],
        "scrape_configs": [{"job_name": "frazil", "static_configs": [{"targets": [target]}]}],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}] if alertmanager else []},
    }
    (folder / "prometheus.yml").write_text(json.dumps(document))
    with free_ports(1) as (port,):
        options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb"]
        command = [program("prometheus"), *options, f"--web.listen-address={HOST}:{port}"]
    process = start("prometheus", command, home=folder)
    url = f"http://{HOST}:{port}"
    try:
        await_ready(process, lambda: answers(f"{url}/-/ready"), seconds=SECONDS)
        yield Prometheus(url)
    finally:
        stop(process)


@contextmanager
def alertmanager(folder: Path, configuration: str) -> Iterator[tuple[str, Queue[Mapping[str, Any]]]]:
    """Run an Alertmanager whose webhook is received here; yield its HOST:PORT, and the alerts that came."""
    received: Queue[Mapping[str, Any]] = Queue()

    class Webhook(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 - http.server's name
            for alert in json.loads(self.body())["alerts"]:
                received.put(alert)
            self.answer(200, b"")

    with LocalServer(Webhook) as webhook:
        given = configuration.replace("http://127.0.0.1:9099/alarms", webhook.address).replace(": 10s", ": 0s")
        assert webhook.address in given
        (folder / "alertmanager.yml").write_text(given)
        with free_ports(1) as (port,):
            options = [f"--config.file={folder}/alertmanager.yml", f"--storage.path={folder}/alerts"]
            address = f"{HOST}:{port}"
            command = [program("prometheus-alertmanager"), *options, f"--web.listen-address={address}"]
        process = start("alertmanager", [*command, "--cluster.listen-address="], home=folder)
        try:
            await_ready(process, lambda: answers(f"http://{address}/-/ready"), seconds=SECONDS)
            yield address, received
        finally:
            stop(process)
