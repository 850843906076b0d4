"""Role bindings and ACLs are permissions: those that a deployment makes for its declarations are expected, and no others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.declaration import canonical, each_topic
from frazil.declaration.documents.document import document
from policies.resource_values import DeclaredAccess, Facts
from policies.resources import read, together
from policies.rules.new_permissions import policy_widened
from tests.policies.review.planning import change, plan
from tests.policies.reviewing import TODAY, stack

CLUSTER, REGISTRY = "confluent_kafka_cluster.cluster", "data.confluent_schema_registry_cluster.registry"
READER, MANAGER = (f"User:${{confluent_service_account.{name}.id}}" for name in ("reader", "manager"))
ON_KAFKA = f"${{{CLUSTER}.rbac_crn}}/kafka=${{{CLUSTER}.id}}"
ON_REGISTRY = f"${{{REGISTRY}.resource_name}}"
IS = "crn://confluent.cloud/organization=o/environment=env-1/cloud-cluster=lkc-1"


def binding(role: str, crn: str, principal: str = READER) -> dict[str, Any]:
    return {"principal": principal, "role_name": role, "crn_pattern": crn}


def acl(**changed: Any) -> dict[str, Any]:
    told = {
        "kafka_cluster": {"id": f"${{{CLUSTER}.id}}"},
        "principal": READER,
        "host": "*",
        "operation": "READ",
        "permission": "ALLOW",
        "pattern_type": "LITERAL",
        "resource_type": "TOPIC",
        "resource_name": "flights",
    }
    return {**told, **changed}


def declared(values: dict[str, Any], **more: dict[str, Any]) -> dict[str, Any]:
    """A stack of Frazil's accounts, its cluster and one permission."""
    kind = "acl" if "operation" in values else "binding"
    made = {
        "confluent_service_account__reader": {"display_name": "frazil-dev-reader"},
        "confluent_service_account__manager": {"display_name": "frazil-dev-manager"},
        "confluent_kafka_topic__t": {"topic_name": "flights"},
        "confluent_schema__s": {"subject_name": "flights-value"},
        "confluent_kafka_cluster__cluster": {"display_name": "frazil-dev"},
        "confluent_environment__environment": {"display_name": "frazil-dev"},
        "confluent_provider_integration__i": {"display_name": "frazil-dev"},
        f"confluent_{'kafka_acl' if kind == 'acl' else 'role_binding'}__x": values,
        **more,
    }
    data = {"confluent_schema_registry_cluster": {"registry": {"environment": {"id": "env-1"}}}}
    return {**stack(**made), "data": data}


def planned(values: dict[str, Any], before: dict[str, Any] | None = None, verb: str = "create") -> dict[str, Any]:
    """The change of the permission, whose references a plan of what is deployed knows."""
    address = f"confluent_{'kafka_acl' if 'operation' in values else 'role_binding'}.x"
    after = json.loads(
        json.dumps(values)
        .replace(READER, "User:sa-reader")
        .replace(MANAGER, "User:sa-manager")
        .replace(ON_KAFKA, f"{IS}/kafka=lkc-1")
        .replace(f"${{{CLUSTER}.rbac_crn}}", IS)
        .replace(ON_REGISTRY, "crn://confluent.cloud/organization=o/environment=env-1/schema-registry=lsrc-1")
    )
    return change(address, verb, before, after)


PIPELINES = {
    "version": 2,
    "pipelines": [
        {
            "name": "flights",
            "topic": {"name": "flights", "value": {"subject_strategy": "topic"}},
            "table": {"identifier": "n.f"},
        }
    ],
}
BY_RECORD = json.loads(json.dumps(PIPELINES).replace('"subject_strategy": "topic"', '"subject_strategy": "record"'))


def widened(*documents: Any, access: DeclaredAccess | None = None) -> list[str]:
    reviewed = together(read(json.loads(json.dumps(each))) for each in documents)
    facts = Facts(reviewed, TODAY) if access is None else Facts(reviewed, TODAY, access)
    return [each.what for each in sorted(policy_widened(reviewed, facts))]


def told_of(values: dict[str, Any], *others: Any, pipelines: Any = PIPELINES, **more: Any) -> list[str]:
    """What the rule has against a permission that is created."""
    access = more.pop("access", None)
    return widened(declared(values, **more), plan(planned(values), *others), pipelines, access=access)


NEW_MANAGER = change("confluent_service_account.manager", "create", None, {"display_name": "frazil-dev-manager"})


