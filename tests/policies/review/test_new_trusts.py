"""Who may assume a role that a plan creates: nobody was in before, so nothing is widened, and still nobody else may come in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policies.documents import fill
from policies.resource_values import DeclaredAccess
from tests.policies.example import ACCOUNT, CONFLUENT, policy
from tests.policies.review.planning import change, plan, reviewed
from tests.policies.reviewing import stack

ANALYSTS, VENDOR = "arn:aws:iam::111111111111:role/analysts", "arn:aws:iam::222222222222:user/abc1-s"
ACCESS = DeclaredAccess(
    principals=frozenset({ANALYSTS, VENDOR}),
    external_ids={VENDOR: "AB12345"},
    subjects=frozenset({"repo:shop/lake:environment:deploy-dev"}),
)
ROLE = "aws_iam_role.reader"


def dangers(*trusts: Any, access: DeclaredAccess = ACCESS) -> list[str]:
    """The dangers of a new role with the statements of these trusts."""
    trust = json.dumps({"Statement": [statement for each in trusts for statement in each["Statement"]]})
    declared = {"name": "frazil-dev-reader", "assume_role_policy": trust}
    is_known = "${" not in trust
    after = declared if is_known else {"name": declared["name"]}
    made = change(ROLE, "create", None, after, unknown={} if is_known else {"assume_role_policy": True})
    found = reviewed(plan(made), synthesised=stack(aws_iam_role__reader=declared), access=access).dangers
    assert {(each.rule, each.resource) for each in found} <= {("policy_widened", ROLE)}
    return [each.what for each in found]


def github(environment: str = "deploy-dev", repository: str = "shop/lake") -> dict[str, Any]:
    return fill("github_trust", {"account": ACCOUNT, "repository": repository, "github_environment": environment})


def external(principal: str, external_id: str) -> dict[str, Any]:
    return fill("external_trust", {"principal": principal, "external_id": external_id})


def named(*principals: str) -> dict[str, Any]:
    return fill("account_trust", {"principals": list(principals)})


def test_declared_principals_services_and_workflows_may_come_in() -> None:
    assert dangers(named(ANALYSTS)) == []
    assert dangers(named(ANALYSTS), external(VENDOR, "AB12345")) == []
    assert dangers(policy("job_trust")) == dangers(policy("scheduler_trust")) == dangers(policy("function_trust")) == []
    assert dangers(github()) == []


def test_the_role_of_the_integration_of_the_same_stack_may_come_in() -> None:
    integration = "${confluent_provider_integration.tableflow.aws[0]."
    values = {"integration_role": f"{integration}iam_role_arn}}", "external_id": f"{integration}external_id}}"}
    assert dangers(fill("confluent_trust", values)) == []
    [what] = dangers(fill("confluent_trust", {**values, "external_id": "mine"}))
    assert "without an external id" in what


@pytest.mark.parametrize(
    "principal", ["arn:aws:iam::999999999999:root", "999999999999", "arn:aws:iam::111111111111:role/other", CONFLUENT]
)
def test_a_principal_that_is_not_declared_is_told(principal: str) -> None:
    [what] = dangers(named(ANALYSTS, principal))
    assert what == f"a new role lets {principal} in, and the deployment declares no such principal"
    assert dangers(named(ANALYSTS), external(principal, "AB12345")) == [what], "an external id does not say who it is"
    assert len(dangers(named(ANALYSTS), access=DeclaredAccess())) == 1


@pytest.mark.parametrize("trust", [named(VENDOR), external(VENDOR, "another")], ids=["none", "another"])
def test_a_declared_principal_that_needs_an_external_id_is_told_without_it(trust: dict[str, Any]) -> None:
    assert dangers(trust) == [f"a new role lets {VENDOR} in without an external id that is declared for it"]


@pytest.mark.parametrize(
    "trust", [github("deploy-prod"), github(repository="evil/lake")], ids=["environment", "repository"]
)
def test_a_workflow_that_is_not_declared_is_told(trust: dict[str, Any]) -> None:
    [what] = dangers(trust)
    both = json.loads(json.dumps(trust))
    [statement] = both["Statement"]
    subject = "token.actions.githubusercontent.com:sub"
    statement["Condition"]["StringEquals"][subject] = [
        *ACCESS.subjects,
        statement["Condition"]["StringEquals"][subject],
    ]
    assert dangers(both) == [what]
    assert "token.actions.githubusercontent.com" in what


def test_a_trust_that_cannot_be_read_is_told() -> None:
    made = change(ROLE, "create", None, {"name": "x"}, unknown={"assume_role_policy": True})
    [danger] = reviewed(plan(made), access=ACCESS).dangers
    assert danger.what == "assume_role_policy is known only after it is applied, so its permissions cannot be reviewed"
