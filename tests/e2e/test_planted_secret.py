"""Secrets of an environment are planted, a topic is landed with them, and then looked for in all that was left behind."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from frazil.clients.kafka import Kafka
from frazil.clients.secrets import Redactor, Secrets
from frazil.declaration import Pipeline, Table, Topic
from frazil.declaration.catalogs import LocalCatalog
from frazil.declaration.environment import Environment, Mechanism, Registry, Security
from frazil.declaration.environment import Kafka as KafkaSettings
from frazil.declaration.secret import OAuth, Secret
from frazil.ingest.batch.read import read
from frazil.ingest.plan.ranges import OffsetRange
from tests.support import oracle
from tests.support.documents import written
from tests.support.kafka_broker import KafkaBroker
from tests.support.registry_server import RegistryServer
from tests.support.secure_kafka import PASSWORD, USER, SecureKafka, secure_kafka
from tests.support.shop import ORDER, avro, frame
from tests.support.token_server import CLIENT, CLIENT_SECRET, TokenServer

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

REGISTRY_USER, REGISTRY_PASSWORD = "registry-api-key-0815", 'reg!stry/p"ass\\wörd 4711'
WRONG = 'wr0ng "p\\ass" wörd 4712'
RIGHT = {"KAFKA_PASSWORD": PASSWORD, "REGISTRY_USER": REGISTRY_USER, "REGISTRY_PASSWORD": REGISTRY_PASSWORD}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    with secure_kafka(tmp_path_factory.mktemp("secure")) as running:
        yield running


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryServer]:
    login = base64.b64encode(f"{REGISTRY_USER}:{REGISTRY_PASSWORD}".encode()).decode()
    with RegistryServer(authorization=f"Basic {login}") as server:
        yield server


@dataclass(frozen=True)
class Place:
    """A folder in which one topic is landed by `frazil run`, with Spark's event log and its log in full."""

    folder: Path
    environment: Environment
    pipeline: Pipeline

    @property
    def events(self) -> Path:
        return self.folder / "events"

    def prepare(self) -> None:
        written(self.folder, [self.pipeline], self.environment)
        conf = self.folder / "conf"
        conf.mkdir()
        self.events.mkdir()
        settings = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": self.events.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.sql.debug.maxToStringFields": "1000",
            "spark.sql.maxMetadataStringLength": "100000",
            "spark.log.level": "INFO",  # wins over what the session sets: everything is logged
        }
        (conf / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))

    def run(self, **variables: str) -> subprocess.CompletedProcess[str]:
        """`frazil run --once`, in a process of its own, with these secrets in its environment."""
        command = [str(Path(sys.executable).parent / "frazil"), "run", self.pipeline.name, "--once", "--log"]
        files = ["--pipelines", "pipelines.json", "--env", "environment.json"]
        return subprocess.run(
            [*command, *files, "--master", "local[2]", "--json"],
            cwd=self.folder,
            env={**os.environ, "SPARK_CONF_DIR": str(self.folder / "conf"), **variables},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )


@pytest.fixture
def place(broker: SecureKafka, registry: RegistryServer, tmp_path: Path, name: str) -> Place:
    """A topic of three orders and two records that cannot be landed."""
    kafka = KafkaBroker(broker.plain)
    kafka.create(name)
    schema_id = registry.store.register(f"{name}-value", json.dumps(ORDER))
    orders = [avro(ORDER, {"order_id": number, "user": "u", "amount": None}) for number in range(3)]
    kafka.produce(name, [*(frame(schema_id, body) for body in orders), b"bad!!", frame(schema_id, b"\x02\xff")])
    (tmp_path / "lake").mkdir()
    made = Place(
        tmp_path,
        Environment(
            name="planted",
            kafka=KafkaSettings(
                bootstrap=broker.sasl,
                security=Security.SASL_SSL,
                mechanism=Mechanism.PLAIN,
                username=Secret(env="KAFKA_USER"),
                password=Secret(env="KAFKA_PASSWORD"),
                ca=broker.file("ca.crt"),
            ),
            registry=Registry(
                url=registry.url, username=Secret(env="REGISTRY_USER"), password=Secret(env="REGISTRY_PASSWORD")
            ),
            catalog=LocalCatalog(path=str(tmp_path / "lake/catalog.db"), warehouse=(tmp_path / "lake/files").as_uri()),
        ),
        Pipeline(topic=Topic(name, value="avro"), table=Table(f"shop.{name}")),
    )
    made.prepare()
    return made


def finds(text: str, *secrets: str) -> list[str]:
    """Those of the secrets that are in the text, as they are or as URLs, JSON, JAAS lines, reprs and base64 show them."""
    found = []
    for secret in secrets:
        redactor = Redactor()
        redactor.add(secret)
        redactor.add(base64.b64encode(f"{REGISTRY_USER}:{secret}".encode()).decode())
        if redactor.redact(text) != text:
            found.append(secret)
    return found


