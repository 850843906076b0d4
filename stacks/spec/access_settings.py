"""Who uses an environment beside its jobs: principals, external ids, workflows of GitHub. Values only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from frazil.declaration.checks.constraints import Rule, below, between, matching
from frazil.declaration.checks.problems import Problem, Refusal
from frazil.declaration.checks.validation import validate

PRINCIPAL = matching(
    r"arn:aws[a-z-]*:iam::[0-9]{12}:(?:role|user)/[A-Za-z0-9_+=,.@/-]+",
    "the ARN of a role or a user",
    "Write arn:aws:iam::<account>:role/<name>",
)
EXTERNAL_ID = matching(r"[A-Za-z0-9_+=,.@:/-]{2,1224}", "an external id", "Copy it from the engine's vendor")
_WORKGROUP_NAME = matching(r"[A-Za-z0-9._-]{1,128}", "a workgroup's name", "Use a-z, A-Z, 0-9, . _ -")
_SECRET = matching(
    r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9_/+=.@-]+",
    "the ARN of a secret",
    "Write it in full",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workgroup:
    """A workgroup of Athena that deployment creates, `frazil-<environment>`. It enforces place and encryption of results."""

    most_scanned_gb: Annotated[int | None, "The most that one query may read, in GiB.", between(1, 10**6)] = None

    def __post_init__(self) -> None:
        validate(self)


def _workgroup_refusal(value: str | Workgroup) -> Refusal | None:
    return _WORKGROUP_NAME.refusal(value) if isinstance(value, str) else None


WORKGROUP = Rule(_workgroup_refusal)


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHub:
    """The repository whose workflows review and deploy, as the GitHub environments review-<env> and deploy-<env>."""

    repository: Annotated[
        str, "The repository.", matching(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+", "a repository", "Write OWNER/NAME")
    ]
    review_secrets: Annotated[
        tuple[Annotated[str, _SECRET], ...],
        "The secrets that reviews may read: the Confluent key with read permission.",
    ] = ()
    has_provider: Annotated[bool, "Whether the account has GitHub as an identity provider already."] = False

    def __post_init__(self) -> None:
        validate(self)


def reader_problems(
    principals: Sequence[str], external_ids: Mapping[str, str], *, has_workgroup: bool
) -> Iterator[Problem]:
    """Find settings of the reader role that no principal could use."""
    if has_workgroup and not principals:
        yield Problem("athena_workgroup", "no principal may assume the reader role", "Write reader_principals")
    for principal in external_ids:
        if principal not in principals:
            do = "Add it to reader_principals"
            yield Problem(below("reader_external_ids", principal), "no principal has this ARN", do)


def foreign_principals(partition: str, **principals: Sequence[str]) -> Iterator[Problem]:
    """Find principals of another partition: AWS refuses them in trust policies. `principals` by the name of their field."""
    for field, arns in principals.items():
        for index, arn in enumerate(arns):
            if arn.split(":")[1:2] != [partition]:
                what = f"{arn} is not in the partition {partition} of the region"
                yield Problem(f"{field}[{index}]", what, f"Begin it with arn:{partition}:")
