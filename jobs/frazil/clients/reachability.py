"""The reachability of an address: TCP, TLS, and the time of its server."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import urllib3
from urllib3.exceptions import HTTPError

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""Hosts that are this machine."""

_REASON = re.compile(r"certificate verify failed: (.+?) \(_ssl\.c")


def connect(address: str, seconds: float) -> None:
    """Connect to `host:port` and close. Raises `OSError`."""
    _connected(address, seconds).close()


def handshake(address: str, ca: str | None, seconds: float) -> tuple[str, datetime | None]:
    """Shake hands with `host:port` as Kafka's clients do, host name included; `ca` is a file of authorities.

    Return the version of TLS, and the end of the certificate. A server that then asks for a client certificate has passed.
    Raises `ssl.SSLError`, or `OSError`.
    """
    context = ssl.create_default_context(cafile=ca)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python's own default from 3.13 on, and no Kafka client's
    host = address.rpartition(":")[0].strip("[]")
    with _connected(address, seconds) as plain, context.wrap_socket(plain, server_hostname=host) as secure:
        certificate = secure.getpeercert() or {}
        until = certificate.get("notAfter")
        expires = datetime.fromtimestamp(ssl.cert_time_to_seconds(until), UTC) if isinstance(until, str) else None
        return secure.version() or "TLS", expires


def distrust(error: str) -> str:
    """Return the message of a TLS error if the server's certificate is not trusted, with OpenSSL's reason; else nothing."""
    if "CERTIFICATE_VERIFY_FAILED" not in error:
        return ""
    reason = _REASON.search(error)
    return f"its certificate is not trusted{f' ({reason[1]})' if reason else ''}"


def clock_skew(url: str, ca: str | None, seconds: float, clock: Callable[[], float]) -> float | None:
    """Return by how many seconds our clock is ahead of the server of a URL; None if it does not say its time.

    The request has no login. `clock` is in seconds since 1970. `Date` has no fractions of a second, so half of one is added.
    """
    try:
        pool = urllib3.PoolManager(retries=False, cert_reqs="CERT_REQUIRED", ca_certs=ca)
        began = clock()
        answer = pool.request("HEAD", url, timeout=seconds, redirect=False)
        middle = (began + clock()) / 2
        return middle - (parsedate_to_datetime(answer.headers["Date"]).timestamp() + 0.5)
    except (HTTPError, OSError, KeyError, ValueError, TypeError):
        return None


def _connected(address: str, seconds: float) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), timeout=seconds)
