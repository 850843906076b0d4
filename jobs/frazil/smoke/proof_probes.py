"""Probes of what a driver wrote into its proof, and of the metrics that its log becomes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from frazil.clients.deployed_resources import Metric
from frazil.clients.emr import Run
from frazil.declaration import Pipeline
from frazil.declaration.secret import secrets_in
from frazil.job.missing_objects import NOT_FOUND
from frazil.rollout.run_proof import Reached, RunProof
from frazil.smoke.deployed_job import IngestJob
from frazil.smoke.probe import Answer

WRITING = timedelta(minutes=5)
"""How long after the start of its run a proof may be missing."""
FRESH = timedelta(minutes=30)
"""How old the proof of a run that runs may be: the driver writes it every five minutes."""
EXTRACTING = timedelta(minutes=20)
"""How long after its request a run may have no metrics: CloudWatch shows a new one after some minutes."""
METRIC = "freshness_seconds"
"""The metric that every pipeline reports in each run."""
_NO_PROOF = "no proof yet"


def proof(job: IngestJob) -> Answer:
    """Return whether the newest run has written its proof, and how far its pipelines have come."""
    run, due, found = job.good, job.due(WRITING), job.proof
    if run is None or due is None:
        return Answer.not_yet("no run yet")
    if found is None or _is_older(found, due):
        what = f"run {due.id} has written none" if found is None else f"the newest is older than run {due.id}"
        do = f"Read frazil jobs logs {job.services.environment.name} {due.id}: event proof_unwritten"
        began = due.updated_at if due.state.is_terminal else due.started_at or due.updated_at
        return Answer.failed(what, do) if job.services.now - began > WRITING else Answer.not_yet(what)
    if _is_older(found, run):
        return Answer.not_yet(f"run {run.id} has written none")
    age = job.services.now - datetime.fromtimestamp(found.at_ms / 1000, UTC)
    if not run.state.is_terminal and age > FRESH:
        do = f"Read frazil jobs logs {job.services.environment.name} {run.id}: the driver writes it every five minutes"
        return Answer.failed(f"the newest is {age.total_seconds() // 60:.0f} minutes old", do)
    reached = {p.name: found.pipelines.get(p.name, Reached.NOTHING) for p in job.pipelines}
    for wanted, what in ((Reached.UNAVAILABLE, "a service is unavailable to"), (Reached.NOTHING, "nothing landed by")):
        names = _listed(name for name, each in reached.items() if each is wanted)
        is_over = run.state.is_terminal or job.age(run) > timedelta(seconds=job.desired.proof_seconds)
        if names and (wanted is Reached.UNAVAILABLE or is_over):
            return Answer.failed(f"{what} {names}", f"Read frazil jobs logs {job.services.environment.name} {run.id}")
        if names:
            return Answer.not_yet(f"{what} {names}")
    committed = sum(each is Reached.COMMITTED for each in reached.values())
    return Answer.shown(f"{committed} pipelines have committed, {len(reached) - committed} have caught up")


def runtime(job: IngestJob) -> Answer:
    """Return whether the driver runs on what its release was built for."""
    driver = job.proof.driver if job.proof else None
    if driver is None or not driver.runtime:
        return Answer.not_yet(_NO_PROOF if job.proof is None else "the release writes no versions")
    found, wanted = driver.runtime, job.release.runtime
    listed = ", ".join(f"{name} {version}" for name, version in sorted(found.items()))
    if job.services.names.is_local:
        return Answer.not_here(f"those of this machine: {listed}")
    differs = [
        f"{name} {found.get(name)}, not {version}"
        for name, version in (("python", wanted.python), ("spark", wanted.spark), ("iceberg", wanted.iceberg))
        if not _is_version(found.get(name, ""), version)
    ]
    if found.get("frazil") != job.release.version:
        differs.append(f"frazil {found.get('frazil')}, not {job.release.version}")
    if differs:
        return Answer.failed("; ".join(differs), "Build the release for the label of the application")
    return Answer.shown(listed)


def missing_objects(job: IngestJob) -> Answer:
    """Return whether S3 said *not found*, and not *forbidden*, to the driver."""
    driver = job.proof.driver if job.proof else None
    if driver is None or not driver.missing:
        return Answer.not_yet(_NO_PROOF if job.proof is None else "the release writes no such answers")
    wrong = [f"{name}: {answer}" for name, answer in sorted(driver.missing.items()) if answer != NOT_FOUND]
    if job.services.names.is_local:
        return Answer.not_here("the local S3 evaluates no policies")
    if wrong:
        do = f"Compare s3:ListBucket of the role {job.services.names.role(job.job)} with docs/policies.md"
        return Answer.failed("; ".join(wrong), do)
    return Answer.shown(f"not found, in the buckets of {' and '.join(sorted(driver.missing))}")


def secret(job: IngestJob) -> Answer:
    """Return whether a pipeline has landed, for which the driver read its secret."""
    names = sorted({each.secretsmanager for each in secrets_in(job.environment) if each.secretsmanager})
    if not names:
        return Answer.not_here("the environment names no secret of Secrets Manager")
    if job.landed:
        return Answer.shown(f"{_listed(names)}: {job.landed[0].name} has landed with it")
    if job.proof is None:
        return Answer.not_yet(_NO_PROOF)
    if Reached.UNAVAILABLE in job.proof.pipelines.values():
        do = "Read frazil jobs logs: event service_unavailable names the secret, or another service"
        return Answer.failed("a service is unavailable, and no pipeline has landed", do)
    return Answer.not_yet("no pipeline has landed yet")


def metrics(job: IngestJob) -> Answer:
    """Return whether CloudWatch has made metrics of the log, for each pipeline that has landed."""
    if job.services.names.is_local:
        return Answer.not_here("the local cloud makes no metrics of logs")
    run, landed = job.due(EXTRACTING), job.landed
    if run is None or not landed:
        return Answer.not_yet("no pipeline has landed yet")
    namespace = job.environment.metrics_namespace
    asked = [_metric(pipeline, namespace) for pipeline in landed]
    sums = job.services.resources.sums(asked, now=job.services.now, within=min(timedelta(hours=3), job.age(run)))
    missing = [pipeline.name for pipeline, number in zip(landed, sums, strict=True) if not number]
    if not missing:
        return Answer.shown(f"{METRIC} of {len(landed)} pipelines in {namespace}")
    what = f"{namespace} has no {METRIC} of {_listed(missing)}"
    if job.age(run) > EXTRACTING:
        do = "Alarms of pipelines have no data. Look into the log group: its lines must be JSON with _aws"
        return Answer.failed(what, do)
    return Answer.not_yet(what, "CloudWatch needs some minutes")


def _is_older(proof: RunProof, run: Run) -> bool:
    return proof.at_ms < run.created_at.timestamp() * 1000


def _metric(pipeline: Pipeline, namespace: str) -> Metric:
    group = {"group": pipeline.group} if pipeline.group else {}
    return Metric(
        namespace=namespace, name=METRIC, dimensions={**group, "pipeline": pipeline.name}, statistic="SampleCount"
    )


def _is_version(found: str, wanted: str) -> bool:
    """Return whether a version is the wanted one, or one of its builds or patches."""
    return found == wanted or found.startswith((f"{wanted}.", f"{wanted}-"))


def _listed(names: Iterable[str], most: int = 5) -> str:
    """Return the first names, and how many more there are."""
    found = sorted(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more
