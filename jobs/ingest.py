"""Entry point: land the topics of a document, once or until stopped. Logs are JSON lines on stderr, metrics are within them.

    ingest.py --document DOCUMENT --environment ENVIRONMENT (--once | --follow) [--pipeline NAME ...]
    ingest.py --document DOCUMENT --environment ENVIRONMENT --replay CONDITIONS --pipeline NAME

On a cluster it first makes sure that Python, Spark, Iceberg and their classes are those its release was built for.
Exit status, as `frazil.exit_codes` defines it: 0 when every pipeline ended well (being fenced by another driver is well), 1 when
one waits for an operator, 2 when the arguments, the document or the environment are wrong, 3 when a service is unavailable, 6 when
a pipeline failed, 70 for a defect of Frazil, 130 when `--once` was stopped before it was done.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import threading
from collections.abc import Sequence

from frazil.clients.object_store import ObjectStore
from frazil.clients.registry.client import Registry
from frazil.clients.secrets import Secrets
from frazil.declaration.documents.document import Document, parse_document, parse_environment
from frazil.declaration.environment import Environment
from frazil.exit_codes import Exit, exit_of_all
from frazil.ingest import runner
from frazil.ingest.reporting import proof_writer
from frazil.ingest.reporting.events import Event
from frazil.job import entry_point, startup
from frazil.job import startup as missing_objects
from frazil.job.matched_topics import MatchedTopics
from frazil.job.session import heed_the_jvm, open_job
from frazil.lake.read.stored_tables import Lake
from frazil.metrics import emf
from frazil.release.manifest import expected as expected_runtime
from frazil.replay.replay_job import parsed, replay_in_job
from frazil.rollout.run_proof import Driver, of_pattern


def main(arguments: Sequence[str]) -> int:
    """Run; see the module."""
    chosen = _arguments(arguments)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    secrets = Secrets(os.environ)
    try:
        expected = expected_runtime()
        startup.check_python(expected)
        environment = parse_environment(entry_point.read(chosen.environment))
        document = parse_document(entry_point.read(chosen.document))
        pipelines, is_wanted = entry_point.chosen_of(document, chosen.pipeline, chosen.without)
        registry = Registry.of(environment.registry, secrets) if environment.registry else None
        with open_job(
            environment,
            secrets,
            jars=chosen.jar,
            master=chosen.master,
            settings=dict(chosen.setting),
            failpoints=os.environ.get("FRAZIL_FAILPOINTS", ""),
            stopping=stopping,
            run_prefix=chosen.run,
        ) as job:
            jvm = startup.SessionJvm(job.spark, job.iceberg)
            startup.check_jvm(expected, jvm)
            heed_the_jvm(job.spark, stopping)
            log = entry_point.log(secrets, lambda event: emf.lines(event, environment.metrics_namespace))
            names = [pipeline.name for pipeline in pipelines]
            lake = Lake(environment, secrets.read)
            topics = MatchedTopics(
                (*document.patterns, *document.types),
                document.pipelines,
                lake,
                job.kafka.names,
                subjects=registry.subjects if registry is not None else None,
                is_wanted=is_wanted,
            )
            names += map(of_pattern, range(len(topics.patterns)))
            versions = startup.versions(jvm)
            log({"time": job.clock(), "event": Event.JOB_STARTED.value, "run": job.run, "versions": versions})
            if chosen.replay is not None:
                matched = [] if pipelines else [one for one in topics.look().pipelines if one.name in chosen.pipeline]
                replay_in_job([*pipelines, *matched], job, registry, log, chosen.replay)
                return Exit.INTERRUPTED if job.stopping() else Exit.SUCCESS
            driver = Driver(runtime=versions, missing=_missing(environment, secrets, document))
            artifacts = environment.artifact_bucket
            store = _bucket(environment, secrets, artifacts) if artifacts else None  # None: it was not deployed
            with proof_writer.proving(log, names, run=job.run, store=store, clock=job.clock, driver=driver) as sink:
                if chosen.follow:
                    every = chosen.every_seconds
                    outcomes = runner.follow(pipelines, job, registry, sink, topics=topics, every_seconds=every)
                else:
                    outcomes = runner.drain(pipelines, job, registry, sink, topics=topics)
                    entry_point.check_found(chosen.pipeline, outcomes)
    except Exception as error:  # noqa: BLE001 - the end of the process: Python's own code, 1, means a decision
        return entry_point.ended(error, secrets, stopping)
    errors = {name: outcome.error for name, outcome in outcomes.items()}
    code = exit_of_all(entry_point.deciding(errors, names) if chosen.run else errors.values())
    is_cut_short = chosen.once and any(outcome.total.stopped for outcome in outcomes.values())
    return Exit.INTERRUPTED if code is Exit.SUCCESS and is_cut_short else code


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ingest.py", description=__doc__.splitlines()[0] if __doc__ else None)
    entry_point.add_arguments(parser)
    how_long = parser.add_mutually_exclusive_group(required=True)
    how_long.add_argument("--once", action="store_true", help="drain to the stable offsets seen at start")
    how_long.add_argument("--follow", action="store_true", help="until SIGTERM or SIGINT")
    how_long.add_argument("--replay", type=parsed, metavar="CONDITIONS", help="land open dead letters: all, or some")
    parser.add_argument(
        "--every-seconds",
        type=entry_point.more_than_zero,
        default=runner.EVERY_SECONDS,
        help="how often --follow looks for records",
    )
    parser.add_argument(
        "--without", action="append", default=[], metavar="NAME", help="not this one; may be given again"
    )
    parser.add_argument("--run", type=_run_prefix, default="", metavar="PREFIX", help="how the run's name begins")
    return parser.parse_args(arguments)


def _bucket(environment: Environment, secrets: Secrets, name: str) -> ObjectStore:
    """Return a bucket, with short timeouts."""
    return ObjectStore.of(environment, secrets, name, answer_seconds=10, attempts=2)


def _missing(environment: Environment, secrets: Secrets, document: Document) -> dict[str, str]:
    """Return what each bucket answers for an object that does not exist."""
    first = next(iter((*document.pipelines, *(pattern.pipeline for pattern in document.patterns))), None)
    places = missing_objects.places(environment, first.table.identifier) if first else {}
    return missing_objects.answers(
        {name: (_bucket(environment, secrets, bucket), key) for name, (bucket, key) in places.items()}
    )


def _run_prefix(text: str) -> str:
    if not re.fullmatch("[a-z0-9-]{0,100}", text):  # it becomes part of a file's name
        raise argparse.ArgumentTypeError("write a-z, 0-9 and -")
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
