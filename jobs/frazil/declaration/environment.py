"""The places where pipelines run: endpoints, the catalog, names of secrets. Declarations hold none of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated
from urllib.parse import urlsplit

from frazil.declaration.catalogs import REGION, Catalog, ObjectStore
from frazil.declaration.checks.constraints import ABSOLUTE_PATH, PRIVATE, WEB_ADDRESS, matching
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import Problem
from frazil.declaration.secret import THIS_MACHINE, OAuth, Secret

_HOST = r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}"
_BOOTSTRAP = matching(
    f"{_HOST}(?:,{_HOST})*", "a list of brokers", "Write it like host:9092,other:9092", is_shown=False
)
ENVIRONMENT_NAME = matching(
    "[a-z][a-z0-9-]{0,62}", "an environment's name", "Write a lower-case letter, then a-z, 0-9 and -"
)
_BUCKET = matching("[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", "a bucket's name", "Write the name alone, without s3://")
_APPLICATION = matching("[0-9a-z]{1,64}", "an EMR Serverless application's id", "Write the id, like 00f1abc2def3gh45")
PUBLIC_KEY = matching("[0-9a-f]{64}", "an Ed25519 public key", "Write what `frazil release sign` printed")
_METRICS = matching(
    "(?!AWS/)[0-9A-Za-z._/#: -]{1,255}",
    "a CloudWatch namespace",
    "Write letters, digits and . _ / # : -; AWS/ is AWS's",
)


class Security(StrEnum):
    """The protocol between a Kafka client and its broker, by Kafka's own names.

    `PLAINTEXT` neither hides nor proves anything: local brokers only. `SSL` is TLS, with a client certificate if the
    broker asks for one (mTLS). `SASL_SSL` is TLS with a login of a `Mechanism`, as clouds want it. A login without TLS is not
    offered.
    """

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_SSL = "SASL_SSL"


class Mechanism(StrEnum):
    """The login at the broker.

    `PLAIN` sends a password (Confluent Cloud's API key), `SCRAM-…` proves one. `OAUTHBEARER` sends a token of a token endpoint.
    `AWS_MSK_IAM` sends a request that is signed with the keys of AWS's default credential chain.
    """

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"
    AWS_MSK_IAM = "AWS_MSK_IAM"


_NEEDED: Mapping[Mechanism | None, tuple[str, ...]] = {
    Mechanism.OAUTHBEARER: ("oauth",),
    Mechanism.AWS_MSK_IAM: ("region",),
}
_PASSWORD = ("username", "password")
_LOGIN = ("mechanism", *_PASSWORD, "oauth", "region")


@declared
class Kafka:
    """The Kafka cluster, and how it knows us."""

    bootstrap: Annotated[str, "The bootstrap servers: host:port, joined by commas.", _BOOTSTRAP, PRIVATE]
    security: Annotated[Security, "The security protocol."] = Security.PLAINTEXT
    mechanism: Annotated[Mechanism | None, "With SASL_SSL: the SASL mechanism."] = None
    username: Annotated[Secret | None, "With PLAIN or SCRAM: the user name, or API key."] = None
    password: Annotated[Secret | None, "With PLAIN or SCRAM: the password, or the API key's secret."] = None
    oauth: Annotated[OAuth | None, "With OAUTHBEARER: the client's credentials at the token endpoint."] = None
    region: Annotated[str | None, "With AWS_MSK_IAM: the AWS region of the cluster.", REGION] = None
    ca: Annotated[str | None, "The PEM file of trusted authorities, if not the system's.", ABSOLUTE_PATH] = None
    certificate: Annotated[Secret | None, "With mTLS: the client's certificate chain, PEM."] = None
    key: Annotated[Secret | None, "With mTLS: the certificate's private key, PEM (PKCS #8)."] = None
    key_password: Annotated[Secret | None, "With mTLS: the private key's password, if it has one."] = None

    def _contradictions(self) -> Iterator[Problem]:
        if not _BOOTSTRAP.refusal(self.bootstrap):
            ports = [int(broker.rpartition(":")[2]) for broker in self.bootstrap.split(",")]
            if not all(1 <= port <= 65535 for port in ports):
                yield Problem("bootstrap", "a port is out of bounds", "Write a port from 1 to 65535")
        is_sasl = self.security is Security.SASL_SSL
        needed = ("mechanism", *_NEEDED.get(self.mechanism, _PASSWORD)) if is_sasl else ()
        way = f"mechanism {self.mechanism}" if is_sasl and self.mechanism else f"security {self.security}"
        for name in _LOGIN:
            is_given = getattr(self, name) is not None
            if name in needed and not is_given:
                yield Problem(name, f"{way} needs it", f"Give {name}, or choose another {way.partition(' ')[0]}")
            if is_given and name not in needed:
                other = "mechanism" if is_sasl else "security"
                yield Problem(name, f"{way} does not use it", f"Remove it, or choose the {other} that does")
        for name in ("ca", "certificate", "key", "key_password"):
            if self.security is Security.PLAINTEXT and getattr(self, name) is not None:
                yield Problem(name, "security PLAINTEXT does not use it", "Remove it, or choose SSL or SASL_SSL")
        if (self.certificate is None) != (self.key is None):
            missing = "certificate" if self.certificate is None else "key"
            yield Problem(missing, "of certificate and key only one is given", "Give both or none")
        if self.key_password is not None and self.key is None:
            yield Problem(
                "key_password", "there is no key that it belongs to", "Remove it, or give certificate and key"
            )


@declared
class Registry:
    """The schema registry, by Confluent's API."""

    url: Annotated[str, "The registry's address, without API paths such as /subjects.", WEB_ADDRESS, PRIVATE]
    username: Annotated[Secret | None, "User name, or API key, of basic authentication."] = None
    password: Annotated[Secret | None, "The password, or the API key's secret."] = None
    oauth: Annotated[OAuth | None, "Credentials at a token endpoint, instead of user name and password."] = None
    ca: Annotated[str | None, "The PEM file of trusted authorities, if not the system's.", ABSOLUTE_PATH] = None

    def _contradictions(self) -> Iterator[Problem]:
        if (self.username is None) != (self.password is None):
            missing = "username" if self.username is None else "password"
            yield Problem(missing, "of username and password only one is given", "Give both or none")
        if self.oauth is not None and (self.username or self.password):
            yield Problem("oauth", "there are two logins", "Give oauth, or username and password")
        if WEB_ADDRESS.refusal(self.url):
            return
        address = urlsplit(self.url)
        if address.scheme == "http" and (self.password or self.oauth) and address.hostname not in THIS_MACHINE:
            sent = "password" if self.password else "token"
            yield Problem("url", f"the {sent} would travel in the clear", "Use https://")
        if address.scheme == "http" and self.ca is not None:
            yield Problem("ca", "an http:// address uses no certificates", "Remove it, or use https://")


@declared
class Environment:
    """One place where pipelines run: dev, staging, prod, or `local`."""

    name: Annotated[str, "The environment's name, for `--env`.", ENVIRONMENT_NAME]
    kafka: Annotated[Kafka, "The Kafka cluster."]
    registry: Annotated[
        Registry | None, "The schema registry; without one only schemaless formats and declared schemas can be read."
    ] = None
    catalog: Annotated[Catalog, "The catalog of the tables."]
    object_store: Annotated[ObjectStore | None, "The object store, if not S3 with AWS's default credential chain."] = (
        None
    )
    artifact_bucket: Annotated[str | None, "The bucket of releases and documents.", _BUCKET] = None
    emr_application: Annotated[str | None, "The EMR Serverless application that runs the jobs.", _APPLICATION] = None
    metrics_namespace: Annotated[str, "The CloudWatch namespace of the metrics.", _METRICS] = "Frazil"
    trusted_keys: Annotated[
        tuple[Annotated[str, PUBLIC_KEY], ...] | None, "The public keys of which one must have signed a release."
    ] = None
