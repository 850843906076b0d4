"""The login and TLS of a Kafka client: the environment's typed settings as librdkafka's and as Java's options."""

from __future__ import annotations

import time
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

from frazil.clients.secrets import Secrets, in_jaas, reference
from frazil.clients.tokens import MskTokens, TokenEndpoint, Tokens
from frazil.declaration import environment
from frazil.declaration.environment import Mechanism
from frazil.declaration.secret import OAuth, Secret, secrets_in
from frazil.errors import KafkaUnavailable, SecretUnavailable

_LOGIN_MODULES = {
    Mechanism.PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
    Mechanism.SCRAM_SHA_256: "org.apache.kafka.common.security.scram.ScramLoginModule",
    Mechanism.SCRAM_SHA_512: "org.apache.kafka.common.security.scram.ScramLoginModule",
}

_OAUTH = "org.apache.kafka.common.security.oauthbearer"

_JAVA_MSK = {
    "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
}
"""Classes of `aws-msk-iam-auth`, which sign by themselves, in the region that the broker's name has."""

_PBES2 = bytes.fromhex("06092a864886f70d01050d")
"""The object identifier, in DER, of the encryption that OpenSSL uses by default."""


def librdkafka_options(settings: environment.Kafka, secrets: Secrets) -> dict[str, str]:
    """Return the connection as librdkafka's options, secret values included: never log them.

    Raises `SecretUnavailable`, or `KafkaUnavailable` if the authorities' file cannot be read.
    """
    options = {"bootstrap.servers": settings.bootstrap, "security.protocol": settings.security.value}
    if settings.mechanism in (Mechanism.OAUTHBEARER, Mechanism.AWS_MSK_IAM):
        # Both are tokens to librdkafka, which asks for them: `tokens_of`.
        options["sasl.mechanism"] = Mechanism.OAUTHBEARER.value
    elif settings.mechanism and settings.username and settings.password:
        options["sasl.mechanism"] = settings.mechanism.value
        options["sasl.username"] = secrets.username(settings.username)
        options["sasl.password"] = secrets.read(settings.password)
    if settings.ca is not None:
        options["ssl.ca.pem"] = _authorities(settings.ca)
    if settings.certificate and settings.key:
        options["ssl.certificate.pem"] = secrets.read(settings.certificate)
        options["ssl.key.pem"] = _private_key(settings.key, secrets)
    if settings.key_password:
        options["ssl.key.password"] = secrets.read(settings.key_password)
    return options


def java_options(settings: environment.Kafka, secrets: Secrets) -> dict[str, str]:
    """Return the connection as options of Spark's Kafka source: Java's names, each with the prefix `kafka.`.

    Certificates and keys are in the options themselves, as PEM text: executors need no files. Secret values are
    included, so Spark's redaction must cover them: `spark.redaction.regex` and `spark.sql.redaction.options.regex` need
    `jaas|keystore` next to their defaults. Raises like `librdkafka_options`.
    """
    options = {"bootstrap.servers": settings.bootstrap, "security.protocol": settings.security.value}
    if settings.mechanism:
        options["sasl.mechanism"] = settings.mechanism.value
    if settings.oauth:
        options |= _java_oauth(settings.oauth, secrets)
    if settings.mechanism is Mechanism.AWS_MSK_IAM:
        options |= _JAVA_MSK
    if settings.mechanism and settings.username and settings.password:
        options["sasl.jaas.config"] = jaas(
            settings.mechanism, secrets.username(settings.username), secrets.read(settings.password)
        )
    if settings.ca is not None:
        options["ssl.truststore.type"] = "PEM"
        options["ssl.truststore.certificates"] = _authorities(settings.ca)
    if settings.certificate and settings.key:
        options["ssl.keystore.type"] = "PEM"
        options["ssl.keystore.certificate.chain"] = secrets.read(settings.certificate)
        options["ssl.keystore.key"] = _java_key(settings.key, secrets)
    if settings.key_password:
        options["ssl.key.password"] = secrets.read(settings.key_password)
    return {f"kafka.{name}": value for name, value in options.items()}


def jaas(mechanism: Mechanism, username: str, password: str) -> str:
    """Return the one line of `sasl.jaas.config`. It may hold any user name and password: Kafka reads its quoted words with
    Java's `StreamTokenizer`, where a backslash escapes a quote, itself and line ends.
    """
    return f'{_LOGIN_MODULES[mechanism]} required username="{in_jaas(username)}" password="{in_jaas(password)}";'


