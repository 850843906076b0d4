"""The saved plans of an environment: made in a private folder, reviewed, and applied as they are or not at all.

A plan file holds secrets. It stays in the folder, which the caller removes. If the state has changed since, Terraform refuses
a saved plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from frazil.release.archives import sha256
from policies.review.plan.compared_plans import NormalForm
from policies.review.plan.masking import hidden
from policies.review.plan.plan_gaps import StackPlan
from stacks.workflow.terraform_command import PLAN, TerraformCommand
from stacks.workflow.terraform_plans import plans


class PlanDiffers(Exception):
    """A saved plan is another one than was planned. It was not applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPlans:
    """The plans of the stacks in the order of their deployment, and the folders in which they are saved."""

    stacks: tuple[StackPlan, ...]
    folders: Mapping[str, Path]
    files: Mapping[str, str]
    """The SHA-256 of each saved plan, by stack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The applied stacks; those that are left, each with the reason; and the stack that failed, if any, with its errors."""

    stacks: tuple[str, ...] = ()
    left: Mapping[str, str]
    failed: str = ""
    errors: str = ""


def planned(
    folders: Mapping[str, Path], settings: Mapping[str, str], terraform: str, *, is_again: bool = False
) -> SavedPlans:
    """Plan all stacks and save the plans in their folders. Raises `NotPlanned`."""
    return of_stacks(tuple(plans(folders, settings, terraform, is_again=is_again)), folders)


def of_stacks(stacks: tuple[StackPlan, ...], folders: Mapping[str, Path]) -> SavedPlans:
    """Return plans that are saved in their stacks' folders."""
    own = {each.name: folders[each.name] for each in stacks}
    files = {name: sha256(folder / PLAN) for name, folder in own.items() if (folder / PLAN).is_file()}
    return SavedPlans(stacks=stacks, folders=own, files=files)


def apply_saved(
    saved: SavedPlans,
    form: NormalForm,
    settings: Mapping[str, str],
    terraform: str,
    *,
    on_stack: Callable[[str], None] = lambda stack: None,
) -> Applied:
    """Apply the saved plans in order. Call `on_stack` with the name of each stack before it is applied.

    `form` is that of the plans. A stack is left if its plan is not complete, or if it was planned with outputs that an earlier
    stack has changed by then: that plan would be another one, so it needs another review. The first stack that fails ends the
    deployment. Raises `PlanDiffers` if a saved plan was changed.
    """
    done: list[str] = []
    left: dict[str, str] = {}
    outdated = ""
    for stack in saved.stacks:
        changes = form.stacks[stack.name]
        if changes is None or not changes["is_complete"]:
            left[stack.name] = stack.why_not or "Terraform made no complete plan"
        elif outdated:
            left[stack.name] = f"it was planned with outputs that {outdated} has changed"
        elif changes["outputs"] or any(each["mode"] == "managed" for each in changes["resources"]):
            if sha256(saved.folders[stack.name] / PLAN) != saved.files[stack.name]:
                raise PlanDiffers(f"{stack.name}: the saved plan was changed after it was planned")
            on_stack(stack.name)
            code, errors = TerraformCommand(saved.folders[stack.name], settings, terraform).applied()
            if code:
                said = hidden(errors, *(each.plan for each in saved.stacks if each.plan is not None))
                said = said or f"Terraform ended with {code}"
                return Applied(stacks=tuple(done), left=left, failed=stack.name, errors=said)
            done.append(stack.name)
            outdated = stack.name if changes["outputs"] else ""
    return Applied(stacks=tuple(done), left=left)
