"""The acceptance of dangers by people: for one plan, by its digest, and with a reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policies.review.plan.compared_plans import DIGITS

ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The dangers that one person accepts. `codes` are names of rules, or `all`; `by` is empty on the command line."""

    codes: tuple[str, ...]
    reason: str
    by: str = ""
    url: str = ""

    def covers(self, rule: str) -> bool:
        """Return whether it accepts the dangers of a rule."""
        return ALL in self.codes or rule in self.codes


def on_command_line(reason: str) -> tuple[Acceptance, ...]:
    """Return the acceptance of all dangers for a reason; none without a reason."""
    return (Acceptance(codes=(ALL,), reason=reason.strip()),) if reason.strip() else ()


def in_comments(content: Mapping[str, Any], environment: str, digest: str) -> Iterator[Acceptance]:
    """Yield the acceptances of this plan, from what `frazil deploy acceptances` printed. Those of another digest are void.

    Raises `ValueError` if the content has another form, names a part of a digest, or is of another environment.
    """
    if content.get("environment") != environment or not isinstance(content.get("accepted"), list):
        raise ValueError(
            f"the acceptances are not those of {environment}. "
            f"Write them with `frazil deploy acceptances {environment} --pull-request NUMBER`"
        )
    for each in content["accepted"]:
        named = str(each["digest"])
        if len(named) != DIGITS:
            raise ValueError(
                f"the acceptance of {each['by']} names {len(named)} digits of a plan, and {DIGITS} are needed. "
                f"Write the acceptances with `frazil deploy acceptances {environment} --pull-request NUMBER`"
            )
        if named == digest:
            codes = tuple(map(str, each["codes"]))
            yield Acceptance(codes=codes, reason=str(each["reason"]), by=str(each["by"]), url=str(each["url"]))
