"""Rules about plans that add permissions or remove protections."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from policies.documents.size import lists, replaced
from policies.resource_values import Facts
from policies.resources import Document, Finding, Json, Reviewed, blocks, many, policy, principals, statements
from policies.rules.kafka_permissions import kafka_widened

TYPE = "aws_lakeformation_permissions"
_PLACES = ("catalog_resource", "data_location", "database", "lf_tag", "lf_tag_policy", "table", "table_with_columns")


def grants(values: Json) -> set[tuple[str, str]]:
    """Return each permission with its place and principal, as text; none of a resource that does not exist."""
    where = f"{' and '.join(_places(values))} to {values.get('principal')}"
    passed_on = [f"{each} with the right to pass it on" for each in values.get("permissions_with_grant_option") or ()]
    return {(str(each), where) for each in (*(values.get("permissions") or ()), *passed_on)}


def role_of(values: Json) -> str:
    """Return the name of the role that gets the permissions."""
    return str(values.get("principal") or "").rpartition("/")[2]


def database_of(values: Json) -> str:
    """Return the database that the permissions are on, or whose tables; empty if they are on something else."""
    found = [str(block.get("name") or "") for block in blocks(values.get("database"))]
    found += [str(block.get("database_name") or "") for block in blocks(values.get("table"))]
    return found[0] if len(found) == 1 else ""


def _places(values: Json) -> Iterator[str]:
    for kind in _PLACES:
        for block in blocks(values.get(kind)):
            settings = [f"{name} {value}" for name, value in sorted(block.items()) if value]
            yield f"{kind} ({', '.join(settings)})"
        if values.get(kind) is True:
            yield kind


Grant = tuple[str, str, str]
_POLICIES = ("assume_role_policy", "policy")
_ROLE = "aws_iam_role"
_DO = "Have whoever owns the data agree to it; narrow it where you can"
_LATER = "is known only after it is applied, so its permissions cannot be reviewed"
_APPLY = "Apply what it depends on first, then plan again"
_PROTECTIONS = (
    # type, arguments
    (
        "aws_s3_bucket_public_access_block",
        ("block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets"),
    ),
    ("confluent_kafka_cluster", ("deletion_protection",)),
    ("aws_kms_key", ("enable_key_rotation",)),
)
_GUARDS = {"aws_s3_bucket_public_access_block", "aws_s3_bucket_policy", "aws_s3_bucket_server_side_encryption_configuration",
           "aws_s3_bucket_ownership_controls", "aws_s3_bucket_versioning"}  # fmt: skip


def policy_widened(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report new permissions: no later test would notice them.

    Compares each policy alone; a review compares all policies of a role together, with its attachments. Also reports a policy
    that is known only after it is applied, because it cannot be reviewed. That happens if a resource that it names is
    replaced, like the integration whose external id a trust requires.
    """
    for change in reviewed.changes:
        if change.verb not in {"update", "replace"}:
            continue
        for name in _POLICIES:
            if change.is_unknown(name) and change.before.get(name):
                yield Finding("policy_widened", change.address, f"{name} {_LATER}", _APPLY)
            elif change.after.get(name) not in (None, change.before.get(name)):
                before, after = policy(change.before.get(name)), policy(change.after.get(name))
                yield from _widened(change.address, name, before, after)
    yield from _granted(reviewed)
    yield from kafka_widened(reviewed, facts)


def _granted(reviewed: Reviewed) -> Iterator[Finding]:
    """Yield what Lake Formation newly grants to roles that exist. A role that this plan creates had nothing before."""
    made = {str(each.after.get("name")) for each in reviewed.changes if (each.type, each.verb) == (_ROLE, "create")}
    for change in reviewed.changes:
        if change.type != TYPE or not change.after or role_of(change.after) in made:
            continue
        for permission, where in sorted(grants(change.after) - grants(change.before)):
            yield Finding("policy_widened", change.address, f"Lake Formation now grants {permission} on {where}", _DO)


