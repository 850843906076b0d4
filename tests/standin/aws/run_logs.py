"""The upload of an attempt's logs to the keys on S3 that EMR Serverless uses.

https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/logging.html
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.standin.aws.job_run import JobRun


class RunLogs:
    """The upload of a driver's complete output, repeated whenever it has grown."""

    def __init__(self, bucket: str, prefix: str) -> None:
        self._bucket, self._prefix = bucket, prefix
        self._sizes: dict[str, int] = {}

    @classmethod
    def of(cls, run: JobRun) -> RunLogs:
        """Return the logs of the run's newest attempt; None without a log URI. Later attempts' logs are beside the first's."""
        monitoring = (run.request["configurationOverrides"] or {}).get("monitoringConfiguration") or {}
        uri = (monitoring.get("s3MonitoringConfiguration") or {}).get("logUri") or ""
        bucket, _, folder = uri.removeprefix("s3://").partition("/")
        attempt = f"attempts/{run.attempt.number}/" if run.attempt.number > 1 else ""
        place = f"applications/{run.request['applicationId']}/jobs/{run.id}/{attempt}SPARK_DRIVER/"
        return cls(bucket, f"{folder.rstrip('/')}/{place}".lstrip("/"))

    def upload(self, s3: Any, files: Mapping[str, Path]) -> None:
        """Upload the streams that have grown, under the service's names."""
        for name, file in files.items():
            data = file.read_bytes()
            if self._bucket and self._sizes.get(name) != len(data):
                s3.put_object(Bucket=self._bucket, Key=f"{self._prefix}{name}.gz", Body=gzip.compress(data, 1))
                self._sizes[name] = len(data)
