"""The reader of synthesised stacks (`cdk.tf.json`), plans (`terraform show -json`) and Frazil's documents.

Terraform writes a block as an object or as a list, and a reference as text or not at all; here, each has one form. A value
that a plan does not know before it is applied is the reference in its configuration.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from policies.resource_changes import Change, changes_of

TYPE = "aws_cloudwatch_metric_alarm"
_QUERY = re.compile(
    r"SELECT [A-Z]+\((?P<metric>\w+)\) FROM SCHEMA\([^)]*\)(?: WHERE \"group\" = '(?P<group>[^']*)')?(?P<by> GROUP BY )?"
)


@dataclass(frozen=True, slots=True)
class Watch:
    """The subject of an alarm: a metric of a pipeline, or of all pipelines of a group; `group` is None for those without."""

    metric: str
    pipeline: str | None = None
    group: str | None = None

    def covers(self, pipeline: str, group: str | None) -> bool:
        """Return whether the alarm is about a pipeline of a group."""
        return self.pipeline == pipeline if self.pipeline is not None else self.group == group


def watch(alarm: Resource) -> Watch | None:
    """Return what an alarm watches; None if that is no metric of pipelines."""
    pipeline = (alarm.values.get("dimensions") or {}).get("pipeline")
    if pipeline:
        return Watch(alarm.text("metric_name"), pipeline=str(pipeline))
    for query in alarm.blocks("metric_query"):
        if found := _QUERY.match(str(query.get("expression") or "")):
            return Watch(found["metric"], group=found["group"])
    return None


HOLDS_DATA: Mapping[str, str] = MappingProxyType(
    {
        "aws_s3_bucket": "its objects: tables, releases or desired state",
        "aws_kms_key": "everything that it encrypted",
        "aws_glue_catalog_database": "the catalog entries of all its tables",
        "aws_glue_catalog_table": "the table's catalog entry",
        "aws_secretsmanager_secret": "the credentials that jobs read",
        "confluent_environment": "everything in it",
        "confluent_kafka_cluster": "all topics and their records",
        "confluent_kafka_topic": "all its records that are not landed yet",
        "confluent_schema": "versions of the subject that records refer to",
        "confluent_provider_integration": "its external id: the role's trust breaks until it knows the new one",
        "confluent_tableflow_topic": "the table that Tableflow keeps",
    }
)
"""The data that are lost with a resource, by its type in Terraform."""
NAMED_BY: Mapping[str, str] = MappingProxyType(
    {
        "aws_s3_bucket": "bucket",
        "confluent_environment": "display_name",
        "confluent_kafka_cluster": "display_name",
        "confluent_kafka_topic": "topic_name",
        "confluent_provider_integration": "display_name",
        "confluent_schema": "subject_name",
        "confluent_tableflow_topic": "display_name",
    }
)
"""The argument that names a resource that holds data, by its type; `name` for all others that have one."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """`rule` is the rule's name, `resource` the address in Terraform, `what` the problem, `do` the remedy.

    As a danger of a review, `resource` may be a pipeline or a stack, and `touches` lists the data.
    """

    rule: str
    resource: str
    what: str
    do: str
    touches: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The finding on one line."""
        return f"{self.resource}: {self.what}. {self.do} [{self.rule}]"


