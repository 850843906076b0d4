"""librdkafka's admin client with one login, and the failures that its connections met."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from frazil.clients.kafka_tokens import TokenLogin

OURS = {
    "client.id": "frazil",
    "enable.metrics.push": "false",
    # librdkafka writes its log to stderr by itself, unredacted. What it knows of failures comes through `error_cb`.
    "log_level": "0",
    "reconnect.backoff.max.ms": "1000",
}

LOGIN_ERRORS = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})

SILENT_ERRORS = frozenset({KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE, KafkaError._TRANSPORT})

_dropped: deque[Any] = deque()
"""Clients of librdkafka that nothing uses any more, to be destroyed by `Client()`."""


class _Failures:
    """The last failure of a client's connections. The client holds it, and it does not hold the client."""

    def __init__(self) -> None:
        self.last: KafkaError | None = None

    def note(self, failure: KafkaError) -> None:
        # "All brokers are down" follows the failure that says why: keep that one.
        if failure.code() != KafkaError._ALL_BROKERS_DOWN:
            self.last = failure


class Client:
    """librdkafka's admin client. A new login, or a new token, needs a new one.

    librdkafka asks for tokens on a thread of its own, where Python's garbage collection may run. librdkafka aborts the process if
    it is destroyed there. So what is collected is kept, and destroyed when the next client is made, on a thread of Python.
    """

    def __init__(self, options: Mapping[str, Any], login: TokenLogin | None) -> None:
        _dropped.clear()
        self._login, self._failures = login, _Failures()
        everything: dict[str, Any] = {**options, **OURS, "error_cb": self._failures.note}
        self.admin: Any = AdminClient(everything)
        weakref.finalize(self, _dropped.append, self.admin).atexit = False

    @property
    def failure(self) -> KafkaError | None:
        """The last failure, if there was one since the last answer."""
        return self._failures.last

    def forget_failure(self) -> None:
        """Forget it: a broker has answered."""
        self._failures.last = None

    @property
    def is_current(self) -> bool:
        """Whether the client's token, if it has one, need not be renewed. Raises `TokenUnavailable` or `SecretUnavailable`."""
        return self._login is None or self._login.is_current

    def is_ended(self, problem: KafkaError) -> bool:
        """Return whether the broker may have ended the connection since its token expires: it sends no error then."""
        return problem.code() in SILENT_ERRORS and self._login is not None and self._login.is_due

    @property
    def is_refused(self) -> bool:
        """Whether the broker refused our login: by SASL, or by a TLS alert about the certificate that we show, or do
        not. A token that has expired is refused, too: librdkafka waits for another without an error.
        """
        if self._login is not None and self._login.has_expired:
            return True
        return self.failure is not None and (
            self.failure.code() in LOGIN_ERRORS or "ssl/tls alert" in self.failure.str()
        )
