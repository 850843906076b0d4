"""PostgreSQL 15 on this machine only, with logical decoding, so that a Debezium connector can read its changes.

The server has one role, `frazil`, without a password, and a database of the same name. The role may replicate and owns the
database, but it is no superuser: every user of this machine can connect, and a superuser could read files and run programs.
So a connector needs `publication.autocreate.mode=filtered`, because only a superuser publishes all tables.
"""

from __future__ import annotations

import os
import platform
import pwd
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from frazil.errors import LocalPartFailed
from frazil.local.ports import HOST, kept_ports
from frazil.local.process import await_ready, log_file, start, tail
from frazil.local.toolchain.jars import cache_folder, jars, postgres_purpose, unpacked


def execute(uri: str, *statements: str) -> list[int]:
    """Run statements, each in a transaction of its own. Return how many rows each one changed."""
    import psycopg

    with psycopg.connect(uri, autocommit=True) as connection:
        return [connection.execute(statement.encode()).rowcount for statement in statements]


def query(uri: str, question: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run a query. Return columns and rows; times with an offset are in UTC."""
    import psycopg

    with psycopg.connect(uri, options="-c timezone=UTC") as connection:
        found = connection.execute(question.encode())
        names: Sequence[Any] = found.description or ()
        return [str(column.name) for column in names], found.fetchall()


READY_SECONDS = 120.0
ROLE = "frazil"
DATABASE = "frazil"

# Example data may be lost with the machine, so no write waits for the disk. Without a folder for sockets, the server listens
# on its port only.
_SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_replication_slots": "100",  # a connector that is deleted leaves its slot
    "max_wal_senders": "100",
    "fsync": "off",
    "full_page_writes": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
_HOST_RULES = f"host all {ROLE} {HOST}/32 trust\nhost replication {ROLE} {HOST}/32 trust\n"
_FIRST_STATEMENTS = f"CREATE ROLE {ROLE} LOGIN REPLICATION CREATEDB\nCREATE DATABASE {DATABASE} OWNER {ROLE}\n"
_FAST_SHUTDOWN = "SIGINT"
"""On SIGTERM, PostgreSQL waits until its clients disconnect (https://www.postgresql.org/docs/15/server-shutdown.html)."""


def start_postgres(home: Path) -> str:
    """Start the server on the data in a `.frazil` folder. Return its connection URI once it accepts connections.

    Raises `LocalPartFailed` with the end of the log if it does not start, or if there is no PostgreSQL for this platform.
    """
    program = _unpacked()
    folder = home / "postgres"
    if not (folder / "data").exists():
        _initialize(folder, program.parent, log_file(home, "postgres"))
    with kept_ports(home, "postgres") as (port,):
        options = [
            option for name, value in {**_SETTINGS, "port": port}.items() for option in ("-c", f"{name}={value}")
        ]
        command = _as_other_user([program, "-D", folder / "data", *options])
        server = start("postgres", command, home=home, stop_signal=_FAST_SHUTDOWN)
        uri = f"postgresql://{ROLE}@{HOST}:{port}/{DATABASE}"
        await_ready(server, lambda: _accepts(uri), seconds=READY_SECONDS)
    return uri


def why_postgres_cannot_run() -> str | None:
    """Return why PostgreSQL cannot run on this machine, as this user; None if it can."""
    try:
        _purpose()
        _as_other_user([])
    except LocalPartFailed as reason:
        return str(reason)
    return None


def _purpose() -> str:
    """Return the purpose of this platform's binaries in the lock."""
    found = postgres_purpose()
    if found is None:
        what = "there are no locked PostgreSQL binaries for this platform"
        do = "Start the local services without PostgreSQL, and use a server of your own"
        raise LocalPartFailed(what, where=f"{platform.system()} {platform.machine()}", do=do)
    return found


def _unpacked() -> Path:
    """Unpack the locked archive once, into the cache, and return the program `postgres`."""
    (archive,) = jars(_purpose())

    def unpack(folder: Path) -> None:
        with zipfile.ZipFile(archive) as jar:
            (name,) = (name for name in jar.namelist() if name.endswith(".txz"))
            with jar.open(name) as compressed, tarfile.open(fileobj=compressed, mode="r:xz") as content:
                content.extractall(folder, filter="data")

    return unpacked(cache_folder() / "postgres" / archive.stem, "bin/postgres", unpack)


def _initialize(folder: Path, programs: Path, log: Path) -> None:
    """Create the data folder, its role and its database. If that fails or is killed, the next start repeats it."""
    unfinished = folder / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    encoding = ("--encoding=UTF8", "--locale=C", "--username=postgres", "--auth=trust", "--no-sync")
    single = ("--single", "-D", unfinished, "-c", "exit_on_error=on", "postgres")
    steps: tuple[tuple[Sequence[str | Path], str], ...] = (
        ((programs / "initdb", "-D", unfinished, *encoding), ""),
        ((programs / "postgres", *single), _FIRST_STATEMENTS),
    )
    with log.open("wb") as output:
        for command, statements in steps:
            run = subprocess.run(
                _as_other_user(command),
                cwd=folder,
                input=statements.encode(),
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=READY_SECONDS,
                check=False,
            )
            if run.returncode:
                raise LocalPartFailed(f"the database could not be initialized:\n{tail(log)}", where=str(folder))
    (unfinished / "pg_hba.conf").write_text(_HOST_RULES)
    unfinished.rename(folder / "data")


def _as_other_user(command: Sequence[str | Path]) -> list[str]:
    """Return the command, for root one that runs as `nobody`: PostgreSQL refuses root.

    It may still pass the folders of root, which hold data and programs (CAP_DAC_OVERRIDE, capabilities(7)).
    """
    arguments = [str(argument) for argument in command]
    if os.geteuid() != 0:
        return arguments
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        do = "Run as another user, or install setpriv (util-linux), which starts it as `nobody`"
        raise LocalPartFailed("PostgreSQL does not run as root", where="PATH", do=do)
    nobody = pwd.getpwnam("nobody")
    user = (f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups")
    # Without the bit, access(2) ignores capabilities, and PostgreSQL does not find its own programs.
    passing = ("--securebits=+no_setuid_fixup", "--inh-caps=+dac_override", "--ambient-caps=+dac_override")
    return [setpriv, *user, *passing, *arguments]


def _accepts(uri: str) -> bool:
    import psycopg

    try:
        psycopg.connect(uri, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
