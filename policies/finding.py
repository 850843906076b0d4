"""The finding of a rule in a stack or a plan."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """`rule` is the rule's name, `resource` the address in Terraform, `what` the problem, `do` the remedy."""

    rule: str
    resource: str
    what: str
    do: str

    def __str__(self) -> str:
        """The finding on one line."""
        return f"{self.resource}: {self.what}. {self.do} [{self.rule}]"