# ── What a deployment makes for its declarations ────────────────────────────────────────────────
@pytest.mark.parametrize(
    "values",
    [
        acl(),
        acl(resource_type="GROUP", pattern_type="PREFIXED", resource_name="frazil-"),
        binding("DeveloperRead", f"{ON_KAFKA}/topic=flights"),
        binding("DeveloperRead", f"{ON_KAFKA}/group=frazil-*"),
        binding("DeveloperRead", f"{ON_REGISTRY}/subject=flights-value"),
        binding("DeveloperRead", f"{ON_REGISTRY}/subject=flights-key"),
        binding("DeveloperRead", f"{ON_REGISTRY}/subject=frazil-waited-b06f26afe824467d"),
        binding("DeveloperRead", f"{ON_KAFKA}/topic=frazil-waited-b06f26afe824467d", MANAGER),
        binding("ResourceOwner", f"{ON_KAFKA}/topic=flights", MANAGER),
        binding("ResourceOwner", f"{ON_REGISTRY}/subject=flights-value", MANAGER),
        binding(
            "ResourceOwner",
            "${confluent_environment.environment.resource_name}/provider-integration=${confluent_provider_integration.i.id}",
            MANAGER,
        ),
    ],
    ids=str,
)
def test_the_permissions_that_declarations_need_are_expected(values: dict[str, Any]) -> None:
    assert told_of(values) == []


@pytest.mark.parametrize(
    "values",
    [
        acl(pattern_type="PREFIXED", resource_name="shop."),
        binding("DeveloperRead", f"{ON_KAFKA}/topic=shop.*"),
        binding("DeveloperRead", f"{ON_REGISTRY}/subject=shop.*"),
    ],
    ids=str,
)
def test_rights_by_the_prefix_of_a_declared_pattern_are_expected_and_no_others(values: dict[str, Any]) -> None:
    pattern = each_topic(r"shop\..*", table="shop.{topic}", value="avro")
    with_pattern = json.loads(canonical(document([], [pattern])))
    assert told_of(values, pipelines=with_pattern) == []
    assert len(told_of(values)) == 1
    for shorter in ("shop", "s", ""):
        wider = json.loads(json.dumps(values).replace("shop.", shorter))
        assert len(told_of(wider, pipelines=with_pattern)) == 1
    manager = {**values, "principal": MANAGER}
    assert len(told_of(manager, pipelines=with_pattern)) == 1
    unread = json.loads(json.dumps(with_pattern).replace("shop\\\\..*", "("))
    assert len(told_of(values, pipelines=unread)) == 1


def test_the_subjects_of_records_are_all_subjects() -> None:
    every = binding("DeveloperRead", f"{ON_REGISTRY}/subject=*")
    assert told_of(every, pipelines=BY_RECORD) == []
    assert len(told_of(every)) == 1


@pytest.mark.parametrize("place", [f"{ON_KAFKA}/topic", f"{ON_REGISTRY}/subject"])
def test_a_prefix_is_expected_if_the_deployment_declares_it(place: str) -> None:
    values = binding("DeveloperRead", f"{place}=fl.*")
    assert told_of(values, access=DeclaredAccess(prefixes=frozenset({"fl."}))) == []
    assert len(told_of(values, access=DeclaredAccess(prefixes=frozenset({"f."})))) == 1
    assert len(told_of(values)) == 1


def test_a_new_manager_administers_the_cluster_of_its_stack() -> None:
    admin = binding("CloudClusterAdmin", f"${{{CLUSTER}.rbac_crn}}", MANAGER)
    owner = binding("ResourceOwner", f"{ON_REGISTRY}/subject=*", MANAGER)
    for values in (admin, owner):
        assert told_of(values, NEW_MANAGER) == []
        assert len(told_of(values)) == 1, "an account that exists gets more than it had"


def test_a_new_manager_administers_a_cluster_of_others_only_if_that_is_declared() -> None:
    values = binding("CloudClusterAdmin", f"${{data.{CLUSTER}.rbac_crn}}", MANAGER)
    [made] = [declared(values)]
    made["data"]["confluent_kafka_cluster"] = {"cluster": {"id": "lkc-1"}}
    del made["resource"]["confluent_kafka_cluster"]
    changes = plan(planned(values), NEW_MANAGER)
    assert widened(made, changes, PIPELINES, access=DeclaredAccess(administers=True)) == []
    assert len(widened(made, changes, PIPELINES)) == 1


