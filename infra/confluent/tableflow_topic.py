"""A topic that Confluent lands as a table; and the Glue database where it is published."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.declaration import ErrorMode, WriteMode
from infra.confluent.resource import Credentials, Declared, Id
from infra.confluent.tableflow import CatalogIntegration, ErrorHandling, Glue, OwnBucket
from infra.confluent.tableflow import TableflowTopic as Arguments
from infra.protection import Protection
from infra.tf import Construct

_REMEDIES = {
    "UPSERT": "a state needs a topic with cleanup.policy compact, and changelog.mode upsert of its table in Flink",
    "APPEND": "append needs a topic with cleanup.policy delete, and changelog.mode append of its table in Flink",
}
_MODES = {ErrorMode.SUSPEND: "SUSPEND", ErrorMode.SKIP: "SKIP", ErrorMode.DEAD_LETTER: "LOG"}


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
        self.declared: Declared = Arguments(
            display_name=topic,
            kafka_cluster=Id(id=cluster_id),
            environment=Id(id=environment_id),
            byob_aws=OwnBucket(bucket_name=bucket, provider_integration_id=integration_id),
            error_handling=ErrorHandling(
                mode=_MODES[on_error], log_target=f"{topic}.rejected" if on_error is ErrorMode.DEAD_LETTER else None
            ),
            credentials=credentials,
        ).declare(self, "table", depends_on=after, is_kept=protection.is_kept)
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
    return CatalogIntegration(
        display_name=name,
        kafka_cluster=Id(id=cluster_id),
        environment=Id(id=environment_id),
        aws_glue=Glue(provider_integration_id=integration_id, custom_database=database),
        credentials=credentials,
    ).declare(scope, name, depends_on=after)
