"""The differences of policies, statement by statement, and which of them follow from new tables and applications alone."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from policies.resource_changes import Change, Verb
from policies.resource_values import Facts
from policies.resources import Document, Reviewed, many, policy, statements
from policies.review.role_permissions import MANAGED, RoleRights
from policies.rules import new_permissions as lake_grants
from policies.rules.new_permissions import is_same, policy_widened

ARGUMENTS = ("assume_role_policy", "policy", "access_policy", "resource_policy", "access_policies")
_PROBES = "frazil_probe_*"
_PIECE = re.compile(r"\d+$")
_DIVIDED = re.compile(r"Resource|Condition (?!\S*(?:Not|:))\S+ .*")
"""The elements of a statement of which any value is enough."""
_EFFECT = "Effect"
_ELEMENTS = ("Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource")
Parts = Mapping[str, frozenset[str]]
"""The elements of a statement, and the keys of its condition, each with its values."""


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

    address: str
    argument: str
    statements: tuple[StatementDiff, ...] = ()
    is_unknown: bool = False


def policy_changes(change: Change) -> Iterator[PolicyChange]:
    """Yield the changed policies of a resource. Of a new or deleted resource, yields all statements."""
    if change.type == MANAGED:
        return  # `rights_change` compares a role's policies together
    for argument in ARGUMENTS:
        before, after = change.before.get(argument), change.after.get(argument)
        blank = PolicyChange(address=change.address, argument=argument)
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
    blank = PolicyChange(address=rights.addresses[0], argument=f"all policies of {rights.role}")
    if rights.is_unknown:
        return None if rights.is_new else replace(blank, is_unknown=True)
    if is_same(rights.before, rights.after):
        return None
    return replace(blank, statements=tuple(_compared(rights.before, rights.after)))


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
    same = [each for each in before.values() if each in after.values()]
    for name in {**after, **before}:
        one, other = before.get(name, {}), after.get(name, {})
        if one == other or (not one and other in same) or (not other and one in same):
            continue
        what = "added" if not one else "changed" if other else "removed"
        effect = ", ".join((other or one).get(_EFFECT, ()))
        # A new statement that denies adds no risk, so its name is enough.
        lines = () if what == "added" and effect == "Deny" else tuple(_lines(one, other))
        yield StatementDiff(what=what, name=name, effect=effect, lines=lines)


def _by_name(document: Document | None) -> dict[str, Parts]:
    """Return the statements by Sid; those without one, or with a repeated one, by index.

    The pieces of a divided statement (`policies.documents.split`) are one again: they differ in a number and in one element.
    """
    found: dict[str, Parts] = {}
    for index, statement in enumerate(statements(document), start=1):
        name, parts = _PIECE.sub("", str(statement.get("Sid") or "")) or f"statement {index}", _parts(statement)
        same = found.get(name, parts)
        differing = [each for each in {**same, **parts} if same.get(each) != parts.get(each)]
        if same.keys() == parts.keys() and len(differing) <= 1 and all(map(_DIVIDED.fullmatch, differing)):
            found[name] = {**parts, **{each: same[each] | parts[each] for each in differing}}
        else:
            found[f"{name} ({index})"] = parts
    return found


def _parts(statement: Document) -> Parts:
    found = {each: frozenset(_texts(statement[each])) for each in (_EFFECT, *_ELEMENTS) if each in statement}
    for operator, keys in (statement.get("Condition") or {}).items():
        for key, values in keys.items() if isinstance(keys, Mapping) else ():
            found[f"Condition {operator} {key}"] = frozenset(map(str, many(values)))
    return found


def _lines(old: Parts, new: Parts) -> Iterator[str]:
    """Yield the parts of a new or removed statement, or the differences of a changed one."""
    if not (old and new):
        parts = old or new
        yield from (f"{part} {_listed(values)}" for part, values in parts.items() if part != _EFFECT)
        if not any(part.startswith("Condition ") for part in parts):
            yield "no condition"
        return
    for part in sorted({**old, **new}):
        before, after = old.get(part), new.get(part)
        if before is None or after is None:
            yield f"{part} is {'new' if before is None else 'gone'}: {_listed(before or after or frozenset())}"
            continue
        if after - before:
            yield f"{part} gains {_listed(after - before)}"
        if before - after:
            yield f"{part} loses {_listed(before - after)}"


def _listed(values: frozenset[str]) -> str:
    return ", ".join(sorted(values))


def _texts(element: Any) -> list[str]:
    """Return an element's values as texts; a principal with its kind."""
    if isinstance(element, Mapping):
        return [f"{kind}:{one}" for kind, values in element.items() for one in many(values)]
    return [str(one) for one in many(element)]
