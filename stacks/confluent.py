"""The Confluent stack: the cluster, its topics, the permissions on them, and Tableflow's tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from frazil.declaration import Pipeline, Spark, Tableflow
from infra.confluent.cloud import (
    Environment,
    EnvironmentById,
    Governance,
    KafkaCluster,
    KafkaClusterById,
    ManagedResource,
    SchemaRegistry,
)
from infra.confluent.resource import Credentials, Declared, Empty, ExistingResource, Id
from infra.kafka_access import KafkaAccess, RegistryAccess
from infra.kafka_topic import Topic
from infra.managed_topic import ManagedTopic
from infra.protection import Protection
from infra.provider_integration import ConfluentRole
from infra.service_account import Account, StoredKeys
from infra.table_grants import LANDS, TableGrants
from infra.tableflow_topic import TableflowTopic, publish_to_glue
from infra.tf import Construct, Fn, Op, TerraformLocal
from policies.documents import fill
from stacks.deployments import ClusterKind, Deployment
from stacks.foundation import FoundationOutputs
from stacks.providers import EnvironmentStack
from stacks.reading_rights import let_read_schemas, let_read_topics


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfluentOutputs:
    """The values that jobs need to read from Kafka, known once the stack is deployed."""

    bootstrap: str
    """The bootstrap address with its protocol, as the provider returns it."""
    registry_url: str
    secret_name: str
    secret_arn: str


class Confluent(EnvironmentStack):
    """The Confluent stack. `text_of` reads the file of a topic's schema."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        pipelines: Sequence[Pipeline],
        topics: Sequence[ManagedTopic],
        foundation: FoundationOutputs,
        *,
        protection: Protection,
        text_of: Callable[[str], str],
    ) -> None:
        super().__init__(scope, "confluent", deployment, has_confluent=True)
        self._deployment, self._foundation, self._protection = deployment, foundation, protection
        self._names = deployment.names
        self._environment, self._cluster = self._place()
        self._registry = SchemaRegistry(environment=Id(id=self._with_registry())).look_up(self, "registry")
        kafka, registry = self._manage()
        self._topics: dict[str, tuple[Declared, ...]] = {}
        for own in topics:
            topic = Topic(self, f"topic-{own.name}", own=own, kafka=kafka, protection=protection)
            made: tuple[Declared, ...] = (topic.declared,)
            if own.schema:
                made += (topic.value_schema(own.schema, text_of(own.schema.file), registry),)
            self._topics[own.name] = made
        read_here = [p for p in pipelines if isinstance(p.engine, Spark)]
        self.outputs = self._let_read(read_here, kafka)
        flowing = [p for p in pipelines if isinstance(p.engine, Tableflow)]
        if flowing:
            self._flow(flowing)

    def _place(self) -> tuple[Declared | ExistingResource, Declared | ExistingResource]:
        wanted, names = self._deployment.confluent, self._names
        if wanted.environment_id and wanted.cluster_id:
            there = EnvironmentById(id=wanted.environment_id).look_up(self, "environment")
            cluster = KafkaClusterById(id=wanted.cluster_id, environment=Id(id=there.id))
            return there, cluster.look_up(self, "cluster")
        is_kept = self._protection.is_kept
        made = Environment(display_name=names.prefix, stream_governance=Governance(package="ESSENTIALS")).declare(
            self, "environment", is_kept=is_kept
        )
        return made, KafkaCluster(
            display_name=names.prefix,
            availability="HIGH" if wanted.is_multi_zone else "LOW",
            region=self._deployment.region,
            environment=Id(id=made.id),
            deletion_protection=is_kept,
            basic=Empty() if wanted.kind is ClusterKind.BASIC else None,
            standard=Empty() if wanted.kind is ClusterKind.STANDARD else None,
            enterprise=Empty() if wanted.kind is ClusterKind.ENTERPRISE else None,
        ).declare(self, "cluster", is_kept=is_kept)

    def _with_registry(self) -> str:
        """Return the environment's id, known once its cluster exists: Confluent creates the registry with the first cluster.

        The dependency is a local. With `depends_on` or a reference, any change of the cluster, like that of its protection,
        makes the registry's id unknown during the plan, and keys, bindings and schemas are replaced.
        """
        if isinstance(self._cluster, ExistingResource):
            return self._environment.id
        none = "none"  # no cluster has this id; the comparison only waits for the cluster
        known = Fn.conditional(Op.eq(self._cluster.id, none), none, self._environment.id)
        return str(TerraformLocal(self, "registry-environment", known).as_string)

    def _key(self, account: Account, name: str, after: Sequence[Construct]) -> Credentials:
        opened = self._cluster if name == "kafka" else self._registry
        resource = ManagedResource(
            id=opened.id,
            kind="Cluster",
            api_version="cmk/v2" if name == "kafka" else "srcm/v3",
            environment=Id(id=self._environment.id),
        )
        return account.key(name, resource, depends_on=after)

    def _manage(self) -> tuple[KafkaAccess, RegistryAccess]:
        """Create Terraform's own account, which manages topics, permissions and tables of this cluster only."""
        self._manager = Account(
            self, "manager", account=f"{self._names.prefix}-manager", description="Terraform's: topics, ACLs, Tableflow"
        )
        self._cluster_admin = self._manager.bind(
            "cluster-admin", "CloudClusterAdmin", self._cluster.computed("rbac_crn")
        )
        subjects = f"{self._registry.computed('resource_name')}/subject=*"
        subject_owner = self._manager.bind("subject-owner", "ResourceOwner", subjects)
        kafka = KafkaAccess(
            cluster_id=self._cluster.id,
            rest_endpoint=self._cluster.computed("rest_endpoint"),
            credentials=self._key(self._manager, "kafka", [self._cluster_admin]),
        )
        registry = RegistryAccess(
            registry_id=self._registry.id,
            rest_endpoint=self._registry.computed("rest_endpoint"),
            credentials=self._key(self._manager, "registry", [subject_owner]),
        )
        return kafka, registry

    def _let_read(self, pipelines: Sequence[Pipeline], kafka: KafkaAccess) -> ConfluentOutputs:
        """Create the jobs' account, which may only read the pipelines' topics and their schemas."""
        reader = Account(
            self, "reader", account=f"{self._names.prefix}-reader", description="Ingest jobs: reads topics and schemas"
        )
        let_read_topics(reader, pipelines, kafka, self._topics)
        prefixes = self._deployment.confluent.subject_prefixes
        in_effect = let_read_schemas(reader, pipelines, self._registry.computed("resource_name"), prefixes)
        keys = {
            "kafka": self._key(reader, "kafka", []),
            "registry": self._key(reader, "registry", in_effect),
        }
        stored = StoredKeys(
            self,
            "reader-keys",
            secret=self._names.secret("confluent-reader"),
            key_arn=self._foundation.key_arn,
            keys=keys,
            protection=self._protection,
        )
        return ConfluentOutputs(
            bootstrap=self._cluster.computed("bootstrap_endpoint"),
            registry_url=self._registry.computed("rest_endpoint"),
            secret_name=stored.secret_name,
            secret_arn=stored.arn,
        )

    def _flow(self, pipelines: Sequence[Pipeline]) -> None:
        """Create Tableflow's role, a table per topic, and one Glue database for all."""
        deployment, database = self._deployment, pipelines[0].table.namespace
        account = {"region": deployment.region, "account": deployment.account}
        policy = fill(
            "confluent_provider",
            {
                **account,
                "table_bucket": self._foundation.tableflow_bucket,
                "database": database,
                "topics": [p.topic.name for p in pipelines],
                "key": self._foundation.key_arn,
            },
            partition=self._names.partition,
        )
        role = ConfluentRole(
            self,
            "tableflow",
            names=self._names,
            what="tableflow",
            environment_id=self._environment.id,
            trust=lambda arn, external_id: fill(
                "confluent_trust", {"integration_role": arn, "external_id": external_id}
            ),
            policy=policy,
            protection=self._protection,
        )
        ready = [*role.ready]
        if deployment.lake_formation:
            arn = self._names.role_arn("tableflow")
            grants = TableGrants(
                self, "tableflow-grants", role_arn=arn, databases=[database], granted=LANDS, after=role.ready
            )
            ready += grants.ready
        crn = f"{self._environment.computed('resource_name')}/provider-integration={role.id}"
        assigns = self._manager.bind("integration-owner", "ResourceOwner", crn)
        flows = ManagedResource(id="tableflow", kind="Tableflow", api_version="tableflow/v1")
        key = self._manager.key("tableflow", flows, depends_on=[assigns, self._cluster_admin])
        place = {"cluster_id": self._cluster.id, "environment_id": self._environment.id, "integration_id": role.id}
        tables = [
            TableflowTopic(
                self,
                f"tableflow-{pipeline.name}",
                topic=pipeline.topic.name,
                bucket=self._foundation.tableflow_bucket,
                credentials=key,
                on_error=pipeline.on_error,
                write=pipeline.write,
                after=[*self._topics.get(pipeline.topic.name, ()), *ready],
                protection=self._protection,
                **place,
            )
            for pipeline in pipelines
        ]
        publish_to_glue(
            self,
            "glue",
            database=database,
            credentials=key,
            after=[t.declared for t in tables] + ready,
            **place,
        )
