"""Who uses an environment beside its jobs: principals, external ids, workflows of GitHub. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from frazil.declaration.constraints import matching
from frazil.declaration.validation import validate

PRINCIPAL = matching(
    r"arn:aws:iam::[0-9]{12}:(?:role|user)/[\w+=,.@/-]+",
    "the ARN of a role or a user",
    "Write arn:aws:iam::<account>:role/<name>",
)
EXTERNAL_ID = matching(r"[\w+=,.@:/-]{2,1224}", "an external id", "Copy it from the engine's vendor")
WORKGROUP_NAME = matching(r"[A-Za-z0-9._-]{1,128}", "a workgroup's name", "Use a-z, A-Z, 0-9, . _ -")
_SECRET = matching(
    r"arn:aws:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[\w/+=.@-]+", "the ARN of a secret", "Write it in full"
)


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
