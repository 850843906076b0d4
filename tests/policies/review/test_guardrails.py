"""Each guardrail's finding is in the review, under the rule's name, and refuses it."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest

from policies import rules
from policies.review.markdown.page import markdown
from policies.review.plan.plan_gaps import StackPlan
from policies.review.prices import price_table
from policies.review.review import Verdict, review
from policies.rules.kafka_permissions import kafka_widened
from tests.policies.review.planning import change, plan, stays
from tests.policies.reviewing import TODAY, allow, stack

FAILING: dict[str, tuple[dict[str, Any] | None, dict[str, Any]]] = {
    # rule: a stack, a plan
    "data_lost": (None, plan(change("aws_kms_key.k", "delete", {"description": "lake"}))),
    "wildcard_action": (stack(aws_iam_role_policy__p={"policy": allow(Action="s3:*", Resource="*")}), plan()),
}


@pytest.mark.parametrize("rule", FAILING)
def test_a_rules_finding_is_shown_and_refuses(rule: str) -> None:
    synthesised, planned = FAILING[rule]
    one = StackPlan(name="dev-foundation", synthesised=synthesised, plan=planned)
    made = review("dev", [one], prices=price_table(), today=TODAY)
    assert f"`{rule}`" in markdown(made)
    assert made.verdict is Verdict.REFUSED


def test_every_rule_of_the_modules_is_applied() -> None:
    written = {
        function
        for module in iter_modules(rules.__path__)
        for function in vars(import_module(f"{rules.__name__}.{module.name}")).values()
        if getattr(function, "__annotations__", {}).get("return") == "Iterator[Finding]"
    }
    public = {function for function in written if not function.__name__.startswith("_")}
    assert public == {*rules.RULES, kafka_widened}, "policy_widened applies the other one"


def test_what_a_service_fills_in_by_itself_is_not_held_against_the_declaration() -> None:
    """AWS gives an endpoint a policy that allows all, where none is declared; one that is declared is looked at."""
    open_to_all = allow(Action="*", Resource="*", Principal="*")
    endpoint = stays("aws_vpc_endpoint.s3", {"service_name": "s3", "policy": open_to_all})
    for declared_values, wanted in (
        ({"service_name": "s3"}, Verdict.NOTHING),
        ({"service_name": "s3", "policy": open_to_all}, Verdict.REFUSED),
    ):
        one = StackPlan(
            name="dev-foundation", synthesised=stack(aws_vpc_endpoint__s3=declared_values), plan=plan(endpoint)
        )
        assert review("dev", [one], prices=price_table(), today=TODAY).verdict is wanted
