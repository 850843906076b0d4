"""The environments: accounts, applications, sizes and protection of each. Values only; stacks read them.

Accounts and Confluent ids are examples. Replace them before the first deployment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from frazil.declaration.checks.constraints import between, matching
from frazil.declaration.checks.problems import Problem
from frazil.declaration.checks.validation import FrozenMap, validate
from frazil.declaration.environment import PUBLIC_KEY
from frazil.release.emr_labels import LABELS, NEWEST
from frazil.release.manifest import Architecture
from frazil.rollout.desired import Mode
from infra.capacity import Capacity
from infra.names import Names
from infra.network_plan import GivenNetwork, NetworkPlan
from policies.table_resources import Scope
from stacks.spec.access_settings import EXTERNAL_ID, PRINCIPAL, WORKGROUP, foreign_principals, reader_problems
from stacks.spec.access_settings import GitHub as GitHub
from stacks.spec.access_settings import Workgroup as Workgroup
from stacks.spec.confluent_settings import ClusterKind as ClusterKind
from stacks.spec.confluent_settings import Confluent as Confluent
from stacks.spec.existing import IAM_PATH, NOTHING, TAG_KEY, TAG_VALUE, account_problems
from stacks.spec.existing import Existing as Existing
from stacks.spec.job_settings import LARGE as LARGE
from stacks.spec.job_settings import SMALL as SMALL
from stacks.spec.job_settings import AlarmsOf as AlarmsOf
from stacks.spec.job_settings import Jobs as Jobs
from stacks.spec.job_settings import Runs as Runs

LABEL = matching("|".join(row.name for row in LABELS), "a label", "See labels.py")
APPLICATION_NAME = matching(
    "|[a-z][a-z0-9-]{0,19}", "an application's name", "Use a lower-case letter, then up to 19 of a-z, 0-9, -"
)
IDLE_MINUTES = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """An application of an environment. EMR Serverless changes none that is started, so jobs move to another one instead."""

    name: Annotated[str, "Its name within the environment; the first one has none.", APPLICATION_NAME] = ""
    label: Annotated[str, "The EMR release label.", LABEL] = NEWEST
    architecture: Annotated[Architecture, "The processors."] = Architecture.ARM64
    capacity: Annotated[Capacity, "Its bounds, all runs together."]
    idle_minutes: Annotated[int, "Minutes without a run after which it stops.", between(1, 10_080)] = IDLE_MINUTES
    network: Annotated[NetworkPlan | GivenNetwork | None, "Its network, if not that of the deployment."] = None

    def __post_init__(self) -> None:
        validate(self)


def application_problems(
    name: str, network: NetworkPlan | GivenNetwork, formers: Sequence[Application]
) -> Iterator[Problem]:
    """Find former applications and networks with the name of another one. `name` and `network` are those of the jobs."""
    names, networks = {name}, {network.name: network}
    for index, former in enumerate(formers):
        own = former.network or network
        if former.name in names:
            do = "Give the application on which jobs run another name: `application`"
            yield Problem(f"former_applications[{index}].name", f"{former.name!r} names another application", do)
        if networks.setdefault(own.name, own) != own:
            do = "Give the network in which jobs run another name: `network`"
            yield Problem(f"former_applications[{index}].network.name", f"{own.name!r} names another network", do)
        names.add(former.name)


NO_RELEASE = "none"
"""The manifest of a release if nothing should run. As a default, it would delete schedules and desired state."""
_MOST_NAME = 12  # so that bucket names, which hold account and region too, stay within S3's 63 characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One environment: dev, staging, prod, or `local`, which runs on stand-ins on this machine."""

    name: Annotated[
        str,
        "The environment's name.",
        matching(
            rf"[a-z][a-z0-9-]{{0,{_MOST_NAME - 1}}}", "an environment's name", f"Use up to {_MOST_NAME} of a-z, 0-9, -"
        ),
    ]
    account: Annotated[str, "The AWS account.", matching("[0-9]{12}", "an AWS account", "Write its 12 digits")]
    region: Annotated[str, "The AWS region.", matching("[a-z]{2,}(?:-[a-z0-9]+)+", "a region", "Like eu-central-1")]
    network: Annotated[NetworkPlan | GivenNetwork, "Where jobs run: a network of their own, or an existing one."]
    confluent: Annotated[Confluent, "Where records come from."]
    runs: Annotated[Runs, "How jobs run."]
    groups: Annotated[Mapping[str, Jobs], "Groups whose jobs run otherwise, by name."] = FrozenMap()
    label: Annotated[str, "The EMR release label.", LABEL] = NEWEST
    architecture: Annotated[Architecture, "The processors; ARM64 costs 20 % less."] = Architecture.ARM64
    application: Annotated[str, "The name of the application on which jobs run.", APPLICATION_NAME] = ""
    former_applications: Annotated[
        tuple[Application, ...], "Applications that stay, as they were, until no run is left on them."
    ] = ()
    scope: Annotated[Scope, "What the policies of jobs name: namespaces, or each table."] = Scope.NAMESPACE
    is_disposable: Annotated[bool, "The first of the two keys that allow the deletion of data."] = False
    alarms: Annotated[AlarmsOf, "Whether a group's pipelines have alarms together, or each its own."] = AlarmsOf.GROUP
    alarm_emails: Annotated[
        tuple[Annotated[str, matching("[^@ ]+@[^@ ]+", "an address", "Like a@b.c")], ...],
        "The addresses that alarms are sent to.",
    ] = ()
    reader_principals: Annotated[
        tuple[Annotated[str, PRINCIPAL], ...],
        "Principals that may assume the reader role. If empty, the role is not created.",
    ] = ()
    reader_external_ids: Annotated[
        Mapping[str, Annotated[str, EXTERNAL_ID]],
        "External ids that principals of `reader_principals` must send, by their ARNs. Vendors of engines give them.",
    ] = FrozenMap()
    athena_workgroup: Annotated[
        str | Workgroup | None,
        "Athena's workgroup in which the reader role runs queries: an existing one, or a new one.",
        WORKGROUP,
    ] = None
    reconciler_principals: Annotated[
        tuple[Annotated[str, PRINCIPAL], ...],
        "Principals that may assume the reconciler role. If empty, the role is not created.",
    ] = ()
    deployer_principals: Annotated[
        tuple[Annotated[str, PRINCIPAL], ...],
        "Principals that may assume the deployer role. Without them and `github`, the stack `owner` does not exist.",
    ] = ()
    github: Annotated[GitHub | None, "The repository whose workflows may assume the reviewer and deployer roles."] = (
        None
    )
    trusted_keys: Annotated[
        tuple[Annotated[str, PUBLIC_KEY], ...],
        "The Ed25519 public keys of which one must have signed a release. If empty, unsigned releases may run.",
    ] = ()
    existing: Annotated[Existing, "Objects of the account that deployment uses and does not create."] = NOTHING
    lake_formation: Annotated[bool, "Whether Lake Formation controls the databases: roles then get its grants."] = False
    tags: Annotated[
        Mapping[Annotated[str, TAG_KEY], Annotated[str, TAG_VALUE]], "Tags of all resources, beside Frazil's two."
    ] = FrozenMap()
    iam_path: Annotated[str, "The path of roles and policies in IAM.", IAM_PATH] = "/"
    log_days: Annotated[int, "Days until logs are deleted.", between(1, 3653)] = 30
    generation: Annotated[
        int,
        "The version of the desired state: raise it with each change of release, pipelines or runs.",
        between(1, 10**9),
    ] = 1
    is_local: Annotated[bool, "Whether AWS and Confluent are stand-ins on this machine."] = False

    def __post_init__(self) -> None:
        validate(self, self._contradictions)

    def _contradictions(self) -> Iterator[Problem]:
        yield from account_problems(self.names, self.existing, self.tags)
        yield from reader_problems(
            self.reader_principals, self.reader_external_ids, has_workgroup=self.athena_workgroup is not None
        )
        yield from foreign_principals(
            self.names.partition,
            reader_principals=self.reader_principals,
            reconciler_principals=self.reconciler_principals,
            deployer_principals=self.deployer_principals,
        )
        yield from application_problems(self.application, self.network, self.former_applications)

    def jobs_of(self, group: str | None) -> Jobs:
        """Return how the jobs of a group run; `None` is that of the pipelines without one."""
        return self.runs if group is None else self.groups.get(group, self.runs)

    @property
    def applications(self) -> tuple[Application, ...]:
        """The applications, each with its network: first that on which jobs run."""
        runs = self.runs
        current = Application(
            name=self.application,
            label=self.label,
            architecture=self.architecture,
            capacity=runs.capacity,
            idle_minutes=runs.idle_minutes,
        )
        return tuple(
            replace(each, network=each.network or self.network) for each in (current, *self.former_applications)
        )

    @property
    def names(self) -> Names:
        """The names of the environment's resources."""
        given = self.existing
        return Names(
            environment=self.name,
            account=self.account,
            region=self.region,
            path=self.iam_path,
            given_boundary=given.boundary,
            given_buckets=given.buckets.given,
        )


