"""All probes of an environment, in the order in which a deployment becomes effective."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from frazil.smoke import job_probes, resource_probes
from frazil.smoke import probe as subjects
from frazil.smoke.deployed_job import IngestJob, Services, deployed_jobs
from frazil.smoke.probe import Answer, Probe


def probes(services: Services, *, is_published: bool = False) -> Iterator[Probe]:
    """Yield all probes. Without a release, only the first one: nothing runs. `is_published`: one alarm is raised for a test."""
    jobs = deployed_jobs(services)
    if not jobs:
        yield Probe(subject=subjects.RUN, ask=lambda: Answer.not_yet("no release is deployed, so nothing runs"))
        return
    for job in jobs:
        yield from _of_job(job)
    yield Probe(subject=subjects.ALARMS, ask=partial(resource_probes.alarms, services))
    topic = partial(resource_probes.alarm_topic, services, is_published=is_published)
    yield Probe(subject=subjects.ALARM_TOPIC, ask=topic)
    yield Probe(subject=subjects.TABLES, ask=partial(resource_probes.tables, services, jobs))


def _of_job(job: IngestJob) -> Iterator[Probe]:
    for each in (job, job.maintenance):
        group = each.desired.log_group if each is job else f"{job.services.names.log_groups}{each.job}"
        yield Probe(subject=subjects.RUN, of=each.job, ask=partial(job_probes.run, each))
        yield Probe(subject=subjects.LOG_GROUP, of=each.job, ask=partial(job_probes.log_group, each, group or ""))
        yield Probe(subject=subjects.LOG_FILES, of=each.job, ask=partial(job_probes.log_files, each))
    for subject, ask in (
        (subjects.DOCUMENTS, job_probes.documents),
        (subjects.PROOF, job_probes.proof),
        (subjects.GENERATION, job_probes.generation),
        (subjects.RUNTIME, job_probes.runtime),
        (subjects.MISSING_OBJECTS, job_probes.missing_objects),
        (subjects.SECRET, job_probes.secret),
        (subjects.METRICS, job_probes.metrics),
        (subjects.RECONCILER, resource_probes.reconciler),
        (subjects.SCHEDULES, resource_probes.schedules),
    ):
        yield Probe(subject=subject, of=job.job, ask=partial(ask, job))
