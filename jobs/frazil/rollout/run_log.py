"""The log of a run's driver, read from where EMR Serverless stores it on S3.

https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/logging.html
"""

from __future__ import annotations

import gzip
import re
from enum import StrEnum

from frazil.clients.emr import Run
from frazil.clients.object_store import ObjectStore


class Stream(StrEnum):
    """A stream of a driver: the entry points write JSON lines to `stdout`, Spark writes its log to `stderr`."""

    STDOUT = "stdout"
    STDERR = "stderr"


def bucket_of(run: Run) -> str:
    """Return the bucket of a run's log; empty for a run without one."""
    return run.log_uri.removeprefix("s3://").partition("/")[0]


def applications_prefix(log_uri: str) -> tuple[str, str]:
    """Return the bucket of a job's logs, and the prefix of its folders: one for each application that had runs of it."""
    bucket, _, folder = log_uri.removeprefix("s3://").partition("/")
    return bucket, f"{folder.rstrip('/')}/applications/".lstrip("/")


def run_log_prefix(run: Run) -> str:
    """Return the prefix of a run's logs in their bucket."""
    return f"{applications_prefix(run.log_uri)[1]}{run.application}/jobs/{run.id}/"


def run_log(run: Run, logs: ObjectStore, stream: Stream) -> dict[str, str]:
    """Return what the driver has written, by key, the first attempt first; nothing before EMR Serverless has uploaded it.

    A run has several files if it was retried or its log was rotated.
    """
    found = [key for key in logs.keys(run_log_prefix(run)) if re.search(rf"/SPARK_DRIVER/{stream}[^/]*\.gz$", key)]
    held = {key: logs.read(key) for key in sorted(found, key=_place)}
    return {key: gzip.decompress(file.data).decode(errors="replace") for key, file in held.items() if file is not None}


def _place(key: str) -> tuple[int, str]:
    """Return the attempt and the key, to sort by. The first attempt's log is next to the folders of the others."""
    attempt = re.search(r"/attempts/([0-9]+)/", key)
    return (int(attempt[1]) if attempt else 1), key
