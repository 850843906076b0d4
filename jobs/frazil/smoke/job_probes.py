"""Probes of a job: its application and runs, its log, and the proof that its driver wrote."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from frazil.clients.deployed_resources import Metric
from frazil.clients.emr import Run, RunState
from frazil.declaration import Pipeline
from frazil.declaration.secret import secrets_in
from frazil.job.startup import NOT_FOUND
from frazil.release.upload import document_key
from frazil.rollout.run_log import bucket_of, run_log_prefix
from frazil.rollout.run_proof import Reached, RunProof, is_pattern
from frazil.smoke.deployed_job import GOOD, DeployedJob, IngestJob
from frazil.smoke.probe import Answer

STARTING = timedelta(minutes=15)
"""The time that a run may take to start: an application with capacity needs about two minutes."""
LOGGING = timedelta(minutes=10)
"""The time after its request in which a run may have no log in CloudWatch."""
_NO_RUN = "no run yet"


def run(job: DeployedJob) -> Answer:
    """Return whether a run of the job runs or has succeeded."""
    newest, good = job.newest, job.good
    if newest is None:
        if job.desired.is_stopped:
            what = "an operator stopped its pipelines"
            return Answer.not_yet(what, "Start them: frazil jobs start", is_awaited=False)
        do = "Run frazil jobs reconcile, or wait for its schedule" if job.is_ingest else "Its schedule starts it"
        return Answer.not_yet(_NO_RUN, do, is_awaited=job.is_ingest)
    what = f"run {newest.id} is {newest.state}"
    if newest.state is RunState.FAILED:
        where = f"{job.services.environment.name} {newest.id} --job {job.job}"
        return Answer.failed(f"{what}: {newest.details}", f"Read its log: frazil jobs logs {where}")
    if newest.state in GOOD:
        return Answer.shown(what)
    is_starting = newest.state not in (RunState.CANCELLING, RunState.CANCELLED)
    if is_starting and job.age(newest) > STARTING:
        do = "Look at the capacity of the application and the quota: frazil doctor"
        return Answer.failed(f"{what} for {job.age(newest) // timedelta(minutes=1)} minutes", do)
    return Answer.shown(f"run {good.id} is {good.state}; {what}") if good is not None else Answer.not_yet(what)


def log_group(job: DeployedJob, group: str) -> Answer:
    """Return whether the log agent has written a stream of a run."""
    if job.services.names.is_local:
        return Answer.not_here("the local cloud writes no log group")
    run = job.due(LOGGING) or job.newest
    if run is None:
        return Answer.not_yet(_NO_RUN, is_awaited=job.is_ingest)
    streams = job.services.resources.log_streams(group)
    if streams is None:
        return Answer.failed(f"{group} does not exist", "Deploy the foundation stack")
    found = [name for name in streams if run.id in name]
    if found:
        return Answer.shown(f"{group} has {found[0]}")
    what = f"{group} has no stream of run {run.id}"
    if job.age(run) > LOGGING:
        return Answer.failed(what, f"Compare the role {job.services.names.role(job.job)} with docs/policies.md: logs:…")
    return Answer.not_yet(what)


def log_files(job: DeployedJob) -> Answer:
    """Return whether the driver's log of a run is on S3."""
    run = job.due(LOGGING) or job.newest
    if run is None:
        return Answer.not_yet(_NO_RUN, is_awaited=job.is_ingest)
    if not bucket_of(run):
        return Answer.failed(f"run {run.id} has no address for logs on S3", "Deploy again")
    prefix = run_log_prefix(run)
    keys = job.services.bucket(bucket_of(run)).keys(prefix)
    if any("/SPARK_DRIVER/" in key for key in keys):
        return Answer.shown(f"s3://{bucket_of(run)}/{prefix}")
    what = f"s3://{bucket_of(run)}/{prefix} has no log of the driver"
    if run.state.is_terminal and job.services.now - run.updated_at > LOGGING:
        do = f"Compare the role {job.services.names.role(job.job)} with docs/policies.md: s3:PutObject"
        return Answer.failed(what, do)
    return Answer.not_yet(what, "EMR Serverless stores it during the run or at its end")


def documents(job: IngestJob) -> Answer:
    """Return whether the documents and the release are readable, and are those that their keys name."""
    desired, store = job.desired, job.services.store
    for key in (desired.document, desired.environment):
        held = store.read(key)
        if held is None or document_key(held.data) != key:
            return Answer.failed(f"{key} {'does not exist' if held is None else 'has other content'}", "Deploy again")
    patterns = f" and {len(job.declared.patterns)} patterns" if job.declared.patterns else ""
    pipelines = f"{len(job.pipelines)} pipelines{patterns} in {job.environment.name}"
    what = f"{pipelines}, release {job.release.version} ({job.release.digest[:16]})"
    return Answer.shown(what)


def generation(job: IngestJob) -> Answer:
    """Return whether the reconciler has proven the desired generation."""
    what = f"generation {job.desired.generation}"
    if job.state.has_given_up(job.desired):
        do = "Read frazil jobs list and frazil jobs logs, then deploy a remedy, or frazil deploy up --again"
        return Answer.failed(f"{what} was given up", do)
    if job.state.has_proven(job.desired):
        return Answer.shown(f"{what} is proven")
    if job.desired.is_stopped:
        return Answer.not_yet("an operator stopped its pipelines", "Start them: frazil jobs start", is_awaited=False)
    return Answer.not_yet(f"{what} has not proven itself", "frazil jobs reconcile --check prints why")


WRITING = timedelta(minutes=5)
"""The time after the start of its run in which a proof may be missing."""
FRESH = timedelta(minutes=30)
"""The largest age of the proof of a run that runs: the driver writes it every five minutes."""
EXTRACTING = timedelta(minutes=20)
"""The time after its request in which a run may have no metrics: CloudWatch shows a new one after some minutes."""
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
    reached = job.reached
    for wanted, what in ((Reached.UNAVAILABLE, "a service is unavailable to"), (Reached.NOTHING, "nothing landed by")):
        names = _listed(name for name, each in reached.items() if each is wanted)
        is_over = run.state.is_terminal or job.age(run) > timedelta(seconds=job.desired.proof_seconds)
        if names and (wanted is Reached.UNAVAILABLE or is_over):
            return Answer.failed(f"{what} {names}", f"Read frazil jobs logs {job.services.environment.name} {run.id}")
        if names:
            return Answer.not_yet(f"{what} {names}")
    reached = {name: how for name, how in reached.items() if not is_pattern(name)}
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
        if not f"{found.get(name, '')}.".startswith((f"{version}.", f"{version}-"))  # a build or patch, too
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


def _listed(names: Iterable[str], most: int = 5) -> str:
    """Return the first names, and how many more there are."""
    found = sorted(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more
