"""New permissions at Confluent: role bindings and ACLs, and which of them follow from declarations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from policies.resource_changes import Change
from policies.resource_values import Facts
from policies.resources import Finding, Json, Reviewed, blocks

BINDING, ACL = "confluent_role_binding", "confluent_kafka_acl"
_IDENTITY = {
    BINDING: ("principal", "role_name", "crn_pattern"),
    ACL: ("principal", "permission", "operation", "resource_type", "resource_name", "pattern_type", "host"),
}
_READ, _OWN, _ADMIN = "DeveloperRead", "ResourceOwner", "CloudClusterAdmin"
_GROUPS = "frazil-"
"""The beginning of the names of Frazil's consumer groups."""
_ACCOUNT = re.compile(r"frazil-[a-z0-9-]+-(reader|manager)")
_PRINCIPAL = re.compile(r"User:\$\{(confluent_service_account\.[A-Za-z0-9_-]+)\.id\}")
_CLUSTER = r"\$\{(?P<cluster>(?:data\.)?confluent_kafka_cluster\.[A-Za-z0-9_-]+)"
_CLUSTER_ID = re.compile(_CLUSTER + r"\.id\}")
_FORMS = {
    # what of it is opened: the CRN that the stacks write, as an expression
    "administrator": re.compile(_CLUSTER + r"\.rbac_crn\}"),
    "kafka": re.compile(_CLUSTER + r"\.rbac_crn\}/kafka=\$\{(?P=cluster)\.id\}/(?P<kind>topic|group)=(?P<name>[^$]+)"),
    "registry": re.compile(
        r"\$\{(?P<registry>data\.confluent_schema_registry_cluster\.[A-Za-z0-9_-]+)\.resource_name\}"
        r"/(?P<kind>subject)=(?P<name>[^$]+)"
    ),
    "integration": re.compile(
        r"\$\{(?P<environment>(?:data\.)?confluent_environment\.[A-Za-z0-9_-]+)\.resource_name\}"
        r"/provider-integration=\$\{confluent_provider_integration\.[A-Za-z0-9_-]+\.id\}"
    ),
}
_TYPES = {
    "cluster": "confluent_kafka_cluster",
    "registry": "confluent_schema_registry_cluster",
    "environment": "confluent_environment",
}
_WAITED = re.compile(r"frazil-waited-[0-9a-f]+")
"""The name of no object: its binding opens nothing, and the provider waits for it (`stacks/stacks/reading_rights.py`)."""
_DO = "Have whoever owns the topics agree to it; give jobs no more than to read what they land"


