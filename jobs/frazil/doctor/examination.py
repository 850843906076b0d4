"""The examination: the steps of all subjects for the pipelines of a project in an environment, in the order of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

from frazil.clients.aws_account import Account, GivenObjects, account_clients
from frazil.clients.kafka import Kafka
from frazil.clients.registry.client import Registry
from frazil.clients.registry.http import RetryPolicy
from frazil.clients.secrets import Secrets
from frazil.declaration import Environment, Pipeline
from frazil.doctor import brokers as topics_read
from frazil.doctor import deployment_account, lake_access, machine, schema_registry
from frazil.doctor.brokers import Broker
from frazil.doctor.check_result import Check, Step, examined
from frazil.doctor.machine import CLOCK, clock, secret_steps
from frazil.errors import FrazilError
from frazil.lake.read.stored_tables import Lake
from frazil.project import declaration_file, environments

SECONDS, TOTAL_SECONDS = 4.0, 10.0
"""The time of one check, and of all of them."""
SERVICE_SECONDS = 3.0
"""The time that a client waits for a service; less than a check, so that the client's own message is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The declarations of a project: the checks of its files, and what could be loaded of them."""

    checks: tuple[Check, ...]
    pipelines: tuple[Pipeline, ...] = ()
    environment: Environment | None = None


def project(file: Path, env: str, names: Sequence[str]) -> Project:
    """Load declarations and environment. A file that does not load is a failed check.

    Raises `InvalidInput` if a name is not that of a pipeline.
    """
    checks, chosen, place = [], list[Pipeline](), None
    try:
        place = environments.environment(env)
        checks.append(Check.ok("environment", place.name))
    except FrazilError as error:
        checks.append(Check.of_error("environment", error))
    try:
        of_file = declaration_file.found(file)
    except FrazilError as error:
        checks.insert(0, Check.of_error("declarations", error))
        return Project(checks=tuple(checks), environment=place)
    declared = of_file.pipelines
    chosen = list(declaration_file.chosen(declared, names) if names else declared)
    found = f"{len(declared)} pipeline{'' if len(declared) == 1 else 's'} in {file}"
    for noun, some in (("topics", of_file.patterns), ("types", of_file.types)):
        found += f", and {noun} of {len(some)} pattern{'' if len(some) == 1 else 's'}" if some else ""
    try:
        if place is not None:
            every = (one for one in of_file.examples if one.of != "pipelines" or one.pipeline in chosen)
            declaration_file.refuse_misfits(every, place)
        checks.insert(0, Check.ok("declarations", found))
    except FrazilError as error:
        checks.insert(0, Check.of_error("declarations", error))
    return Project(checks=tuple(checks), pipelines=tuple(chosen), environment=place)


def examination(
    loaded: Project,
    secrets: Secrets,
    *,
    now: Callable[[], float],
    new_id: Callable[[], str],
    declared: tuple[str, Mapping[str, Any]] | None = None,
) -> Iterator[Check]:
    """Yield all checks in their order, with secrets masked. Only the check of the warehouse writes anything.

    `declared` is the name of the declared deployment, with its description, if there is one.
    """
    redact = secrets.redactor.redact
    of_account: list[Step] = []
    if declared is not None and not declared[1]["is_local"]:
        name, described = declared
        clients = account_clients(described["region"])
        of_account = deployment_account.steps(
            described, Account(clients, described["region"]), GivenObjects(clients), name
        )
    steps = [*machine.steps(loaded.environment), *of_account]
    skipped: list[Check] = []
    if loaded.environment is None:
        skipped.append(Check.skipped("services", "not checked: environment failed"))
    else:
        steps += _of_services(loaded.pipelines, loaded.environment, secrets, now, new_id)
        if not loaded.pipelines:
            skipped.append(Check.skipped("topics", "not checked: declarations failed"))
    found = examined(steps, seconds=SECONDS, total_seconds=TOTAL_SECONDS)
    for check in chain(loaded.checks, found, skipped):
        yield replace(check, found=redact(check.found), remedy=redact(check.remedy))


def _of_services(
    pipelines: Sequence[Pipeline],
    environment: Environment,
    secrets: Secrets,
    now: Callable[[], float],
    new_id: Callable[[], str],
) -> list[Step]:
    kafka = cache(lambda: Kafka(environment.kafka, secrets, timeout_seconds=SERVICE_SECONDS))
    retry = RetryPolicy(total_seconds=SERVICE_SECONDS, attempt_seconds=SERVICE_SECONDS / 2)
    settings = environment.registry
    registry = cache(lambda: Registry.of(settings, secrets, retry=retry) if settings is not None else None)
    lake = Lake(environment, secrets.read)
    broker = Broker(settings=environment.kafka, kafka=kafka, now=now(), seconds=SERVICE_SECONDS / 2)
    return [
        *secret_steps(environment, pipelines, secrets),
        *broker.steps,
        *topics_read.steps(pipelines, kafka),
        *lake_access.steps(pipelines, environment, secrets, lake, new_id),
        *schema_registry.steps(pipelines, environment, registry, lake),
        Step(name=CLOCK, work=partial(clock, environment, now, SERVICE_SECONDS / 3)),
    ]