# ── Everything else ─────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    "values",
    [
        acl(principal="User:*", operation="ALL", resource_name="*"),
        acl(principal="User:sa-9"),
        acl(principal=MANAGER),
        acl(resource_name="salaries"),
        acl(resource_name="*"),
        acl(resource_name="f", pattern_type="PREFIXED"),
        *(acl(operation=each) for each in ("ALL", "WRITE", "DESCRIBE", "ALTER")),
        acl(resource_type="CLUSTER", resource_name="kafka-cluster"),
        acl(resource_type="GROUP", resource_name="frazil-", pattern_type="LITERAL"),
        acl(resource_type="GROUP", resource_name="f", pattern_type="PREFIXED"),
        acl(kafka_cluster={"id": "lkc-2"}),
        binding("CloudClusterAdmin", f"${{{CLUSTER}.rbac_crn}}", "User:u-9"),
        binding("CloudClusterAdmin", f"${{{CLUSTER}.rbac_crn}}"),
        binding("EnvironmentAdmin", f"{ON_KAFKA}/topic=flights"),
        *(
            binding(each, f"{ON_KAFKA}/topic=flights")
            for each in ("DeveloperWrite", "DeveloperManage", "ResourceOwner")
        ),
        binding("DeveloperRead", f"{ON_KAFKA}/topic=flights", "User:sa-9"),
        binding("DeveloperRead", f"{ON_KAFKA}/topic=salaries"),
        binding("DeveloperRead", f"{ON_KAFKA}/topic=*"),
        binding("DeveloperRead", f"{ON_KAFKA}/group=*"),
        binding("DeveloperRead", f"{ON_REGISTRY}/subject=salaries-value"),
        binding("DeveloperRead", "crn://confluent.cloud/organization=o/environment=env-2/kafka=lkc-9/topic=flights"),
        binding("DeveloperRead", f"${{{CLUSTER}.rbac_crn}}/kafka=lkc-9/topic=flights"),
        binding(
            "DeveloperRead", f'${{replace({CLUSTER}.rbac_crn, "lkc-1", "lkc-9")}}/kafka=${{{CLUSTER}.id}}/topic=flights'
        ),
        binding("DeveloperWrite", f"{ON_KAFKA}/topic=frazil-waited-b06f26afe824467d"),
        binding("ResourceOwner", f"{ON_KAFKA}/topic=salaries", MANAGER),
        binding("ResourceOwner", f"{ON_REGISTRY}/subject=salaries-value", MANAGER),
        binding("ResourceOwner", f"{ON_KAFKA}/group=frazil-*", MANAGER),
        binding("EnvironmentAdmin", "${confluent_environment.environment.resource_name}", MANAGER),
    ],
    ids=str,
)
def test_any_other_permission_is_told(values: dict[str, Any]) -> None:
    assert len(told_of(values, NEW_MANAGER)) == 1


def test_what_is_told_names_who_may_do_what() -> None:
    assert told_of(acl(principal="User:*", operation="ALL", resource_name="*")) == ["User:* now may ALL TOPIC *"]
    assert told_of(acl(principal="User:*", pattern_type="PREFIXED")) == ["User:* now may READ TOPIC flights*"]
    assert told_of(binding("CloudClusterAdmin", f"${{{CLUSTER}.rbac_crn}}", "User:u-9")) == [
        f"User:u-9 now has the role CloudClusterAdmin on {IS}"
    ]


@pytest.mark.parametrize("verb", ["update", "replace"])
def test_a_binding_that_turns_into_a_wider_one_is_told(verb: str) -> None:
    before = {
        "principal": "User:sa-reader",
        "role_name": "DeveloperRead",
        "crn_pattern": f"{IS}/kafka=lkc-1/topic=flights",
    }
    after = binding("CloudClusterAdmin", f"${{{CLUSTER}.rbac_crn}}")
    [what] = widened(declared(after), plan(planned(after, before, verb)), PIPELINES)
    assert (
        what
        == f"User:sa-reader now has the role CloudClusterAdmin on {IS}; it had DeveloperRead on {before['crn_pattern']}"
    )


def test_a_permission_of_before_is_not_new() -> None:
    """Not one that stays, not one with another setting of the provider, not one at another address."""
    held = {"principal": "User:u-9", "role_name": "EnvironmentAdmin", "crn_pattern": IS}
    at, other = "confluent_role_binding.x", "confluent_role_binding.y"
    assert widened(plan(change(at, "update", held, {**held, "disable_wait_for_ready": True}))) == []
    assert widened(plan(change(at, "delete", held), change(other, "create", None, held))) == []
    assert widened(plan(change(at, "no-op", held, held))) == []
    assert widened(plan(change(at, "delete", held))) == []


def test_a_denial_that_goes_is_told_and_a_new_one_is_not() -> None:
    denial = {
        **acl(),
        "principal": "User:*",
        "permission": "DENY",
        "operation": "WRITE",
        "kafka_cluster": [{"id": "lkc-1"}],
    }
    at = "confluent_kafka_acl.x"
    assert widened(plan(change(at, "create", None, denial))) == []
    gone = ["User:* is no longer denied WRITE TOPIC flights"]
    assert widened(plan(change(at, "delete", denial))) == gone
    assert gone[0] in widened(plan(change(at, "replace", denial, {**denial, "permission": "ALLOW"})))
    assert widened(plan(change(at, "delete", denial), change(f"{at}y", "create", None, denial))) == []


def test_a_second_account_of_the_name_or_a_second_cluster_makes_nothing_evident() -> None:
    second = {"confluent_service_account__other": {"display_name": "frazil-dev2-reader"}}
    assert len(told_of(acl(), **second)) == 1
    on_topic = binding("DeveloperRead", f"{ON_KAFKA}/topic=flights")
    assert len(told_of(on_topic, confluent_kafka_cluster__other={"display_name": "other"})) == 1
    assert len(told_of(acl(), confluent_kafka_cluster__other={"display_name": "other"})) == 1


def test_a_permission_on_a_topic_that_no_document_declares_is_told() -> None:
    assert len(widened(declared(acl()), plan(planned(acl())))) == 1


def test_a_permission_whose_plan_has_another_object_than_its_stack_is_told() -> None:
    values = binding("DeveloperRead", f"{ON_KAFKA}/topic=flights")
    other = planned({**values, "crn_pattern": f"{IS}/kafka=lkc-1/topic=salaries"})
    assert len(widened(declared(values), plan(other), PIPELINES)) == 1
