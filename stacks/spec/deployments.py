"""The environments: accounts, applications, sizes and protection of each. Values only; stacks read them.

Accounts and Confluent ids are examples. Replace them before the first deployment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated

from frazil.declaration.checks.constraints import between, matching
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import Problem
from frazil.release.emr_labels import LABELS, NEWEST
from frazil.release.manifest import Architecture
from frazil.rollout.desired import Mode
from infra.capacity import Capacity
from infra.names import Names, is_supported
from infra.network_plan import GivenNetwork, NetworkPlan
from stacks.spec.access_settings import Access as Access
from stacks.spec.access_settings import GitHub as GitHub
from stacks.spec.access_settings import Workgroup as Workgroup
from stacks.spec.confluent_settings import ClusterKind as ClusterKind
from stacks.spec.confluent_settings import Confluent as Confluent
from stacks.spec.existing import Existing as Existing
from stacks.spec.job_settings import IDLE_MINUTES
from stacks.spec.job_settings import LARGE as LARGE
from stacks.spec.job_settings import SMALL as SMALL
from stacks.spec.job_settings import AlarmsOf as AlarmsOf
from stacks.spec.job_settings import Jobs as Jobs
from stacks.spec.job_settings import Monitoring as Monitoring
from stacks.spec.job_settings import Runs as Runs

LABEL = matching("|".join(row.name for row in LABELS), "a label", "See labels.py")
APPLICATION_NAME = matching(
    "|[a-z][a-z0-9-]{0,19}", "an application's name", "Use a lower-case letter, then up to 19 of a-z, 0-9, -"
)


@declared
class Application:
    """An application of an environment. EMR Serverless changes none that is started, so jobs move to another one instead."""

    name: Annotated[str, "Its name within the environment; the first one has none.", APPLICATION_NAME] = ""
    label: Annotated[str, "The EMR release label.", LABEL] = NEWEST
    architecture: Annotated[Architecture, "The processors."] = Architecture.ARM64
    capacity: Annotated[Capacity, "Its bounds, all runs together."]
    idle_minutes: Annotated[int, "Minutes without a run after which it stops.", between(1, 10_080)] = IDLE_MINUTES
    network: Annotated[NetworkPlan | GivenNetwork | None, "Its network, if not that of the deployment."] = None


@declared
class Emr:
    """The application on which jobs run, and those before it."""

    label: Annotated[str, "The EMR release label.", LABEL] = NEWEST
    architecture: Annotated[Architecture, "The processors; ARM64 costs 20 % less."] = Architecture.ARM64
    application: Annotated[str, "The name of the application on which jobs run.", APPLICATION_NAME] = ""
    former: Annotated[
        tuple[Application, ...], "Applications that stay, as they were, until no run is left on them."
    ] = ()

    def problems(self, network: NetworkPlan | GivenNetwork) -> Iterator[Problem]:
        """Find former applications and networks with the name of another one. `network` is that of the jobs."""
        names, networks = {self.application}, {network.name: network}
        for index, former in enumerate(self.former):
            own = former.network or network
            if former.name in names:
                do = "Give the application on which jobs run another name: `emr.application`"
                yield Problem(f"emr.former[{index}].name", f"{former.name!r} names another application", do)
            if networks.setdefault(own.name, own) != own:
                do = "Give the network in which jobs run another name: `network`"
                yield Problem(f"emr.former[{index}].network.name", f"{own.name!r} names another network", do)
            names.add(former.name)


_EMR, _ACCESS, _MONITORING, _EXISTING = Emr(), Access(), Monitoring(), Existing()
NO_RELEASE = "none"
"""The manifest of a release if nothing should run. As a default, it would delete schedules and desired state."""
_MOST_NAME = 12  # so that bucket names, which hold account and region too, stay within S3's 63 characters


@declared
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
    emr: Annotated[Emr, "The applications on which jobs run."] = _EMR
    access: Annotated[Access, "Who may read, operate and deploy."] = _ACCESS
    monitoring: Annotated[Monitoring, "Alarms and logs."] = _MONITORING
    existing: Annotated[Existing, "The rules and objects of the account that deployment follows and uses."] = _EXISTING
    is_disposable: Annotated[bool, "The first of the two keys that allow the deletion of data."] = False
    is_local: Annotated[bool, "Whether AWS and Confluent are stand-ins on this machine."] = False

    def _contradictions(self) -> Iterator[Problem]:
        if not is_supported(self.region):
            what = f"{self.region} is in no partition of aws, aws-cn and aws-us-gov"
            yield Problem("region", what, "Choose a region of one of these partitions")
        yield from self.existing.problems(self.names)
        yield from self.access.foreign_principals(self.names.partition)
        yield from self.emr.problems(self.network)

    @property
    def applications(self) -> tuple[Application, ...]:
        """The applications, each with its network: first that on which jobs run."""
        current = Application(
            name=self.emr.application,
            label=self.emr.label,
            architecture=self.emr.architecture,
            capacity=self.runs.capacity,
            idle_minutes=self.runs.idle_minutes,
        )
        return tuple(replace(each, network=each.network or self.network) for each in (current, *self.emr.former))

    @property
    def names(self) -> Names:
        """The names of the environment's resources."""
        given = self.existing
        return Names(
            environment=self.name,
            account=self.account,
            region=self.region,
            path=given.iam_path,
            given_boundary=given.boundary,
            given_buckets=given.buckets.given,
        )


def overlapping(deployments: Iterable[Deployment]) -> Iterator[Problem]:
    """Find environments of one account whose resources a deployer of another one may change: names are all that divides them."""
    listed = list(deployments)
    for one in listed:
        for other in listed:
            if one.access.has_owner and one.account == other.account and other.name.startswith(f"{one.name}-"):
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
    monitoring=Monitoring(log_days=7),
)

staging = Deployment(
    name="staging",
    account="222222222222",
    region="eu-central-1",
    network=NetworkPlan(cidr="10.21.0.0/20"),
    confluent=Confluent(kind=ClusterKind.STANDARD),
    runs=SMALL,
    monitoring=Monitoring(emails=("data-platform@example.com",)),
)

prod = Deployment(
    name="prod",
    account="333333333333",
    region="eu-central-1",
    network=NetworkPlan(cidr="10.22.0.0/20"),
    confluent=Confluent(environment_id="env-abc123", cluster_id="lkc-abc123"),
    runs=replace(LARGE, mode=Mode.FOLLOW, freshness_minutes=10),
    monitoring=Monitoring(emails=("data-platform@example.com", "on-call@example.com"), log_days=90),
)

_OPERATORS = ("arn:aws:iam::123456789012:role/operators",)

local = replace(
    dev,
    name="local",
    account="123456789012",
    emr=Emr(architecture=Architecture.X86_64),
    access=Access(readers=_OPERATORS, reconcilers=_OPERATORS),
    monitoring=Monitoring(log_days=1),
    is_local=True,
)

DEPLOYMENTS = {deployment.name: deployment for deployment in (dev, staging, prod, local)}
"""All environments, by name."""
