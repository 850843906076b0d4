"""One admin connection to Kafka: requests with a deadline, retries of what passes, clear errors for the rest."""

from __future__ import annotations

import contextlib
import time
import weakref
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from frazil.clients import kafka_records, kafka_security
from frazil.clients.secrets import Secrets
from frazil.clients.tokens import Tokens
from frazil.declaration import environment
from frazil.errors import KafkaRefused, KafkaUnavailable, ServiceUnavailable, TopicMissing


class TokenLogin:
    """The token that one client of librdkafka has, from the start: librdkafka waits 10 s for its first one, and then says no more
    than that it got none.

    Raises `TokenUnavailable` or `SecretUnavailable` if there is no token.
    """

    def __init__(self, tokens: Tokens, extensions: Mapping[str, str]) -> None:
        self._tokens, self._extensions = tokens, dict(extensions)
        self._token = tokens.current()

    @property
    def is_current(self) -> bool:
        """True if the client has the current token. Raises `TokenUnavailable` or `SecretUnavailable`."""
        return self._tokens.current() is self._token

    @property
    def has_expired(self) -> bool:
        """True if the client's token may not be used any more."""
        return self._tokens.has_expired(self._token)

    @property
    def is_due(self) -> bool:
        """True if the client's token should have been renewed: a broker may end its connections from now on."""
        return self._tokens.is_due(self._token)

    def answer(self, _: object) -> tuple[str, float, str, dict[str, str]]:
        """Return the token as librdkafka asks for it: value, end in seconds since 1970, principal, extensions.

        Never raises, as nothing of Python is above it. Without a new token it repeats the old one; requests report why.
        """
        with contextlib.suppress(ServiceUnavailable):
            self._token = self._tokens.current()
        return self._token.value, self._token.expires_at, "frazil", self._extensions


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


def _note(failures: deque[KafkaError], failure: KafkaError) -> None:
    if failure.code() != KafkaError._ALL_BROKERS_DOWN:  # it follows the failure that says why
        failures.append(failure)


class Client:
    """librdkafka's admin client. A new login, or a new token, needs a new one.

    librdkafka asks for tokens on a thread of its own, where Python's garbage collection may run. librdkafka aborts the process if
    it is destroyed there. So what is collected is kept, and destroyed when the next client is made, on a thread of Python.
    """

    def __init__(self, options: Mapping[str, Any], login: TokenLogin | None) -> None:
        _dropped.clear()
        self._login = login
        self._failures: deque[KafkaError] = deque(maxlen=1)  # the client holds it, and it does not hold the client
        everything: dict[str, Any] = {**options, **OURS, "error_cb": partial(_note, self._failures)}
        self.admin: Any = AdminClient(everything)
        weakref.finalize(self, _dropped.append, self.admin).atexit = False

    @property
    def failure(self) -> KafkaError | None:
        """The last failure, if there was one since the last answer."""
        return self._failures[-1] if self._failures else None

    def forget_failure(self) -> None:
        """Forget it: a broker has answered."""
        self._failures.clear()

    @property
    def is_current(self) -> bool:
        """False if the client's token must be renewed. Raises `TokenUnavailable` or `SecretUnavailable`."""
        return self._login is None or self._login.is_current

    def is_ended(self, problem: KafkaError) -> bool:
        """Return whether the broker may have ended the connection since its token expires: it sends no error then."""
        return problem.code() in SILENT_ERRORS and self._login is not None and self._login.is_due

    @property
    def is_refused(self) -> bool:
        """True if the broker refused our login: by SASL, or by a TLS alert about the certificate that we show, or do
        not. A token that has expired is refused, too: librdkafka waits for another without an error.
        """
        if self._login is not None and self._login.has_expired:
            return True
        return self.failure is not None and (
            self.failure.code() in LOGIN_ERRORS or "ssl/tls alert" in self.failure.str()
        )


_T = TypeVar("_T")

_SLICE_SECONDS = 0.1
"""The seconds between two looks at the connection: an admin request does not learn by itself that our login was refused."""

_PAUSE_SECONDS = 0.1
"""The pause before a partition without a leader is asked for again."""

_GRACE_SECONDS = 1.0
"""The time that, beyond its own timeout, an admin request may take to come back."""

_MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID, KafkaError._UNKNOWN_TOPIC})

_MISSING_SECONDS = 1.0
"""A topic that is missing for less time may just have been made: brokers learn of it late."""

_FORBIDDEN = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})

_PASSING = _MISSING | frozenset(
    {
        # "No leaders found", "Local: Unknown partition": what librdkafka says while a topic is being made or moved.
        KafkaError._NOENT,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.REPLICA_NOT_AVAILABLE,
    }
)


class _LoginRefusedError(Exception):
    """The broker refused our login; the secrets may have been rotated since they were read."""


class Request:
    """One question to Kafka: its client, the seconds it has left, and the wait for its answers."""

    def __init__(self, client: Client, seconds: float) -> None:
        self._client, self.seconds = client, seconds
        self.admin = client.admin

    def settle(self, answers: Collection[Future[Any]]) -> None:
        """Wait for all answers; each then has its result or its error. Ends early when our login is refused."""
        waited = 0.0
        while wait(answers, timeout=_SLICE_SECONDS).not_done:
            waited += _SLICE_SECONDS
            self.admin.poll(0)
            if self._client.is_refused:
                raise _LoginRefusedError
            if waited > self.seconds + _GRACE_SECONDS:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        if not any(is_silence(answer.exception()) for answer in answers):
            self._client.forget_failure()


