"""`python -m stacks.workflow.review ENV`: review a deployment, as Markdown. `frazil deploy plan` runs it.

Synthesises the environment, plans its stacks, and checks both against the guardrails. The review lists the changes, their
effects on data, new permissions and the cost. Exit codes: 0 no changes, 1 refused, 2 invalid input, 4 changes, 5 not reviewed.

Synthesis reads `FRAZIL_PIPELINES`, `FRAZIL_RELEASE`, `FRAZIL_DEPLOYED` and `FRAZIL_DESTROY_DATA`, as
`stacks.workflow.app` does. The file of deployed objects is only read.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NoReturn

from frazil.exit_codes import Exit
from policies.resource_values import DeclaredAccess
from policies.review.markdown.page import markdown, unchanged
from policies.review.plan.plan_gaps import StackPlan
from policies.review.prices import NotAssumed, Prices, price_table
from policies.review.review import Review, Verdict, in_comments, on_command_line, review
from stacks.spec.deployments import DEPLOYMENTS, Deployment
from stacks.workflow.first_plans import NOTE, first_plans, settings_of_an_empty_account
from stacks.workflow.terraform_command import NotPlanned, program
from stacks.workflow.terraform_plans import (
    APP,
    copied,
    declared_by,
    declared_pipelines,
    plans,
    synthesise,
    synthesised,
)

EXITS = {
    Verdict.NOTHING: Exit.SUCCESS,
    Verdict.CHANGES: Exit.CHANGES,
    Verdict.REFUSED: Exit.DECISION_REQUIRED,
}

ON_STAND_INS = ("in_the_clear",)
"""The rules that stand-ins on this machine may break."""


def main(
    arguments: Sequence[str],
    settings: Mapping[str, str],
    today: date,
    deployments: Mapping[str, Deployment] = DEPLOYMENTS,
    app: Sequence[str] = APP,
) -> int:
    """Print the review and return the exit code that the module's docstring lists.

    `app` are the arguments of Python that synthesise the deployments.
    """
    chosen = _arguments(arguments, deployments)
    if not is_declared(chosen.environment, deployments):
        return Exit.INVALID_INPUT
    try:
        found = _reviewed(chosen, settings, today, deployments[chosen.environment], app)
        if found is None:
            print(unchanged(chosen.environment))
            return Exit.SUCCESS
        if chosen.form is not None:
            chosen.form.write_text(found.form.text, "ascii")
    except (NotPlanned, NotAssumed, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return Exit.UNCHECKED
    print(markdown(found), end="")
    return EXITS[found.verdict]


def _reviewed(
    chosen: argparse.Namespace,
    settings: Mapping[str, str],
    today: date,
    deployment: Deployment,
    app: Sequence[str],
) -> Review | None:
    """Return the review; None if only changed declarations are wanted and these are those of this checkout."""
    prices = price_table(json_object(chosen.assumptions) if chosen.assumptions else None)
    accepted = json_object(chosen.acceptances) if chosen.acceptances else None
    if chosen.only_changed and chosen.synthesised is None:
        raise NotPlanned("--only-changed needs --synthesised, the stacks that are compared")
    terraform = "" if chosen.offline else program(settings)
    # Only this user can read the folder, and it is always removed.
    with tempfile.TemporaryDirectory(prefix="frazil-review-") as folder:
        if chosen.offline:
            settings = settings_of_an_empty_account(deployment, Path(folder, "empty"), settings)
        if chosen.synthesised is None:
            folders = synthesise(deployment, Path(folder), settings, app)
        else:
            folders = copied(deployment, chosen.synthesised, Path(folder))
            if chosen.only_changed:
                base = Path(folder, "base")
                base.mkdir()
                if declared_by(synthesise(deployment, base, settings, app)) == declared_by(folders):
                    return None
        if chosen.offline:
            stacks = {name: synthesised(each) for name, each in folders.items()}
            planned = list(first_plans(stacks, declared_pipelines(folders.values())))
        else:
            planned = list(plans(folders, settings, terraform))
        return review_of(
            deployment,
            planned,
            today=today,
            reason=chosen.accept_danger,
            comments=accepted,
            prices=prices,
            offline=NOTE if chosen.offline else "",
            topics=_topics(chosen.topics),
        )


def review_of(
    deployment: Deployment,
    planned: Sequence[StackPlan],
    *,
    today: date,
    reason: str = "",
    comments: Mapping[str, Any] | None = None,
    prices: Prices | None = None,
    offline: str = "",
    topics: Sequence[str] | None = None,
) -> Review:
    """Review plans of a deployment. `reason` accepts all dangers; `comments` is what `frazil deploy acceptances` printed.

    `topics` are those that exist, if known.
    """
    return review(
        deployment.name,
        planned,
        prices=prices or price_table(),
        today=today,
        region=deployment.region,
        accepted=lambda digest: (
            *on_command_line(reason),
            *(() if comments is None else in_comments(comments, deployment.name, digest)),
        ),
        tolerated=ON_STAND_INS if deployment.is_local else (),
        access=access_of(deployment),
        offline=offline,
        topics=topics,
    )


def _topics(file: Path | None) -> list[str] | None:
    """Return the topics that `frazil schema topics --json` printed into a file; None without a file."""
    if file is None:
        return None
    try:
        return [str(each["topic"]) for each in json_object(file)["topics"]]
    except (KeyError, TypeError):
        raise ValueError(f"{file}: it lists no topics. Write it with `frazil schema topics --json`") from None


def access_of(deployment: Deployment) -> DeclaredAccess:
    """Return the access that a deployment declares: a review of another checkout's stacks has it from this one."""
    confluent = deployment.confluent
    repositories = [deployment.access.github.repository] if deployment.access.github is not None else []
    workflows = (f"{what}-{deployment.name}" for what in ("review", "deploy"))
    return DeclaredAccess(
        principals=frozenset(
            (*deployment.access.readers, *deployment.access.reconcilers, *deployment.access.deployers)
        ),
        external_ids=deployment.access.external_ids,
        subjects=frozenset(f"repo:{one}:environment:{workflow}" for workflow in workflows for one in repositories),
        prefixes=frozenset((*confluent.topic_prefixes, *confluent.subject_prefixes)),
        administers=confluent.is_administered,
    )