def overlapping(deployments: Iterable[Deployment]) -> Iterator[Problem]:
    """Find environments of one account whose resources a deployer of another one may change: names are all that divides them."""
    listed = list(deployments)
    for one in listed:
        for other in listed:
            has_role = bool(one.deployer_principals or one.github)
            if has_role and one.account == other.account and other.name.startswith(f"{one.name}-"):
                what = f"the deployer of {one.name} may change all resources that begin with {one.names.prefix}-"
                yield Problem(f"deployment {other.name}", what, "Use another account, or a name that does not begin so")


dev = Deployment(
    name="dev",
    account="111111111111",
    region="eu-central-1",
    network=NetworkPlan(cidr="10.20.0.0/20"),
    confluent=Confluent(kind=ClusterKind.BASIC),
    runs=SMALL,
    is_disposable=True,
    log_days=7,
)

staging = Deployment(
    name="staging",
    account="222222222222",
    region="eu-central-1",
    network=NetworkPlan(cidr="10.21.0.0/20"),
    confluent=Confluent(kind=ClusterKind.STANDARD),
    runs=SMALL,
    alarm_emails=("data-platform@example.com",),
)

prod = Deployment(
    name="prod",
    account="333333333333",
    region="eu-central-1",
    network=NetworkPlan(cidr="10.22.0.0/20"),
    confluent=Confluent(environment_id="env-abc123", cluster_id="lkc-abc123"),
    runs=replace(LARGE, mode=Mode.FOLLOW, freshness_minutes=10),
    alarm_emails=("data-platform@example.com", "on-call@example.com"),
    log_days=90,
)

_OPERATORS = ("arn:aws:iam::123456789012:role/operators",)

local = replace(
    dev,
    name="local",
    account="123456789012",
    architecture=Architecture.X86_64,
    is_local=True,
    log_days=1,
    reader_principals=_OPERATORS,
    reconciler_principals=_OPERATORS,
)

DEPLOYMENTS = {deployment.name: deployment for deployment in (dev, staging, prod, local)}
"""All environments, by name."""
