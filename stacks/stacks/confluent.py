"""The Confluent stack: the cluster, its topics, the permissions on them, and Tableflow's tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from frazil.declaration import Pipeline, Spark, Tableflow, TopicPattern
from infra.confluent.kafka_topic import Topic
from infra.confluent.managed_topic import ManagedTopic
from infra.confluent.resource import Declared
from infra.confluent.service_account import Account, StoredKeys
from infra.confluent.tableflow import ConfluentRole, TableflowTopic, publish_to_glue
from infra.protection import Protection
from infra.table_grants import LANDS, TableGrants
from infra.tf import Construct
from policies.documents import fill
from stacks.spec.deployments import Deployment
from stacks.spec.reader_keys import READER_KEYS, KeySlots
from stacks.stacks.cluster_place import placed
from stacks.stacks.confluent_manager import Manager
from stacks.stacks.foundation import FoundationOutputs
from stacks.stacks.providers import EnvironmentStack
from stacks.stacks.reading_rights import READ, bind_each, let_read_topics, let_read_topics_by_role, subjects


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
        patterns: Sequence[TopicPattern] = (),
        protection: Protection,
        text_of: Callable[[str], str],
        slots: KeySlots,
    ) -> None:
        super().__init__(scope, "confluent", deployment, has_confluent=True)
        self._deployment, self._foundation, self._protection = deployment, foundation, protection
        self._names = deployment.names
        self._place = placed(self, deployment, protection)
        self._manager = Manager(self, self._place, deployment, topics)
        self._topics: dict[str, tuple[Declared, ...]] = {}
        for own in topics:
            topic = Topic(self, f"topic-{own.name}", own=own, kafka=self._manager.kafka, protection=protection)
            made: tuple[Declared, ...] = (topic.declared,)
            if own.schema:
                made += (topic.value_schema(own.schema, text_of(own.schema.file), self._manager.registry),)
            self._topics[own.name] = made
        read_here = [p for p in pipelines if isinstance(p.engine, Spark)]
        secret_name, secret_arn = self._let_read(read_here, patterns, slots)
        self.outputs = ConfluentOutputs(
            bootstrap=self._place.cluster.computed("bootstrap_endpoint"),
            registry_url=self._place.registry.computed("rest_endpoint"),
            secret_name=secret_name,
            secret_arn=secret_arn,
        )
        flowing = [p for p in pipelines if isinstance(p.engine, Tableflow)]
        if flowing:
            self._flow(flowing)

    def _let_read(
        self, pipelines: Sequence[Pipeline], patterns: Sequence[TopicPattern], slots: KeySlots
    ) -> tuple[str, str]:
        """Create the jobs' account, unless one is given. It may only read the topics of pipelines and patterns, and their schemas.

        Return name and ARN of the secret with its keys.
        """
        wanted, place = self._deployment.confluent, self._place
        if wanted.reader_secret is not None:
            return wanted.reader_secret, wanted.reader_secret
        reader = Account(
            self, "reader", account=f"{self._names.prefix}-reader", description="Ingest jobs: reads topics and schemas"
        )
        if wanted.has_admin:
            let_read_topics(reader, pipelines, patterns, self._manager.kafka, self._topics)
        else:
            let_read_topics_by_role(reader, pipelines, patterns, place.kafka_crn, wanted.topic_prefixes)
        names = subjects(pipelines, wanted.subject_prefixes, patterns)
        in_effect = bind_each(reader, "subject", READ, place.registry_crn, names)
        after: dict[str, list[Declared]] = {"kafka": [], "registry": in_effect}
        keys = {
            (slot, what): reader.key(slot.id_of(what), place.opened(what), depends_on=after[what])
            for slot in slots.made
            for what in after
        }
        stored = StoredKeys(
            self,
            "reader-keys",
            secret=self._names.secret(READER_KEYS),
            key_arn=self._foundation.key_arn,
            keys={what: keys[slots.active, what] for what in after},
            protection=self._protection,
        )
        return stored.secret_name, stored.arn

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
            environment_id=self._place.environment.id,
            trust=lambda arn, external_id: fill(
                "confluent_trust", {"integration_role": arn, "external_id": external_id}
            ),
            policy=policy,
            protection=self._protection,
        )
        ready = [*role.ready]
        if deployment.access.lake_formation:
            arn = self._names.role_arn("tableflow")
            grants = TableGrants(
                self, "tableflow-grants", role_arn=arn, databases=[database], granted=LANDS, after=role.ready
            )
            ready += grants.ready
        crn = f"{self._place.environment.computed('resource_name')}/provider-integration={role.id}"
        assigns = self._manager.account.bind("integration-owner", "ResourceOwner", crn)
        flows = {"id": "tableflow", "kind": "Tableflow", "api_version": "tableflow/v1"}
        key = self._manager.account.key("tableflow", flows, depends_on=[assigns, *self._manager.rights])
        place = {
            "cluster_id": self._place.cluster.id,
            "environment_id": self._place.environment.id,
            "integration_id": role.id,
        }
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
