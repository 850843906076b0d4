from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from frazil.clients.registry.auth import Login, basic_login, login_of, routing
from frazil.clients.secrets import Secrets
from frazil.declaration import environment
from frazil.declaration.secret import OAuth, Secret
from frazil.errors import SecretUnavailable

USER, PASSWORD = Secret(env="USER"), Secret(env="PASSWORD")
CLIENT = OAuth(token_endpoint="https://id.example/token", client_id=USER, client_secret=PASSWORD)


def secrets(**values: str) -> Secrets:
    return Secrets({"USER": "app", "PASSWORD": "planted-pässword", **values})


def made(settings: environment.Registry) -> Login:
    return login_of(settings, secrets(), now=lambda: 0.0, sleep=lambda seconds: None)


def test_the_login_is_what_the_environment_names() -> None:
    nobody = environment.Registry(url="https://registry")
    user = environment.Registry(url="https://registry", username=USER, password=PASSWORD)
    client = environment.Registry(url="https://registry", oauth=CLIENT)
    assert made(nobody) == Login()
    assert made(user).headers()["Authorization"].startswith("Basic ")
    assert made(client).references == "env USER, env PASSWORD"


def test_a_user_is_sent_as_utf8() -> None:
    scheme, word = basic_login(secrets(), USER, PASSWORD).headers()["Authorization"].split(" ")
    assert (scheme, base64.b64decode(word).decode()) == ("Basic", "app:planted-pässword")


def test_a_user_name_with_a_colon_cannot_be_sent() -> None:
    with pytest.raises(SecretUnavailable, match="colon"):
        basic_login(secrets(USER="a:b"), USER, PASSWORD).headers()


def test_what_is_sent_is_masked() -> None:
    known = secrets()
    header = basic_login(known, USER, PASSWORD).headers()["Authorization"]
    assert known.redactor.redact(f"sent {header}") == "sent Basic [redacted]"


def test_confluents_registry_is_sent_cluster_and_pool_by_headers() -> None:
    assert routing(CLIENT) == {}
    assert routing(replace(CLIENT, logical_cluster="lsrc-1", identity_pool="pool-1,pool-2")) == {
        "target-sr-cluster": "lsrc-1",
        "Confluent-Identity-Pool-Id": "pool-1,pool-2",
    }


def test_a_forgotten_login_is_read_again() -> None:
    values = {"USER": "app", "PASSWORD": "old-password"}
    basic = basic_login(Secrets(values), USER, PASSWORD)
    before = basic.headers()
    values["PASSWORD"] = "new-password"
    assert basic.headers() == before
    basic.forget()
    assert basic.headers() != before


def test_no_login_shows_its_secret() -> None:
    assert "planted" not in repr(basic_login(secrets(), USER, PASSWORD))
