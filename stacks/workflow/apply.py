"""`python -m stacks.workflow.apply ENV`: plan again, and apply that plan if it is the reviewed one. `frazil deploy apply` runs it.

The command synthesises and plans as a review does, and compares the plan's digest with that of the review. If it is another
one, or if a danger is not accepted, the command prints the difference and applies nothing. Exit codes: 0 applied, or nothing to
apply; 1 refused; 2 invalid input; 4 applied in part, the rest needs another review; 5 not planned; 6 Terraform failed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from frazil.exit_codes import Exit
from policies.review.markdown.escaping import code, prose
from policies.review.markdown.page import markdown
from policies.review.plan.compared_plans import SHOWN, NormalForm, differences, is_empty, read_form
from policies.review.review import Review
from stacks.spec.deployments import DEPLOYMENTS, Deployment
from stacks.workflow.deployed import file_of
from stacks.workflow.review import ended_by_signals, is_declared, json_object, parser_of, review_of
from stacks.workflow.saved_plans import Applied, PlanDiffers, apply_saved, planned
from stacks.workflow.terraform_command import NotPlanned, program, write_outputs
from stacks.workflow.terraform_plans import APP, synthesise

PLAN_DIFFERS = "plan_differs"
"""The code by which a code owner accepts a plan that is not the reviewed one."""
_MOST = 50


def main(
    arguments: Sequence[str],
    settings: Mapping[str, str],
    now: datetime,
    deployments: Mapping[str, Deployment] = DEPLOYMENTS,
    app: Sequence[str] = APP,
) -> int:
    """Apply the plan if it was reviewed. Return the exit code that the module's docstring lists."""
    chosen = _arguments(arguments, deployments)
    if not is_declared(chosen.environment, deployments):
        return Exit.INVALID_INPUT
    try:
        # Only this user can read the folder with the plans, and it is always removed.
        with tempfile.TemporaryDirectory(prefix="frazil-apply-") as folder:
            return _applied(chosen, deployments[chosen.environment], Path(folder), settings, now, app)
    except (NotPlanned, PlanDiffers, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return Exit.UNCHECKED


def _applied(
    chosen: argparse.Namespace,
    deployment: Deployment,
    folder: Path,
    settings: Mapping[str, str],
    now: datetime,
    app: Sequence[str],
) -> int:
    reviewed = read_form(chosen.reviewed.read_text("ascii")) if chosen.reviewed else None
    accepted = json_object(chosen.acceptances) if chosen.acceptances else None
    terraform = program(settings)
    folders = synthesise(deployment, folder, settings, app)
    _check_deployed_objects(deployment, folder, settings)
    saved = planned(folders, settings, terraform)
    found = review_of(deployment, saved.stacks, today=now.date(), comments=accepted)
    is_reviewed = is_empty(found.form) or (reviewed is not None and reviewed.digest == found.form.digest)
    if not is_reviewed and not any(each.covers(PLAN_DIFFERS) for each in found.acceptances):
        print(_difference(found, reviewed))
        return Exit.DECISION_REQUIRED
    if found.open_codes:
        print(markdown(found), end="")
        return Exit.DECISION_REQUIRED

    def progress(stack: str) -> None:
        print(f"{stack}: terraform applies the saved plan", file=sys.stderr, flush=True)

    code = _reported(found, apply_saved(saved, found.form, settings, terraform, on_stack=progress))
    if chosen.outputs is not None:
        known = {stack.name: folders[stack.name] for stack in saved.stacks if stack.plan is not None}
        write_outputs(chosen.outputs, known, settings, terraform)
    return code


def _check_deployed_objects(deployment: Deployment, folder: Path, settings: Mapping[str, str]) -> None:
    """Refuse to apply if the commit lacks the file of deployed objects that its synthesis writes. Raises `ValueError`."""
    committed = file_of(deployment, settings.get("FRAZIL_DEPLOYED", ""))
    written = folder / "deployed" / committed.name
    if not committed.is_file() or committed.read_bytes() != written.read_bytes():
        what = "the commit lacks what synthesis writes into it, so it would not protect the new objects"
        raise ValueError(f"{committed}: {what}. Synthesise, and commit the file")


def _difference(found: Review, reviewed: NormalForm | None) -> str:
    """Return the refusal as Markdown: where the plan differs from the reviewed one, and how to accept it."""
    now = found.form.digest
    codes = ", ".join((PLAN_DIFFERS, *found.open_codes))
    lines = [f"## Deployment of {code(found.environment)}: **refused**", ""]
    if reviewed is None:
        lines.append(f"No review of this plan is known. It is {code(now[:SHOWN])}.")
    else:
        lines += [
            f"The plan is {code(now[:SHOWN])}, and {code(reviewed.digest[:SHOWN])} was reviewed. Nothing was applied. "
            "They differ in:",
            "",
        ]
        listed = differences(reviewed, found.form)
        lines += [f"- {prose(each)}" for each in listed[:_MOST]]
        lines += [f"- … and {len(listed) - _MOST} more"] if len(listed) > _MOST else []
    line = f"frazil accept {now} {codes}: the reason"
    lines += ["", f"Review again. If this plan is intended, a code owner accepts it by a comment: {code(line)}"]
    return "\n".join(lines)


def _reported(found: Review, applied: Applied) -> int:
    lines = [f"## Deployment of {code(found.environment)}, plan {code(found.form.digest[:SHOWN])}", ""]
    lines += [f"- {code(stack)}: applied" for stack in applied.stacks]
    lines += [f"- {code(applied.failed)}: **failed**: {prose(applied.errors)}"] if applied.failed else []
    lines += [f"- {code(stack)}: left: {prose(why)}" for stack, why in applied.left.items()]
    if not (applied.stacks or applied.failed or applied.left):
        lines.append("Nothing changes.")
    if applied.left:
        lines += ["", "What is left has no reviewed plan. Run the deployment again for a new plan, and review it."]
    print("\n".join(lines))
    if applied.failed:
        return Exit.FAILED
    return Exit.CHANGES if applied.left else Exit.SUCCESS


def _arguments(arguments: Sequence[str], deployments: Mapping[str, Deployment]) -> argparse.Namespace:
    parser = parser_of("apply", __doc__, deployments)
    parser.add_argument("--reviewed", type=Path, metavar="FILE", help="the normal form that the review wrote")
    parser.add_argument("--outputs", type=Path, metavar="FILE", help="write the outputs that are no secrets")
    return parser.parse_args(arguments)


def run(arguments: Sequence[str], deployments: Mapping[str, Deployment] = DEPLOYMENTS, app: Sequence[str] = APP) -> int:
    """Apply as a process of its own, which removes its plans if it is ended. Return the exit code."""
    return ended_by_signals(lambda: main(arguments, os.environ, datetime.now(UTC), deployments, app))


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
