"""What things are called."""

import re

import pytest

from infra.names import Names
from stacks.spec.deployments import DEPLOYMENTS

LONGEST = Names(environment="a" * 12, account="123456789012", region="ap-southeast-1")
BUCKET = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")


@pytest.mark.parametrize("what", ["tables", "tableflow", "artifacts", "logs", "state"])
def test_a_buckets_name_is_one_that_s3_takes(what: str) -> None:
    for names in (LONGEST, *(each.names for each in DEPLOYMENTS.values())):
        assert BUCKET.fullmatch(names.bucket(what)), names.bucket(what)


@pytest.mark.parametrize("what", ["ingest", "maintain", "scheduler", "tableflow"])
def test_a_roles_arn_ends_with_its_name(what: str) -> None:
    assert LONGEST.role_arn(what) == f"arn:aws:iam::123456789012:role/{LONGEST.role(what)}"
    assert len(LONGEST.role(what)) <= 64
