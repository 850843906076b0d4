"""All probes of an environment, in the order in which a deployment becomes effective."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from frazil.rollout.group_jobs import ingest_jobs
from frazil.smoke import job_probes, resource_probes
from frazil.smoke.deployed_job import IngestJob, Services
from frazil.smoke.probe import Answer, Probe, Subject


def probes(services: Services, *, is_published: bool = False) -> Iterator[Probe]:
    """Yield all probes. Without a release, only the first one: nothing runs. `is_published`: one alarm is raised for a test."""
    jobs = [IngestJob.of(services, job) for job in ingest_jobs(services.store)]
    if not jobs:
        yield Probe(subject=Subject.RUN, ask=lambda: Answer.not_yet("no release is deployed, so nothing runs"))
        return
    for job in jobs:
        yield from _of_job(job)
    yield Probe(subject=Subject.ALARMS, ask=partial(resource_probes.alarms, services))
    topic = partial(resource_probes.alarm_topic, services, is_published=is_published)
    yield Probe(subject=Subject.ALARM_TOPIC, ask=topic)
    yield Probe(subject=Subject.TABLES, ask=partial(resource_probes.tables, services, jobs))


def _of_job(job: IngestJob) -> Iterator[Probe]:
    for each in (job, job.maintenance):
        group = each.desired.log_group if each is job else f"{job.services.names.log_groups}{each.job}"
        yield Probe(subject=Subject.RUN, of=each.job, ask=partial(job_probes.run, each))
        yield Probe(subject=Subject.LOG_GROUP, of=each.job, ask=partial(job_probes.log_group, each, group or ""))
        yield Probe(subject=Subject.LOG_FILES, of=each.job, ask=partial(job_probes.log_files, each))
    for subject, ask in (
        (Subject.DOCUMENTS, job_probes.documents),
        (Subject.PROOF, job_probes.proof),
        (Subject.GENERATION, job_probes.generation),
        (Subject.RUNTIME, job_probes.runtime),
        (Subject.MISSING_OBJECTS, job_probes.missing_objects),
        (Subject.SECRET, job_probes.secret),
        (Subject.METRICS, job_probes.metrics),
        (Subject.RECONCILER, resource_probes.reconciler),
        (Subject.SCHEDULES, resource_probes.schedules),
    ):
        yield Probe(subject=subject, of=job.job, ask=partial(ask, job))
