"""All probes of an environment, in the order in which a deployment becomes effective."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from frazil.rollout.group_jobs import ingest_jobs
from frazil.smoke import job_probes, resource_probes
from frazil.smoke.deployed_job import IngestJob, Services
from frazil.smoke.probe import Answer, Probe


def probes(services: Services, *, is_published: bool = False) -> Iterator[Probe]:
    """Yield all probes. Without a release, only the first one: nothing runs. `is_published`: one alarm is raised for a test."""
    jobs = [IngestJob.of(services, job) for job in ingest_jobs(services.store)]
    if not jobs:
        yield Probe("run", lambda: Answer.not_yet("no release is deployed, so nothing runs"))
        return
    for job in jobs:
        yield from _of_job(job)
    yield Probe("alarms", partial(resource_probes.alarms, services))
    yield Probe("alarm topic", partial(resource_probes.alarm_topic, services, is_published=is_published))
    yield Probe("tables", partial(resource_probes.tables, services, jobs))


def _of_job(job: IngestJob) -> Iterator[Probe]:
    for each in (job, job.maintenance):
        group = each.desired.log_group if each is job else f"{job.services.names.log_groups}{each.job}"
        yield Probe(f"run {each.job}", partial(job_probes.run, each))
        yield Probe(f"log group {each.job}", partial(job_probes.log_group, each, group or ""))
        yield Probe(f"log files {each.job}", partial(job_probes.log_files, each))
    for name, ask in (
        ("documents", job_probes.documents),
        ("proof", job_probes.proof),
        ("generation", job_probes.generation),
        ("runtime", job_probes.runtime),
        ("missing objects", job_probes.missing_objects),
        ("secret", job_probes.secret),
        ("metrics", job_probes.metrics),
        ("reconciler", resource_probes.reconciler),
        ("schedules", resource_probes.schedules),
    ):
        yield Probe(f"{name} {job.job}", partial(ask, job))
