"""One admin connection to Kafka: requests with a deadline, retries of what passes, clear errors for the rest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException

from frazil.clients import kafka_records, kafka_security
from frazil.clients.kafka_client import LOGIN_ERRORS, OURS, SILENT_ERRORS, Client
from frazil.clients.kafka_tokens import TokenLogin
from frazil.clients.secrets import Secrets
from frazil.declaration import environment
from frazil.errors import KafkaRefused, KafkaUnavailable, TopicMissing

_T = TypeVar("_T")

_SLICE_SECONDS = 0.1
"""How often a wait looks at the connection: an admin request does not learn by itself that our login was refused."""

_PAUSE_SECONDS = 0.1
"""The pause before a partition without a leader is asked for again."""

_GRACE_SECONDS = 1.0
"""How much longer than its own timeout an admin request may take to come back."""

_MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID, KafkaError._UNKNOWN_TOPIC})

_MISSING_SECONDS = 1.0
"""How long a topic may be missing until we believe it: a broker learns a moment late that one was made."""

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

    @property
    def admin(self) -> Any:
        """librdkafka's admin client."""
        return self._client.admin

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
    """Return whether a request ended without an answer from a broker. What its connection met before then says why."""
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
        clock: Callable[[], float],
        sleep: Callable[[float], None],
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
            raise self._error_of(error.args[0], None, where) from None

    def explained(self, problem: KafkaError, where: str) -> KafkaUnavailable:
        """Return the error of one part of an answer, for people."""
        return self._error_of(problem, None, where)

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
            raise KafkaUnavailable(
                f"these settings make no connection: {self._redacted(error.args[0])}",
                where=self._settings.bootstrap,
                do="Check the environment's kafka, certificates and keys above all",
            ) from None

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
                    raise self._error_of(problem, client.failure, where) from None
            self._sleep(_PAUSE_SECONDS)

    def _error_of(self, problem: KafkaError, failure: KafkaError | None, where: str) -> KafkaUnavailable:
        """Return the error for people. `failure` of the connection says more than a request's timeout."""
        code = problem.code()
        if code in _MISSING:
            return TopicMissing(
                "the cluster has no such topic, or does not let us see it",
                where=where,
                do="Check its name; check that we may DESCRIBE it",
            )
        if code in _FORBIDDEN:
            return KafkaUnavailable(
                f"the broker does not allow it ({problem.name()})",
                where=where,
                do="Allow READ, DESCRIBE and DESCRIBE_CONFIGS on the topic to our user",
            )
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
        return KafkaRefused(
            f"the broker does not accept our login{why}",
            where=self._settings.bootstrap,
            do=f"Check {kafka_security.references(self._settings) or 'whether the cluster wants a login'}",
        )

    def _redacted(self, problem: KafkaError) -> str:
        return self._secrets.redactor.redact(f"{problem.name()}, {problem.str()}")
