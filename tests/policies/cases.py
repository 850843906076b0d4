"""Requests and policies by the hundred, made from a seed: what two evaluators must agree on."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from typing import Any

from tests.support.iam_evaluation import Decision, Request, evaluate

ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/job"
OTHER = f"arn:aws:iam::{ACCOUNT}:role/other"
ACTIONS = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
ACTION_PATTERNS = [*ACTIONS, "s3:*", "s3:Get*", "S3:getobject", "s3:?etObject", "s3:*Object", "*", "glue:*"]
RESOURCES = [
    f"arn:aws:s3:::tables/{key}" for key in ("a/data/1", "a/metadata/1", "ab/metadata/1", "a:b/data/1", "A/data/1")
]
RESOURCE_PATTERNS = [
    "arn:aws:s3:::tables/*", "arn:aws:s3:::tables/a/*", "arn:aws:s3:::tables/a*/metadata/*", "arn:aws:s3:::tables/?/data/1",
    "arn:aws:s3:::*/metadata/1", "arn:aws:s3:::tables/a/data/1", "arn:aws:s3:*:*:tables/*", "*", "arn:aws:s3:::other/*",
]  # fmt: skip
PRINCIPALS: list[Any] = ["*", {"AWS": "*"}, {"AWS": ROLE}, {"AWS": [OTHER, ROLE]}, {"AWS": OTHER}, {"AWS": ACCOUNT},
                         {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, {"Service": "emr-serverless.amazonaws.com"}]  # fmt: skip
CONTEXT: dict[str, list[str | list[str]]] = {
    "aws:SecureTransport": ["true", "false"],
    "aws:SourceAccount": [ACCOUNT, "999999999999"],
    "aws:SourceArn": [f"arn:aws:scheduler:eu-west-1:{ACCOUNT}:schedule/ours/one", f"arn:aws:scheduler:eu-west-1:{ACCOUNT}:schedule/theirs/one"],
    "aws:MultiFactorAuthAge": ["5", "500", "5.0"],
    "aws:CalledVia": [["athena.amazonaws.com"], ["athena.amazonaws.com", "glue.amazonaws.com"], ["glue.amazonaws.com"]],
    "aws:userid": ["AROA:one", "aroa:ONE"],
}  # fmt: skip
CONDITIONS: list[tuple[str, str, Any]] = [
    *((f"{operator}{lenient}", "aws:SourceAccount", value)
      for operator in ("StringEquals", "StringNotEquals") for lenient in ("", "IfExists") for value in (ACCOUNT, [ACCOUNT, "1"])),
    *((f"{operator}{lenient}", "aws:SourceArn", f"arn:aws:scheduler:*:{ACCOUNT}:schedule/ours/*")
      for operator in ("ArnLike", "ArnEquals", "ArnNotLike", "StringLike", "StringNotLike") for lenient in ("", "IfExists")),
    *((f"Bool{lenient}", "aws:SecureTransport", value) for lenient in ("", "IfExists") for value in ("true", "false")),
    *((f"Numeric{operator}", "aws:MultiFactorAuthAge", value)
      for operator in ("Equals", "NotEquals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals") for value in ("5", "100")),
    *(("Null", key, value) for key in ("aws:SourceAccount", "aws:CalledVia") for value in ("true", "false")),
    *((f"{quantifier}:{operator}", "aws:CalledVia", ["athena.amazonaws.com"])
      for quantifier in ("ForAllValues", "ForAnyValue") for operator in ("StringEquals", "StringNotEquals", "StringLike")),
    ("StringEquals", "aws:userid", "AROA:one"), ("StringEqualsIgnoreCase", "AWS:UserId", "AROA:one"),
    ("StringLike", "aws:userid", "AROA:*"), ("StringNotEqualsIgnoreCase", "aws:userid", "AROA:one"),
]  # fmt: skip


def cases(count: int, *, seed: int) -> list[dict[str, Any]]:
    """So many requests, each with policies that touch it more often than not."""
    chance = random.Random(seed)
    return [_case(chance) for _ in range(count)]


def decided(case: dict[str, Any]) -> Decision:
    """Our evaluator's decision."""
    request = Request(
        action=case["action"], resource=case["resource"], principal=case["principal"], context=case["context"]
    )
    return evaluate(request, case["identity"], case["policy"])


def digest(made: Sequence[dict[str, Any]]) -> str:
    """What the cases are, in short: recorded verdicts are those of these cases."""
    return hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()


def _case(chance: random.Random) -> dict[str, Any]:
    has_policy = chance.random() < 0.5
    present = [key for key in CONTEXT if chance.random() < 0.6]
    return {
        "principal": ROLE,
        "account": ACCOUNT,
        "action": chance.choice(ACTIONS),
        "resource": chance.choice(RESOURCES),
        "context": {key: chance.choice(CONTEXT[key]) for key in present},
        "identity": [_document(chance, named=False) for _ in range(chance.randint(0 if has_policy else 1, 2))],
        "policy": _document(chance, named=True) if has_policy else None,
    }


def _document(chance: random.Random, *, named: bool) -> dict[str, Any]:
    return {
        "Version": "2012-10-17",
        "Statement": [_statement(chance, named=named) for _ in range(chance.randint(1, 3))],
    }


def _statement(chance: random.Random, *, named: bool) -> dict[str, Any]:
    statement: dict[str, Any] = {"Effect": chance.choices(["Allow", "Deny"], [4, 1])[0]}
    if named:
        statement["Principal"] = chance.choice(PRINCIPALS)
    negated = "Not" if chance.random() < 0.15 else ""
    statement[f"{negated}Action"] = chance.sample(ACTION_PATTERNS, chance.randint(1, 3))
    negated = "Not" if chance.random() < 0.15 else ""
    statement[f"{negated}Resource"] = chance.sample(RESOURCE_PATTERNS, chance.randint(1, 3))
    conditions: dict[str, dict[str, Any]] = {}
    for operator, key, value in chance.sample(CONDITIONS, chance.choice([0, 0, 1, 1, 2])):
        conditions.setdefault(operator, {})[key] = value
    return {**statement, "Condition": conditions} if conditions else statement
