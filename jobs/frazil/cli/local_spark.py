"""A job on this machine: its jars, its memory, Spark's log, and the effect of Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frazil.clients.secrets import Secrets
from frazil.declaration import Environment, Mechanism
from frazil.errors import FrazilError, JvmEnded
from frazil.lake.catalogs import needs_s3
from frazil.project.project_file import state_folder

if TYPE_CHECKING:
    from frazil.job.context import JobContext

_LOG = Path("logs/spark.log")
"""The place of the log in the project's folder `.frazil`."""
_TIMES = 10
_COMPILED_LATER = " ".join(
    f"-XX:Tier4{name}Threshold={_TIMES * usual}"
    for name, usual in {"Invocation": 5_000, "MinInvocation": 600, "Compile": 15_000, "BackEdge": 40_000}.items()
)
"""Java's optimising compiler (C2) begins at ten times its usual thresholds: in a run of seconds, it took a third of all CPU for
code that seldom ran again. CPU-seconds from the shell, usual and times 10: 10 rows 17 and 15, 300,000 new rows 34 and 28; a warm
million 9.2 and 8.7. Times 40 lost again (32 of 300,000 rows). Without C2 they are 10 and 24; a warm driver
without it was not measured.
"""


@contextmanager
def local_job(
    environment: Environment,
    secrets: Secrets,
    *,
    master: str,
    memory: str,
    name: str = "frazil",
    log: Path | None = None,
    failpoints: str = "",
    cancels: bool = True,
) -> Iterator[JobContext]:
    """Open a job on this machine (see `open_job`), which ends with the block. Spark's own log goes to `log`, or to `.frazil`.

    The first SIGINT or SIGTERM lets the batch at hand end, the second ends the process.
    """
    from frazil.job.session import open_job
    from frazil.local.toolchain import class_path

    log = log or state_folder() / _LOG
    stopping, jars = threading.Event(), jars_here(environment)
    begun = open_job(
        environment,
        secrets,
        name=name,
        master=master,
        settings=settings_here(memory, jars),
        failpoints=failpoints,
        stopping=stopping,
        cancels=cancels,
    )
    with _stderr_to(log), class_path.of_new_jvms(jars):
        try:
            job = begun.__enter__()
        except JvmEnded as error:
            raise JvmEnded.of(f"log {log}") from error
    try:
        with _ended_by_signals(stopping):  # after the session is made, which sets handlers of its own
            yield job
    except Exception as error:
        _name_a_lost_jvm(error, job, log, stopping)
        raise
    finally:
        begun.__exit__(None, None, None)


def settings_here(memory: str, jars: Sequence[Path] = ()) -> dict[str, str]:
    """Return Spark's settings for a driver on this machine, whose heap has `memory`, and which has these jars.

    Landing is all throughput, and nearly all it allocates is dead at once: with the parallel collector it takes a tenth less CPU
    than with Java's default, G1. Only here: where Spark is a service, the collector is the service's, and a JVM that is given two
    does not start. The thresholds of the optimising compiler were not measured there.
    """
    from frazil.local.toolchain import class_path
    from frazil.local.toolchain.class_data_sharing import java_options
    from frazil.local.toolchain.class_path import LOCAL_FILES

    java = f"-XX:+UseParallelGC {_COMPILED_LATER} {java_options()}".strip()
    # Spark opens files before it has jars of a setting.
    files = class_path.settings(jars) or LOCAL_FILES
    return {"spark.driver.memory": memory, "spark.driver.extraJavaOptions": java, **files}


def jars_here(environment: Environment) -> list[Path]:
    """Return the locked jars that a session for this environment needs."""
    from frazil.local.toolchain.class_path import driver_jars

    return driver_jars(aws=needs_s3(environment) or environment.kafka.mechanism is Mechanism.AWS_MSK_IAM)


def _name_a_lost_jvm(error: Exception, job: JobContext, log: Path, stopping: threading.Event) -> None:
    """Raise `JvmEnded` if the error comes of that, or `KeyboardInterrupt` if the signal that ends this process ended the JVM."""
    from frazil.lake.spark_session import jvm_answers

    if isinstance(error, FrazilError) or jvm_answers(job.spark):
        return
    if stopping.is_set():
        raise KeyboardInterrupt from error
    raise JvmEnded.of(f"log {log}") from error


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Have processes that start in the block write to a file: a JVM keeps the stderr that it was born with."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def _ended_by_signals(stopping: threading.Event) -> Iterator[None]:
    def end(number: int, frame: Any) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
