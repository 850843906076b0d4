"""Pipelines that move from one group to another: both groups are deployed then, or two jobs land them, or none does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from frazil.declaration.checks.problems import InvalidDeclaration, Problem
from frazil.rollout.group_jobs import INGEST, job_name
from policies.resources import read
from policies.review.job_runs import documents, pipelines


def refuse_moves(group: str, folders: Iterable[Path], file: Path | None) -> None:
    """Raise `InvalidDeclaration` if a pipeline leaves a group or comes to it, which alone would be deployed.

    `folders` are those of the synthesised stacks of ingestion. The file has the pipelines of each deployed ingest job.
    """
    deployed: dict[str, list[str]] = json.loads(file.read_text("utf-8")) if file is not None else {}
    if problems := list(_moves(job_name(INGEST, group), deployed, _declared(folders))):
        raise InvalidDeclaration(problems)


def _declared(folders: Iterable[Path]) -> dict[str, str]:
    """Return the ingest job of each pipeline, as it is declared."""
    stacks = [json.loads((folder / "cdk.tf.json").read_text("utf-8")) for folder in folders]
    found = [each for stack in stacks if stack.get("resource") for each in documents(read(stack).resources)]
    return {each.name: each.job for each in pipelines(found)}


def _moves(own: str, deployed: Mapping[str, Sequence[str]], declared: Mapping[str, str]) -> Iterator[Problem]:
    for job, names in sorted(deployed.items()):
        for name in sorted(names):
            new = declared.get(name, job)
            if job != new and own in (job, new):
                what = f"it moves from the job {job} to {new}, and only {own} would be deployed"
                yield Problem(f"pipeline {name}", what, "Deploy all groups: leave out --group")
