"""An application of EMR Serverless, as a deployment declares it: values only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from frazil.declaration.checks.constraints import between, matching
from frazil.declaration.checks.problems import Problem
from frazil.declaration.checks.validation import validate
from frazil.release.emr_labels import LABELS, NEWEST
from frazil.release.manifest import Architecture
from infra.capacity import Capacity
from infra.given_network import GivenNetwork
from infra.network_plan import NetworkPlan

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
