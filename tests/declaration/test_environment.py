from typing import Any

import pytest

from frazil.declaration import (
    Environment,
    GlueCatalog,
    Kafka,
    LocalCatalog,
    Mechanism,
    OAuth,
    ObjectStore,
    Registry,
    RestAuth,
    RestCatalog,
    Secret,
    Security,
    canonical,
    environment_document,
    parse_environment,
)
from tests.declaration.problems_of import problems_of

KEY, SECRET = Secret(env="KAFKA_KEY"), Secret(secretsmanager="frazil/dev/kafka", field="secret")
CLIENT = OAuth(
    token_endpoint="https://id.example/token",
    client_id=KEY,
    client_secret=SECRET,
    scope="kafka.read registry",
    ca="/etc/ca.pem",
    logical_cluster="lkc-1",
    identity_pool="pool-1,pool-2",
)
LOCAL = LocalCatalog(path="/data/lake.db", warehouse="/data/lake")
SASL = {"security": Security.SASL_SSL, "mechanism": Mechanism.PLAIN, "username": KEY, "password": SECRET}

ENVIRONMENTS = [
    Environment(name="local", kafka=Kafka(bootstrap="127.0.0.1:9092"), catalog=LOCAL),
    Environment(
        name="dev-2",
        kafka=Kafka(bootstrap="a.example:9092,[::1]:9093", **SASL, ca="/etc/ca.pem"),
        registry=Registry(url="https://registry.example", username=KEY, password=SECRET, ca="/etc/ca.pem"),
        catalog=RestCatalog(
            uri="https://r/catalog", warehouse="w", auth=RestAuth.SIGV4, signing_name="glue", region="eu-west-1"
        ),
        object_store=ObjectStore(region="eu-west-1", access_key_id=KEY, secret_access_key=SECRET),
        artifact_bucket="frazil-dev.artifacts",
        emr_application="00f1abc2def3gh45",
        metrics_namespace="Frazil/dev",
    ),
    Environment(
        name="tokens",
        kafka=Kafka(bootstrap="a:1", security=Security.SASL_SSL, mechanism=Mechanism.OAUTHBEARER, oauth=CLIENT),
        registry=Registry(url="https://registry.example", oauth=CLIENT),
        catalog=LOCAL,
    ),
    Environment(
        name="msk",
        kafka=Kafka(bootstrap="a:1", security=Security.SASL_SSL, mechanism=Mechanism.AWS_MSK_IAM, region="eu-west-1"),
        catalog=LOCAL,
    ),
    Environment(
        name="prod",
        kafka=Kafka(bootstrap="a:1", security=Security.SSL, certificate=KEY, key=SECRET, key_password=SECRET),
        catalog=GlueCatalog(warehouse="s3://lake/w", region="eu-west-1", endpoint="http://127.0.0.1:5000"),
    ),
]


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda environment: environment.name)
def test_an_environment_goes_there_and_back_without_a_change(environment):
    document = environment_document(environment)
    assert parse_environment(document) == environment
    assert parse_environment(canonical(document)) == environment
    assert canonical(environment_document(parse_environment(document))) == canonical(document)


def test_a_document_written_by_hand_needs_only_what_has_no_default():
    document = {
        "version": 1,
        "name": "local",
        "kafka": {"bootstrap": "127.0.0.1:9092"},
        "registry": None,
        "catalog": {"type": "local", "path": "/data/lake.db", "warehouse": "/data/lake"},
    }
    assert parse_environment(document) == ENVIRONMENTS[0]


@pytest.mark.parametrize(
    ("values", "paths"),
    [
        ({"bootstrap": "broker"}, ["bootstrap"]),
        ({"bootstrap": "https://broker:9092"}, ["bootstrap"]),
        ({"bootstrap": "broker:0"}, ["bootstrap"]),
        ({"bootstrap": "a:1,b:70000"}, ["bootstrap"]),
        ({"security": Security.SASL_SSL}, ["mechanism", "username", "password"]),
        ({"mechanism": Mechanism.PLAIN, "password": SECRET}, ["mechanism", "password"]),
        ({"ca": "/ca.pem"}, ["ca"]),
        ({"security": Security.SASL_SSL, "mechanism": Mechanism.OAUTHBEARER}, ["oauth"]),
        ({"security": Security.SASL_SSL, "mechanism": Mechanism.OAUTHBEARER, "username": KEY}, ["username", "oauth"]),
        ({"security": Security.SASL_SSL, "mechanism": Mechanism.AWS_MSK_IAM}, ["region"]),
        ({"security": Security.SASL_SSL, "mechanism": Mechanism.AWS_MSK_IAM, "region": "here"}, ["region"]),
        ({**SASL, "oauth": CLIENT, "region": "eu-west-1"}, ["oauth", "region"]),
        ({"oauth": CLIENT}, ["oauth"]),
        ({"security": Security.SSL, "certificate": KEY}, ["key"]),
        ({"security": Security.SSL, "key": KEY}, ["certificate"]),
        ({"security": Security.SSL, "key_password": KEY}, ["key_password"]),
        ({"security": Security.SSL, "username": KEY, "ca": "ca.pem"}, ["ca", "username"]),
    ],
)
def test_security_that_cannot_work_is_refused(values: dict[str, Any], paths):
    found = problems_of(lambda: Kafka(**{"bootstrap": "broker:9092"} | values))
    assert list(found) == [f"kafka.{path}" for path in paths]


@pytest.mark.parametrize(
    ("values", "paths"),
    [
        ({"url": "registry:8081"}, ["url"]),
        ({"username": KEY}, ["password"]),
        ({"password": KEY}, ["username"]),
        ({"url": "http://registry.example", "username": KEY, "password": SECRET}, ["url"]),
        ({"url": "http://registry.example", "ca": "/ca.pem"}, ["ca"]),
        ({"url": "http://registry.example", "oauth": CLIENT}, ["url"]),
        ({"oauth": CLIENT, "username": KEY, "password": SECRET}, ["oauth"]),
    ],
)
def test_a_registry_that_cannot_be_reached_safely_is_refused(values, paths):
    found = problems_of(lambda: Registry(**{"url": "https://registry.example"} | values))
    assert list(found) == [f"registry.{path}" for path in paths]


def test_a_password_may_travel_in_the_clear_within_this_machine():
    assert Registry(url="http://127.0.0.1:8081", username=KEY, password=SECRET)


def test_every_problem_of_a_document_is_told_and_no_password_repeated():
    document = {
        "version": 1,
        "name": "Dev",
        "kafka": {"bootstrap": "me:hunter2@broker", "password": "hunter2", "security": "sasl"},
        "registry": {"url": "https://me:hunter2@registry"},
        "catalog": {"type": "glu"},
        "object_store": {"path_style": "yes", "access_key_id": {"value": "hunter2"}},
        "artifact_bucket": "s3://bucket",
        "emr": 1,
    }
    found = problems_of(lambda: parse_environment(document))
    assert "hunter2" not in str(found)
    assert set(found) == {
        "artifact_bucket",
        "catalog.type",
        "emr",
        "kafka.bootstrap",
        "kafka.password",
        "kafka.security",
        "name",
        "object_store.access_key_id.env",
        "object_store.access_key_id.value",
        "object_store.path_style",
        "registry.url",
    }


def test_metrics_do_not_pretend_to_be_amazons():
    with_namespace = environment_document(ENVIRONMENTS[0]) | {"metrics_namespace": "AWS/EMR"}
    assert list(problems_of(lambda: parse_environment(with_namespace))) == ["metrics_namespace"]