def is_silence(error: BaseException | None) -> bool:
    """Return whether a request ended without an answer from a broker. The failure of its connection before that says why."""
    return isinstance(error, KafkaException) and error.args[0].code() in SILENT_ERRORS


class Connection:
    """A Kafka cluster to ask, shared by all threads. Connects when it is first asked, and by itself again after
    failures.
    """

    def __init__(
        self,
        settings: environment.Kafka,
        secrets: Secrets,
        *,
        timeout_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings, self._secrets = settings, secrets
        self._timeout_seconds, self._clock, self._sleep = timeout_seconds, clock, sleep
        self._tokens = kafka_security.tokens_of(settings, secrets, sleep=sleep)
        self._client = self._connected()

    def ask(self, where: str, question: Callable[[Request], _T]) -> _T:
        """Return the answer to `question`; retry what passes, and a refused login once, with secrets read again.

        `where` is what a message says of the place: `topic orders`. Raises `KafkaUnavailable` or one of its kinds.
        """
        if not self._client.is_current:
            self._client = self._connected()
        try:
            return self._retried(where, question)
        except _LoginRefusedError:
            self.renew()
        try:
            return self._retried(where, question)
        except _LoginRefusedError:
            raise self._login_refused() from None

    def consume(self, where: str, options: Mapping[str, str], work: Callable[[Any, float], _T]) -> _T:
        """Return what `work` reads with a consumer of its own, given the seconds that it may wait.

        Raises `KafkaUnavailable` or one of its kinds.
        """
        security, _ = self._options()
        try:
            consumer = Consumer({**security, **OURS, **kafka_records.OPTIONS, **options})
            try:
                return work(consumer, self._timeout_seconds)
            finally:
                consumer.close()
        except KafkaException as error:
            raise self.explained(error.args[0], where) from None

    def renew(self) -> None:
        """Connect again, with the current secrets."""
        kafka_security.forget(self._settings, self._secrets)
        if self._tokens is not None:
            self._tokens.forget()
        self._client = self._connected()

    def _connected(self) -> Client:
        options, login = self._options()
        try:
            return Client(options, login)
        except KafkaException as error:
            what = f"these settings make no connection: {self._redacted(error.args[0])}"
            do = "Check the environment's kafka, certificates and keys above all"
            raise KafkaUnavailable(what, where=self._settings.bootstrap, do=do) from None

    def _options(self) -> tuple[dict[str, Any], TokenLogin | None]:
        """Return librdkafka's options, and the login with a token if the mechanism is one of tokens."""
        options: dict[str, Any] = {**kafka_security.librdkafka_options(self._settings, self._secrets)}
        if self._tokens is None:
            return options, None
        login = TokenLogin(self._tokens, kafka_security.extensions(self._settings))
        return options | {"oauth_cb": login.answer}, login

    def _retried(self, where: str, question: Callable[[Request], _T]) -> _T:
        client, start = self._client, self._clock()
        deadline = start + self._timeout_seconds
        while True:
            left = deadline - self._clock()
            try:
                return question(Request(client, max(left, 0.001)))
            except KafkaException as error:
                problem: KafkaError = error.args[0]
                client.admin.poll(0)
                if problem.code() in LOGIN_ERRORS or client.is_refused or client.is_ended(problem):
                    raise _LoginRefusedError from None
                may_pass = problem.code() in _PASSING
                until = min(deadline, start + _MISSING_SECONDS) if problem.code() in _MISSING else deadline
                if not may_pass or self._clock() + _PAUSE_SECONDS >= until:
                    raise self.explained(problem, where, client.failure) from None
            self._sleep(_PAUSE_SECONDS)

    def explained(self, problem: KafkaError, where: str, failure: KafkaError | None = None) -> KafkaUnavailable:
        """Return the error for people. `failure` of the connection says more than a request's timeout."""
        code = problem.code()
        if code in _MISSING:
            what = "the cluster has no such topic, or does not let us see it"
            return TopicMissing(what, where=where, do="Check its name; check that we may DESCRIBE it")
        if code in _FORBIDDEN:
            do = "Allow READ, DESCRIBE and DESCRIBE_CONFIGS on the topic to our user"
            return KafkaUnavailable(f"the broker does not allow it ({problem.name()})", where=where, do=do)
        if code in SILENT_ERRORS:
            why = f"; last failure: {self._redacted(failure)}" if failure is not None else ""
            return KafkaUnavailable(
                f"{self._settings.bootstrap} did not answer within {self._timeout_seconds:g} s{why}",
                where=where,
                do="Check that the brokers run and can be reached from here, and kafka.security of the environment",
            )
        return KafkaUnavailable(f"the broker refused: {self._redacted(problem)}", where=where)

    def _login_refused(self) -> KafkaRefused:
        failure = self._client.failure
        why = f" ({self._redacted(failure)})" if failure is not None else ""
        do = f"Check {kafka_security.references(self._settings) or 'whether the cluster wants a login'}"
        return KafkaRefused(f"the broker does not accept our login{why}", where=self._settings.bootstrap, do=do)

    def _redacted(self, problem: KafkaError) -> str:
        return self._secrets.redactor.redact(f"{problem.name()}, {problem.str()}")
