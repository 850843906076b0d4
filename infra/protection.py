"""Protection of resources that hold data: to destroy them takes two switches, set in two places."""

from __future__ import annotations

from dataclasses import dataclass

from infra.tf import TerraformResourceLifecycle


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """The two keys of one environment.

    The first is in its declaration, reviewed and committed. The second is turned by the person who destroys it, at the moment of
    doing so, by naming the environment. With one of them Terraform refuses any plan that destroys or replaces data, as long
    as it is declared. `stacks.workflow.deployed` refuses declarations that disappear.
    """

    is_disposable: bool = False
    is_named: bool = False

    @property
    def is_kept(self) -> bool:
        """True if what is declared and holds data stays, whatever the plan says."""
        return not (self.is_disposable and self.is_named)

    @property
    def lifecycle(self) -> TerraformResourceLifecycle | None:
        """The lifecycle of what holds data."""
        return TerraformResourceLifecycle(prevent_destroy=True) if self.is_kept else None
