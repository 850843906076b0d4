"""A broker that requires authentication: SASL_SSL with PLAIN, SCRAM and OAUTHBEARER, and TLS with client certificates. For security's own
tests.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka import admin as kafka_admin

from frazil.local.ports import HOST, free_ports
from frazil.local.toolchain.jars import jars
from tests.support.token_server import AUDIENCE, ISSUER, make_signing_key

_admin: Any = kafka_admin

USER = "app"
PASSWORD = "pa\"ss\\wo;rd='x //ü"
"""Every character that has a meaning somewhere on the way."""
KEY_PASSWORD = "k3y pass"

_JAVA = ("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True)
class SecureKafka:
    """`plain` is without a login, for setting up; `sasl` and `mtls` are what is tested. `folder` has the PEM files."""

    plain: str
    sasl: str
    mtls: str
    folder: Path

    def file(self, name: str) -> str:
        return str(self.folder / name)

    def add_scram_user(self) -> None:
        """Give the user a password for SCRAM."""
        info = _admin.ScramCredentialInfo(_admin.ScramMechanism.SCRAM_SHA_512, 4096)
        change = _admin.UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
        admin = _admin.AdminClient({"bootstrap.servers": self.plain})
        admin.alter_user_scram_credentials([change])[USER].result()

    def java_sees(
        self, options: Mapping[str, str], topic: str, *java: str, jars: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Describe a topic with Kafka's Java client and the options of Spark's Kafka source."""
        lines = [f"{name.removeprefix('kafka.')}={_property(value)}" for name, value in options.items()]
        file = self.folder / "client.properties"
        file.write_text("\n".join([*lines, "default.api.timeout.ms=8000", "request.timeout.ms=7000"]))
        command = ["kafka.admin.ConfigCommand", "--describe", "--entity-type", "topics", "--entity-name", topic]
        where = ["--bootstrap-server", options["kafka.bootstrap.servers"], "--command-config", str(file)]
        return subprocess.run(
            [*_JAVA, *java, "-cp", f"{_classpath()}:{jars}", *command, *where],
            capture_output=True,
            text=True,
            check=False,
        )


@contextmanager
def secure_kafka(folder: Path) -> Iterator[SecureKafka]:
    """Run such a broker inside the `with` block."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make certificates")
    certificates(folder)
    make_signing_key(folder)
    with free_ports(4) as (plain, controller, sasl, mtls):
        settings = folder / "server.properties"
        settings.write_text(_settings(folder, plain, controller, sasl, mtls))
        form = ["kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(settings)]
        subprocess.run([*_JAVA, "-cp", _classpath(), *form], check=True, capture_output=True)
        with (folder / "broker.log").open("wb") as log:
            allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={(folder / 'jwks.json').as_uri()}"
            command = [*_JAVA, allowed, "-cp", _classpath(), "kafka.Kafka", str(settings)]
            broker = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            found = SecureKafka(f"{HOST}:{plain}", f"{HOST}:{sasl}", f"{HOST}:{mtls}", folder)
            _await(broker, found.plain, folder / "broker.log")
            yield found
        finally:
            os.kill(broker.pid, signal.SIGKILL)
            broker.wait()


def _await(broker: subprocess.Popen[bytes], bootstrap: str, log: Path) -> None:
    client = _admin.AdminClient({"bootstrap.servers": bootstrap, "log_level": "0", "reconnect.backoff.max.ms": "100"})
    deadline = time.monotonic() + 60
    while True:
        try:
            client.list_topics(timeout=1)
            return
        except KafkaException:
            if broker.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(log.read_text()[-3000:]) from None


def _settings(folder: Path, plain: int, controller: int, sasl: int, mtls: int) -> str:
    where = f"PLAINTEXT://{HOST}:{plain},SASL_SSL://{HOST}:{sasl},SSL://{HOST}:{mtls}"
    module = "org.apache.kafka.common.security"
    said = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    login = f'{module}.plain.PlainLoginModule required user_{USER}="{said}";'
    values = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": f"{where},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": where,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(folder / "data"),
        "offsets.topic.replication.factor": "1",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.both"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.crt"),
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": login,
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{module}.scram.ScramLoginModule required;",
        "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": f"{module}.oauthbearer.OAuthBearerLoginModule required;",
        "listener.name.sasl_ssl.oauthbearer.sasl.server.callback.handler.class": (
            f"{module}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "listener.name.sasl_ssl.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": (folder / "jwks.json").as_uri(),
        "listener.name.sasl_ssl.oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
        "listener.name.sasl_ssl.oauthbearer.sasl.oauthbearer.expected.issuer": ISSUER,
        # The broker ends a connection whose token has expired, unless its client shows a new one.
        "listener.name.sasl_ssl.oauthbearer.connections.max.reauth.ms": "3600000",
    }
    return "".join(f"{name}={_property(value)}\n" for name, value in values.items())


def certificates(folder: Path) -> None:
    """Create an authority, its certificates for server and client, and a certificate that it did not sign."""
    _authority(folder, "ca", "-addext keyUsage=critical,keyCertSign,cRLSign")
    for name in ("server", "client"):
        _signed(folder, name, "ca")
    _openssl(folder, f"{_SELF_SIGNED} -subj /CN=x -keyout stranger.key -out stranger.crt")
    for name, algorithm in (("client.3des", "-v1 PBE-SHA1-3DES"), ("client.pbes2", "-v2 aes-256-cbc")):
        _openssl(folder, f"pkcs8 -topk8 -in client.key -out {name} {algorithm} -passout", f"pass:{KEY_PASSWORD}")
    _openssl(folder, "rsa -traditional -in client.key -out client.pkcs1")
    (folder / "server.both").write_text((folder / "server.key").read_text() + (folder / "server.crt").read_text())
    for file in folder.iterdir():
        file.chmod(0o600)


def careless_certificates(folder: Path) -> None:
    """Create a server's certificate of an authority without the key usage that RFC 5280 demands, as OpenSSL does unless asked."""
    _authority(folder, "careless-ca", "")
    _signed(folder, "careless", "careless-ca")


_SELF_SIGNED = "req -x509 -newkey rsa:2048 -nodes -days 2"


def _authority(folder: Path, name: str, more: str) -> None:
    _openssl(folder, f"{_SELF_SIGNED} -subj /CN=ca {more} -keyout {name}.key -out {name}.crt")


def _signed(folder: Path, name: str, by: str) -> None:
    names = "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1,DNS:localhost"
    usage = "-addext basicConstraints=critical,CA:FALSE"
    made = f"{_SELF_SIGNED} {names} {usage} -CA {by}.crt -CAkey {by}.key"
    _openssl(folder, f"{made} -keyout {name}.key -out {name}.crt")


def _openssl(folder: Path, line: str, *more: str) -> None:
    subprocess.run(["openssl", *line.split(), *more], cwd=folder, check=True, capture_output=True)


def _classpath() -> str:
    return ":".join(map(str, jars("kafka")))


def _property(value: str) -> str:
    """Escape a value for Java's properties files."""
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
    return "".join(character if character.isascii() else f"\\u{ord(character):04x}" for character in escaped)
