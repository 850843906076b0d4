"""The Kafka cluster of a deployment: an existing one, or a new one. Values only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from frazil.declaration.constraints import between, matching
from frazil.declaration.problems import Problem
from frazil.declaration.validation import validate


class ClusterKind(StrEnum):
    """Confluent's kinds of clusters, in its own terms. `basic` has no uptime guarantee.

    `enterprise` needs PrivateLink, which Frazil does not support yet: synthesis refuses it.
    """

    BASIC = "basic"
    STANDARD = "standard"
    ENTERPRISE = "enterprise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confluent:
    """The Kafka cluster: an existing one, given by its ids, or a new one."""

    kind: Annotated[ClusterKind, "The kind of a new cluster."] = ClusterKind.STANDARD
    is_multi_zone: Annotated[bool, "Whether a new cluster survives the loss of a zone."] = False
    environment_id: Annotated[
        str | None, "An existing environment.", matching("env-[a-z0-9]+", "an id", "Write env-…")
    ] = None
    cluster_id: Annotated[str | None, "An existing cluster.", matching("lkc-[a-z0-9]+", "an id", "Write lkc-…")] = None
    subject_prefixes: Annotated[
        tuple[
            Annotated[
                str,
                matching("[A-Za-z0-9._-]*[._-]", "a prefix of subjects", "Use a-z, A-Z, 0-9, . _ -; end with . _ or -"),
            ],
            ...,
        ],
        "Prefixes with one role binding for all their subjects. Default: one binding for each subject.",
    ] = ()
    most_partitions: Annotated[int | None, "The cluster's limit. Default: that of the kind.", between(1, 10**6)] = None
    most_acls: Annotated[int | None, "The cluster's limit. Default: that of the kind.", between(1, 10**6)] = None
    most_role_bindings: Annotated[int, "What the organization may have for this environment.", between(1, 10**6)] = 1000

    def __post_init__(self) -> None:
        validate(self, self._contradictions)

    @property
    def is_managed(self) -> bool:
        """Whether Terraform manages environment and cluster."""
        return self.cluster_id is None

    def _contradictions(self) -> Iterator[Problem]:
        if (self.environment_id is None) != (self.cluster_id is None):
            missing = "environment_id" if self.environment_id is None else "cluster_id"
            yield Problem(missing, "only one of environment and cluster has an id", "Write both ids or none")
