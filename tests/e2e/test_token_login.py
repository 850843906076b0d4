"""Spark's Kafka source logs in with a token of a real endpoint over TLS, at a broker that verifies it; Amazon's login is in its JVM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from frazil.clients.kafka_security import java_options
from frazil.clients.secrets import Redactor, Secrets
from frazil.declaration.environment import Kafka as Settings
from frazil.declaration.environment import Mechanism, Security
from frazil.declaration.secret import OAuth, Secret
from frazil.ingest.batch.read import read
from frazil.ingest.plan.ranges import OffsetRange
from frazil.ingest.spark_errors import LoginRefused, explained
from tests.clients.test_tokens import signature
from tests.support.kafka_broker import KafkaBroker
from tests.support.secure_kafka import SecureKafka, secure_kafka
from tests.support.token_server import CLIENT, CLIENT_SECRET, TokenServer

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

WRONG = 'wr0ng+"p\\ass" 4714'


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    with secure_kafka(tmp_path_factory.mktemp("secure")) as running:
        kafka = KafkaBroker(running.plain)
        kafka.create("t")
        kafka.produce("t", [b"0", b"1", b"2"])
        yield running


@pytest.fixture
def endpoint(broker: SecureKafka) -> Iterator[TokenServer]:
    with TokenServer(broker.folder) as running:
        yield running


def records(spark: SparkSession, broker: SecureKafka, endpoint: TokenServer, secret: str) -> DataFrame:
    """Return the topic, read by Spark with this secret of the client."""
    settings = Settings(
        bootstrap=broker.sasl,
        security=Security.SASL_SSL,
        mechanism=Mechanism.OAUTHBEARER,
        ca=broker.file("ca.crt"),
        oauth=OAuth(
            token_endpoint=endpoint.url,
            client_id=Secret(env="CLIENT"),
            client_secret=Secret(env="CLIENT_SECRET"),
            scope="read",
            ca=broker.file("ca.crt"),
            logical_cluster="lkc-a1",
            identity_pool="pool-b2",
        ),
    )
    waits = {"kafka.default.api.timeout.ms": "8000", "kafka.request.timeout.ms": "7000"}
    options = java_options(settings, Secrets({"CLIENT": CLIENT, "CLIENT_SECRET": secret})) | waits
    jvm = cast(Any, spark._jvm)
    jvm.java.lang.System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", endpoint.url)
    return read(
        spark, "t", [OffsetRange(0, 0, 3)], options=options, isolation="read_committed", group="token", headers=False
    )


def finds(text: str, secret: str) -> bool:
    redactor = Redactor()
    redactor.add(secret)
    return redactor.redact(text) != text


@pytest.mark.long
def test_spark_reads_with_a_token_and_no_plan_shows_the_secret(
    spark: SparkSession, broker: SecureKafka, endpoint: TokenServer, capfd: pytest.CaptureFixture[str]
) -> None:
    found = records(spark, broker, endpoint, CLIENT_SECRET)
    assert sorted(bytes(row["value"]) for row in found.select("value").collect()) == [b"0", b"1", b"2"]
    found.explain(extended=True)
    shown = capfd.readouterr().out
    assert "Physical Plan" in shown
    assert not finds(shown, CLIENT_SECRET)
    assert all(token not in shown for token in endpoint.tokens)
    assert endpoint.requests[0] == {"grant_type": ["client_credentials"], "scope": ["read"]}


@pytest.mark.long
def test_a_refused_client_is_a_refused_login_and_not_shown(
    spark: SparkSession, broker: SecureKafka, endpoint: TokenServer
) -> None:
    with pytest.raises(LoginRefused) as caught, explained("topic t"):
        records(spark, broker, endpoint, WRONG).count()
    assert not finds(f"{caught.value}{caught.value!r}", WRONG)


def test_amazons_login_signs_in_sparks_jvm(spark: SparkSession) -> None:
    """By the jar of the lock and the SDK in Iceberg's bundle: that the two fit is what could fail."""
    jvm = cast(Any, spark._jvm)
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    package = "software.amazon.msk.auth.iam"
    for name in ("IAMLoginModule", "IAMClientCallbackHandler"):
        assert loader.loadClass(f"{package}.{name}").getName() == f"{package}.{name}"
    host = "b-1.demo.abc.c2.kafka.eu-central-1.amazonaws.com"
    credentials = jvm.software.amazon.awssdk.auth.credentials.AwsBasicCredentials.create("AKID", "planted-secret")
    asked = jvm.software.amazon.msk.auth.iam.internals.AuthenticationRequestParams.create(host, credentials, "test")
    signer = jvm.software.amazon.msk.auth.iam.internals.AWS4SignedPayloadGenerator()
    made = json.loads(bytes(signer.signedPayload(asked)))
    query = {
        "Action": made["action"],
        "X-Amz-Algorithm": made["x-amz-algorithm"],
        "X-Amz-Credential": made["x-amz-credential"],
        "X-Amz-Date": made["x-amz-date"],
        "X-Amz-Expires": made["x-amz-expires"],
        "X-Amz-SignedHeaders": made["x-amz-signedheaders"],
    }
    assert made["x-amz-signature"] == signature(host, query, "planted-secret")
    assert made["x-amz-credential"].endswith("/eu-central-1/kafka-cluster/aws4_request")