def protection_removed(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report the removal of a bucket's access block, encryption or versioning, which is otherwise noticed too late."""
    for change in reviewed.changes:
        if change.type in _GUARDS and change.verb == "delete":
            yield Finding("protection_removed", change.address, "it is removed", "Keep it as long as the bucket exists")
        for kind, arguments in _PROTECTIONS:
            for name in arguments if change.type == kind and change.verb == "update" else ():
                if change.before.get(name) is True and change.after.get(name) is not True:
                    yield Finding("protection_removed", change.address, f"{name} is turned off", "Leave it on")
        bound = change.before.get("permissions_boundary") if change.type == "aws_iam_role" else None
        if bound and change.after and change.after.get("permissions_boundary") != bound:
            what = "its permissions boundary is removed or replaced"
            yield Finding(
                "protection_removed", change.address, what, "Leave it: it bounds what whoever deploys can give"
            )
        if change.verb == "update" and _status(change.before) == "Enabled" != _status(change.after):
            yield Finding("protection_removed", change.address, "versions are no longer kept", "Leave it enabled")


def _status(values: Mapping[str, object]) -> object:
    found = values.get("versioning_configuration")
    return found[0].get("status") if isinstance(found, list) and found else None


def _widened(address: str, name: str, before: Document | None, after: Document | None) -> Iterator[Finding]:
    """Yield the permissions that a policy adds, and the denials that it removes."""
    if after is None:
        return
    allowed, allows = _grants(before, "Allow"), _grants(after, "Allow")
    known: dict[Grant, list[str]] = {}
    for grant, condition in allowed:
        known.setdefault(grant, []).append(condition)
    for grant, condition in allows - allowed:
        others = known.get(grant, [])
        if not any(_is_within(condition, other) for other in others):
            was = f"; it was {_on(others[0])}" if len(others) == 1 else ""
            what = f"{name} now allows {_described(grant, condition)}{was}"
            yield Finding("policy_widened", address, what, _DO)
    for grant, condition in _grants(before, "Deny") - _grants(after, "Deny"):
        what = f"{name} no longer denies {_described(grant, condition)}"
        yield Finding("policy_widened", address, what, _DO)


def _grants(document: Document | None, effect: str) -> set[tuple[Grant, str]]:
    """Return principal, action and resource of every statement with an effect, each with its condition as JSON.

    A condition of several values, of which any is enough, is one for each. So statements that are divided allow the same.
    """
    return {
        ((who, action, resource), condition)
        for statement in statements(document)
        if statement.get("Effect") == effect
        for condition in _conditions(statement)
        for who in principals(statement) or [""]
        for action in _elements(statement, "Action")
        for resource in _elements(statement, "Resource")
    }


def _conditions(statement: Document) -> Iterator[str]:
    """Yield the condition of a statement as JSON, once for each choice of its values."""
    choices = [(path, values) for path, values in lists(statement) if path[0] != "Resource"]
    for chosen in product(*(values or [[]] for _, values in choices)):  # with `IfExists`, no value is a condition, too
        one = statement
        for (path, _), value in zip(choices, chosen, strict=True):
            one = replaced(one, path, value)
        yield json.dumps(one.get("Condition") or {}, sort_keys=True)


def is_same(before: Document, after: Document) -> bool:
    """Return whether two policies of a role allow and deny the same."""
    return all(_grants(before, effect) == _grants(after, effect) for effect in ("Allow", "Deny"))


def _is_within(condition: str, other: str) -> bool:
    """Return whether a condition, as JSON, allows no request that another one refuses: it has the same keys or more."""
    new: Mapping[str, Any] = json.loads(condition)
    return all(
        key in new.get(operator, {}) and _is_part(operator, many(new[operator][key]), many(values))
        for operator, keys in json.loads(other).items()
        for key, values in keys.items()
    )


def _is_part(operator: str, values: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether an operator holds for no more with these values than with the others; any of them is enough."""
    new, old = {*map(str, values)}, {*map(str, others)}
    return new >= old if "Not" in operator else new <= old


def _elements(statement: Document, name: str) -> list[str]:
    negated = [f"all but {one}" for one in many(statement.get(f"Not{name}", ()))]
    return [*many(statement.get(name, ())), *negated] or [""]


def _described(grant: Grant, condition: str) -> str:
    who, action, resource = grant
    return f"{action}{f' on {resource}' if resource else ''}{f' for {who}' if who else ''}, {_on(condition)}"


def _on(condition: str) -> str:
    return "without a condition" if condition == "{}" else f"if {condition}"
