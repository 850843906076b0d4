"""The rules: pure functions from reviewed resources to findings. A rule's docstring gives its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from policies.resource_values import Facts
from policies.resources import Finding, Reviewed
from policies.rules.access import trust_without_condition, wildcard_action, wildcard_principal
from policies.rules.application import label_near_end
from policies.rules.encryption import in_the_clear
from policies.rules.new_permissions import policy_widened, protection_removed
from policies.rules.retention import data_lost, partitions_lowered, retention_under_lag
from policies.rules.tables import lifecycle_under_tables, optimizer_on_tables

Rule = Callable[[Reviewed, Facts], Iterable[Finding]]

RULES: tuple[Rule, ...] = (
    data_lost,
    partitions_lowered,
    retention_under_lag,
    policy_widened,
    protection_removed,
    in_the_clear,
    wildcard_action,
    wildcard_principal,
    trust_without_condition,
    optimizer_on_tables,
    lifecycle_under_tables,
    label_near_end,
)
"""All rules; those about data loss first."""


def findings(reviewed: Reviewed, facts: Facts) -> list[Finding]:
    """Return the findings of all rules, in the order of the rules, each once."""
    return list(dict.fromkeys(found for rule in RULES for found in sorted(rule(reviewed, facts))))
