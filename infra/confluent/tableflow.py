"""Tableflow, by which Confluent lands a topic as an Iceberg table in the account's bucket and role, and publishes it in Glue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from frazil.declaration import ErrorMode, WriteMode
from infra.confluent.resource import Credentials, Declared
from infra.iam_role import ExecutionRole
from infra.names import Names
from infra.protection import Protection
from infra.tf import Construct


class ConfluentRole(Construct):
    """Integration and role: one object, because one name is both the role's and in the integration's ARN."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        names: Names,
        what: str,
        environment_id: str,
        trust: Callable[[str, str], Mapping[str, Any]],
        policy: Mapping[str, Any],
        protection: Protection,
    ) -> None:
        """`trust` makes the role's trust policy of Confluent's role ARN and the external id."""
        super().__init__(scope, name)
        # Any change replaces it, makes another external id, and so changes the role's trust. The role need not exist yet.
        integration = Declared(
            self,
            "integration",
            "confluent_provider_integration",
            is_kept=protection.is_kept,
            display_name=names.role(what),
            environment={"id": environment_id},
            aws={"customer_role_arn": names.role_arn(what)},
        )
        role = ExecutionRole(
            self,
            "role",
            names=names,
            role=names.role(what),
            trust=trust(integration.computed("aws[0].iam_role_arn"), integration.computed("aws[0].external_id")),
            policy=policy,
            description="Confluent's Tableflow writes tables and registers them in Glue.",
        )
        self.id = integration.id
        self.ready: tuple[Construct, ...] = (integration, *role.ready)
        """What a table must wait for."""


_REMEDIES = {
    "UPSERT": "a state needs a topic with cleanup.policy compact, and changelog.mode upsert of its table in Flink",
    "APPEND": "append needs a topic with cleanup.policy delete, and changelog.mode append of its table in Flink",
}
_MODES = {ErrorMode.SUSPEND: "SUSPEND", ErrorMode.SKIP: "SKIP", ErrorMode.DEAD_LETTER: "LOG"}
SNAPSHOTS_MS = "604800000"
"""The time for which snapshots are kept: seven days."""


class TableflowTopic(Construct):
    """One topic as one table. Confluent looks at the topic, its schema, the role and the role's rights when the table is
    made, and nothing in its arguments names the last three: so they are named as dependencies."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        topic: str,
        cluster_id: str,
        environment_id: str,
        bucket: str,
        integration_id: str,
        credentials: Credentials,
        on_error: ErrorMode,
        write: WriteMode,
        after: Sequence[Construct],
        protection: Protection,
    ) -> None:
        """`after`: topic, schema, role and rights. Records that cannot be landed go, with LOG, to `<topic>.rejected`.

        Confluent chooses the write mode by the topic, and takes no argument for it: Terraform fails if it is another than `write`.
        """
        super().__init__(scope, name)
        log_target = f"{topic}.rejected" if on_error is ErrorMode.DEAD_LETTER else None
        self.declared = Declared(
            self,
            "table",
            "confluent_tableflow_topic",
            depends_on=after,
            is_kept=protection.is_kept,
            display_name=topic,
            kafka_cluster={"id": cluster_id},
            environment={"id": environment_id},
            byob_aws={"bucket_name": bucket, "provider_integration_id": integration_id},
            table_formats=["ICEBERG"],
            retention_ms=SNAPSHOTS_MS,
            error_handling={"mode": _MODES[on_error], "log_target": log_target},
            credentials=credentials,
        )
        mode = "UPSERT" if write.replaces_rows else "APPEND"
        self.declared.must_be("write_mode", mode, f"Confluent lands {topic} in another write mode: {_REMEDIES[mode]}")


def publish_to_glue(
    scope: Construct,
    name: str,
    *,
    cluster_id: str,
    environment_id: str,
    integration_id: str,
    database: str,
    credentials: Credentials,
    after: Sequence[Construct],
) -> Declared:
    """Publish all of a cluster's tables in one Glue database: a cluster has one integration of a kind."""
    return Declared(
        scope,
        name,
        "confluent_catalog_integration",
        depends_on=after,
        display_name=name,
        kafka_cluster={"id": cluster_id},
        environment={"id": environment_id},
        aws_glue={"provider_integration_id": integration_id, "custom_database": database},
        credentials=credentials,
    )
