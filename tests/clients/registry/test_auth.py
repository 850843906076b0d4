from __future__ import annotations

import base64

import pytest

from frazil.clients.registry.auth import BasicLogin, BearerLogin, NoLogin, login_of
from frazil.clients.secrets import Secrets
from frazil.declaration import environment
from frazil.declaration.secret import Secret
from frazil.errors import SecretUnavailable

USER, PASSWORD, TOKEN = Secret(env="USER"), Secret(env="PASSWORD"), Secret(env="TOKEN")


def secrets(**values: str) -> Secrets:
    return Secrets({"USER": "app", "PASSWORD": "planted-pässword", "TOKEN": "planted.token", **values})


def test_the_login_is_what_the_environment_names() -> None:
    nobody = environment.Registry(url="https://registry")
    user = environment.Registry(url="https://registry", username=USER, password=PASSWORD)
    assert isinstance(login_of(nobody, None, secrets()), NoLogin)
    assert isinstance(login_of(user, None, secrets()), BasicLogin)
    assert isinstance(login_of(user, TOKEN, secrets()), BearerLogin)


def test_nobody_has_no_header() -> None:
    assert NoLogin().header() is None  # type: ignore[func-returns-value]


def test_a_user_is_sent_as_utf8() -> None:
    scheme, word = BasicLogin(secrets(), USER, PASSWORD).header().split(" ")
    assert (scheme, base64.b64decode(word).decode()) == ("Basic", "app:planted-pässword")


def test_a_user_name_with_a_colon_cannot_be_sent() -> None:
    with pytest.raises(SecretUnavailable, match="colon"):
        BasicLogin(secrets(USER="a:b"), USER, PASSWORD).header()


def test_what_is_sent_is_masked() -> None:
    known = secrets()
    header = BasicLogin(known, USER, PASSWORD).header()
    assert known.redactor.redact(f"sent {header}") == "sent Basic [redacted]"


def test_a_bearer_shows_the_token() -> None:
    assert BearerLogin(secrets(), TOKEN).header() == "Bearer planted.token"


@pytest.mark.parametrize("token", ["planted\r\nX-Evil: 1", "planted token", "plänted", "planted\t"])
def test_a_token_that_would_break_the_header_is_refused_and_not_told(token: str) -> None:
    with pytest.raises(SecretUnavailable, match="env TOKEN") as caught:
        BearerLogin(secrets(TOKEN=token), TOKEN).header()
    assert token not in str(caught.value)


def test_a_forgotten_login_is_read_anew() -> None:
    values = {"USER": "app", "PASSWORD": "old-password", "TOKEN": "old-token"}
    known = Secrets(values)
    basic, bearer = BasicLogin(known, USER, PASSWORD), BearerLogin(known, TOKEN)
    before = basic.header(), bearer.header()
    values.update(PASSWORD="new-password", TOKEN="new-token")
    assert (basic.header(), bearer.header()) == before
    basic.forget()
    bearer.forget()
    assert basic.header() != before[0]
    assert bearer.header() == "Bearer new-token"


def test_no_login_shows_its_secret() -> None:
    assert "planted" not in f"{BasicLogin(secrets(), USER, PASSWORD)!r}{BearerLogin(secrets(), TOKEN)!r}"