def tokens_of(settings: environment.Kafka, secrets: Secrets, *, sleep: Callable[[float], None]) -> Tokens | None:
    """Return the tokens that librdkafka logs in with, if the mechanism is one of tokens.

    Raises `TokenUnavailable` if the file of the endpoint's authorities cannot be read.
    """
    if settings.oauth is not None:
        return Tokens(
            TokenEndpoint(settings.oauth, secrets, now=time.time, sleep=sleep), secrets.redactor, now=time.time
        )
    if settings.mechanism is Mechanism.AWS_MSK_IAM and settings.region is not None:
        return Tokens(MskTokens(settings.region), secrets.redactor, now=time.time)
    return None


def extensions(settings: environment.Kafka) -> dict[str, str]:
    """Return the extensions of a login with a token (RFC 7628): Confluent Cloud's cluster and identity pool."""
    if settings.oauth is None:
        return {}
    named = {"logicalCluster": settings.oauth.logical_cluster, "identityPoolId": settings.oauth.identity_pool}
    return {name: value for name, value in named.items() if value is not None}


def _java_oauth(oauth: OAuth, secrets: Secrets) -> dict[str, str]:
    """Return the options of Kafka's own login at a token endpoint. Its authorities are in the JAAS line, as PEM."""
    words = {"clientId": secrets.username(oauth.client_id), "clientSecret": secrets.read(oauth.client_secret)}
    if oauth.scope:
        words["scope"] = oauth.scope
    if oauth.logical_cluster:
        words["extension_logicalCluster"] = oauth.logical_cluster
    if oauth.identity_pool:
        words["extension_identityPoolId"] = oauth.identity_pool
    if oauth.ca:
        words["ssl.truststore.type"] = "PEM"
        words["ssl.truststore.certificates"] = _authorities(oauth.ca, "kafka.oauth.ca")
    given = " ".join(f'{name}="{in_jaas(value)}"' for name, value in words.items())
    return {
        "sasl.jaas.config": f"{_OAUTH}.OAuthBearerLoginModule required {given};",
        "sasl.login.callback.handler.class": f"{_OAUTH}.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": oauth.token_endpoint,
        "sasl.oauthbearer.header.urlencode": "true",
        "sasl.login.connect.timeout.ms": "5000",  # without these two it waits for an endpoint without an end
        "sasl.login.read.timeout.ms": "5000",
    }


def forget(settings: environment.Kafka, secrets: Secrets) -> None:
    """Forget all secrets of the connection, so that they are read again: the broker refused them."""
    secrets.forget(*secrets_in(settings))


def references(settings: environment.Kafka) -> str:
    """Return the references of the connection's secrets, for a message; empty if it has none."""
    named = [reference(secret) for secret in secrets_in(settings)]
    if settings.mechanism is Mechanism.AWS_MSK_IAM:
        named.append(MskTokens.references)
    return ", ".join(dict.fromkeys(named))


def _authorities(path: str, member: str = "kafka.ca") -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a PEM text"
        what = f"the file of trusted authorities cannot be read ({why})"
        raise KafkaUnavailable(what, where=path, do=f"Correct {member} of the environment") from None


def _private_key(key: Secret, secrets: Secrets) -> str:
    """Return the key's PEM. Java's clients read PKCS #8 only, and say of anything else no more than "invalid PEM"."""
    text = secrets.read(key)
    if "-----BEGIN PRIVATE KEY-----" in text or "-----BEGIN ENCRYPTED PRIVATE KEY-----" in text:
        return text
    raise SecretUnavailable(
        "it is not a private key in PEM, PKCS #8",
        where=f"secret {reference(key)}",
        do="Convert it: openssl pkcs8 -topk8 -nocrypt -in KEY -out KEY.pkcs8",
    )


def _java_key(key: Secret, secrets: Secrets) -> str:
    """Return the key's PEM, if Java can read it: Kafka's client asks for an algorithm "PBES2", which Java 17 lacks."""
    text = _private_key(key, secrets)
    _, is_encrypted, rest = text.partition("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    body = "".join(rest.partition("-----END")[0].split())
    if is_encrypted and _PBES2 in b64decode(body + "=" * (-len(body) % 4)):
        what = "it is encrypted in a way (PBES2) that Kafka's Java client cannot read on Java 17"
        do = "Keep it there without a password, or: openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES -in KEY -out KEY.pkcs8"
        raise SecretUnavailable(what, where=f"secret {reference(key)}", do=do)
    return text
