"""Nothing is sent in the clear."""

from __future__ import annotations

from typing import Any

import pytest

from policies.rules.encryption import in_the_clear
from tests.policies.reviewing import stack, told


@pytest.mark.parametrize(("endpoint", "count"), [("http://pkc-1.confluent.cloud:443", 1), ("https://pkc-1.confluent.cloud:443", 0),
                                                 ("http://127.0.0.1:8082", 0), ("${confluent_kafka_cluster.c.rest_endpoint}", 0)])  # fmt: skip
def test_credentials_over_plain_http_are_told(endpoint: str, count: int) -> None:
    findings = told(in_the_clear, stack(confluent_kafka_topic__x={"topic_name": "x", "rest_endpoint": endpoint}))
    assert findings == [("confluent_kafka_topic.x", "rest_endpoint is plain HTTP")][:count]


def environment(**others: Any) -> dict[str, Any]:
    kafka = {"bootstrap": "broker:9092", "security": "SASL_SSL"}
    return {
        "version": 1,
        "name": "dev",
        "kafka": kafka,
        "catalog": {"type": "glue"},
        "registry": {"url": "https://r"},
        **others,
    }


def test_an_environment_in_the_clear_is_told() -> None:
    assert told(in_the_clear, environment()) == []
    assert told(in_the_clear, environment(kafka={"bootstrap": "127.0.0.1:9092,localhost:9093"})) == []
    assert told(in_the_clear, environment(kafka={"bootstrap": "127.0.0.1:9092,broker:9092"})) == [
        ("environment dev", "records come from Kafka without TLS")
    ]
    assert told(in_the_clear, environment(registry={"url": "http://registry:8081"})) == [
        ("environment dev", "requests to the registry use plain HTTP")
    ]
    for part, others in (("kafka", {"security": "SASL_SSL"}), ("registry", {"url": "https://r"})):
        document = environment(**{part: {**others, "oauth": {"token_endpoint": "http://id.example/token"}}})
        assert told(in_the_clear, document) == [("environment dev", f"{part}.oauth sends its secret over plain HTTP")]
