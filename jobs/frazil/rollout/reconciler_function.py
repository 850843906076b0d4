"""The deployed reconciler: an AWS Lambda function that makes one pass for each event. `frazil jobs reconcile` runs the same code.

An event is the execution of a schedule, or "EMR Serverless Job Run State Change" of the application. A pass reads
everything again, so events may be repeated, late and in any order. Only the schedule of drains says which execution it is.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from itertools import islice
from typing import Any

from frazil.clients.emr import Emr, emr_client
from frazil.clients.object_store import ObjectStore, s3_client
from frazil.errors import LockHeld
from frazil.rollout.desired import Desired
from frazil.rollout.function_settings import EXECUTION, Settings
from frazil.rollout.readiness import ProofReadiness, stored_proofs
from frazil.rollout.reconcile import Passed, Reconciler
from frazil.rollout.run_proof import is_pattern
from frazil.rollout.steps import Forget, Step
from frazil.rollout.stopped_pipelines import pipeline_names

MOST_PROOFS = 100
"""The most proofs that are read: more runs than begin within the longest time that a deployment declares."""


def silent_pipelines(desired: Desired, store: ObjectStore, *, now_ms: int, seconds: int) -> tuple[str, ...]:
    """Return the pipelines of a generation that have reported nothing for so long. None is silent before that time is over.

    With a pattern, these may be pipelines of the newest proof. A pattern itself reports only if other topics match.
    """
    began = now_ms - seconds * 1000
    proofs = []
    for proof in islice(stored_proofs(store, desired.job, desired.run_prefix), MOST_PROOFS):
        proofs.append(proof)
        if proof.began_ms is not None and proof.began_ms < began:
            names = {*pipeline_names(desired, store)}
            names |= proofs[0].pipelines.keys() if any(map(is_pattern, names)) else set()
            heard = {n for one in proofs for n, at in one.reported.items() if at >= began or is_pattern(n)}
            return tuple(sorted(names - {*desired.stopped} - heard))
    return ()


def handle(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Make one pass, log it, and return what it did. An error that it raises is counted by the service."""
    settings = Settings.of(os.environ)
    return answer(
        event,
        settings,
        reconciler_of(settings),
        holder=f"function-{context.aws_request_id}",
        log=lambda line: print(json.dumps(line), file=sys.stdout, flush=True),
    )


def answer(
    event: Mapping[str, Any],
    settings: Settings,
    reconciler: Reconciler,
    *,
    holder: str,
    log: Callable[[Mapping[str, Any]], None],
) -> dict[str, Any]:
    """Make one pass and return what it did. If another reconciler keeps the lease, a later event makes the pass."""
    execution = event.get(EXECUTION)
    try:
        passed = reconciler.one_pass(settings.job, holder=holder, execution=execution)
    except LockHeld as held:
        log({"level": "WARN", "event": "lease_held", "job": settings.job, "message": str(held)})
        return {"job": settings.job, "lease": "held"}
    for step in passed.steps:
        log({"level": "INFO", "event": "reconciled", "job": settings.job, **_facts(step)})
    now = reconciler.clock()
    silent = _silent(passed, settings, reconciler, now)
    if silent:
        message = f"no report for {settings.silent_seconds} s"
        log({"level": "WARN", "event": "silent", "job": settings.job, "pipelines": list(silent), "message": message})
    log(_metric(passed, len(silent), settings, now))
    target = passed.target
    return {
        "job": settings.job,
        "desired": passed.desired.generation,
        "target": target.generation if target else None,
        "steps": [_facts(step) for step in passed.steps],
    }


@cache
def reconciler_of(settings: Settings) -> Reconciler:
    """Return the reconciler that a function with these settings calls."""
    store = ObjectStore(s3_client(None), settings.bucket)
    return Reconciler(
        store=store,
        bucket=settings.bucket,
        emr=Emr(emr_client()),
        readiness=ProofReadiness(store),
        clock=time.time,
        wait=time.sleep,
        trusted=settings.trusted_keys,
    )


def _facts(step: Step) -> dict[str, Any]:
    facts: dict[str, Any] = {"step": type(step).__name__.lower(), "message": getattr(step, "why", "")}
    if (run := getattr(step, "run", None)) is not None:
        facts["run"] = run.id
    if isinstance(step, Forget):
        facts["application"] = step.application
    if (desired := getattr(step, "desired", None)) is not None:
        facts |= {"generation": desired.generation, "release": desired.release}
    return facts


def _silent(passed: Passed, settings: Settings, reconciler: Reconciler, now: float) -> tuple[str, ...]:
    """Return the pipelines of the generation that should run that report nothing."""
    if settings.silent_seconds is None or passed.target is None:
        return ()
    now_ms = round(now * 1000)
    return silent_pipelines(passed.target, reconciler.store, now_ms=now_ms, seconds=settings.silent_seconds)


def _metric(passed: Passed, silent: int, settings: Settings, now: float) -> dict[str, Any]:
    """Return whether the job is rolled back, and how many pipelines are silent, in CloudWatch's embedded metric format."""
    directive = {
        "Namespace": settings.metrics_namespace,
        "Dimensions": [["job"]],
        "Metrics": [{"Name": name, "Unit": "Count"} for name in ("rolled_back", "silent_pipelines")],
    }
    return {
        "event": "pass",
        "job": settings.job,
        "rolled_back": int(passed.is_rolled_back),
        "silent_pipelines": silent,
        "_aws": {"Timestamp": round(now * 1000), "CloudWatchMetrics": [directive]},
    }
