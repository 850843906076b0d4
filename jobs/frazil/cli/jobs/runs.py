"""`frazil jobs list` and `frazil jobs logs`: list job runs, and print their logs."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from frazil.cli.console import duration, err, note, number, out, plain, say, show_json, table
from frazil.cli.jobs import aws
from frazil.cli.options import (
    AsJson,
    EnvironmentName,
    EnvironmentOption,
    JobName,
    argument,
    command_secrets,
    environment_name,
    flag,
)
from frazil.clients.secrets import Secrets
from frazil.errors import InvalidInput, ObjectStoreUnavailable
from frazil.project import environments
from frazil.rollout.job_run_request import TAG_GENERATION, TAG_JOB, TAG_RELEASE, names_of_runs

if TYPE_CHECKING:
    from frazil.clients.emr import Run
    from frazil.clients.object_store import ObjectStore
    from frazil.declaration import Environment


COLUMNS = ("run", "job", "state", "generation", "release", "began", "took", "")


def runs(
    env: EnvironmentName = None,
    option: EnvironmentOption = None,
    job: JobName = None,
    last: Annotated[int, flag("--last", "Number of newest runs to list.", "N", min=1)] = 20,
    as_json: AsJson = False,
) -> None:
    """List the job runs of an environment, newest first.

    For example: frazil jobs list prod --last 5

    Exit codes: 0 listed, also if there are none; 2; 3
    """
    place = environments.environment(environment_name(env, option))
    jobs = aws.jobs_of(aws.artifact_store(place, command_secrets()), job)
    found = _found(place, command_secrets(), jobs, last=last)[:last]
    now = time.time()
    if as_json:
        show_json({"jobs": list(jobs), "runs": [facts(run, now=now) for run in found]})
        return
    shown = table(*COLUMNS, right=("generation", "took"))
    for run in found:
        described = facts(run, now=now)
        began = run.created_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
        named = (str(described[key] or "–") for key in ("generation", "release"))
        what = (run.id, plain(str(described["job"])), run.state, *named)
        shown.add_row(*what, began, duration(described["seconds"]), plain(run.details))
    out().print(shown)


def logs(
    env: EnvironmentName = None,
    run_id: Annotated[str | None, argument("RUN", "A run's id; by default the newest run.")] = None,
    option: EnvironmentOption = None,
    job: JobName = None,
    is_sparks: Annotated[bool, flag("--spark", "Print Spark's own log in place of the job's.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the uploaded log of a run's driver.

    For example: frazil jobs logs prod 00f1abc2def3gh45

    With --env or FRAZIL_ENV, one argument may be RUN.

    Exit codes: 0 printed, also if there is no log yet; 2 invalid input, no such run, or no log on S3; 3
    """
    from frazil.rollout.run_log import Stream, bucket_of, run_log

    if run_id is None and env is not None and option is not None and not environments.is_known(env):
        env, run_id = None, env  # `--env` or FRAZIL_ENV takes the place of ENV, so the one argument is RUN
    place = environments.environment(environment_name(env, option))
    secrets = command_secrets()
    jobs = aws.jobs_of(aws.artifact_store(place, secrets), job)
    where = f"{', '.join(f'job {each}' for each in jobs)} of environment {place.name}"
    run = _chosen(_found(place, secrets, jobs, run_id=run_id), run_id, where=where)
    if not bucket_of(run):
        what = "it leaves no log on S3"
        raise InvalidInput(what, where=f"run {run.id}", do="Its monitoring configuration names none")
    stream = Stream.STDERR if is_sparks else Stream.STDOUT
    found = run_log(run, aws.bucket(place, secrets, bucket_of(run)), stream)
    parts = {key: secrets.redactor.redact(text).splitlines() for key, text in found.items()}
    if as_json:
        listed = [{"key": key, "lines": lines} for key, lines in parts.items()]
        show_json({"run": run.id, "state": run.state, "stream": stream, "parts": listed})
        return
    for key, lines in parts.items():
        if len(parts) > 1:
            note(key, "dim")
        for line in lines:
            say(line)
    if not parts:
        note(f"run {run.id} is {run.state}, and has no log yet")


def facts(run: Run, *, now: float) -> Mapping[str, Any]:
    """Return a run as JSON. `seconds` are from its request to its end, or to now."""
    end = run.updated_at if run.state.is_terminal else datetime.fromtimestamp(now, UTC)
    generation = run.tags.get(TAG_GENERATION)
    return {
        "run": run.id,
        "job": run.tags.get(TAG_JOB),
        "application": run.application,
        "state": run.state,
        "generation": int(generation) if generation else None,
        "release": run.tags.get(TAG_RELEASE),
        "created_at": run.created_at.astimezone(UTC).isoformat(),
        "seconds": round((end - run.created_at).total_seconds(), 1),
        "details": run.details,
    }


def _found(
    place: Environment, secrets: Secrets, jobs: Sequence[str], *, last: int = 20, run_id: str | None = None
) -> list[Run]:
    """Return the newest runs of jobs on all their applications, newest first; then the named one, however old it is."""
    from frazil.clients.emr import NotAllowed
    from frazil.rollout.state import stored_state

    store, emr = aws.artifact_store(place, secrets), aws.emr(place, secrets)
    named = [place.emr_application] if place.emr_application else []
    used: dict[str, list[str]] = {job: [] for job in jobs}
    found: list[Run] = []
    for job in jobs:
        here = (*named, *stored_state(store, job).applications)
        for application in dict.fromkeys((*here, *_former(place, secrets, store, job))):
            try:
                found += emr.runs(application, {TAG_JOB: job}, names=names_of_runs(job), ended=last)
            except NotAllowed as error:
                if application in named:
                    raise
                err().print(plain(f"runs of the former application {application} are omitted: {error.what}"))
                continue
            used[job].append(application)
    found.sort(key=lambda run: (run.created_at, run.id), reverse=True)
    if run_id is None or run_id in {run.id for run in found} or not re.fullmatch("[0-9a-z]+", run_id):
        return found
    named_runs = (emr.run(a, run_id) for a in dict.fromkeys(a for each in used.values() for a in each))
    return [*found, *(run for run in named_runs if run is not None and run.tags.get(TAG_JOB) in jobs)]


def _former(place: Environment, secrets: Secrets, store: ObjectStore, job: str) -> tuple[str, ...]:
    """Return the applications that a job has left, as far as they have logs of it. Nothing else remembers them."""
    from frazil.rollout.desired import desired_key, parse_desired
    from frazil.rollout.run_log import applications_prefix

    held = store.read(desired_key(job))
    if held is None:
        return ()
    try:
        bucket, prefix = applications_prefix(parse_desired(held.data).log_uri)
        return aws.bucket(place, secrets, bucket).folders(prefix)
    except (InvalidInput, ObjectStoreUnavailable):
        return ()  # whoever deploys may not list logs


def _chosen(found: list[Run], run_id: str | None, *, where: str) -> Run:
    for run in found:
        if run_id in (None, run.id):
            return run
    what = f"there is no run {run_id}" if run_id else "there are no runs"
    raise InvalidInput(what, where=where, do=f"`frazil jobs list` lists {number(len(found))}; --job names another job")
