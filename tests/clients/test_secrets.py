from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws

from frazil.clients.secrets import Secrets, reference, secrets_manager
from frazil.declaration.secret import Secret
from frazil.errors import SecretUnavailable

PLANTED = "planted-secret-4711"


class Manager:
    """Secrets Manager; `answers` are values, or errors to raise."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.asked, self.regions = answers, list[str](), list[str | None]()

    def __call__(self, region: str | None) -> Manager:
        self.regions.append(region)
        return self

    def get_secret_value(self, *, SecretId: str) -> Mapping[str, Any]:  # noqa: N803 - boto3's name
        self.asked.append(SecretId)
        answer = self.answers.get(SecretId, self.answers.get("any"))
        if isinstance(answer, Exception):
            raise answer
        return {"SecretBinary": answer} if isinstance(answer, bytes) else {"SecretString": answer}


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": PLANTED}}, "GetSecretValue")


def told(error: BaseException) -> str:
    """Everything that an error can show."""
    return f"{error}{error!r}{error.__cause__!r}{vars(error)}"


class TestEnvironment:
    def test_a_variable_is_read(self) -> None:
        assert Secrets({"P": PLANTED}).read(Secret(env="P")) == PLANTED

    @pytest.mark.parametrize(("variables", "why"), [({}, "not set"), ({"P": ""}, "empty")])
    def test_a_variable_without_a_value_is_told_by_name(self, variables: dict[str, str], why: str) -> None:
        with pytest.raises(SecretUnavailable, match=f"secret env P: it is {why}"):
            Secrets(variables).read(Secret(env="P"))


class TestFile:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        file = tmp_path / "secret"
        file.touch(mode=0o600)
        return file

    @pytest.mark.parametrize(
        ("held", "value"), [("x", "x"), ("x\n", "x"), ("x\r\n", "x"), ("x\n\n", "x\n"), (" x ", " x "), ("ü", "ü")]
    )
    def test_a_last_newline_is_not_part_of_it(self, file: Path, held: str, value: str) -> None:
        file.write_bytes(held.encode())
        assert Secrets({}).read(Secret(file=str(file))) == value

    def test_a_file_that_is_not_there_is_told(self, file: Path) -> None:
        with pytest.raises(SecretUnavailable, match=r"file .*/none: it cannot be read \(No such file"):
            Secrets({}).read(Secret(file=f"{file.parent}/none"))

    def test_a_folder_is_no_secret(self, file: Path) -> None:
        with pytest.raises(SecretUnavailable, match="cannot be read"):
            Secrets({}).read(Secret(file=str(file.parent)))

    def test_a_huge_file_is_no_secret(self, file: Path) -> None:
        file.write_text("x" * 65_537)
        with pytest.raises(SecretUnavailable, match="larger than 65536 bytes"):
            Secrets({}).read(Secret(file=str(file)))

    def test_bytes_that_are_no_text_are_not_told(self, file: Path) -> None:
        file.write_bytes(PLANTED.encode() + b"\xff")
        with pytest.raises(SecretUnavailable, match="not UTF-8") as caught:
            Secrets({}).read(Secret(file=str(file)))
        assert PLANTED not in told(caught.value)

    @pytest.mark.parametrize(("mode", "is_warned"), [(0o600, False), (0o400, False), (0o640, True), (0o604, True)])
    def test_a_file_that_others_may_read_is_warned_of(
        self, file: Path, caplog: pytest.LogCaptureFixture, mode: int, is_warned: bool
    ) -> None:
        file.write_text(PLANTED)
        file.chmod(mode)
        with caplog.at_level(logging.WARNING):
            assert Secrets({}).read(Secret(file=str(file))) == PLANTED
        assert ("chmod 600" in caplog.text) is is_warned
        assert PLANTED not in caplog.text


class TestSecretsManager:
    def test_a_text_is_the_value(self) -> None:
        assert Secrets({}, manager=Manager(name=PLANTED)).read(Secret(secretsmanager="name")) == PLANTED

    def test_bytes_are_text_too(self) -> None:
        assert Secrets({}, manager=Manager(name=PLANTED.encode())).read(Secret(secretsmanager="name")) == PLANTED

    def test_two_fields_of_one_secret_are_one_question(self) -> None:
        manager = Manager(name=json.dumps({"user": "app", "password": PLANTED, "port": 9092}))
        secrets = Secrets({}, manager=manager)
        fields = [Secret(secretsmanager="name", field=field) for field in ("user", "password", "port")]
        assert [secrets.read(field) for field in fields] == ["app", PLANTED, "9092"]
        assert manager.asked == ["name"]

    @pytest.mark.parametrize(
        ("held", "why"),
        [
            (PLANTED, "not a JSON object"),
            (f'["{PLANTED}"]', "not a JSON object"),
            (f'{{"other": "{PLANTED}"}}', "has no such field"),
            (f'{{"password": ["{PLANTED}"]}}', "something else than text"),
            (f'{{"password": null, "x": "{PLANTED}"}}', "something else than text"),
            ('{"password": ""}', "is empty"),
            ('{"password": true}', "something else than text"),
            ("[" * 100_000, "not a JSON object"),
        ],
    )
    def test_a_field_that_is_not_there_is_told_without_the_value(self, held: str, why: str) -> None:
        with pytest.raises(SecretUnavailable, match=f"secretsmanager name field password: .*{why}") as caught:
            Secrets({}, manager=Manager(name=held)).read(Secret(secretsmanager="name", field="password"))
        assert PLANTED not in told(caught.value)

    def test_an_arn_names_its_region(self) -> None:
        manager = Manager(any=PLANTED)
        secrets = Secrets({}, manager=manager)
        secrets.read(Secret(secretsmanager="arn:aws:secretsmanager:eu-central-1:123456789012:secret:kafka-AbCdEf"))
        secrets.read(Secret(secretsmanager="kafka"))
        assert manager.regions == ["eu-central-1", None]

    @pytest.mark.parametrize(
        ("error", "why"),
        [
            (refused("ResourceNotFoundException"), "no such secret"),
            (refused("AccessDeniedException"), "secretsmanager:GetSecretValue"),
            (refused("DecryptionFailure"), "DecryptionFailure"),
            (EndpointConnectionError(endpoint_url=PLANTED), "EndpointConnectionError"),
        ],
    )
    def test_a_refusal_is_told_by_its_code(self, error: Exception, why: str) -> None:
        with pytest.raises(SecretUnavailable, match=why) as caught:
            Secrets({}, manager=Manager(name=error)).read(Secret(secretsmanager="name"))
        assert PLANTED not in told(caught.value)

    def test_boto3_is_what_asks(self) -> None:
        with mock_aws():
            boto3.client("secretsmanager", region_name="eu-west-1").create_secret(
                Name="kafka", SecretString=json.dumps({"password": PLANTED})
            )
            secrets = Secrets({}, manager=lambda region: secrets_manager(region or "eu-west-1"))
            assert secrets.read(Secret(secretsmanager="kafka", field="password")) == PLANTED
            with pytest.raises(SecretUnavailable, match="no such secret"):
                secrets.read(Secret(secretsmanager="other"))


class TestMemory:
    def test_a_secret_is_read_once_until_it_is_forgotten(self) -> None:
        variables = {"P": "old-value", "Q": "other-value"}
        secrets, one, other = Secrets(variables), Secret(env="P"), Secret(env="Q")
        assert (secrets.read(one), secrets.read(other)) == ("old-value", "other-value")
        variables.update(P="new-value", Q="not-yet")
        assert secrets.read(one) == "old-value"
        secrets.forget(one, None)
        assert (secrets.read(one), secrets.read(other)) == ("new-value", "other-value")

    def test_what_is_read_is_masked(self) -> None:
        secrets = Secrets({"P": PLANTED})
        assert secrets.redactor.redact(PLANTED) == PLANTED
        secrets.read(Secret(env="P"))
        assert secrets.redactor.redact(f"x{PLANTED}y") == "x[redacted]y"

    @pytest.mark.parametrize(("name", "is_masked"), [("orders", False), ("ABCDEFGHIJKLMNOP", True)])
    def test_a_user_name_is_masked_if_it_is_an_api_key(self, name: str, is_masked: bool) -> None:
        secrets = Secrets({"U": name})
        assert secrets.username(Secret(env="U")) == name
        assert (name not in secrets.redactor.redact(f"topic {name}")) is is_masked

    def test_a_value_that_is_not_the_object_it_should_be_is_masked(self) -> None:
        secrets = Secrets({}, manager=Manager(name=PLANTED))
        with pytest.raises(SecretUnavailable):
            secrets.read(Secret(secretsmanager="name", field="password"))
        assert secrets.redactor.redact(PLANTED) == "[redacted]"

    def test_its_repr_tells_nothing(self) -> None:
        secrets = Secrets({"P": PLANTED})
        secrets.read(Secret(env="P"))
        assert PLANTED not in f"{secrets!r}{secrets.redactor!r}"


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        (Secret(env="P"), "env P"),
        (Secret(file="/run/p"), "file /run/p"),
        (Secret(secretsmanager="prod/kafka"), "secretsmanager prod/kafka"),
        (Secret(secretsmanager="prod/kafka", field="password"), "secretsmanager prod/kafka field password"),
    ],
)
def test_a_reference_is_told_as_it_is_written(secret: Secret, text: str) -> None:
    assert reference(secret) == text
