"""IAM's logic where `test_agreement.py` has no case: trusts, keys, boundaries, and what is not known."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.iam_conditions import Unsupported, matches_arn
from tests.support.iam_evaluation import Request, Verdict, evaluate

ROLE = "arn:aws:iam::123456789012:role/job"
GET = Request(action="s3:GetObject", resource="arn:aws:s3:::b/k", principal=ROLE)


def statement(effect: str = "Allow", **others: Any) -> dict[str, Any]:
    return {"Sid": f"{effect}It", "Effect": effect, "Action": "s3:GetObject", "Resource": "arn:aws:s3:::b/*", **others}


def document(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def test_a_role_is_assumed_by_its_trust_only() -> None:
    asked = Request(action="sts:AssumeRole", resource="arn:aws:iam::123456789012:role/other", principal=ROLE)
    may = document({"Sid": "May", "Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"})
    nobody = document(
        {
            "Sid": "T",
            "Effect": "Allow",
            "Action": "sts:AssumeRole",
            "Principal": {"AWS": "arn:aws:iam::123456789012:role/x"},
        }
    )
    assert not evaluate(asked, [may], nobody).is_allowed


def test_a_key_is_used_by_its_policys_leave_only() -> None:
    asked = Request(action="kms:Decrypt", resource="arn:aws:kms:eu-central-1:123456789012:key/1", principal=ROLE)
    may = document({"Sid": "May", "Effect": "Allow", "Action": "kms:Decrypt", "Resource": "*"})
    ours = document(
        {"Sid": "K", "Effect": "Allow", "Action": "kms:Decrypt", "Resource": "*", "Principal": {"AWS": "123456789012"}}
    )
    assert not evaluate(asked, [may]).is_allowed
    assert evaluate(asked, [may], ours).is_allowed
    assert not evaluate(asked, [], ours).is_allowed


@pytest.mark.parametrize(
    "odd",
    [
        statement(Condition={"DateLessThan": {"aws:CurrentTime": "2026-01-01"}}),
        statement(Condition={"StringEqual": {"aws:userid": "x"}}),
        statement(Condition={"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}),
        statement(Resource="arn:aws:s3:::b/${aws:username}/*"),
        statement(Resource="arn:aws:s3:*:b/*"),
        statement(Effect="allow"),
        statement(Conditions={}),
        statement(Principal="*"),
    ],
    ids=str,
)
def test_what_is_not_known_is_an_error_and_no_answer(odd: dict[str, Any]) -> None:
    with pytest.raises(Unsupported):
        evaluate(GET, [document(odd)])


@pytest.mark.parametrize(
    ("pattern", "arn", "is_match"),
    [
        ("arn:aws:s3:::b/*", "arn:aws:s3:::b/a/b:c", True),
        ("arn:aws:glue:*:1:table/*", "arn:aws:glue:eu:1:table/d/t", True),
        ("arn:aws:glue:*", "arn:aws:glue:eu:1:table/d/t", True),
        ("arn:aws:s3:*:*:b/k", "arn:aws:s3:::b/k", True),
        ("arn:aws:*:::b/k", "arn:aws:s3:eu::b/k", False),  # a star does not reach over a colon here
        ("arn:aws:s3:::b/k", "*", False),
        ("arn:aws:s3:::b?/k", "arn:aws:s3:::b1/k", True),
        ("arn:aws:s3:::B/*", "arn:aws:s3:::b/k", False),
        ("*", "anything", True),
    ],
)
def test_a_star_stays_within_its_part_of_an_arn(pattern: str, arn: str, is_match: bool) -> None:
    assert matches_arn(pattern, arn) is is_match


def test_a_boundary_must_allow_too_and_its_denial_decides() -> None:
    request = Request(action="s3:GetObject", resource="arn:aws:s3:::b/k")
    allow, deny = (
        {"Statement": {"Effect": effect, "Action": "s3:GetObject", "Resource": "*"}} for effect in ("Allow", "Deny")
    )
    other = {"Statement": {"Effect": "Allow", "Action": "s3:PutObject", "Resource": "*"}}
    assert evaluate(request, [allow], boundary=allow).is_allowed
    assert evaluate(request, [], boundary=allow).verdict is Verdict.IMPLICITLY_DENIED
    assert evaluate(request, [allow], boundary=other).verdict is Verdict.IMPLICITLY_DENIED
    assert evaluate(request, [allow], boundary=deny).verdict is Verdict.EXPLICITLY_DENIED
