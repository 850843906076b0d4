"""The cluster of a deployment with its environment and its registry, created or looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infra.confluent.resource import Declared, ExistingResource
from infra.protection import Protection
from infra.tf import Construct, Fn, Op, TerraformLocal
from stacks.spec.deployments import ClusterKind, Deployment


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlace:
    """The place of topics, schemas and permissions."""

    environment: Declared | ExistingResource
    cluster: Declared | ExistingResource
    registry: ExistingResource

    @property
    def cluster_crn(self) -> str:
        """The cluster, as role bindings name it."""
        return self.cluster.computed("rbac_crn")

    @property
    def kafka_crn(self) -> str:
        """The beginning of CRNs of topics and consumer groups."""
        return f"{self.cluster_crn}/kafka={self.cluster.id}"

    @property
    def registry_crn(self) -> str:
        """The beginning of CRNs of subjects."""
        return self.registry.computed("resource_name")

    def opened(self, what: str) -> Mapping[str, Any]:
        """Return what a key opens: `kafka` or `registry`."""
        return {
            "id": self.cluster.id if what == "kafka" else self.registry.id,
            "kind": "Cluster",
            "api_version": "cmk/v2" if what == "kafka" else "srcm/v3",
            "environment": {"id": self.environment.id},
        }


def placed(scope: Construct, deployment: Deployment, protection: Protection) -> ClusterPlace:
    """Look up the deployment's environment and cluster, or declare new ones."""
    environment, cluster = _environment_and_cluster(scope, deployment, protection)
    known = _with_registry(scope, environment, cluster)
    registry = ExistingResource(scope, "registry", "confluent_schema_registry_cluster", environment={"id": known})
    return ClusterPlace(environment=environment, cluster=cluster, registry=registry)


def _environment_and_cluster(
    scope: Construct, deployment: Deployment, protection: Protection
) -> tuple[Declared | ExistingResource, Declared | ExistingResource]:
    wanted, names = deployment.confluent, deployment.names
    if wanted.environment_id and wanted.cluster_id:
        there = ExistingResource(scope, "environment", "confluent_environment", id=wanted.environment_id)
        return there, ExistingResource(
            scope, "cluster", "confluent_kafka_cluster", id=wanted.cluster_id, environment={"id": there.id}
        )
    is_kept = protection.is_kept
    made = Declared(
        scope,
        "environment",
        "confluent_environment",
        is_kept=is_kept,
        display_name=names.prefix,
        stream_governance={"package": "ESSENTIALS"},
    )
    return made, Declared(
        scope,
        "cluster",
        "confluent_kafka_cluster",
        is_kept=is_kept,
        display_name=names.prefix,
        availability="HIGH" if wanted.is_multi_zone else "LOW",
        cloud="AWS",
        region=deployment.region,
        environment={"id": made.id},
        deletion_protection=is_kept,
        basic={} if wanted.kind is ClusterKind.BASIC else None,
        standard={} if wanted.kind is ClusterKind.STANDARD else None,
    )


def _with_registry(
    scope: Construct, environment: Declared | ExistingResource, cluster: Declared | ExistingResource
) -> str:
    """Return the environment's id, known once its cluster exists: Confluent creates the registry with the first cluster.

    The dependency is a local. With `depends_on` or a reference, any change of the cluster, like that of its protection,
    makes the registry's id unknown during the plan, and keys, bindings and schemas are replaced.
    """
    if isinstance(cluster, ExistingResource):
        return environment.id
    none = "none"  # no cluster has this id; the comparison only waits for the cluster
    known = Fn.conditional(Op.eq(cluster.id, none), none, environment.id)
    return str(TerraformLocal(scope, "registry-environment", known).as_string)
