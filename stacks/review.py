"""`python -m stacks.review ENV`: review a deployment, as Markdown or JSON. `frazil review` runs it.

Synthesises the environment, plans its stacks, and checks both against the guardrails. The review lists the changes, their
effects on data, new permissions and the cost. Exit codes: 0 no changes, 1 refused, 2 invalid input, 4 changes, 5 not reviewed.

Synthesis reads the variables of `stacks.app`: `FRAZIL_PIPELINES`, `FRAZIL_RELEASE`, `FRAZIL_DEPLOYED`, `FRAZIL_DESTROY_DATA`.
The file of deployed objects is only read.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NoReturn

from frazil.exit_codes import Exit
from policies.review.json_document import document
from policies.review.markdown import markdown
from policies.review.prices import NotAssumed, price_table
from policies.review.review import Review, Verdict, review
from stacks.deployments import DEPLOYMENTS
from stacks.terraform_plans import NotPlanned, given, plans, synthesise

EXITS = {
    Verdict.NOTHING: Exit.SUCCESS,
    Verdict.CHANGES: Exit.CHANGES,
    Verdict.REFUSED: Exit.DECISION_REQUIRED,
}

_ON_STAND_INS = {"in_the_clear": "Kafka and registry of this environment are stand-ins on this machine"}


def main(arguments: Sequence[str], settings: Mapping[str, str], today: date) -> int:
    """Print the review and return the exit code that the module's docstring lists."""
    chosen = _arguments(arguments)
    if chosen.environment not in DEPLOYMENTS:
        one_of = ", ".join(DEPLOYMENTS)
        print(f"error: the environment {chosen.environment} does not exist. Name one of {one_of}", file=sys.stderr)
        return Exit.INVALID_INPUT
    try:
        found = _reviewed(chosen, settings, today)
    except (NotPlanned, NotAssumed, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return Exit.UNCHECKED
    if chosen.json:
        print(json.dumps(document(found), indent=2, ensure_ascii=True))
    else:
        print(markdown(found), end="")
    return EXITS[found.verdict]


def _reviewed(chosen: argparse.Namespace, settings: Mapping[str, str], today: date) -> Review:
    deployment = DEPLOYMENTS[chosen.environment]
    prices = price_table(_object(chosen.assumptions) if chosen.assumptions else None)
    before = _object(chosen.before) if chosen.before else None
    terraform = shutil.which("terraform", path=settings.get("PATH"))
    if terraform is None and not chosen.plan:
        raise NotPlanned("terraform is not installed. Install it, or name plans with --plan")
    # Only this user can read the folder, and it is always removed.
    with tempfile.TemporaryDirectory(prefix="frazil-review-") as folder:
        folders = synthesise(chosen.environment, Path(folder), settings)
        planned = list(given(chosen.plan, folders) if chosen.plan else plans(folders, settings, terraform or ""))
        return review(
            chosen.environment,
            planned,
            prices=prices,
            today=today,
            before=before,
            region=deployment.region,
            accepted=chosen.accept_danger.strip(),
            tolerated=_ON_STAND_INS if deployment.is_local else {},
        )


def _object(file: Path) -> dict[str, Any]:
    content = json.loads(file.read_text("utf-8"))
    if not isinstance(content, dict):
        raise ValueError(f"{file}: the file is no JSON object")
    return content


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m stacks.review", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("environment", metavar="ENV", help=f"one of {', '.join(DEPLOYMENTS)}")
    parser.add_argument("--plan", action="append", default=[], metavar="[STACK=]FILE", help="a plan as JSON")
    parser.add_argument("--before", type=Path, metavar="FILE", help="the deployed pipeline document")
    parser.add_argument("--assumptions", type=Path, metavar="FILE", help="assumptions of the cost estimate")
    parser.add_argument("--accept-danger", default="", metavar="REASON", help="do not refuse; the reason is printed")
    parser.add_argument("--json", action="store_true", help="JSON instead of Markdown")
    return parser.parse_args(arguments)


def _end(number: int, frame: object) -> NoReturn:
    """Exit by an exception, so that the folder with the plans is removed."""
    sys.exit(128 + number)


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        ended = main(sys.argv[1:], os.environ, datetime.now(UTC).date())
    except Exception:  # noqa: BLE001 - Python's own 1 would say "refused"
        traceback.print_exc()
        ended = Exit.UNCHECKED
    sys.exit(ended)
