"""A MariaDB of this machine's packages, and a Connect worker with Debezium's connector for it: a table and its topic."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any
from uuid import uuid4

from frazil.local import connect_worker
from frazil.local.connect_worker import create_connector
from frazil.local.ports import HOST, free_ports
from frazil.local.process import Process, answers, await_ready, start, stop
from frazil.local.services import LocalServices
from frazil.local.toolchain.jars import jars
from frazil.local.toolchain.java import java
from tests.support.change_events import ChangeEvents

LOCK = Path(__file__).parent / "mariadb.jars.lock"
PROGRAMS = ("mariadbd", "mariadb-install-db", "mariadb")
DATABASE, TABLE = "shop", "orders"
_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
_MARKER = -1


def missing() -> str:
    """Return what to install so that MariaDB runs here; empty if nothing is missing."""
    lacking = [name for name in PROGRAMS if shutil.which(name, path=_PATH) is None]
    return f"{', '.join(lacking)}: apt install mariadb-server-core mariadb-client-core" if lacking else ""


class MariaDb:
    """The server, the worker, and one table with the key `id`. Its topic has Kafka Connect's JSON with schemas."""

    def __init__(self, place: LocalServices, home: Path, columns: str) -> None:
        self._place, self._home, self._processes = place, home, list[Process]()
        self.topic = f"maria{uuid4().hex[:8]}.{DATABASE}.{TABLE}"
        self._socket = Path("/tmp") / f"frazil-{uuid4().hex[:12]}.sock"  # a longer path is no socket
        self._port = self._start_server()
        self.sql(f"CREATE DATABASE {DATABASE}", f"CREATE TABLE {DATABASE}.{TABLE} (id bigint PRIMARY KEY, {columns})")
        self._events = ChangeEvents(place, self.topic)

    def sql(self, *statements: str) -> list[str]:
        """Run statements. Return the lines of the last one's answer."""
        client = [str(shutil.which("mariadb", path=_PATH)), "--no-defaults", "--default-character-set=utf8mb4"]
        client += ["-uroot", "-S", str(self._socket), "-BNr", "-e", f"SET time_zone='+00:00'; {'; '.join(statements)}"]
        return subprocess.run(client, check=True, capture_output=True, text=True).stdout.splitlines()

    def selected(self, **columns: str) -> list[dict[str, Any]]:
        """Return these expressions of each row, by key."""
        members = ", ".join(f"'{name}', {expression}" for name, expression in columns.items())
        return [
            json.loads(line) for line in self.sql(f"SELECT JSON_OBJECT({members}) FROM {DATABASE}.{TABLE} ORDER BY id")
        ]

    def capture(self) -> None:
        """Start the worker and the connector, and wait until the topic has the snapshot, which has a row at least."""
        prefix, worker = self.topic.split(".")[0], self._start_worker()
        settings = {
            "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
            "database.hostname": HOST,
            "database.port": str(self._port),
            "database.user": "capture",
            "database.password": "capture",
            "database.server.id": "5401",
            "database.include.list": DATABASE,
            "database.ssl.mode": "disable",
            "topic.prefix": prefix,
            "schema.history.internal.kafka.bootstrap.servers": self._place.bootstrap,
            "schema.history.internal.kafka.topic": f"{prefix}.history",
            "topic.creation.default.partitions": "1",
            "topic.creation.default.replication.factor": "1",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.replace.null.with.default": "false",
        }
        grants = "SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT, BINLOG MONITOR, LOCK TABLES"
        self.sql(f"CREATE USER capture@'{HOST}' IDENTIFIED BY 'capture'", f"GRANT {grants} ON *.* TO capture@'{HOST}'")
        create_connector(worker, prefix, settings)
        self._events.until(lambda event: event.value is not None and event.value["source"]["snapshot"] == "last")

    def captured(self) -> None:
        """Wait until the topic has all changes so far."""
        table = f"{DATABASE}.{TABLE}"
        self.sql(f"INSERT INTO {table} (id) VALUES ({_MARKER})", f"DELETE FROM {table} WHERE id = {_MARKER}")
        self._events.until(lambda event: event.value is None and event.number == _MARKER)

    def close(self) -> None:
        """Stop what was started."""
        self._events.close()
        for process in reversed(self._processes):
            stop(process)
        self._socket.unlink(missing_ok=True)

    def _start_server(self) -> int:
        data, user = self._home / "mariadb-data", ["--user=root"] if os.geteuid() == 0 else []
        install = str(shutil.which("mariadb-install-db", path=_PATH))
        options = ["--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run([install, *options, *user], check=True, capture_output=True, env={**os.environ, "PATH": _PATH})
        server = str(shutil.which("mariadbd", path=_PATH))
        with free_ports(1) as (port,):
            log = ["--server-id=1", "--log-bin=bin", "--binlog-format=ROW", "--binlog-row-image=FULL"]
            where = [f"--bind-address={HOST}", f"--port={port}", f"--socket={self._socket}", f"--datadir={data}"]
            more = ["--innodb-buffer-pool-size=64M", "--character-set-server=utf8mb4", "--default-time-zone=+00:00"]
        process = start("mariadb", [server, "--no-defaults", *where, *log, *more, *user], home=self._home)
        self._processes.append(process)
        await_ready(process, self._answers, seconds=60)
        return port

    def _answers(self) -> bool:
        try:
            return self.sql("SELECT 1") == ["1"]
        except subprocess.CalledProcessError:
            return False

    def _start_worker(self) -> str:
        folder = self._home / "maria-connect"
        plugin = folder / "plugins" / "mariadb"
        plugin.mkdir(parents=True)
        for jar in jars("mariadb", lock=LOCK):
            (plugin / jar.name).symlink_to(jar)
        with free_ports(1) as (port,):
            url = f"http://{HOST}:{port}"
            settings = connect_worker._settings(folder, bootstrap=self._place.bootstrap, url=url)
            options = [
                "-Xmx400m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                ":".join(map(str, jars("connect"))),
            ]
            arguments = [java(), *options, "org.apache.kafka.connect.cli.ConnectStandalone", settings]
            worker = start("maria-connect", arguments, home=self._home)
            self._processes.append(worker)
            await_ready(worker, lambda: answers(f"{url}/health"), seconds=120)
        return url
