"""The role that Confluent assumes in the account, and Confluent's side of it.

Each needs the other. The role's ARN is made from its name, so the integration is made first and names a role that is not
there yet; the role's trust then names what Confluent has computed: its own role, and the external id it will show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from infra.confluent.resource import Id
from infra.confluent.tableflow import CustomerRole, ProviderIntegration
from infra.execution_role import ExecutionRole
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
        integration = ProviderIntegration(
            display_name=names.role(what),
            environment=Id(id=environment_id),
            aws=CustomerRole(customer_role_arn=names.role_arn(what)),
        ).declare(self, "integration", is_kept=protection.is_kept)
        role = ExecutionRole(
            self,
            "role",
            role=names.role(what),
            path=names.path,
            boundary_arn=names.boundary_arn,
            trust=trust(integration.computed("aws[0].iam_role_arn"), integration.computed("aws[0].external_id")),
            policy=policy,
            description="Confluent's Tableflow writes tables and registers them in Glue.",
        )
        self.id = integration.id
        self.ready: tuple[Construct, ...] = (integration, *role.ready)
        """What a table must wait for."""
