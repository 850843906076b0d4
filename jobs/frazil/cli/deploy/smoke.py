"""`frazil deploy smoke`: probe a deployed environment for what only a real run can show."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from frazil.cli.console import checked, counted, out, show_json
from frazil.cli.deploy.program import required_description
from frazil.cli.jobs import aws
from frazil.cli.options import AsJson, EnvironmentName, EnvironmentOption, command_secrets, environment_name, flag
from frazil.clients.secrets import Secrets
from frazil.declaration import Environment
from frazil.exit_codes import Exit, worst
from frazil.project import environments
from frazil.smoke.probe import Answer, Outcome

AGAIN_SECONDS = 20.0
"""Seconds between two rounds of probes."""


def smoke(
    env: EnvironmentName = None,
    option: EnvironmentOption = None,
    publish: Annotated[bool, flag("--publish", "Raise one alarm, which sends a test message.")] = False,
    minutes: Annotated[int, flag("--minutes", "Minutes to wait for what is not shown yet.", min=0, max=1_000)] = 0,
    as_json: AsJson = False,
) -> None:
    """Probe a deployed environment: runs, logs, metrics, alarms, tables.

    For example: frazil deploy smoke dev --minutes 20

    Changes nothing, except with --publish.
    Needs the deployer's permissions.
    Local stand-ins cannot show everything.

    Exit codes: 0 no probe failed; 1 a probe failed; 2; 3
    """
    name = environment_name(env, option)
    place, secrets = environments.environment(name), command_secrets()
    declared = required_description(place.name, Path.cwd())
    found = probed(place, declared, secrets, publish=publish, minutes=minutes)
    code = worst(each.exit for each in found)
    if as_json:
        documents = [each.document() for each in found]
        show_json({"environment": name, "probes": documents, "counts": _counts(found), "exit_code": int(code)})
    else:
        print_results(found)
    if code is not Exit.SUCCESS:
        raise typer.Exit(code)


def probed(
    place: Environment, declared: dict[str, Any], secrets: Secrets, *, publish: bool = False, minutes: int = 0
) -> list[Answer]:
    """Return the answers of all probes; repeat them for at most so many minutes while a later one may show more."""
    from frazil.smoke.deployed_job import Names, Services
    from frazil.smoke.probe import answers
    from frazil.smoke.probes import probes

    names = Names(**declared["names"], is_local=declared["is_local"])
    until = time.monotonic() + minutes * 60
    while True:
        services = Services(
            environment=place,
            names=names,
            store=aws.artifact_store(place, secrets),
            bucket=lambda bucket: aws.bucket(place, secrets, bucket),
            emr=aws.emr(place, secrets),
            resources=aws.resources(place, secrets),
            now=datetime.now(UTC),
            wait=time.sleep,
        )
        found = list(answers(probes(services, is_published=publish)))
        is_open = any(each.is_awaited for each in found)
        if not is_open or time.monotonic() + AGAIN_SECONDS > until:
            return found
        publish = False  # once is enough
        time.sleep(AGAIN_SECONDS)


def print_results(found: list[Answer]) -> None:
    """Print a line for each probe, with the remedy of a failure, and the number of each outcome."""
    for each in found:
        out().print(checked(each.outcome, each.name, _sentence(each)), soft_wrap=True)
    out().print(counted(_counts(found)))


def _sentence(answer: Answer) -> str:
    what = f"{answer.outcome.value}: {answer.found}" if answer.outcome.value.startswith("not") else answer.found
    return f"{what}. {answer.remedy}" if answer.remedy else what


def _counts(found: list[Answer]) -> dict[str, int]:
    return {kind.value: sum(each.outcome is kind for each in found) for kind in Outcome}
