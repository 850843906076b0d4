"""Checks of the Kafka cluster, layer by layer, and of topics: rights on them, and a fetch."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from frazil.clients import reachability
from frazil.clients.kafka import Kafka
from frazil.declaration import Pipeline, environment
from frazil.declaration.environment import Security
from frazil.doctor.check_result import Check, Step
from frazil.doctor.machine import secret_names

ADDRESS, TLS, LOGIN = "broker", "broker TLS", "broker login"
SOON = timedelta(days=14)
"""A certificate that expires within this time is a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """The cluster of an environment; `kafka` connects when it is first called, `now` is in seconds since 1970."""

    settings: environment.Kafka
    kafka: Callable[[], Kafka]
    now: float
    seconds: float

    @property
    def steps(self) -> list[Step]:
        """Return the steps of the cluster."""
        has_tls = self.settings.security is not Security.PLAINTEXT
        made = [Step(name=ADDRESS, work=self.address)]
        made += [Step(name=TLS, work=self.tls, after=(ADDRESS,))] if has_tls else []
        before = (TLS,) if has_tls else (ADDRESS,)
        return [*made, Step(name=LOGIN, work=self.login, after=(*before, *secret_names(self.settings)))]

    def address(self) -> Check:
        """Check that a TCP connection to the bootstrap servers is accepted."""
        addresses = [address.strip() for address in self.settings.bootstrap.split(",")]
        refused = {a: why for a in addresses if (why := _refusal(partial(reachability.connect, a, self.seconds)))}
        found = "; ".join(f"{address}: {why}" for address, why in refused.items())
        if len(refused) == len(addresses):
            is_local = all(address.rpartition(":")[0] in reachability.LOOPBACK for address in addresses)
            remedy = "`frazil local up` starts a local broker" if is_local else "Check kafka.bootstrap and the network"
            return Check.failed(ADDRESS, found, remedy)
        if refused:
            return Check.warning(ADDRESS, f"some do not answer: {found}", "Remove them from kafka.bootstrap")
        return Check.ok(ADDRESS, f"{', '.join(addresses)} accepts connections")

    def tls(self) -> Check:
        """Check the TLS handshake with the first server that answers."""
        address = next(
            a
            for a in self.settings.bootstrap.split(",")
            if not _refusal(partial(reachability.connect, a, self.seconds))
        )
        try:
            version, expires = reachability.handshake(address, self.settings.ca, self.seconds)
        except ssl.SSLCertVerificationError as error:
            remedy = "Name the file of its authority in kafka.ca" if self.settings.ca is None else "Correct kafka.ca"
            return Check.failed(TLS, f"{address}: the certificate is not trusted ({error.verify_message})", remedy)
        except ssl.SSLError as error:
            what = f"{address}: no TLS handshake ({error.reason or error})"
            return Check.failed(TLS, what, "Check kafka.security: does this port speak TLS?")
        except OSError as error:
            return Check.failed(TLS, f"{address}: {_why(error)}", "Check kafka.ca, kafka.security and the network")
        return of_handshake(version, expires, now=self.now)

    def login(self) -> Check:
        """Check that the cluster accepts our login. Raises `KafkaUnavailable`, and `SecretUnavailable`."""
        cluster = self.kafka().cluster()
        how = self.settings.mechanism or ("client certificate" if self.settings.certificate else "no login")
        count = f"{cluster.brokers} broker{'' if cluster.brokers == 1 else 's'}"
        return Check.ok(LOGIN, f"cluster {cluster.id}, {count}, {how}")


def of_handshake(version: str, expires: datetime | None, *, now: float) -> Check:
    """Return the check of a handshake: a certificate that expires soon is a warning."""
    if expires is None:
        return Check.ok(TLS, version)
    found = f"{version}, certificate valid until {expires:%Y-%m-%d}"
    if expires - datetime.fromtimestamp(now, UTC) < SOON:
        return Check.warning(TLS, found, "Renew the broker's certificate")
    return Check.ok(TLS, found)


def _refusal(connect: Callable[[], object]) -> str:
    try:
        connect()
        return ""
    except OSError as error:
        return _why(error)


def _why(error: OSError) -> str:
    return (error.strerror or str(error) or type(error).__name__).lower()


NEEDED = ("DESCRIBE", "DESCRIBE_CONFIGS", "READ")
"""The operations on a topic that a run needs, by Kafka's names."""


def steps(pipelines: Sequence[Pipeline], kafka: Callable[[], Kafka]) -> list[Step]:
    """Return two steps for each topic: its rights, and a fetch."""
    topics = {pipeline.topic.name: pipeline for pipeline in pipelines}
    made = []
    for name, pipeline in topics.items():
        rights = f"topic {name}"
        made.append(Step(name=rights, work=partial(_rights, name, kafka), after=(LOGIN,)))
        made.append(Step(name=f"read {name}", work=partial(_fetch, pipeline, kafka), after=(rights,)))
    return made


def of_rights(topic: str, partitions: int, granted: frozenset[str]) -> Check:
    """Return the check of the operations that a broker authorises; none if it does not say."""
    name, found = f"topic {topic}", f"{partitions} partition{'' if partitions == 1 else 's'}"
    missing = [operation for operation in NEEDED if operation not in granted]
    if not granted or "ALL" in granted:
        return Check.ok(name, found)
    if missing:
        what, do = f"our user may not {', '.join(missing)}", f"Allow {', '.join(missing)} on topic {topic} to our user"
        return Check.failed(name, what, do)
    return Check.ok(name, f"{found}, {', '.join(NEEDED)} allowed")


def _rights(topic: str, kafka: Callable[[], Kafka]) -> Check:
    """Check what a run asks of a topic. Raises `KafkaUnavailable`."""
    granted = kafka().rights(topic)
    return of_rights(topic, len(kafka().topic(topic).partitions), granted)


def _fetch(pipeline: Pipeline, kafka: Callable[[], Kafka]) -> Check:
    """Check that offsets are listed and a fetch is answered, by the last offset of one partition. Raises `KafkaUnavailable`."""
    topic = pipeline.topic.name
    spans = kafka().offsets(topic, pipeline.isolation)
    held = {partition: span for partition, span in spans.items() if span.stable > span.earliest}
    partition, span = next(iter(held.items() or spans.items()))
    kafka().records(topic, {partition: max(span.stable - 1, span.earliest)}, pipeline.isolation)
    if not held:
        return Check.warning(f"read {topic}", "the topic has no records", "Nothing lands until a producer writes some")
    count = sum(span.stable - span.earliest for span in held.values())
    return Check.ok(f"read {topic}", f"{count:,} offsets, a fetch was answered")
