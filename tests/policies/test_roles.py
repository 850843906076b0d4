"""Who may do what: evaluated, not eyeballed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policies.table_resources import Places
from tests.policies.example import INGEST, NAMESPACES, PLACES, policy
from tests.policies.permission_cases import GLUE, TABLES, Asked, glue, may, may_not
from tests.support.iam_evaluation import Request, Verdict, evaluate

CALLS: dict[str, list[tuple[str, str]]] = json.loads(Path(__file__).with_name("calls.json").read_text())
NOT_RECORDED = {
    "ingest_job": {
        "s3:ListBucket": "without it, S3 answers 'forbidden' where the job asks whether a file is there",
        "s3:AbortMultipartUpload": "files larger than 32 MB that failed half-way",
    },
    "maintenance_job": {"s3:AbortMultipartUpload": "files larger than 32 MB that failed half-way"},
    "reader": {
        "s3:ListBucket": "without it, S3 answers 'forbidden' where a lost file is to be told",
        "glue:GetDatabase": "engines list what there is",
        "glue:GetTables": "engines list what there is",
    },
}


OTHER_DATABASES = ("hr", "shop2", "sho")
"""Names beside those of the example, whose tables no role of it may touch."""


def decided(asked: Asked, places: Places = PLACES) -> Verdict:
    return evaluate(request_of(asked), [policy(asked.role, places)], asked.resources_policy).verdict


def request_of(asked: Asked) -> Request:
    return Request(action=asked.action, resource=asked.resource, context=asked.context, principal=INGEST)


@pytest.mark.parametrize("asked", may(), ids=str)
def test_a_role_may_do_its_work(asked: Asked) -> None:
    assert decided(asked) is Verdict.ALLOWED
    assert decided(asked, NAMESPACES) is Verdict.ALLOWED


@pytest.mark.parametrize("asked", may_not(), ids=str)
def test_a_role_is_denied_what_belongs_to_another(asked: Asked) -> None:
    assert decided(asked) is Verdict.IMPLICITLY_DENIED
    # With namespaces, a role may do to each table of a database what it may do to its own. Tableflow's names topics.
    is_of_its_database = asked.role != "confluent_provider" and "refunds" in f"{asked.resource} {asked.context}"
    assert decided(asked, NAMESPACES) is (Verdict.ALLOWED if is_of_its_database else Verdict.IMPLICITLY_DENIED)


@pytest.mark.parametrize("places", [PLACES, NAMESPACES], ids=["table", "namespace"])
@pytest.mark.parametrize("role", ["ingest_job", "maintenance_job", "reader", "reconciler"])
def test_a_role_touches_no_table_of_another_database(role: str, places: Places) -> None:
    for database in OTHER_DATABASES:
        prefix = f"lake/{database}.db"
        for key in ("orders/data/1.parquet", "orders/metadata/1.json", "frazil_probe_1/metadata/1.json", "metadata/1"):
            for action in ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"):
                asked = Asked(role, action, f"{TABLES}/{prefix}/{key}", {})
                assert decided(asked, places) is Verdict.IMPLICITLY_DENIED, asked
        for action in ("glue:GetTable", "glue:CreateTable", "glue:UpdateTable", "glue:DeleteTable"):
            assert decided(Asked(role, action, glue(f"{database}/orders"), {}), places) is Verdict.IMPLICITLY_DENIED
        listed = Asked(role, "s3:ListBucket", TABLES, {"s3:prefix": f"{prefix}/orders/"})
        assert decided(listed, places) is Verdict.IMPLICITLY_DENIED


def test_with_namespaces_the_ingest_job_still_deletes_no_data_file() -> None:
    for key in ("orders/data/1.parquet", "metadata/data/1.parquet", "orders/data/day=1/metadata.parquet"):
        asked = Asked("ingest_job", "s3:DeleteObject", f"{TABLES}/lake/shop.db/{key}", {})
        assert decided(asked, NAMESPACES) is Verdict.IMPLICITLY_DENIED


def requests(role: str) -> list[Request]:
    """What the role was recorded to ask for, in the names of the example. Glue asks for the catalog and database too."""
    made = []
    for action, what in CALLS[role]:
        named = (
            what.replace("<table>", "orders")
            .replace("<dead letters>", "orders__dead_letters")
            .replace("<ticket>", "1f")
        )
        named = named.replace("<file>", "file")
        if action.startswith("glue:"):
            kind = "table" if "/" in named else "database"
            arns = [f"{GLUE}:{kind}/{named}", f"{GLUE}:database/{named.partition('/')[0]}", f"{GLUE}:catalog"]
            made += [Request(action=action, resource=arn) for arn in arns]
        elif action == "s3:ListBucket":
            bucket, _, prefix = named.partition("?")
            made.append(
                Request(action=action, resource=f"arn:aws:s3:::frazil-dev-{bucket}", context={"s3:prefix": prefix})
            )
        else:
            made.append(Request(action=action, resource=f"arn:aws:s3:::frazil-dev-{named}"))
    return made


@pytest.mark.parametrize("role", sorted(NOT_RECORDED))
def test_a_job_may_do_all_that_it_was_recorded_to_do(role: str) -> None:
    asked = requests(role)
    assert len(asked) >= 6
    assert [one for one in asked if not evaluate(one, [policy(role)]).is_allowed] == []


@pytest.mark.parametrize("role", sorted(NOT_RECORDED))
def test_a_job_may_do_no_more_to_tables_than_it_was_recorded_to_do(role: str) -> None:
    granted = set()
    for statement in policy(role)["Statement"]:
        if "frazil-dev-tables" in str(statement["Resource"]) or GLUE in str(statement["Resource"]):
            granted |= {statement["Action"]} if isinstance(statement["Action"], str) else set(statement["Action"])
    assert granted == {action for action, _ in CALLS[role]} | NOT_RECORDED[role].keys()


def without(document: dict[str, Any], sid: str) -> dict[str, Any]:
    return {**document, "Statement": [each for each in document["Statement"] if each["Sid"] != sid]}


def test_the_table_of_requests_notices_each_statement_that_is_missing() -> None:
    """Every statement about tables and secrets is needed by something that a job asks for, or the table has a hole."""
    for role in (
        "ingest_job",
        "maintenance_job",
        "reader",
        "athena_reader",
        "scheduler",
        "reconciler",
        "confluent_provider",
    ):
        for statement in policy(role)["Statement"]:
            poorer = without(policy(role), statement["Sid"])
            lost = [
                one
                for one in may()
                if one.role == role and not evaluate(request_of(one), [poorer], one.resources_policy).is_allowed
            ]
            assert lost or statement["Sid"] in {"FindLogGroup", "FindLogStreams", "ListArtifacts", "KnowTheDatabase"}, (
                statement["Sid"]
            )
