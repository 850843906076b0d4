"""The differences of policies, statement by statement, and which of them follow from new tables and applications alone."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from policies.resource_values import Facts
from policies.resources import Change, Document, Reviewed, many, policy, statements
from policies.review.plan.resource_changes import Planned, Verb
from policies.review.role_permissions import TYPES, RoleRights
from policies.rules import new_permissions as lake_grants
from policies.rules.new_permissions import policy_widened

ARGUMENTS = ("assume_role_policy", "policy", "inline_policy", "access_policy", "resource_policy", "access_policies")
_PROBES = "frazil_probe_*"
_ELEMENTS = ("Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementDiff:
    """The change of one statement. `name` is its Sid or its index; `lines` describe the change, or the statement."""

    what: str
    name: str
    effect: str = ""
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """The change of one policy of a resource. `is_unknown`: the policy is known only after it is applied."""

    stack: str
    address: str
    argument: str
    statements: tuple[StatementDiff, ...] = ()
    is_unknown: bool = False


def policy_changes(change: Planned) -> Iterator[PolicyChange]:
    """Yield the changed policies of a resource. Of a new or deleted resource, yields all statements."""
    if change.type in TYPES:
        return  # `rights_change` compares a role's policies together
    for argument in ARGUMENTS:
        before, after = change.before.get(argument), change.after.get(argument)
        blank = PolicyChange(stack=change.stack, address=change.address, argument=argument)
        if change.verb in {Verb.DELETE, Verb.FORGET}:
            continue
        if change.is_unknown(argument):
            if change.verb is not Verb.CREATE:
                yield replace(blank, is_unknown=True)
            continue
        if before == after or not (before or after):
            continue
        old, new = policy(before), policy(after)
        if (after and new is None) or (before and old is None):
            yield replace(blank, is_unknown=True)
            continue
        statements = tuple(_compared(old, new))
        if statements:
            yield replace(blank, statements=statements)


def rights_change(rights: RoleRights) -> PolicyChange | None:
    """Compare the permissions of a role, all of its policies together; None if they do not change."""
    blank = PolicyChange(stack=rights.stack, address=rights.addresses[0], argument=f"all policies of {rights.role}")
    if rights.is_unknown:
        return None if rights.is_new else replace(blank, is_unknown=True)
    statements = tuple(_compared(rights.before, rights.after))
    return replace(blank, statements=statements) if statements else None


def follows_from(
    change: Change,
    tables: Collection[str],
    databases: Collection[str],
    facts: Facts,
    applications: Collection[str] = (),
) -> bool:
    """Return whether a policy's new permissions are only those that tables and applications of the same change need.

    Removes resources and values of conditions that name one of them from the new policy. The change follows from them if the
    rest allows no more than the old policy. `tables` are identifiers, `namespace.table`; `databases` are those of them
    without earlier tables; `applications` are the ids of those on which runs now start.
    """
    if change.type == lake_grants.TYPE:
        return lake_grants.database_of(change.after) in databases
    if not tables and not applications:
        return False
    runs = (f":/applications/{each}{part}" for each in applications for part in ("", "/jobruns/*"))
    places = (*_places(tables, databases), *runs)
    after = dict(change.after)
    for name in ARGUMENTS:
        document = policy(after.get(name))
        if document is not None:
            after[name] = json.dumps(_narrowed(document, places))
    narrowed = replace(change, after=after)
    return not any(policy_widened(Reviewed(changes=(narrowed,)), facts))


def _places(tables: Collection[str], databases: Collection[str]) -> tuple[str, ...]:
    """Return the names of tables in policies: in Glue, and as prefixes of files (`policies.table_resources`).

    Each ends at the end of a name. In a new database, a job may also create and drop the scratch tables of its start probe.
    """
    found = []
    for database in databases:
        found += [f":database/{database}", f":table/{database}/{_PROBES}"]
        found += [f"/{database}.db/{_PROBES}", f"/{database}.db/{_PROBES}/"]
        # all tables, with `Scope.NAMESPACE`
        found += [f":table/{database}/*", f"/{database}.db/*/*", f"/{database}.db/*/metadata/*"]
    for identifier in tables:
        database, _, table = identifier.partition(".")
        found += [f":table/{database}/{table}", f"/{database}.db/{table}/", f"/{database}.db/{table}"]
    return tuple(found)


def _is_of(text: Any, places: tuple[str, ...]) -> bool:
    return isinstance(text, str) and any(
        text.endswith(place) or (place.endswith("/") and place in text) for place in places
    )


def _narrowed(document: Document, places: tuple[str, ...]) -> Document:
    kept = []
    for statement in statements(document):
        rest = dict(statement)
        if "Resource" in rest:
            rest["Resource"] = [each for each in many(rest["Resource"]) if not _is_of(each, places)]
            if not rest["Resource"]:
                continue
        if isinstance(rest.get("Condition"), Mapping):
            rest["Condition"] = {
                operator: {key: _values(value, places) for key, value in keys.items()}
                for operator, keys in rest["Condition"].items()
                if isinstance(keys, Mapping)
            }
        kept.append(rest)
    return {**document, "Statement": kept}


def _values(value: Any, places: tuple[str, ...]) -> Any:
    """Return the values of a condition without the prefixes of the places; a prefix itself may be listed, too."""
    if not isinstance(value, list):
        return value
    return [each for each in value if not _is_of(each, places) and not _is_of(f"{each}/*", places)]


def _compared(old: Document | None, new: Document | None) -> Iterator[StatementDiff]:
    before, after = _by_name(old), _by_name(new)
    same = {_canonical(each) for each in before.values()} & {_canonical(each) for each in after.values()}
    for name in [*after, *(name for name in before if name not in after)]:
        one, other = before.get(name), after.get(name)
        if one is None and other is not None and _canonical(other) not in same:
            # A new statement that denies adds no risk, so its name is enough.
            lines = () if _effect(other) == "Deny" else tuple(_lines(other))
            yield StatementDiff(what="added", name=name, effect=_effect(other), lines=lines)
        elif other is None and one is not None and _canonical(one) not in same:
            yield StatementDiff(what="removed", name=name, effect=_effect(one), lines=tuple(_lines(one)))
        elif one is not None and other is not None and _canonical(one) != _canonical(other):
            yield StatementDiff(what="changed", name=name, effect=_effect(other), lines=tuple(_changed(one, other)))


def _by_name(document: Document | None) -> dict[str, Document]:
    """Return the statements by Sid; those without one, or with a repeated one, by index."""
    found: dict[str, Document] = {}
    for index, statement in enumerate(statements(document), start=1):
        name = str(statement.get("Sid") or f"statement {index}")
        found[name if name not in found else f"{name} ({index})"] = statement
    return found


def _effect(statement: Document) -> str:
    return str(statement.get("Effect", ""))


def _lines(statement: Document) -> Iterator[str]:
    for element in _ELEMENTS:
        if element in statement:
            yield f"{element} {', '.join(_texts(statement[element]))}"
    yield f"Condition {_json(statement['Condition'])}" if statement.get("Condition") else "no condition"


def _changed(old: Document, new: Document) -> Iterator[str]:
    if _effect(old) != _effect(new):
        yield f"Effect {_effect(old)} -> {_effect(new)}"
    for element in _ELEMENTS:
        before, after = (set(_texts(side[element])) if element in side else set() for side in (old, new))
        if after - before:
            yield f"{element} gains {', '.join(sorted(after - before))}"
        if before - after:
            yield f"{element} loses {', '.join(sorted(before - after))}"
    one, other = old.get("Condition") or {}, new.get("Condition") or {}
    if _json(one) == _json(other):
        return
    if not other:
        yield f"its condition is gone: {_json(one)}"
    elif not one:
        yield f"a condition is new: {_json(other)}"
    else:
        yield from _conditions(one, other)


def _conditions(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    """Compare two conditions, key by key."""
    for operator in sorted({*one, *other}):
        old, new = (side.get(operator) or {} for side in (one, other))
        for key in sorted({*old, *new}):
            before, after = ({*map(str, many(side[key]))} if key in side else None for side in (old, new))
            if before is None or after is None:
                what = "new" if before is None else "gone"
                yield f"Condition {operator} {key} is {what}: {', '.join(sorted(before or after or ()))}"
                continue
            if after - before:
                yield f"Condition {operator} {key} gains {', '.join(sorted(after - before))}"
            if before - after:
                yield f"Condition {operator} {key} loses {', '.join(sorted(before - after))}"


def _texts(element: Any) -> list[str]:
    """Return an element's values as texts; a principal with its kind."""
    if isinstance(element, Mapping):
        return [f"{kind}:{one}" for kind, values in element.items() for one in many(values)]
    return [str(one) for one in many(element)]


def _canonical(statement: Document) -> str:
    """Return a statement without its name, with sorted lists."""
    parts = {
        key: sorted(_texts(value)) if key in _ELEMENTS else value for key, value in statement.items() if key != "Sid"
    }
    return _json(parts)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
