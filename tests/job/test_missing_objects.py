"""A job knows what S3 answers it for an object that does not exist, on moto and where S3 refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from frazil.clients.object_store import ObjectStore
from frazil.declaration import Environment, GlueCatalog, Kafka, LocalCatalog
from frazil.errors import ObjectStoreUnavailable
from frazil.job.startup import answers, places

GLUE = GlueCatalog(region="eu-central-1", warehouse="s3://tables/lake")
DEV = Environment(name="dev", kafka=Kafka(bootstrap="k:9092"), catalog=GLUE, artifact_bucket="artifacts")


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        for bucket in ("artifacts", "tables"):
            client.create_bucket(Bucket=bucket)
        yield client


def test_an_object_is_asked_for_where_the_role_may_list(s3: Any) -> None:
    found = places(DEV, "shop.orders")
    assert found == {
        "artifacts": ("artifacts", "documents/frazil-no-such-object"),
        "tables": ("tables", "lake/shop.db/orders/metadata/frazil-no-such-object"),
    }
    asked = {name: (ObjectStore(s3, bucket), key) for name, (bucket, key) in found.items()}
    assert answers(asked) == {"artifacts": "not found", "tables": "not found"}


def test_a_refusal_is_an_answer_and_ends_nothing() -> None:
    class Refusing:
        def read(self, key: str) -> None:
            raise ObjectStoreUnavailable("S3 refused (AccessDenied)", where=f"s3://tables/{key}")

    assert answers({"tables": (Refusing(), "k")}) == {"tables": "S3 refused (AccessDenied)"}


def test_without_a_deployment_nothing_is_asked() -> None:
    local = LocalCatalog(path="/x/c.db", warehouse="file:///x")
    assert places(Environment(name="dev", kafka=Kafka(bootstrap="k:9092"), catalog=local), "shop.orders") == {}