def texts(folder: Path) -> Iterator[tuple[Path, str]]:
    """What stands in each file of a folder, decoded as far as it can be."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        data = file.read_bytes()
        if file.name.endswith(".gz.metadata.json"):
            data = gzip.decompress(data)
        yield file, data.decode("utf-8", "replace")
        if file.suffix == ".parquet":
            yield file, repr(pq.read_table(file).to_pylist())


def assert_nothing_is_left(place: Place, ended: subprocess.CompletedProcess[str], secrets: Mapping[str, str]) -> None:
    planted = list(secrets.values())
    assert finds(ended.stdout, *planted) == []
    assert finds(ended.stderr, *planted) == []
    for file, text in texts(place.folder):
        assert (file.name, finds(text, *planted)) == (file.name, [])


def test_a_planted_secret_is_found_by_what_looks_for_it(tmp_path: Path) -> None:
    """The search itself: it would find the secret in each of the forms and files."""
    for secret in RIGHT.values():
        for form in (secret, json.dumps({"a": secret}), repr([secret]), base64.b64encode(secret.encode()).decode()):
            assert finds(f"Kafka said {form}!", secret) == [secret]
    (tmp_path / "00000.gz.metadata.json").write_bytes(gzip.compress(PASSWORD.encode()))
    assert [finds(text, PASSWORD) for _, text in texts(tmp_path)] == [[PASSWORD]]


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_run_leaves_no_secret_behind(place: Place) -> None:
    ended = place.run(KAFKA_USER=USER, **RIGHT)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)["pipelines"][place.pipeline.name]
    assert (found["written"], found["rejected"]) == (3, {"undecodable": 1, "wrong_magic": 1})
    assert_nothing_is_left(place, ended, RIGHT)
    # What was searched does hold what it is said to: plans with Kafka's options, dead letters, summaries, Spark's log.
    events = "".join(text for _, text in texts(place.events))
    assert "SparkListenerSQLExecutionStart" in events
    assert place.pipeline.topic.name in events
    assert {row["reason"] for row in oracle.rows(place.environment, place.pipeline.table.dead_letters)} == {
        "undecodable",
        "wrong_magic",
    }
    metadata = [text for file, text in texts(place.folder / "lake") if file.name.endswith(".metadata.json")]
    assert any("frazil.counts" in text for text in metadata)
    assert "INFO" in (place.folder / ".frazil/logs/spark.log").read_text()


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("variable", "said"),
    [("KAFKA_PASSWORD", "the broker does not accept our login"), ("REGISTRY_PASSWORD", "REGISTRY_PASSWORD")],
)
def test_a_run_with_a_wrong_password_fails_without_telling_it(place: Place, variable: str, said: str) -> None:
    secrets = {**RIGHT, variable: WRONG}
    ended = place.run(KAFKA_USER=USER, **secrets)
    assert ended.returncode == 3, ended.stderr
    errors = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert said in errors[0]
    assert variable in errors[0], "the message names the reference of the secret"
    assert "Traceback" not in ended.stderr
    assert_nothing_is_left(place, ended, secrets)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_run_with_tokens_leaves_neither_secret_nor_token_behind(
    place: Place, broker: SecureKafka, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "authorization", None)
    with TokenServer(broker.folder) as endpoint:
        oauth = OAuth(
            token_endpoint=endpoint.url,
            client_id=Secret(env="CLIENT"),
            client_secret=Secret(env="CLIENT_SECRET"),
            ca=broker.file("ca.crt"),
        )
        of = place.environment
        kafka = KafkaSettings(
            bootstrap=broker.sasl,
            security=Security.SASL_SSL,
            mechanism=Mechanism.OAUTHBEARER,
            oauth=oauth,
            ca=broker.file("ca.crt"),
        )
        where = replace(of, kafka=kafka, registry=Registry(url=registry.url, oauth=oauth))
        written(place.folder, [place.pipeline], where)
        ended = place.run(CLIENT=CLIENT, CLIENT_SECRET=CLIENT_SECRET)
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout)["pipelines"][place.pipeline.name]["written"] == 3
        shown = {"secret": CLIENT_SECRET, **dict(enumerate(endpoint.tokens))}
        assert f"Bearer {endpoint.tokens[1]}" in registry.authorizations
        assert len(endpoint.tokens) >= 3, "the driver, the registry and Spark have one each"
    assert_nothing_is_left(place, ended, {str(name): value for name, value in shown.items()})


def test_no_plan_shows_a_secret(spark: SparkSession, place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    secrets = Secrets({"KAFKA_USER": USER, **RIGHT})
    options = Kafka(place.environment.kafka, secrets).java_options()
    assert finds(repr(options), PASSWORD) == [PASSWORD]
    records = read(
        spark,
        place.pipeline.topic.name,
        [OffsetRange(0, 0, 5)],
        options=options,
        isolation="read_committed",
        group="planted",
        headers=True,
    )
    records.explain(extended=True)
    records.explain("formatted")
    told = capfd.readouterr().out
    assert "Physical Plan" in told
    assert place.pipeline.topic.name in told
    assert finds(told, PASSWORD) == []


@pytest.mark.parametrize(
    ("trusted", "refused"), [(True, "SaslAuthenticationException"), (False, "SslAuthenticationException")]
)
def test_no_exception_of_spark_shows_a_secret(spark: SparkSession, place: Place, trusted: bool, refused: str) -> None:
    secrets = Secrets({"KAFKA_USER": USER, **RIGHT, "KAFKA_PASSWORD": WRONG})
    kafka = place.environment.kafka if trusted else replace(place.environment.kafka, ca=None)
    records = read(
        spark,
        place.pipeline.topic.name,
        [OffsetRange(0, 0, 5)],
        options={**Kafka(kafka, secrets).java_options(), "kafka.default.api.timeout.ms": "3000", "kafka.request.timeout.ms": "2000"},
        isolation="read_committed",
        group="planted",
        headers=True,
    )  # fmt: skip
    with pytest.raises(Exception, match=refused) as raised:
        records.count()
    assert finds(f"{raised.value!s} {raised.value!r}", WRONG) == []
