"""Entry point: keep the tables of a document healthy, once. Logs are JSON lines on stderr.

    maintain.py --document DOCUMENT --environment ENVIRONMENT --once [--pipeline NAME ...] [--orphans] [--dry-run]

On a cluster it first makes sure that Python, Spark, Iceberg and their classes are those its release was built for.
Exit status, as `frazil.exit_codes` defines it: 0 when every action ended well (leaving a table to another maintainer is well, so is
giving up on a conflict), 1 when an operator must decide, 2 when the arguments, the document or the environment are wrong, 3 when a
service is unavailable, 6 when an action failed, 70 for a defect of Frazil.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence

from frazil.clients.secrets import Secrets
from frazil.declaration.documents.document import parse_document, parse_environment
from frazil.job import entry_point, startup
from frazil.job.matched_topics import MatchedTopics
from frazil.job.session import heed_the_jvm, open_job
from frazil.lake.read.stored_tables import Lake
from frazil.maintain.orphans import check_age
from frazil.maintain.run import maintain, prepare
from frazil.maintain.target import Policy, exit_code
from frazil.release.manifest import expected as expected_runtime


def main(arguments: Sequence[str]) -> int:
    """Run; see the module."""
    chosen = _arguments(arguments)
    stopping = threading.Event()
    secrets = Secrets(os.environ)
    policy = Policy(
        closed_seconds=chosen.closed_hours * 3600,
        grace_seconds=chosen.grace_hours * 3600,
        orphan_seconds=chosen.orphan_days * 86_400,
        dry_run=chosen.dry_run,
    )
    try:
        check_age(policy.orphan_seconds)
        expected = expected_runtime()
        startup.check_python(expected)
        environment = parse_environment(entry_point.read(chosen.environment))
        document = parse_document(entry_point.read(chosen.document))
        pipelines, is_wanted = entry_point.chosen_of(document, chosen.pipeline)
        lake = Lake(environment, secrets.read)
        patterns = (*document.patterns, *document.types)
        topics = MatchedTopics(patterns, document.pipelines, lake, tuple, is_wanted=is_wanted)
        with open_job(
            environment,
            secrets,
            name="frazil-maintain",
            jars=chosen.jar,
            master=chosen.master,
            settings=dict(chosen.setting),
            failpoints=os.environ.get("FRAZIL_FAILPOINTS", ""),
            stopping=stopping,
            cancels=False,
        ) as job:
            jvm = startup.SessionJvm(job.spark, job.iceberg)
            startup.check_jvm(expected, jvm)
            heed_the_jvm(job.spark, stopping)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: stopping.set())
            log = entry_point.log(secrets)
            versions = startup.versions(jvm)
            log({"time": job.clock(), "event": "job_started", "run": job.run, "versions": versions})
            pipelines = [*pipelines, *topics.look().with_tables]  # those that have a table
            entry_point.check_found(chosen.pipeline, (one.name for one in pipelines))
            outcomes = maintain(pipelines, prepare(job, policy), log, orphans=chosen.orphans)
    except Exception as error:  # noqa: BLE001 - the end of the process: Python's own code, 1, means a decision
        return entry_point.ended(error, secrets, stopping)
    return exit_code(one for done in outcomes.values() for one in done)


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="maintain.py", description=__doc__.splitlines()[0] if __doc__ else None)
    entry_point.add_arguments(parser)
    parser.add_argument("--once", action="store_true", required=True, help="once through all tables, then end")
    parser.add_argument("--orphans", action="store_true", help="delete orphans (default: report only)")
    parser.add_argument("--dry-run", action="store_true", help="report what would be done, and do nothing")
    parser.add_argument(
        "--closed-hours", type=entry_point.zero_or_more, default=1.0, help="a partition is closed after so long"
    )
    parser.add_argument("--grace-hours", type=entry_point.zero_or_more, default=1.0, help="no younger snapshot expires")
    parser.add_argument(
        "--orphan-days", type=entry_point.zero_or_more, default=3.0, help="no younger file is an orphan; 3 at least"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