def kafka_widened(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Yield new role bindings and ACLs that no declaration asks for, and denials that go."""
    changes = [each for each in reviewed.changes if each.type in _IDENTITY]
    had, has = (
        {_identity(each, side) for each in changes if (side := getattr(each, name))} for name in ("before", "after")
    )
    own = _Own(reviewed, facts)
    for each in changes:
        if _denies(each.before) and _identity(each, each.before) not in has:
            what = f"{each.before.get('principal')} is no longer denied {_described(each.type, each.before)}"
            yield Finding("policy_widened", each.address, what, _DO)
        if not each.after or _denies(each.after) or _identity(each, each.after) in had or own.is_expected(each):
            continue
        shown = {**reviewed.declared.get(each.address, {}), **each.after}
        verb = "now has the role" if each.type == BINDING else "now may"
        what = f"{shown.get('principal')} {verb} {_described(each.type, shown)}"
        if each.before and not _denies(each.before):
            what += f"; it {'had' if each.type == BINDING else 'might'} {_described(each.type, each.before)}"
        yield Finding("policy_widened", each.address, what, _DO)


class _Own:
    """The permissions that Frazil's stacks make, by their expressions: a plan alone does not say which cluster a CRN is of."""

    def __init__(self, reviewed: Reviewed, facts: Facts) -> None:
        self._reviewed, self._facts = reviewed, facts
        named: dict[str, list[str]] = {}
        for address, values in reviewed.declared.items():
            found = _ACCOUNT.fullmatch(str(values.get("display_name")))
            if found and address.startswith("confluent_service_account."):
                named.setdefault(found[1], []).append(address)
        self._accounts = {addresses[0]: what for what, addresses in named.items() if len(addresses) == 1}
        self._new = {each.address for each in reviewed.changes if each.verb == "create"}
        self._topics = {each.text("topic_name") for each in reviewed.of("confluent_kafka_topic")}
        self._subjects = {each.text("subject_name") for each in reviewed.of("confluent_schema")}

    def is_expected(self, change: Change) -> bool:
        """Return whether a permission follows from what is declared."""
        values = self._reviewed.declared.get(change.address, {})
        principal = _PRINCIPAL.fullmatch(str(values.get("principal")))
        account = self._accounts.get(principal[1], "") if principal else ""
        if not principal or not account or not _is_planned_as_declared(change, values):
            return False
        if change.type == ACL:
            return account == "reader" and self._is_read(values)
        return self._is_bound(account, values, is_new=principal[1] in self._new)

    def _is_read(self, values: Json) -> bool:
        """Return whether an ACL lets read a declared topic or those of a pattern, or use Frazil's consumer groups."""
        wanted = {"operation": "READ", "permission": "ALLOW", "host": "*"}
        places = [_CLUSTER_ID.fullmatch(str(each.get("id"))) for each in blocks(values.get("kafka_cluster"))]
        if any(values.get(name, "*" if name == "host" else None) != value for name, value in wanted.items()):
            return False
        if len(places) != 1 or places[0] is None or not self._is_only("cluster", places[0]["cluster"]):
            return False
        opened = tuple(values.get(name) for name in ("resource_type", "pattern_type", "resource_name"))
        declared = {"LITERAL": self._facts.topics, "PREFIXED": self._facts.prefixes}.get(str(opened[1]), ())
        return opened == ("GROUP", "PREFIXED", _GROUPS) or (opened[0] == "TOPIC" and opened[2] in declared)

    def _is_bound(self, account: str, values: Json, *, is_new: bool) -> bool:
        """Return whether a role binding is one of the reader's or the manager's. `is_new`: the plan creates the account."""
        crn, role = str(values.get("crn_pattern")), values.get("role_name")
        form, found = next(
            ((form, found) for form, each in _FORMS.items() if (found := each.fullmatch(crn))), ("", None)
        )
        if found is None or not all(
            self._is_only(what, at) for what, at in found.groupdict().items() if what in _TYPES
        ):
            return False
        if form in {"administrator", "integration"}:
            if form == "integration":
                return (account, role) == ("manager", _OWN)
            return (account, role, is_new) == ("manager", _ADMIN, True) and self._may_administer()
        kind, name = found["kind"], found["name"]
        if role == _READ and kind in {"topic", "subject"} and _WAITED.fullmatch(name):
            return True
        if account == "manager":
            made = self._topics if kind == "topic" else self._subjects if kind == "subject" else set()
            is_all = is_new and (kind, name) == ("subject", "*") and self._may_administer()
            return role == _OWN and (is_all or name in made or self._is_prefix(kind, name))
        return role == _READ and (
            (kind, name) == ("group", f"{_GROUPS}*")
            or self._is_prefix(kind, name)
            or (kind in {"topic", "subject"} and name.endswith("*") and name[:-1] in self._facts.prefixes)
            or name in {"topic": self._facts.topics, "subject": self._facts.subjects}.get(kind, ())
        )

    def _is_prefix(self, kind: str, name: str) -> bool:
        return kind in {"topic", "subject"} and name.endswith("*") and name[:-1] in self._facts.access.prefixes

    def _may_administer(self) -> bool:
        return self._facts.access.administers or any(self._reviewed.of(_TYPES["cluster"]))

    def _is_only(self, what: str, address: str) -> bool:
        """Return whether a stack has one object of a kind: with two, one of them is another environment's."""
        kind = _TYPES[what]
        return [each for each in self._reviewed.declared if each.removeprefix("data.").startswith(f"{kind}.")] == [
            address
        ]


def _is_planned_as_declared(change: Change, declared: Mapping[str, Any]) -> bool:
    """Return whether the plan knows no value that differs from the stack's; of an expression, the text after it."""
    return all(
        change.after.get(name) in (None, "")
        or change.after[name] == declared.get(name)
        or ("${" in (text := str(declared.get(name))) and str(change.after[name]).endswith(text.rpartition("}")[2]))
        for name in _IDENTITY[change.type]
    )


def _denies(values: Json) -> bool:
    return values.get("permission") == "DENY"


def _identity(change: Change, values: Json) -> tuple[object, ...]:
    cluster = [str(each.get("id")) for each in blocks(values.get("kafka_cluster"))]
    return (change.type, *cluster, *(values.get(name) for name in _IDENTITY[change.type]))


def _described(kind: str, values: Json) -> str:
    if kind == BINDING:
        return f"{values.get('role_name')} on {values.get('crn_pattern')}"
    pattern = "*" if values.get("pattern_type") == "PREFIXED" else ""
    return f"{values.get('operation')} {values.get('resource_type')} {values.get('resource_name')}{pattern}"
