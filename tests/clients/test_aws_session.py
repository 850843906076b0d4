"""Sessions of boto3: each has the shell's settings of its time, and all share the descriptions of services."""

from __future__ import annotations

import pytest

from frazil.clients.aws_session import aws_session


def test_a_session_has_the_credentials_that_the_shell_has_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    seen = []
    for key in ("first", "second"):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
        seen.append(aws_session().get_credentials().access_key)
    assert seen == ["first", "second"]


def test_given_keys_and_a_region_are_the_sessions() -> None:
    session = aws_session("key", "secret", "token", region="eu-north-1")
    given = session.get_credentials()
    assert (given.access_key, given.secret_key, given.token) == ("key", "secret", "token")
    assert session.region_name == "eu-north-1"


def test_the_description_of_a_service_is_read_once() -> None:
    first, second = (aws_session("key", "secret", region="eu-north-1") for _ in range(2))
    first.client("s3")
    loaders = [session._session.get_component("data_loader") for session in (first, second)]
    assert loaders[0] is loaders[1]
    assert loaders[0].load_service_model("s3", "service-2") is loaders[1].load_service_model("s3", "service-2")
