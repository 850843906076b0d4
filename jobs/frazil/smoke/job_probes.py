"""Probes of one job: its newest run, where its log is, its documents and its generation."""

from __future__ import annotations

from datetime import timedelta

from frazil.clients.emr import Run, RunState
from frazil.release.upload import document_key
from frazil.rollout.run_log import bucket_of, run_log_prefix
from frazil.smoke.deployed_job import GOOD, DeployedJob, IngestJob
from frazil.smoke.probe import Answer

STARTING = timedelta(minutes=15)
"""How long a run may take to start: an application with capacity needs about two minutes."""
LOGGING = timedelta(minutes=10)
"""How long after its request a run may have no log in CloudWatch."""
_NO_RUN = "no run yet"


def run(job: DeployedJob) -> Answer:
    """Return whether a run of the job runs or has succeeded."""
    newest, good = job.newest, job.good
    if newest is None:
        if job.desired.is_stopped:
            return Answer.not_yet(
                "an operator stopped its pipelines", "Start them: frazil jobs start", is_awaited=False
            )
        do = "Run frazil jobs reconcile, or wait for its schedule" if job.is_ingest else "Its schedule starts it"
        return Answer.not_yet(_NO_RUN, do, is_awaited=job.is_ingest)
    what = f"run {newest.id} is {newest.state}"
    if newest.state is RunState.FAILED:
        return Answer.failed(f"{what}: {newest.details}", f"Read its log: frazil jobs logs {_logs_of(job, newest)}")
    if newest.state in GOOD:
        return Answer.shown(what)
    is_starting = newest.state not in (RunState.CANCELLING, RunState.CANCELLED)
    if is_starting and job.age(newest) > STARTING:
        do = "Look at the capacity of the application and the quota: frazil doctor"
        return Answer.failed(f"{what} for {_minutes(job.age(newest))} minutes", do)
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
        return Answer.failed(
            what, f"Compare the role {job.services.names.role(job.job)} with docs/policies.md: s3:PutObject"
        )
    return Answer.not_yet(what, "EMR Serverless stores it during the run or at its end")


def documents(job: IngestJob) -> Answer:
    """Return whether the documents and the release are readable, and are those that their keys name."""
    desired, store = job.desired, job.services.store
    for key in (desired.document, desired.environment):
        held = store.read(key)
        if held is None or document_key(held.data) != key:
            return Answer.failed(f"{key} {'does not exist' if held is None else 'has other content'}", "Deploy again")
    names = (len(job.pipelines), job.environment.name)
    return Answer.shown(
        f"{names[0]} pipelines in {names[1]}, release {job.release.version} ({job.release.digest[:16]})"
    )


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


def _logs_of(job: DeployedJob, run: Run) -> str:
    return f"{job.services.environment.name} {run.id} --job {job.job}"


def _minutes(age: timedelta) -> int:
    return int(age.total_seconds() // 60)
