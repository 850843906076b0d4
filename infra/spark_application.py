"""An EMR Serverless application, named after its release label."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.release.emr_labels import label
from frazil.release.manifest import Architecture
from infra.capacity import Capacity
from infra.tf import (
    Construct,
    EmrserverlessApplication,
    EmrserverlessApplicationAutoStartConfiguration,
    EmrserverlessApplicationAutoStopConfiguration,
    EmrserverlessApplicationMaximumCapacity,
    EmrserverlessApplicationNetworkConfiguration,
    TerraformResourceLifecycle,
)


class SparkApplication(Construct):
    """A started application cannot be changed: jobs move to another one (`frazil deploy move-application`)."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        application: str,
        release_label: str,
        architecture: Architecture,
        capacity: Capacity,
        idle_minutes: int,
        subnet_ids: Sequence[str],
        security_group_ids: Sequence[str],
    ) -> None:
        """`application` is its name. Raises `FrazilError` for a label that releases are not made for."""
        super().__init__(scope, name)
        label(release_label)
        made = EmrserverlessApplication(
            self,
            "application",
            name=application,
            release_label=release_label,
            type="SPARK",
            architecture=architecture.value,
            maximum_capacity=EmrserverlessApplicationMaximumCapacity(
                cpu=f"{capacity.cores} vCPU", memory=f"{capacity.memory_gb} GB", disk=f"{capacity.disk_gb} GB"
            ),
            auto_start_configuration=EmrserverlessApplicationAutoStartConfiguration(enabled=True),
            auto_stop_configuration=EmrserverlessApplicationAutoStopConfiguration(
                enabled=True, idle_timeout_minutes=idle_minutes
            ),
            network_configuration=EmrserverlessApplicationNetworkConfiguration(
                subnet_ids=list(subnet_ids), security_group_ids=list(security_group_ids)
            ),
            lifecycle=TerraformResourceLifecycle(create_before_destroy=True),
        )
        self.id: str = made.id
        """The application's id, known when it exists."""
