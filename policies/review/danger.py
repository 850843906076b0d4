"""One danger of a deployment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Danger:
    """One danger. `rule` names the rule that found it; `where` is an address, a pipeline or a stack; `touches` lists data."""

    rule: str
    where: str
    what: str
    do: str
    stack: str = ""
    touches: tuple[str, ...] = ()

    @classmethod
    def unread(cls, where: str, why: str) -> Danger:
        """Return the danger that something could not be reviewed, so that it does not pass as harmless."""
        return cls(
            rule="not_reviewed", where=where, what=f"it is not reviewed: {why}", do="Fix the cause, and review again"
        )