Json = Mapping[str, Any]
Document = Mapping[str, Any]
"""A policy, or a statement of one."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A declared resource. A value may be a reference, like `${aws_s3_bucket.tables.id}`.

    `is_planned`: the values are from a plan, which knows more than a stack, except values that exist only after it is applied.
    """

    address: str
    type: str
    values: Json
    is_planned: bool = False

    def blocks(self, name: str) -> list[Json]:
        """Return the blocks with a name."""
        return blocks(self.values.get(name))

    def text(self, name: str) -> str:
        """Return an argument as text; empty if it is absent."""
        value = self.values.get(name)
        return "" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The reviewed resources, changes and documents (of pipelines, environments, desired state).

    `declared` are the arguments of the stacks' resources and data sources by address, with their expressions.
    """

    resources: tuple[Resource, ...] = ()
    changes: tuple[Change, ...] = ()
    documents: tuple[Json, ...] = field(default=())
    declared: Json = field(default_factory=dict)

    def of(self, *types: str) -> Iterator[Resource]:
        """Return the resources of these types."""
        return (each for each in self.resources if each.type in types)

    def named(self, reference: str) -> Resource | None:
        """Return the resource of a reference: `${aws_s3_bucket.tables.id}`."""
        for each in self.resources:
            if reference.startswith(f"${{{each.address}.") and reference.endswith("}"):
                return each
        return None


class NothingToReview(ValueError):
    """A file is neither a stack, nor a plan, nor a document of Frazil."""


def read(document: Json) -> Reviewed:
    """Read the content of one file. Raises `NothingToReview`."""
    if "resource_changes" in document or "planned_values" in document:
        return _plan(document)
    if "resource" in document or ("terraform" in document and "provider" in document):
        return _stack(document)
    if "version" in document and document.keys() & {"pipelines", "catalog", "workers"}:
        return Reviewed(documents=(document,))
    raise NothingToReview("neither a synthesised stack, nor a plan as JSON, nor a document of Frazil")


def together(parts: Iterable[Reviewed]) -> Reviewed:
    """Combine several files of one environment, so that references between stacks are resolved.

    A resource of both a stack and a plan has the plan's values, and the stack's for those that the plan does not know yet.
    """
    several = list(parts)
    resources = [each for part in several for each in part.resources]
    stacked = {each.address: each for each in resources if not each.is_planned}
    planned = {each.address for each in resources if each.is_planned}
    return Reviewed(
        resources=tuple(
            _merged(stacked.get(each.address), each) if each.is_planned else each
            for each in resources
            if each.is_planned or each.address not in planned
        ),
        changes=tuple(each for part in several for each in part.changes),
        documents=tuple(each for part in several for each in part.documents),
        declared={address: values for part in several for address, values in part.declared.items()},
    )


def _merged(stacked: Resource | None, planned: Resource) -> Resource:
    if stacked is None:
        return planned
    return Resource(planned.address, planned.type, _filled(planned.values, stacked.values), is_planned=True)


def _filled(planned: Any, stacked: Any) -> Any:
    """Return a plan's values and, at any depth, the stack's for those that the plan does not know yet."""
    if stacked is None:
        return planned
    if planned is None or (isinstance(planned, str) and planned.startswith("${")):  # a reference
        return stacked
    if isinstance(planned, list) and isinstance(stacked, Mapping):
        stacked = [stacked]
    if isinstance(planned, Mapping) and isinstance(stacked, Mapping):
        return {name: _filled(planned.get(name), stacked.get(name)) for name in {**stacked, **planned}}
    if isinstance(planned, list) and isinstance(stacked, list) and len(planned) == len(stacked):
        return [_filled(one, other) for one, other in zip(planned, stacked, strict=True)]
    return planned


def policy(value: Any) -> Json | None:
    """Parse a policy's JSON text; None if it is unknown or only a reference."""
    if isinstance(value, Mapping):
        return value
    try:
        parsed = json.loads(value)
    except (TypeError, ValueError):
        return None
    return parsed if isinstance(parsed, Mapping) else None


def statements(document: Document | None) -> Sequence[Document]:
    """Return the statements of a policy, which are one or a list; none without a policy."""
    found = (document or {}).get("Statement", ())
    return [found] if isinstance(found, Mapping) else found


def principals(statement: Document) -> list[str]:
    """Return whom a statement names, or excludes."""
    named = statement.get("Principal", statement.get("NotPrincipal", ()))
    if isinstance(named, str):
        return [named]
    return [str(one) for values in dict(named).values() for one in many(values)]


def many(value: Any) -> Sequence[Any]:
    """Return an element of a policy, which is one value or a list, as a list."""
    return [value] if isinstance(value, str | Mapping | bool | int) else value


def _stack(document: Json) -> Reviewed:
    resources = tuple(
        Resource(f"{kind}.{name}", kind, values)
        for kind, named in document.get("resource", {}).items()
        for name, values in named.items()
    )
    data = {
        f"data.{kind}.{name}": values
        for kind, named in document.get("data", {}).items()
        for name, values in named.items()
    }
    declared = {**data, **{each.address: each.values for each in resources}}
    return Reviewed(resources=resources, documents=tuple(embedded(resources)), declared=declared)


def _plan(document: Json) -> Reviewed:
    expressions = {each["address"]: each for each in _modules(document.get("configuration", {}).get("root_module", {}))}
    resources = tuple(
        Resource(
            each["address"],
            each["type"],
            _with_references(each.get("values", {}), expressions.get(each["address"])),
            is_planned=True,
        )
        for each in _modules(document.get("planned_values", {}).get("root_module", {}))
        if each.get("mode", "managed") == "managed"
    )
    changes = tuple(each for each in changes_of(document) if each.is_changed)
    return Reviewed(resources=resources, changes=changes, documents=tuple(embedded(resources)))


def _modules(module: Json) -> Iterator[Json]:
    yield from module.get("resources", ())
    for child in module.get("child_modules", ()):
        yield from _modules(child)


def _with_references(values: Json, configured: Json | None) -> Json:
    """Return the values. An unknown one is the first reference of its expression."""
    filled = dict(values)
    for name, expression in (configured or {}).get("expressions", {}).items():
        references = expression.get("references") if isinstance(expression, Mapping) else None
        if filled.get(name) is None and references:
            filled[name] = f"${{{references[0]}}}"
    return filled


def embedded(resources: Iterable[Resource]) -> Iterator[Json]:
    """Yield Frazil's documents among objects."""
    for each in resources:
        found = policy(each.values.get("content")) if each.type == "aws_s3_object" else None
        if found and "version" in found:
            yield found


def blocks(value: Any) -> list[Json]:
    """Return a block's value as a list of objects."""
    if value is None:
        return []
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, Mapping)]
