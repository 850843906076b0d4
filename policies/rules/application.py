"""Rules about the EMR Serverless application."""

from __future__ import annotations

import re
from collections.abc import Iterator

from frazil.release.emr_labels import LABELS
from policies.resource_values import Facts
from policies.resources import Finding, Reviewed


def application_too_small(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report an application that is too small: a job that does not fit waits for another to end, without an error.

    While jobs move, an environment has two applications. One of them must have room: jobs leave the other one.
    """
    jobs = facts.jobs()
    cores, memory = sum(job.cores for job in jobs), sum(job.memory_gb for job in jobs)
    small: dict[str, Finding] = {}
    large: set[str] = set()
    for each in reviewed.of("aws_emrserverless_application"):
        environment = each.text("name").partition("-emr-")[0]
        for limit in each.blocks("maximum_capacity"):
            given_cores, given_memory = _number(limit.get("cpu")), _number(limit.get("memory"))
            if cores <= given_cores and memory <= given_memory:
                large.add(environment)
                continue
            what = f"its jobs want {cores} vCPU and {memory} GB at once, it may have {given_cores} and {given_memory}"
            do = "Raise its maximum, or ask for fewer workers"
            small.setdefault(environment, Finding("application_too_small", each.address, what, do))
    yield from (finding for environment, finding in small.items() if environment not in large)


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


def _number(text: object) -> int:
    """Return the number of `16 vCPU` or `64 GB`; 0 if it has none."""
    found = re.match(r"\d+", str(text or ""))
    return int(found[0]) if found else 0
