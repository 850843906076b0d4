"""Run log: what a run's driver wrote, out of the places on S3 where EMR Serverless puts it.

https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/logging.html
"""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from frazil.clients.emr import Run
from frazil.clients.object_store import Stored


class Stream(StrEnum):
    """What a driver writes: our entry points' JSON lines are in `stdout`, as spark-submit has it; Spark's own log in `stderr`."""

    STDOUT = "stdout"
    STDERR = "stderr"


class Logs(Protocol):
    """What is needed of the bucket of logs."""

    def keys(self, prefix: str) -> tuple[str, ...]:
        """The keys that begin so."""
        ...

    def read(self, key: str) -> Stored | None:
        """An object as it stands; None if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a log, unpacked: a run has several where it was tried again, or where its log was rotated."""

    key: str
    text: str


def bucket_of(run: Run) -> str:
    """The bucket that a run's log is in; empty for a run that leaves none."""
    return run.log_uri.removeprefix("s3://").partition("/")[0]


def run_log(run: Run, logs: Logs, stream: Stream) -> tuple[Part, ...]:
    """What the driver wrote so far, the first attempt first; nothing before it has begun, or if it is not uploaded yet."""
    folder = run.log_uri.removeprefix("s3://").partition("/")[2].rstrip("/")
    prefix = f"{folder}/applications/{run.application}/jobs/{run.id}/".lstrip("/")
    found = [key for key in logs.keys(prefix) if re.search(rf"/SPARK_DRIVER/{stream}[^/]*\.gz$", key)]
    parts = []
    for key in sorted(found, key=_place):
        held = logs.read(key)
        if held is not None:
            parts.append(Part(key, gzip.decompress(held.data).decode(errors="replace")))
    return tuple(parts)


def _place(key: str) -> tuple[int, str]:
    """The first attempt's log is beside the folders of the others."""
    attempt = re.search(r"/attempts/([0-9]+)/", key)
    return (int(attempt[1]) if attempt else 1), key
