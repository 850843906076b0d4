"""Checks of the Kafka cluster: its addresses, TLS and our login, each by itself, so that a failure names the layer."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from frazil.clients import reachability
from frazil.clients.kafka_rights import KafkaAccess
from frazil.declaration import environment
from frazil.declaration.environment import Security
from frazil.doctor import secret_values
from frazil.doctor.check_result import Check
from frazil.doctor.schedule import Step

ADDRESS, TLS, LOGIN = "broker", "broker TLS", "broker login"
SOON = timedelta(days=14)
"""A certificate that expires within this time is a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """The cluster of an environment; `access` connects when it is first called, `now` is in seconds since 1970."""

    settings: environment.Kafka
    access: Callable[[], KafkaAccess]
    now: float
    seconds: float

    @property
    def steps(self) -> list[Step]:
        """Return the steps of the cluster."""
        has_tls = self.settings.security is not Security.PLAINTEXT
        made = [Step(name=ADDRESS, work=self.address)]
        made += [Step(name=TLS, work=self.tls, after=(ADDRESS,))] if has_tls else []
        before = (TLS,) if has_tls else (ADDRESS,)
        return [*made, Step(name=LOGIN, work=self.login, after=(*before, *secret_values.names(self.settings)))]

    def address(self) -> Check:
        """Check that a TCP connection to the bootstrap servers is accepted."""
        addresses = [address.strip() for address in self.settings.bootstrap.split(",")]
        refused = {a: why for a in addresses if (why := _refusal(partial(reachability.connect, a, self.seconds)))}
        found = "; ".join(f"{address}: {why}" for address, why in refused.items())
        if len(refused) == len(addresses):
            is_local = all(reachability.is_here(address) for address in addresses)
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
            shaken = reachability.handshake(address, self.settings.ca, self.seconds)
        except ssl.SSLCertVerificationError as error:
            remedy = "Name the file of its authority in kafka.ca" if self.settings.ca is None else "Correct kafka.ca"
            return Check.failed(TLS, f"{address}: the certificate is not trusted ({error.verify_message})", remedy)
        except ssl.SSLError as error:
            what = f"{address}: no TLS handshake ({error.reason or error})"
            return Check.failed(TLS, what, "Check kafka.security: does this port speak TLS?")
        except OSError as error:
            return Check.failed(TLS, f"{address}: {_why(error)}", "Check kafka.ca, kafka.security and the network")
        return of_handshake(shaken, now=self.now)

    def login(self) -> Check:
        """Check that the cluster accepts our login. Raises `KafkaUnavailable`, and `SecretUnavailable`."""
        cluster = self.access().cluster()
        how = self.settings.mechanism or ("client certificate" if self.settings.certificate else "no login")
        count = f"{cluster.brokers} broker{'' if cluster.brokers == 1 else 's'}"
        return Check.ok(LOGIN, f"cluster {cluster.id}, {count}, {how}")


def of_handshake(shaken: reachability.Handshake, *, now: float) -> Check:
    """Return the check of a handshake: a certificate that expires soon is a warning."""
    if shaken.expires is None:
        return Check.ok(TLS, shaken.version)
    found = f"{shaken.version}, certificate valid until {shaken.expires:%Y-%m-%d}"
    if shaken.expires - datetime.fromtimestamp(now, UTC) < SOON:
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
