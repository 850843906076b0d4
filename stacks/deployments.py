"""The environments: accounts, sizes and protection of each. Values only; stacks read them.

Accounts and Confluent ids are examples. Replace them before the first deployment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

from frazil.declaration.constraints import below, between, matching
from frazil.declaration.environment import PUBLIC_KEY
from frazil.declaration.frozen_map import FrozenMap
from frazil.declaration.problems import Problem
from frazil.declaration.validation import validate
from frazil.release.emr_labels import NEWEST
from frazil.release.manifest import Architecture
from frazil.rollout.desired import Mode
from frazil.rollout.worker_sizes import Worker, Workers
from infra.capacity import Capacity
from infra.names import Names
from infra.network_plan import NetworkPlan
from policies.table_resources import Scope
from stacks.access_settings import EXTERNAL_ID, PRINCIPAL, WORKGROUP_NAME
from stacks.access_settings import GitHub as GitHub
from stacks.application_settings import APPLICATION_NAME, LABEL
from stacks.application_settings import Application as Application
from stacks.confluent_settings import ClusterKind as ClusterKind
from stacks.confluent_settings import Confluent as Confluent
from stacks.job_settings import Jobs as Jobs
from stacks.job_settings import Runs as Runs

NO_RELEASE = "none"
"""The manifest of a release if nothing should run. As a default, it would delete schedules and desired state."""
_MOST_NAME = 12  # so that bucket names, which hold account and region too, stay within S3's 63 characters


class AlarmsOf(StrEnum):
    """What has alarms. `group`: seven for all pipelines of a group. `pipeline`: six for each pipeline.

    Only those of a pipeline are raised if this pipeline alone reports nothing.
    """

    GROUP = "group"
    PIPELINE = "pipeline"


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
    network: Annotated[NetworkPlan, "Where jobs run."]
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
        str | None, "Athena's workgroup in which the reader role runs queries.", WORKGROUP_NAME
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
        if self.athena_workgroup is not None and not self.reader_principals:
            yield Problem("athena_workgroup", "no principal may assume the reader role", "Write reader_principals")
        for principal in self.reader_external_ids:
            if principal not in self.reader_principals:
                do = "Add it to reader_principals"
                yield Problem(below("reader_external_ids", principal), "no principal has this ARN", do)
        names, networks = {self.application}, {self.network.name: self.network}
        for index, former in enumerate(self.former_applications):
            network = former.network or self.network
            if former.name in names:
                do = "Give the application on which jobs run another name: `application`"
                yield Problem(f"former_applications[{index}].name", f"{former.name!r} names another application", do)
            if networks.setdefault(network.name, network) != network:
                do = "Give the network in which jobs run another name: `network`"
                yield Problem(
                    f"former_applications[{index}].network.name", f"{network.name!r} names another network", do
                )
            names.add(former.name)

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
        return Names(environment=self.name, account=self.account, region=self.region)


_SMALL = Worker(cores=1, memory_gb=4)
_MEDIUM = Worker(cores=4, memory_gb=16)

SMALL = Runs(
    ingest=Workers(driver=_SMALL, executor=_SMALL, least=1, most=2),
    maintain=Workers(driver=_SMALL, executor=_SMALL, least=1, most=2),
    capacity=Capacity(cores=8, memory_gb=32, disk_gb=200),
)

LARGE = Runs(
    ingest=Workers(driver=_MEDIUM, executor=_MEDIUM, least=1, most=8),
    maintain=Workers(driver=_MEDIUM, executor=_MEDIUM, least=1, most=8),
    capacity=Capacity(cores=80, memory_gb=320, disk_gb=2000),
)

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
