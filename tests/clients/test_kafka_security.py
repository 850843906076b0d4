"""How the environment's typed settings become options, and that brokers and both clients understand them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.clients.kafka import Kafka
from frazil.clients.kafka_security import extensions, forget, jaas, java_options, librdkafka_options, references
from frazil.clients.secrets import Secrets
from frazil.declaration.environment import Kafka as Settings
from frazil.declaration.environment import Mechanism, Security
from frazil.declaration.options import Isolation
from frazil.declaration.secret import OAuth, Secret
from frazil.doctor.brokers import Broker
from frazil.doctor.check_result import Check, examined
from frazil.errors import KafkaRefused, KafkaUnavailable, SecretUnavailable, TokenRefused
from tests.support.kafka_broker import KafkaBroker
from tests.support.secure_kafka import KEY_PASSWORD, PASSWORD, USER, SecureKafka, secure_kafka
from tests.support.token_server import CLIENT, CLIENT_SECRET, TokenServer

KEY = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"


def sasl(**others: Any) -> Settings:
    return Settings(
        **{
            "bootstrap": "b:9092",
            "security": Security.SASL_SSL,
            "mechanism": Mechanism.PLAIN,
            "username": Secret(env="USER"),
            "password": Secret(env="PASSWORD"),
            **others,
        }
    )


def mtls(**others: Any) -> Settings:
    wanted = {"certificate": Secret(env="CERTIFICATE"), "key": Secret(env="KEY")}
    return Settings(**{"bootstrap": "b:9092", "security": Security.SSL, **wanted, **others})


def token_login(*, bootstrap: str = "b:9092", broker_ca: str | None = None, **others: Any) -> Settings:
    client = {"client_id": Secret(env="CLIENT"), "client_secret": Secret(env="CLIENT_SECRET")}
    return Settings(
        bootstrap=bootstrap,
        security=Security.SASL_SSL,
        mechanism=Mechanism.OAUTHBEARER,
        ca=broker_ca,
        oauth=OAuth(**{"token_endpoint": "https://id.example/token", **client, **others}),
    )


def secrets(**values: str) -> Secrets:
    return Secrets(
        {"USER": "app", "PASSWORD": "planted", "CERTIFICATE": "chain", "KEY": KEY, "KEYPASS": "kp", **values}
    )


class TestOptions:
    def test_a_token_login_is_kafkas_own_in_java(self, tmp_path: Path) -> None:
        ca = tmp_path / "ca.pem"
        ca.write_text("an\nauthority")
        settings = token_login(scope="a b", logical_cluster="lkc-1", identity_pool="pool-1", ca=str(ca))
        known = secrets(CLIENT="app", CLIENT_SECRET='pl"anted')
        assert librdkafka_options(settings, known)["sasl.mechanism"] == "OAUTHBEARER"
        package = "org.apache.kafka.common.security.oauthbearer"
        assert java_options(settings, known) == {
            "kafka.bootstrap.servers": "b:9092",
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "OAUTHBEARER",
            "kafka.sasl.login.callback.handler.class": f"{package}.OAuthBearerLoginCallbackHandler",
            "kafka.sasl.oauthbearer.token.endpoint.url": "https://id.example/token",
            "kafka.sasl.oauthbearer.header.urlencode": "true",
            "kafka.sasl.login.connect.timeout.ms": "5000",
            "kafka.sasl.login.read.timeout.ms": "5000",
            "kafka.sasl.jaas.config": f"{package}.OAuthBearerLoginModule required "
            'clientId="app" clientSecret="pl\\"anted" scope="a b" extension_logicalCluster="lkc-1" '
            'extension_identityPoolId="pool-1" ssl.truststore.type="PEM" ssl.truststore.certificates="an\\nauthority";',
        }
        assert extensions(settings) == {"logicalCluster": "lkc-1", "identityPoolId": "pool-1"}

    def test_amazons_login_is_a_token_here_and_its_own_mechanism_in_java(self) -> None:
        settings = Settings(
            bootstrap="b:9098", security=Security.SASL_SSL, mechanism=Mechanism.AWS_MSK_IAM, region="eu-central-1"
        )
        assert librdkafka_options(settings, secrets())["sasl.mechanism"] == "OAUTHBEARER"
        assert java_options(settings, secrets()) == {
            "kafka.bootstrap.servers": "b:9098",
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "AWS_MSK_IAM",
            "kafka.sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
            "kafka.sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
        }
        assert references(settings) == "the credentials of AWS's default chain"

    def test_certificates_are_in_the_options_as_text(self, tmp_path: Path) -> None:
        ca = tmp_path / "ca.pem"
        ca.write_text("authority")
        settings = mtls(ca=str(ca), key_password=Secret(env="KEYPASS"))
        assert librdkafka_options(settings, secrets()) == {
            "bootstrap.servers": "b:9092",
            "security.protocol": "SSL",
            "ssl.ca.pem": "authority",
            "ssl.certificate.pem": "chain",
            "ssl.key.pem": KEY,
            "ssl.key.password": "kp",
        }
        assert java_options(settings, secrets()) == {
            "kafka.bootstrap.servers": "b:9092",
            "kafka.security.protocol": "SSL",
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.certificates": "authority",
            "kafka.ssl.keystore.type": "PEM",
            "kafka.ssl.keystore.certificate.chain": "chain",
            "kafka.ssl.keystore.key": KEY,
            "kafka.ssl.key.password": "kp",
        }

    def test_a_missing_file_of_authorities_is_told(self) -> None:
        with pytest.raises(KafkaUnavailable, match=r"/nowhere/ca\.pem: .*No such file.*kafka\.ca"):
            librdkafka_options(sasl(ca="/nowhere/ca.pem"), secrets())

    @pytest.mark.parametrize(
        "key", ["planted", "-----BEGIN RSA PRIVATE KEY-----\nplanted\n-----END RSA PRIVATE KEY-----"]
    )
    def test_a_key_that_java_could_not_read_is_told_with_the_conversion(self, key: str) -> None:
        for options in (librdkafka_options, java_options):
            with pytest.raises(SecretUnavailable, match=r"env KEY: .*openssl pkcs8 -topk8") as caught:
                options(mtls(), secrets(KEY=key))
            assert "planted" not in str(caught.value)

    def test_every_secret_is_masked_afterwards(self) -> None:
        known = secrets(PASSWORD='pl"an\\ted')
        options = java_options(sasl(), known)
        assert known.redactor.redact(str(options)).count("[redacted]") == 1
        assert known.redactor.redact(options["kafka.sasl.jaas.config"]).endswith('password="[redacted]";')

    def test_references_are_told_once(self) -> None:
        assert references(sasl()) == "env USER, env PASSWORD"
        assert references(mtls(key_password=Secret(env="KEY"))) == "env CERTIFICATE, env KEY"
        assert references(Settings(bootstrap="b:1")) == ""

    def test_forgotten_secrets_are_read_anew(self) -> None:
        values = {"USER": "app", "PASSWORD": "old-password"}
        known = Secrets(values)
        librdkafka_options(sasl(), known)
        values["PASSWORD"] = "new-password"
        forget(sasl(), known)
        assert librdkafka_options(sasl(), known)["sasl.password"] == "new-password"


@given(st.text(), st.text())
def test_no_password_breaks_out_of_its_quotes(username: str, password: str) -> None:
    """Read back as Java's StreamTokenizer reads: a quoted word ends at a quote or a line end that is not escaped."""
    line = jaas(Mechanism.PLAIN, username, password)
    assert "\n" not in line
    assert "\r" not in line
    words, rest = [], line.split("required username=", 1)[1]
    for _ in range(2):
        assert rest[0] == '"'
        word, position = "", 1
        while rest[position] != '"':
            if rest[position] == "\\":
                position += 1
                word += {"n": "\n", "r": "\r"}.get(rest[position], rest[position])
            else:
                word += rest[position]
            position += 1
        words.append(word)
        rest = rest[position + 1 :].removeprefix(" password=")
    assert (words, rest) == ([username, password], ";")


