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
from tests.policies.review.cases import closed
from tests.policies.review.planning import change, plan, stays
from tests.policies.reviewing import TODAY, allow, stack

FAILING: dict[str, tuple[dict[str, Any] | None, dict[str, Any]]] = {
    # rule: a stack, a plan
    "data_lost": (None, plan(change("aws_kms_key.k", "delete", {"description": "lake"}))),
    "unencrypted": (stack(aws_sns_topic__t={"name": "x"}), plan()),
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


def test_a_bucket_that_is_as_it_must_be_is_not_told() -> None:
    bucket = change("aws_s3_bucket.tables", "create", None, {"bucket": "b"})
    assert (
        review("dev", [StackPlan(name="x", plan=plan(bucket, *closed("b")))], prices=price_table(), today=TODAY).dangers
        == ()
    )


def test_what_the_plan_does_not_know_yet_deep_inside_the_stack_tells() -> None:
    """The key of a bucket's encryption is made by the same plan, so its ARN is known later."""
    by_key = {"sse_algorithm": "aws:kms", "kms_master_key_id": "${aws_kms_key.k.arn}"}
    encryption = "aws_s3_bucket_server_side_encryption_configuration"
    synthesised = stack(
        aws_s3_bucket__tables={"bucket": "b"},
        **{f"{encryption}__x": {"bucket": "b", "rule": [{"apply_server_side_encryption_by_default": by_key}]}},
    )
    known = {"bucket": "b", "rule": [{"apply_server_side_encryption_by_default": [{"sse_algorithm": "aws:kms"}]}]}
    others = [each for each in closed("b") if encryption not in each["address"]]
    made = plan(
        change("aws_s3_bucket.tables", "create", None, {"bucket": "b"}),
        change(f"{encryption}.x", "create", None, known,
               unknown={"rule": [{"apply_server_side_encryption_by_default": [{"kms_master_key_id": True}]}]}),
        *others,
    )  # fmt: skip
    one = StackPlan(name="dev-foundation", synthesised=synthesised, plan=made)
    assert review("dev", [one], prices=price_table(), today=TODAY).dangers == ()


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
