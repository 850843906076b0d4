"""One contender in a process of its own: lands the warm-up topic, then, measured, the timed one. Its answer is a JSON file.

`python -m tests.bench.contender JOB` is started by the bench.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.bench.accounting import Meter
from tests.bench.contenders import commits, follow, many, parts, product, spike, streaming
from tests.bench.topics import Job

CONTENDERS = {
    "n0": streaming.n0,
    "n1": streaming.n1,
    "spike": spike.spike,
    "ours": product.ours,
    "ours_as_spike": product.ours_as_spike,
    "read": parts.reads,
    "decode": parts.decodes,
    "files": parts.files,
}


PROGRAMS = {"follow": follow.run, "commits": commits.run, "many": many.run}


def main() -> None:
    job = Job.from_json(sys.argv[1])
    meter = Meter(job.broker_pid)
    answer = PROGRAMS[job.contender](job, meter) if job.contender in PROGRAMS else _landed(job, meter)
    (Path(job.folder) / "answer.json").write_text(json.dumps(answer))


def _landed(job: Job, meter: Meter) -> dict[str, Any]:
    with CONTENDERS[job.contender](job) as land:
        land(job.warm, job.warm_table)
        before = meter.read()
        counted = land(job.timed, job.table)
        used = meter.read().since(before)
        return {**asdict(used), "counted": counted, "peak_rss_mb": meter.peak_rss_mb()}


if __name__ == "__main__":
    main()
