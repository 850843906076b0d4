"""The Kafka cluster of a deployment: a new one, or one of others. Values only."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

from frazil.declaration.checks.constraints import Rule, between, matching
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import Problem


class ClusterKind(StrEnum):
    """Confluent's kinds of clusters that are reachable without PrivateLink, in its terms. `basic` has no uptime guarantee."""

    BASIC = "basic"
    STANDARD = "standard"


_SECRET = matching(
    r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:.+-[A-Za-z0-9]{6}",
    "a secret's ARN",
    "Copy the complete ARN from Secrets Manager, with the six characters at its end",
)


def _prefix(of: str) -> Rule:
    return matching("[A-Za-z0-9._-]*[._-]", f"a prefix of {of}", "Use a-z, A-Z, 0-9, . _ -; end with . _ or -")


@declared
class Confluent:
    """The Kafka cluster: an existing one, given by its ids, or a new one.

    On an existing cluster, Frazil has rights on the declared topics and subjects only, unless `is_administered` is true.
    """

    kind: Annotated[ClusterKind, "The kind of a new cluster."] = ClusterKind.STANDARD
    is_multi_zone: Annotated[bool, "Whether a new cluster survives the loss of a zone."] = False
    environment_id: Annotated[
        str | None, "An existing environment.", matching("env-[a-z0-9]+", "an id", "Write env-…")
    ] = None
    cluster_id: Annotated[str | None, "An existing cluster.", matching("lkc-[a-z0-9]+", "an id", "Write lkc-…")] = None
    is_administered: Annotated[
        bool, "Whether Frazil's account administers an existing cluster, as Tableflow needs."
    ] = False
    reader_secret: Annotated[
        str | None, "The secret with the keys of an existing account, by which jobs read. Frazil creates none.", _SECRET
    ] = None
    manager_secret: Annotated[
        str | None, "The secret with the keys of an existing account, by which topics are made.", _SECRET
    ] = None
    topic_prefixes: Annotated[
        tuple[Annotated[str, _prefix("topics")], ...],
        "Prefixes with one role binding for all their topics, on an existing cluster. Default: one for each topic.",
    ] = ()
    subject_prefixes: Annotated[
        tuple[Annotated[str, _prefix("subjects")], ...],
        "Prefixes with one role binding for all their subjects. Default: one binding for each subject.",
    ] = ()
    most_partitions: Annotated[int | None, "The cluster's limit. Default: that of the kind.", between(1, 10**6)] = None
    most_acls: Annotated[int | None, "The cluster's limit. Default: that of the kind.", between(1, 10**6)] = None
    most_role_bindings: Annotated[int, "What the organization may have for this environment.", between(1, 10**6)] = 1000

    @property
    def is_managed(self) -> bool:
        """True if Terraform manages environment and cluster."""
        return self.cluster_id is None

    @property
    def has_admin(self) -> bool:
        """True if Frazil's own account administers the cluster."""
        return self.is_managed or self.is_administered

    def _contradictions(self) -> Iterator[Problem]:
        if (self.environment_id is None) != (self.cluster_id is None):
            missing = "environment_id" if self.environment_id is None else "cluster_id"
            yield Problem(missing, "only one of environment and cluster has an id", "Write both ids or none")
        elif self.is_managed:
            for name in ("is_administered", "reader_secret", "manager_secret", "topic_prefixes"):
                if getattr(self, name):
                    yield Problem(name, "it is for a cluster that exists", "Write both ids, or remove it")
        if self.is_administered and self.topic_prefixes:
            yield Problem("topic_prefixes", "an administrator needs no right on topics", "Remove it")
        if self.is_administered and self.manager_secret:
            yield Problem(
                "manager_secret", "rights of a given account are not Frazil's to choose", "Remove one of both"
            )
