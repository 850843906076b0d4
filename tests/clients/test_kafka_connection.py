"""How a connection bears with failures, without a broker: what passes is asked again, what does not is told."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from frazil.clients.kafka_connection import Client, Connection, Request
from frazil.clients.secrets import Secrets
from frazil.declaration import environment
from frazil.declaration.secret import Secret
from frazil.errors import KafkaRefused, KafkaUnavailable, SecretUnavailable, TopicMissing
from tests.support.fake_time import FakeTime

PLANTED = "planted-secret-4711"

PLAIN = environment.Kafka(bootstrap="127.0.0.1:1")
LOGIN = environment.Kafka(
    bootstrap="127.0.0.1:1",
    security=environment.Security.SASL_SSL,
    mechanism=environment.Mechanism.PLAIN,
    username=Secret(env="USER"),
    password=Secret(env="PASSWORD"),
)


def failing(code: int, text: str = "") -> KafkaException:
    return KafkaException(KafkaError(code, text or None))


class Question:
    """Answers with these, one after the other; an exception is raised. The last one stays."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), 0

    def __call__(self, _: Request) -> Any:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Case:
    def __init__(self, settings: environment.Kafka = PLAIN, timeout_seconds: float = 1.0, **variables: str) -> None:
        self.time, self.variables = FakeTime(), {"USER": "app", "PASSWORD": PLANTED, **variables}
        self.connection = Connection(
            settings,
            Secrets(self.variables),
            timeout_seconds=timeout_seconds,
            clock=self.time.clock,
            sleep=self.time.sleep,
        )

    def ask(self, question: Question) -> Any:
        return self.connection.ask("topic t", question)


@pytest.mark.parametrize("code", [KafkaError.LEADER_NOT_AVAILABLE, KafkaError._NOENT, KafkaError.FENCED_LEADER_EPOCH])
def test_a_partition_without_a_leader_is_asked_for_again(code: int) -> None:
    case = Case()
    assert case.ask(Question(failing(code), failing(code), "answer")) == "answer"
    assert case.time.sleeps == [0.1, 0.1]


def test_what_passes_is_not_asked_beyond_the_time() -> None:
    case, question = Case(), Question(failing(KafkaError.LEADER_NOT_AVAILABLE))
    with pytest.raises(KafkaUnavailable, match="topic t: the broker refused: LEADER_NOT_AVAILABLE"):
        case.ask(question)
    assert 8 <= question.asked <= 10


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC])
def test_a_topic_that_is_not_there_is_told_within_a_second(code: int) -> None:
    case = Case(timeout_seconds=60.0)
    with pytest.raises(TopicMissing, match="topic t: the cluster has no such topic"):
        case.ask(Question(failing(code)))
    assert 0.7 < sum(case.time.sleeps) <= 1.0


def test_a_topic_that_the_broker_knows_a_moment_late_is_there() -> None:
    assert Case().ask(Question(failing(KafkaError.UNKNOWN_TOPIC_OR_PART), "answer")) == "answer"


def test_a_missing_right_is_told_with_what_to_allow() -> None:
    with pytest.raises(KafkaUnavailable, match=r"TOPIC_AUTHORIZATION_FAILED.*DESCRIBE_CONFIGS") as caught:
        Case().ask(Question(failing(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
    assert not isinstance(caught.value, KafkaRefused)


@pytest.mark.parametrize("code", [KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED])
def test_a_login_that_is_refused_is_read_again_and_tried_once_more(code: int) -> None:
    case, question = Case(LOGIN), Question(failing(code), "answer")
    case.variables["PASSWORD"] = "rotated"
    assert case.ask(question) == "answer"
    assert case.connection._secrets.read(Secret(env="PASSWORD")) == "rotated"


def test_a_login_that_stays_refused_is_told_by_its_references() -> None:
    case, question = Case(LOGIN), Question(failing(KafkaError._AUTHENTICATION))
    with pytest.raises(KafkaRefused, match=r"does not accept our login.*env USER, env PASSWORD") as caught:
        case.ask(question)
    assert question.asked == 2
    assert caught.value.authentication
    assert PLANTED not in f"{caught.value}{caught.value!r}{vars(caught.value)}"


def test_a_secret_that_is_gone_when_it_is_read_again_is_told() -> None:
    case = Case(LOGIN)
    del case.variables["PASSWORD"]
    with pytest.raises(SecretUnavailable, match="env PASSWORD"):
        case.ask(Question(failing(KafkaError._AUTHENTICATION)))


@pytest.mark.parametrize(
    ("ended", "is_known_afterwards"),
    [(failing(KafkaError._TIMED_OUT), True), (failing(KafkaError._NOENT), False), (None, False)],
)
def test_what_a_connection_met_is_forgotten_when_a_broker_answers_and_kept_when_a_request_times_out(
    ended: KafkaException | None, is_known_afterwards: bool
) -> None:
    met = KafkaError(KafkaError._SSL, "certificate verify failed")
    client = Client({"bootstrap.servers": "127.0.0.1:1"}, None)
    client._failures.append(met)
    answer: Future[None] = Future()
    answer.set_exception(ended) if ended else answer.set_result(None)
    Request(client, 1.0).settle([answer])
    assert (client.failure is met) == is_known_afterwards


def test_librdkafkas_words_are_redacted() -> None:
    with pytest.raises(KafkaUnavailable, match=r"\[redacted\]") as caught:
        Case(LOGIN).ask(Question(failing(KafkaError.INVALID_REQUEST, f"bad {PLANTED}")))
    assert PLANTED not in str(caught.value)


def test_settings_that_make_no_connection_are_told(tmp_path: Any) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    settings = environment.Kafka(
        bootstrap="127.0.0.1:1",
        security=environment.Security.SSL,
        certificate=Secret(env="CERTIFICATE"),
        key=Secret(env="KEY"),
    )
    with pytest.raises(KafkaUnavailable, match="make no connection"):
        Case(settings, CERTIFICATE="x", KEY=key)
