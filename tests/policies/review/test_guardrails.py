"""Each guardrail's finding is in the review, under the rule's name, and refuses it."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from policies import rules
from policies.review.markdown.page import markdown
from policies.review.review import Verdict
from policies.rules.kafka_permissions import kafka_widened
from tests.policies.review.planning import change, plan, reviewed, stays
from tests.policies.reviewing import allow, stack


def test_a_rules_finding_is_shown_and_refuses() -> None:
    open_to_all = stack(aws_iam_role_policy__p={"policy": allow(Action="s3:*", Resource="*")})
    lost = change("aws_kms_key.k", "delete", {"description": "lake"})
    for rule, made in (
        ("data_lost", reviewed(plan(lost))),
        ("wildcard_action", reviewed(plan(), synthesised=open_to_all)),
    ):
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
        made = reviewed(plan(endpoint), synthesised=stack(aws_vpc_endpoint__s3=declared_values))
        assert made.verdict is wanted
