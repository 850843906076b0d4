"""The rule about the EMR Serverless application."""

from __future__ import annotations

from collections.abc import Iterator

from frazil.release.emr_labels import LABELS
from policies.resource_values import Facts
from policies.resources import Finding, Reviewed


def label_near_end(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report labels near the end of support: a new label needs a tested release before the old one stops working."""
    known = {row.name: row for row in LABELS}
    for each in reviewed.of("aws_emrserverless_application"):
        name = each.text("release_label")
        row = known.get(name)
        if row is None:
            what = f"{name} is an unknown label"
            yield Finding("label_near_end", each.address, what, f"Use one of {', '.join(known)}")
        elif row.ends_soon(facts.today):
            what = f"standard support of {name} ends on {row.supported_until}"
            yield Finding("label_near_end", each.address, what, "Move to a newer label")