def is_declared(environment: str, deployments: Mapping[str, Deployment]) -> bool:
    """Return whether an environment is declared. Prints the error if it is not."""
    if environment not in deployments:
        one_of = ", ".join(deployments)
        print(f"error: the environment {environment} does not exist. Name one of {one_of}", file=sys.stderr)
    return environment in deployments


def json_object(file: Path) -> dict[str, Any]:
    """Read a JSON object. Raises `ValueError` if the file is none."""
    content = json.loads(file.read_text("utf-8"))
    if not isinstance(content, dict):
        raise ValueError(f"{file}: the file is no JSON object")
    return content


def parser_of(module: str, about: str | None, deployments: Iterable[str]) -> argparse.ArgumentParser:
    """Return a parser of the arguments of a module that takes an environment. `about` is the module's docstring."""
    parser = argparse.ArgumentParser(
        prog=f"python -m stacks.workflow.{module}", description=(about or "").partition("\n")[0]
    )
    parser.add_argument("environment", metavar="ENV", help=f"one of {', '.join(deployments)}")
    parser.add_argument("--acceptances", type=Path, metavar="FILE", help="what frazil deploy acceptances printed")
    return parser


def _arguments(arguments: Sequence[str], deployments: Iterable[str] = DEPLOYMENTS) -> argparse.Namespace:
    parser = parser_of("review", __doc__, deployments)
    parser.add_argument("--synthesised", type=Path, metavar="DIR", help="plan the stacks of another checkout")
    parser.add_argument("--only-changed", action="store_true", help="plan nothing if these are this checkout's stacks")
    parser.add_argument("--offline", action="store_true", help="review a first deployment without credentials")
    parser.add_argument("--assumptions", type=Path, metavar="FILE", help="assumptions of the cost estimate")
    parser.add_argument("--accept-danger", default="", metavar="REASON", help="do not refuse; the reason is printed")
    parser.add_argument("--topics", type=Path, metavar="FILE", help="the output of frazil schema topics --json")
    parser.add_argument("--form", type=Path, metavar="FILE", help="write the normal form of the plans")
    return parser.parse_args(arguments)


def run(arguments: Sequence[str], deployments: Mapping[str, Deployment] = DEPLOYMENTS, app: Sequence[str] = APP) -> int:
    """Review as a process of its own, which removes its plans if it is ended. Return the exit code."""
    today = datetime.now(UTC).date()
    return ended_by_signals(lambda: main(arguments, os.environ, today, deployments, app))


def ended_by_signals(work: Callable[[], int]) -> int:
    """Return the exit code of work that cleans up if the process is asked to end. A defect is `UNCHECKED`."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        return work()
    except Exception:  # noqa: BLE001 - Python's own 1 would say "refused"
        traceback.print_exc()
        return Exit.UNCHECKED


def _end(number: int, frame: object) -> NoReturn:
    """Exit by an exception, so that the folder with the plans is removed."""
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
