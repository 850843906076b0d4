"""The account by which Terraform makes topics, schemas and permissions, with the rights that its cluster allows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from infra.confluent.kafka_topic import Access
from infra.confluent.managed_topic import ManagedTopic
from infra.confluent.resource import Credentials, Declared, ExistingResource
from infra.confluent.service_account import Account, given_keys
from infra.tf import Construct, DataAwsSecretsmanagerSecretVersion
from stacks.spec.deployments import Deployment
from stacks.stacks.cluster_place import ClusterPlace
from stacks.stacks.reading_rights import OWN, bind_each, patterns


class Manager:
    """Terraform's access to the cluster and its registry.

    Its account administers a cluster that Frazil made, and owns all subjects there. On a cluster of others it owns the declared
    topics and the subjects of their schemas; what needs no key has none. With `manager_secret`, Frazil creates no account.
    """

    def __init__(
        self, scope: Construct, place: ClusterPlace, deployment: Deployment, topics: Sequence[ManagedTopic]
    ) -> None:
        self._scope, self._place, self._deployment, self._topics = scope, place, deployment, topics
        self._wanted, self._keys = deployment.confluent, dict[str, Credentials]()
        self.rights: list[Declared] = []
        """The administrator's right on the cluster; none if the cluster is of others."""
        if self._wanted.has_admin:
            self.rights = [self.account.bind("cluster-admin", "CloudClusterAdmin", place.cluster_crn)]
            owner = self.account.bind("subject-owner", OWN, f"{place.registry_crn}/subject=*")
            self._keys = {
                "kafka": self.account.key("kafka", place.opened("kafka"), depends_on=self.rights),
                "registry": self.account.key("registry", place.opened("registry"), depends_on=[owner]),
            }

    @cached_property
    def account(self) -> Account:
        """The service account, made when it is first needed."""
        return Account(
            self._scope,
            "manager",
            account=f"{self._deployment.names.prefix}-manager",
            description="Terraform's: topics, ACLs, Tableflow" if self._wanted.has_admin else "Terraform's: its topics",
        )

    @property
    def kafka(self) -> Access:
        """The cluster, opened by the manager's key."""
        return self._access("kafka", "kafka_cluster", self._place.cluster)

    @property
    def registry(self) -> Access:
        """The registry, opened by the manager's key."""
        return self._access("registry", "schema_registry_cluster", self._place.registry)

    def _access(self, what: str, argument: str, service: Declared | ExistingResource) -> Access:
        return {
            argument: {"id": service.id},
            "rest_endpoint": service.computed("rest_endpoint"),
            "credentials": self._opened(what),
        }

    def _opened(self, what: str) -> Credentials:
        """Return the key of cluster or registry, made when it is first needed."""
        if what not in self._keys:
            is_given = self._wanted.manager_secret is not None
            self._keys[what] = given_keys(self._secret, what) if is_given else self._made(what)
        return self._keys[what]

    @cached_property
    def _secret(self) -> DataAwsSecretsmanagerSecretVersion:
        return DataAwsSecretsmanagerSecretVersion(
            self._scope, "manager-keys", secret_id=self._wanted.manager_secret or ""
        )

    def _made(self, what: str) -> Credentials:
        """Make a key of a cluster of others. Its probe by the provider needs a right that is in effect."""
        if what == "kafka":
            kind, crn = "topic", self._place.kafka_crn
            names = patterns((own.name for own in self._topics), self._wanted.topic_prefixes)
        else:
            kind, crn = "subject", self._place.registry_crn
            schemas = (f"{own.name}-value" for own in self._topics if own.schema)
            names = patterns(schemas, self._wanted.subject_prefixes)
        in_effect = bind_each(self.account, kind, OWN, crn, names)
        return self.account.key(what, self._place.opened(what), depends_on=in_effect)
