"""The dangers of a deployment, explained, with the data that they affect."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from frazil.declaration import Pipeline
from policies.resource_changes import Change, Verb
from policies.resource_values import Facts
from policies.resources import HOLDS_DATA, NAMED_BY, Finding
from policies.review.data_effects.effects import Effect
from policies.review.policy_diff import PolicyChange, follows_from

_WIDENED, _LOST, _LOWERED = "policy_widened", "data_lost", "partitions_lowered"
_LOSING = {_LOST, _LOWERED, "retention_under_lag"}
_CUTS = {Verb.DELETE, Verb.REPLACE, Verb.UPDATE}
_MOVE = "Declare another application, and run frazil deploy move-application before this one changes"
_ALL_TABLES = {"aws_kms_key", "confluent_environment", "confluent_kafka_cluster"}
MOST_NAMED = 5


def change_dangers(
    findings: Sequence[Finding],
    changes: Sequence[Change],
    policies: Iterable[PolicyChange],
    deployed: Sequence[Pipeline],
) -> Iterator[Finding]:
    """Yield the dangers of changes: the rules' findings on changed resources, and dangers that only a review finds."""
    by_address = {change.address: change for change in changes}
    lowered = {
        finding.resource
        for finding in findings
        if finding.rule == _LOWERED
        and finding.resource in by_address
        and set(by_address[finding.resource].forced_by) <= {"partitions_count"}
    }
    for finding in findings:
        change = by_address.get(finding.resource)
        if finding.rule == _LOST and finding.resource in lowered:
            continue  # fewer partitions are the cause, and named as such
        if change is not None:
            yield replace(finding, touches=_touched(change, deployed) if finding.rule in _LOSING else ())
    for change in changes:
        if change.verb is Verb.FORGET and change.type in HOLDS_DATA:
            what = "Terraform forgets it: it stays, and neither its protection nor its settings are kept any longer. "
            what += f"It holds {HOLDS_DATA[change.type]}"
            do = "Leave it declared; if it is meant, say who keeps it from now on"
            yield Finding("forgotten", change.address, what, do, _touched(change, deployed))
        if change.type == "aws_emrserverless_application" and change.verb in _CUTS:
            what = f"{change.verb} of an application: EMR Serverless allows it for a stopped one only, so its runs end"
            yield Finding("application_change", change.address, what, _MOVE)
    known = {(each.resource, each.rule) for each in findings}
    for policy in policies:
        if policy.is_unknown and (policy.address, _WIDENED) not in known:
            what = f"{policy.argument} is known only after it is applied, so its permissions cannot be reviewed"
            yield Finding(_WIDENED, policy.address, what, "Apply what it depends on first, then plan again")


def effect_danger(effect: Effect) -> Finding:
    """Return a dangerous effect on data as a danger."""
    changed = f"{effect.changed} from {effect.before} to {effect.after}: " if effect.before or effect.after else ""
    do = "Undo it; if it is meant, agree with whoever reads the table"
    return Finding(
        "data_effect", effect.pipeline, f"{changed}{effect.what}", do, (effect.table,) if effect.table else ()
    )


def shortened(names: Sequence[str]) -> str:
    """Return the first names and the number of the others."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _touched(change: Change, pipelines: Iterable[Pipeline]) -> tuple[str, ...]:
    """Return the data of a resource: its name, and the deployed pipelines and tables that use it. Empty if it holds no data."""
    if change.type not in HOLDS_DATA:
        return ()
    values = change.before or change.after
    name = str(values.get("description" if change.type == "aws_kms_key" else NAMED_BY.get(change.type, "name")) or "")
    partitions = f", {values['partitions_count']} partitions" if values.get("partitions_count") else ""
    users = [f"{each.name} ({each.table.identifier})" for each in pipelines if _concerns(change, name, each)]
    return (*filter(None, [f"{name}{partitions}"]), *([f"used by: {shortened(users)}"] if users else []))


def _concerns(change: Change, name: str, pipeline: Pipeline) -> bool:
    match change.type:
        case "aws_s3_bucket":
            return "-tables-" in name
        case "aws_glue_catalog_database":
            return name == pipeline.table.namespace
        case "aws_glue_catalog_table":
            return name in {identifier.partition(".")[2] for identifier in pipeline.tables}
        case "confluent_kafka_topic" | "confluent_tableflow_topic":
            return name == pipeline.topic.name
        case "confluent_schema":
            return name in {f"{pipeline.topic.name}-value", f"{pipeline.topic.name}-key"}
    return change.type in _ALL_TABLES


def expected(
    found: Iterable[Finding],
    changes: Mapping[str, Sequence[Change]],
    facts: Facts,
    *,
    before: Sequence[Pipeline],
    after: Sequence[Pipeline],
    applications: Collection[str],
    tolerated: Collection[str],
) -> Iterator[Finding]:
    """Yield the findings that are no reason to refuse.

    If a role gets permissions on exactly the tables that this change declares, or on the application to which it moves runs,
    they follow from the declaration. A rule alone cannot know that. `applications` are ids. `tolerated` are rules that this
    environment allows to fail. `changes` are by address; those of an address must all follow.
    """
    tables = _tables(after) - _tables(before)
    databases = {each.table.namespace for each in after} - {each.table.namespace for each in before}

    @cache
    def follows(address: str) -> bool:
        made = changes.get(address, ())
        return bool(made) and all(follows_from(each, tables, databases, facts, applications) for each in made)

    for finding in found:
        if finding.rule in tolerated or (finding.rule == _WIDENED and follows(finding.resource)):
            yield finding


def _tables(pipelines: Iterable[Pipeline]) -> set[str]:
    return {name for each in pipelines for name in each.tables}
