"""Placeholders become values, and values never become structure."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.documents import CannotFill, fill
from tests.policies.example import PLACES, policy

READER = PLACES.values("reader", key="arn:aws:kms:eu-central-1:123456789012:key/1")


def test_a_missing_and_an_unknown_value_are_told_together() -> None:
    values = {**READER, "bucket": "b"}
    del values["key"]
    with pytest.raises(CannotFill) as refused:
        fill("reader", values)
    assert str(refused.value) == "reader: {{key}} has no value\nreader: the value bucket has no placeholder"


def test_a_document_that_is_none_is_told() -> None:
    with pytest.raises(CannotFill, match="the document does not exist"):
        fill("../../secrets", {})


@pytest.mark.parametrize(
    "value",
    [
        "*",
        "a*",
        "a?c",
        "",
        "${aws:username}",
        "${*}",
        "${?}",
        "a b",
        "a\n",
        "{{key}}",
        "a\x00",
        "${aws:PrincipalTag/x, 'y'}",
        "$${x",
    ],
)
def test_a_value_that_iam_would_read_as_more_than_itself_is_refused(value: str) -> None:
    for values in ({**READER, "table_bucket": value}, {**READER, "tables": ["shop/orders", value]}):
        with pytest.raises(CannotFill) as refused:
            fill("reader", values)
        assert len(refused.value.problems) == 1
        assert not value or value not in str(refused.value), "the value is shown"


@pytest.mark.parametrize(
    "reference",
    [
        "${TfToken[TOKEN.12]}",
        "${aws_kms_key.lake_key_1A2B.arn}",
        "${confluent_provider_integration.x.aws[0].iam_role_arn}",
    ],
)
def test_a_value_that_terraform_will_know_is_let_through(reference: str) -> None:
    filled = fill("confluent_trust", {"integration_role": reference, "external_id": reference})
    assert filled["Statement"][0]["Principal"] == {"AWS": reference}


def shape(node: Any) -> Any:
    """A tree with its texts taken out."""
    if isinstance(node, dict):
        return {key: shape(value) for key, value in node.items()}
    return [shape(one) for one in node] if isinstance(node, list) else "text"


@given(st.text(st.characters(exclude_characters="*?{}", exclude_categories=["Z", "C"]), min_size=1))
def test_no_text_becomes_structure(text: str) -> None:
    values = {"integration_role": text, "external_id": text}
    filled = fill("confluent_trust", values)
    plain = fill("confluent_trust", {"integration_role": "a", "external_id": "b"})
    assert shape(filled) == shape(plain)
    assert json.loads(json.dumps(filled)) == filled
    assert filled["Statement"][0]["Condition"]["StringEquals"]["sts:ExternalId"] == text


def test_a_value_of_several_makes_a_string_of_each() -> None:
    filled = fill("reader", READER)
    [read] = [each for each in filled["Statement"] if each["Sid"] == "ReadTables"]
    assert read["Resource"] == [
        "arn:aws:s3:::frazil-dev-tables/lake/shop.db/orders/*",
        "arn:aws:s3:::frazil-dev-tables/lake/shop.db/orders__dead_letters/*",
        "arn:aws:s3:::frazil-dev-tables/lake/nyc.db/flights/*",
        "arn:aws:s3:::frazil-dev-tables/lake/nyc.db/flights__dead_letters/*",
    ]


def test_a_job_without_secrets_reads_none() -> None:
    sids = [each["Sid"] for each in policy("ingest_job", secrets=[])["Statement"]]
    assert "ReadSecrets" not in sids
    assert "DecryptSecrets" not in sids
    assert "ReadAndWriteTables" in sids


def test_a_statement_that_denies_does_not_lose_its_places() -> None:
    with pytest.raises(CannotFill, match="RefuseToOverwrite denies, and would have no resources"):
        policy("artifact_bucket", write_once_prefixes=[])


def test_a_policy_of_nothing_is_told() -> None:
    with pytest.raises(CannotFill, match="no statement is left"):
        policy("account_trust", principals=[])
