"""One attempt of a job run as a local Spark process that uses uploaded files only.

Its folder has the files that the run names, fetched with the execution role's credentials. Its environment is its own. It is
stopped like a container: SIGTERM to its first process, Spark's JVM.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tarfile
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from frazil.errors import FrazilError, LocalPartFailed
from frazil.local.process import Process, note, stop
from tests.standin.aws.job_run import JobRun
from tests.standin.aws.role import Role
from tests.standin.aws.run_logs import RunLogs
from tests.standin.aws.spark_home import SparkHome
from tests.standin.aws.spark_submit import Submission, name_of, submission

LOG_SECONDS = 3.0
"""How often the logs of running jobs are uploaded, if they have grown."""
_FAILED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkRuns:
    """The folders of all runs. `home` contains the runs' folders and the records of their processes."""

    home: Path
    spark: SparkHome
    endpoint: str

    def begin(self, run: JobRun) -> SparkRun:
        """Start the run's newest attempt."""
        return SparkRun(self, run)


class SparkRun:
    """An attempt, with a thread of its own from the download to the last upload of its log."""

    def __init__(self, runs: SparkRuns, run: JobRun) -> None:
        self._runs, self._request = runs, run.request
        self._name = f"{run.id}-{run.attempt.number}"
        self._folder = runs.home / "runs" / self._name
        self._role = Role(run.request["executionRoleArn"], endpoint=runs.endpoint, region=run.request["region"])
        self._logs = RunLogs.of(run)
        self._child: subprocess.Popen[bytes] | None = None
        self._process: Process | None = None
        self._exit_code: int | None = None
        self._details = ""
        self._is_unwanted = threading.Event()
        self._lock = threading.Lock()
        threading.Thread(target=self._run, daemon=True, name=self._name).start()

    @property
    def is_begun(self) -> bool:
        """Whether Spark was started."""
        return self._process is not None

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._exit_code

    @property
    def details(self) -> str:
        """Why it failed."""
        return self._details

    def terminate(self) -> None:
        """Terminate Spark's JVM."""
        with self._lock:
            if self._child is not None:
                self._child.terminate()

    def kill(self) -> None:
        """Kill all processes of the attempt."""
        self._is_unwanted.set()
        with self._lock:
            if self._child is not None and self._child.poll() is None:
                os.killpg(self._child.pid, signal.SIGKILL)

    def _run(self) -> None:
        code = _FAILED
        try:
            code = self._ran()
        except FrazilError as error:
            self._details = str(error)[:200]
        except (BotoCoreError, ClientError, OSError, tarfile.TarError) as error:
            self._details = f"{type(error).__name__}: {error}"[:200]
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
            with self._lock:
                self._exit_code = code

    def _ran(self) -> int:
        asked = submission(self._request["jobDriver"] or {})
        (self._folder / "tmp").mkdir(parents=True)
        s3 = self._role.client("s3")
        self._fetch(asked, s3)
        with ExitStack() as open_files:
            written = {name: self._folder / "tmp" / name for name in ("stdout", "stderr")}
            streams = [open_files.enter_context(file.open("wb")) for file in written.values()]
            child = self._started(asked, streams)
            if child is None:
                return _FAILED
            while True:
                try:
                    code = child.wait(LOG_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    self._logs.upload(s3, written)
        self._finished()
        self._logs.upload(s3, written)
        if code:
            self._details = f"The driver ended with exit code {code}; see its log"
        return code

    def _fetch(self, asked: Submission, s3: Any) -> None:
        for uri in asked.files:
            self._download(s3, uri, self._folder / name_of(uri))
        for uri, folder in asked.archives:
            archive = self._folder / "tmp" / name_of(uri)
            self._download(s3, uri, archive)
            with tarfile.open(archive) as packed:
                packed.extractall(self._folder / folder, filter="data")
            archive.unlink()

    def _download(self, s3: Any, uri: str, target: Path) -> None:
        if self._is_unwanted.is_set():
            raise LocalPartFailed("the run was cancelled before it started", where=uri)
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        s3.download_file(bucket, key, str(target))

    def _started(self, asked: Submission, streams: Sequence[Any]) -> subprocess.Popen[bytes] | None:
        """Start Spark, unless the run was cancelled meanwhile."""
        command = spark_submit(self._runs.spark, asked, self._folder)
        environment = {**self._runs.spark.environment(self._folder), **self._role.environment(), **asked.variables}
        with self._lock:
            if self._is_unwanted.is_set():
                return None
            self._child = subprocess.Popen(
                command,
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=streams[0],
                stderr=streams[1],
                start_new_session=True,
            )
            self._process = note(self._name, self._child, home=self._runs.home)
        return self._child

    def _finished(self) -> None:
        """Stop all processes that outlive the driver."""
        if self._process is not None:
            stop(self._process, seconds=2)


SHORT_LIVED = "-XX:TieredStopAtLevel=1"
"""Java's option of drivers: on this machine they land little data before they end, and compiling for speed costs them a third."""


def spark_submit(spark: SparkHome, asked: Submission, folder: Path) -> list[str]:
    """Return the command that runs a submission on this machine's cores. Its files are in `folder`."""
    settings = asked.here(str(folder))
    options = settings.get("spark.driver.extraJavaOptions", "")
    settings["spark.driver.extraJavaOptions"] = f"{SHORT_LIVED} {options} -Djava.io.tmpdir={folder / 'tmp'}"
    confs = [part for key, value in sorted(settings.items()) for part in ("--conf", f"{key}={value}")]
    entry_point = str(folder / name_of(asked.entry_point))
    return [str(spark.spark / "bin" / "spark-submit"), "--master", "local[*]", *confs, entry_point, *asked.arguments]