@pytest.mark.e2e
class TestOnABroker:
    """librdkafka and Java's client, each with what we tell it, on a broker that wants a login."""

    @pytest.fixture(scope="class")
    def broker(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
        with secure_kafka(tmp_path_factory.mktemp("secure")) as running:
            KafkaBroker(running.plain).create("t")
            running.add_scram_user()
            yield running

    def on(self, broker: SecureKafka, kind: str, **others: Any) -> Settings:
        if kind == "mtls":
            files = {
                "certificate": Secret(file=broker.file("client.crt")),
                "key": Secret(file=broker.file("client.key")),
            }
            return mtls(**{"bootstrap": broker.mtls, "ca": broker.file("ca.crt"), **files, **others})
        mechanism = Mechanism.SCRAM_SHA_512 if kind == "scram" else Mechanism.PLAIN
        return sasl(**{"bootstrap": broker.sasl, "ca": broker.file("ca.crt"), "mechanism": mechanism, **others})

    def known(self, **values: str) -> Secrets:
        return Secrets({"USER": USER, "PASSWORD": PASSWORD, "KEYPASS": KEY_PASSWORD, **values})

    @pytest.mark.parametrize("kind", ["plain", "scram", "mtls"])
    def test_both_clients_are_let_in(self, broker: SecureKafka, kind: str) -> None:
        settings = self.on(broker, kind)
        assert Kafka(settings, self.known()).topic("t").partitions == (0,)
        seen = broker.java_sees(java_options(settings, self.known()), "t")
        assert (seen.returncode, "configs for topic t" in seen.stdout) == (0, True), seen.stderr[-2000:]

    @pytest.mark.long
    def test_an_encrypted_key_that_java_can_read_is_fine(self, broker: SecureKafka) -> None:
        key = {"key": Secret(file=broker.file("client.3des")), "key_password": Secret(env="KEYPASS")}
        settings = self.on(broker, "mtls", **key)
        assert Kafka(settings, self.known()).topic("t").partitions == (0,)
        seen = broker.java_sees(java_options(settings, self.known()), "t")
        assert seen.returncode == 0, seen.stderr[-2000:]

    def test_an_encrypted_key_that_java_cannot_read_is_told(self, broker: SecureKafka) -> None:
        key = {"key": Secret(file=broker.file("client.pbes2")), "key_password": Secret(env="KEYPASS")}
        settings = self.on(broker, "mtls", **key)
        assert Kafka(settings, self.known()).topic("t").partitions == (0,)
        with pytest.raises(SecretUnavailable, match=r"PBES2.*PBE-SHA1-3DES"):
            java_options(settings, self.known())

    def test_a_key_of_the_old_form_is_told(self, broker: SecureKafka) -> None:
        with pytest.raises(SecretUnavailable, match="PKCS #8"):
            Kafka(self.on(broker, "mtls", key=Secret(file=broker.file("client.pkcs1"))), self.known())

    @pytest.mark.parametrize("kind", ["plain", "scram"])
    def test_a_wrong_password_is_a_refusal_within_seconds(self, broker: SecureKafka, kind: str) -> None:
        kafka = Kafka(self.on(broker, kind), self.known(PASSWORD="planted-and-wrong"), timeout_seconds=60)
        with pytest.raises(KafkaRefused, match="Check env USER, env PASSWORD") as caught:
            kafka.topic("t")
        assert "planted" not in str(caught.value)

    def test_a_rotated_password_is_read_again(self, broker: SecureKafka) -> None:
        values = {"USER": USER, "PASSWORD": "the old one"}
        kafka = Kafka(self.on(broker, "plain"), Secrets(values), timeout_seconds=60)
        values["PASSWORD"] = PASSWORD
        assert kafka.topic("t").partitions == (0,)

    def test_a_client_without_a_certificate_is_refused_within_seconds(self, broker: SecureKafka) -> None:
        settings = self.on(broker, "mtls", certificate=None, key=None)
        with pytest.raises(KafkaRefused, match="whether the cluster wants a login"):
            Kafka(settings, self.known(), timeout_seconds=60).topic("t")

    def test_a_strangers_certificate_is_refused_within_seconds(self, broker: SecureKafka) -> None:
        stranger = {
            "certificate": Secret(file=broker.file("stranger.crt")),
            "key": Secret(file=broker.file("stranger.key")),
        }
        with pytest.raises(KafkaRefused, match=r"stranger\.crt"):
            Kafka(self.on(broker, "mtls", **stranger), self.known(), timeout_seconds=60).topic("t")

    @pytest.fixture
    def endpoint(self, broker: SecureKafka) -> Iterator[TokenServer]:
        with TokenServer(broker.folder) as running:
            yield running

    def with_token(self, broker: SecureKafka, endpoint: TokenServer, **others: Any) -> Settings:
        ca = broker.file("ca.crt")
        return token_login(token_endpoint=endpoint.url, ca=ca, **others, bootstrap=broker.sasl, broker_ca=ca)

    @pytest.mark.long
    def test_a_token_lets_us_in_and_is_fetched_once(self, broker: SecureKafka, endpoint: TokenServer) -> None:
        settings = self.with_token(broker, endpoint, logical_cluster="lkc-a1", identity_pool="pool-b2")
        kafka = Kafka(settings, self.known(CLIENT=CLIENT, CLIENT_SECRET=CLIENT_SECRET))
        for _ in range(2):
            assert kafka.topic("t").partitions == (0,)
        assert kafka.records("t", {0: 0}, Isolation.READ_COMMITTED) == {0: None}
        assert len(endpoint.tokens) == 1

    @pytest.mark.long
    def test_java_is_let_in_with_the_same_client(self, broker: SecureKafka, endpoint: TokenServer) -> None:
        settings = self.with_token(broker, endpoint, logical_cluster="lkc-a1", scope="a b")
        options = java_options(settings, self.known(CLIENT=CLIENT, CLIENT_SECRET=CLIENT_SECRET))
        seen = broker.java_sees(options, "t", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={endpoint.url}")
        assert (seen.returncode, "configs for topic t" in seen.stdout) == (0, True), seen.stderr[-2000:]
        assert endpoint.requests[0]["scope"] == ["a b"]

    @pytest.mark.long
    def test_tokens_are_renewed_before_they_expire(self, broker: SecureKafka, endpoint: TokenServer) -> None:
        """The broker ends a connection whose token has expired: each answer after that needs a new one."""
        endpoint.seconds = 2
        kafka = Kafka(self.with_token(broker, endpoint), self.known(CLIENT=CLIENT, CLIENT_SECRET=CLIENT_SECRET))
        until = time.monotonic() + 5
        while time.monotonic() < until:
            assert kafka.topic("t").partitions == (0,)
        assert len(endpoint.tokens) >= 3

    @pytest.mark.long
    def test_a_token_of_another_issuer_is_refused_within_seconds(
        self, broker: SecureKafka, endpoint: TokenServer
    ) -> None:
        endpoint.issuer = "https://stranger.test"
        known = self.known(CLIENT=CLIENT, CLIENT_SECRET=CLIENT_SECRET)
        kafka = Kafka(self.with_token(broker, endpoint), known, timeout_seconds=60)
        with pytest.raises(KafkaRefused, match="Check env CLIENT, env CLIENT_SECRET") as caught:
            kafka.topic("t")
        assert "eyJ" not in str(caught.value)
        assert len(endpoint.tokens) == 2

    def test_a_client_that_the_endpoint_refuses_is_an_error_of_its_own(
        self, broker: SecureKafka, endpoint: TokenServer
    ) -> None:
        with pytest.raises(TokenRefused, match="env CLIENT, env CLIENT_SECRET") as caught:
            Kafka(self.with_token(broker, endpoint), self.known(CLIENT=CLIENT, CLIENT_SECRET="planted-and-wrong"))
        assert "planted" not in str(caught.value)

    @pytest.mark.long
    def test_a_secret_that_is_refused_later_is_the_same_error(self, broker: SecureKafka, endpoint: TokenServer) -> None:
        endpoint.seconds = 2
        kafka = Kafka(
            self.with_token(broker, endpoint),
            self.known(CLIENT=CLIENT, CLIENT_SECRET=CLIENT_SECRET),
            timeout_seconds=60,
        )
        assert kafka.topic("t").partitions == (0,)
        endpoint.secret = "rotated"
        until = time.monotonic() + 20

        def used() -> None:
            while time.monotonic() < until:
                kafka.topic("t")

        with pytest.raises(TokenRefused, match="does not accept our client"):
            used()

    @pytest.mark.long
    def test_a_broker_that_we_do_not_trust_is_an_outage_that_says_so(self, broker: SecureKafka) -> None:
        settings = self.on(broker, "plain", ca=broker.file("stranger.crt"))
        with pytest.raises(KafkaUnavailable, match="certificate verify failed") as caught:
            Kafka(settings, self.known(), timeout_seconds=10).topic("t")
        assert PASSWORD not in str(caught.value)

    @pytest.mark.long
    def test_the_doctor_tells_tls_from_login(self, broker: SecureKafka) -> None:
        def checks(settings: Settings, secrets: Secrets) -> dict[str, Check]:
            kafka = partial(Kafka, settings, secrets, timeout_seconds=3)
            steps = Broker(settings=settings, kafka=kafka, now=time.time(), seconds=1.5).steps
            # The secrets have checks of their own, which are not asked for here.
            steps = [replace(step, after=tuple(n for n in step.after if n.startswith("broker"))) for step in steps]
            return {check.name: check for check in examined(steps, seconds=4, total_seconds=10)}

        wrong = checks(self.on(broker, "plain"), self.known(PASSWORD="planted-and-wrong"))
        assert (wrong["broker TLS"].result, wrong["broker login"].result) == ("warning", "failed")
        assert wrong["broker login"].remedy == "Check env USER, env PASSWORD"
        strange = checks(self.on(broker, "plain", ca=broker.file("stranger.crt")), self.known())
        assert (strange["broker TLS"].result, strange["broker login"].result) == ("failed", "skipped")
        assert "is not trusted" in strange["broker TLS"].found
