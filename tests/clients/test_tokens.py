"""When a token is renewed, without an endpoint; `test_token_endpoint` has one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from frazil.clients.registry.client import Registry
from frazil.clients.secrets import Redactor, Secrets
from frazil.clients.tokens import MskTokens, Token, TokenEndpoint, Tokens
from frazil.declaration import environment
from frazil.declaration.secret import OAuth, Secret
from frazil.errors import RegistryRefused, SecretUnavailable, TokenRefused, TokenUnavailable
from tests.support.fake_time import FakeTime
from tests.support.registry_server import RegistryServer
from tests.support.secure_kafka import certificates
from tests.support.token_server import CLIENT, CLIENT_SECRET, TokenServer, make_signing_key


class Numbered:
    """Gives tokens of 100 seconds, `token-1` first; `problem` is raised instead."""

    references = "env CLIENT"

    def __init__(self, time: FakeTime) -> None:
        self.time, self.given, self.forgotten = time, 0, 0
        self.problem: Exception | None = None

    def fetch(self) -> Token:
        if self.problem is not None:
            raise self.problem
        self.given += 1
        return Token(f"token-{self.given}", self.time.clock(), self.time.clock() + 100)

    def forget(self) -> None:
        self.forgotten += 1


class Case:
    def __init__(self) -> None:
        self.time, self.redactor = FakeTime(), Redactor()
        self.source = Numbered(self.time)
        self.tokens = Tokens(self.source, self.redactor, now=self.time.clock)

    def after(self, seconds: float) -> str:
        self.time.sleep(seconds)
        return self.tokens.current().value


@pytest.mark.parametrize("problem", [TokenUnavailable("away"), SecretUnavailable("away")])
def test_a_token_serves_until_it_expires_if_no_other_can_be_had(problem: Exception) -> None:
    case = Case()
    case.after(0)
    case.source.problem = problem
    assert case.after(90) == "token-1"
    with pytest.raises(type(problem)):
        case.after(10)


def test_a_refused_token_is_not_used_again_even_if_no_other_can_be_had() -> None:
    case = Case()
    case.after(0)
    case.tokens.forget()
    assert case.source.forgotten == 1
    case.source.problem = TokenUnavailable("away")
    with pytest.raises(TokenUnavailable):
        case.after(0)
    case.source.problem = None
    assert case.after(0) == "token-2"


def test_threads_share_one_token() -> None:
    case, found = Case(), list[str]()
    threads = [threading.Thread(target=lambda: found.append(case.after(0))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["token-1"] * 16


KEY, SECRET, SESSION = "AKIDEXAMPLE", "planted/secret+key", "planted//session=="
REGION = "eu-central-1"


def url_of(token: str) -> str:
    """Return what a broker reads of a token: base64 for URLs, without padding."""
    assert "=" not in token
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()


def signature(host: str, query: dict[str, str], secret: str) -> str:
    """Sign as https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html describes it."""
    named = {name: value for name, value in query.items() if name not in ("X-Amz-Signature", "User-Agent")}
    text = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in sorted(named.items()))
    asked = f"GET\n/\n{text}\nhost:{host}\n\nhost\n{hashlib.sha256(b'').hexdigest()}"
    _, scope = query["X-Amz-Credential"].split("/", 1)
    signed = f"AWS4-HMAC-SHA256\n{query['X-Amz-Date']}\n{scope}\n{hashlib.sha256(asked.encode()).hexdigest()}"
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, signed.encode(), hashlib.sha256).hexdigest()


def tokens(*credentials: Any) -> MskTokens:
    left = list(credentials)
    return MskTokens(REGION, credentials=lambda: left.pop(0))


@pytest.mark.parametrize("session", [None, SESSION])
def test_the_token_is_a_request_to_connect_that_iam_can_verify(session: str | None) -> None:
    token = tokens(Credentials(KEY, SECRET, session)).fetch()
    address = urlsplit(url_of(token.value))
    query = dict(parse_qsl(address.query, strict_parsing=True))
    assert (address.scheme, address.netloc, address.path) == ("https", f"kafka.{REGION}.amazonaws.com", "/")
    assert query["X-Amz-Signature"] == signature(address.netloc, query, SECRET)
    assert query["X-Amz-Signature"] != signature(address.netloc, query, "another")
    day = query["X-Amz-Date"][:8]
    assert query["X-Amz-Credential"] == f"{KEY}/{day}/{REGION}/kafka-cluster/aws4_request"
    named = (query["Action"], query["X-Amz-Expires"], query["X-Amz-SignedHeaders"], query.get("X-Amz-Security-Token"))
    assert named == ("kafka-cluster:Connect", "900", "host", session)
    assert token.issued_at == datetime.strptime(f"{query['X-Amz-Date']}+0000", "%Y%m%dT%H%M%SZ%z").timestamp()
    assert token.expires_at - token.issued_at == 900
    assert SECRET not in url_of(token.value)
    assert token.value not in repr(token)


def test_without_credentials_no_token_is_made() -> None:
    with pytest.raises(TokenUnavailable, match=r"AWS: there are no AWS credentials to sign with\. Log in"):
        tokens(None).fetch()


def test_a_role_that_is_refused_is_an_outage_of_its_own() -> None:
    """STS answers with another class of errors than botocore's own."""

    class Role:
        def get_frozen_credentials(self) -> None:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": SECRET}}, "AssumeRole")

    with pytest.raises(TokenUnavailable, match=r"AWS: it refused the credentials of a role \(AccessDenied\)") as raised:
        MskTokens(REGION, credentials=Role).fetch()
    assert SECRET not in str(raised.value)


def test_forgotten_credentials_are_looked_up_again() -> None:
    source = tokens(Credentials("FIRST", SECRET), Credentials("SECOND", SECRET))
    keys = []
    for _ in range(3):
        keys.append(dict(parse_qsl(urlsplit(url_of(source.fetch().value)).query))["X-Amz-Credential"].split("/")[0])
        if len(keys) == 2:
            source.forget()
    assert keys == ["FIRST", "FIRST", "SECOND"]


VARIABLES = {"CLIENT": CLIENT, "CLIENT_SECRET": CLIENT_SECRET}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make certificates")
    folder: Path = tmp_path_factory.mktemp("tls")
    certificates(folder)
    make_signing_key(folder)
    return folder


@pytest.fixture
def server(folder: Path) -> Iterator[TokenServer]:
    with TokenServer(folder) as running:
        yield running


def oauth(server: TokenServer, folder: Path, **others: Any) -> OAuth:
    wanted = {"client_id": Secret(env="CLIENT"), "client_secret": Secret(env="CLIENT_SECRET")}
    return OAuth(**{"token_endpoint": server.url, "ca": str(folder / "ca.crt"), **wanted, **others})


class Asked:
    """A token endpoint whose clock the test sets."""

    def __init__(self, settings: OAuth, **variables: str) -> None:
        self.time, self.variables = FakeTime(), {**VARIABLES, **variables}
        self.secrets = Secrets(self.variables)
        endpoint = TokenEndpoint(settings, self.secrets, now=self.time.clock, sleep=self.time.sleep)
        self.tokens = Tokens(endpoint, self.secrets.redactor, now=self.time.clock)


def test_a_token_is_kept_until_most_of_its_lifetime_has_passed(server: TokenServer, folder: Path) -> None:
    asked = Asked(oauth(server, folder, scope="kafka.read other"))
    first = asked.tokens.current()
    asked.time.sleep(2879)
    assert asked.tokens.current() is first
    asked.time.sleep(2)
    assert asked.tokens.current().value != first.value
    assert server.requests == [{"grant_type": ["client_credentials"], "scope": ["kafka.read other"]}] * 2


def test_an_outage_of_the_endpoint_leaves_a_token_that_is_still_valid(server: TokenServer, folder: Path) -> None:
    asked = Asked(oauth(server, folder))
    first = asked.tokens.current()
    server.always = 503, b""
    asked.time.sleep(3000)
    assert asked.tokens.current() is first
    asked.time.sleep(700)
    with pytest.raises(TokenUnavailable, match="it gave no token; the last failure: status 503"):
        asked.tokens.current()


def test_a_wrong_secret_is_refused_with_its_reference_and_not_shown(server: TokenServer, folder: Path) -> None:
    asked = Asked(oauth(server, folder), CLIENT_SECRET="planted-and-wrong")
    with pytest.raises(
        TokenRefused, match=r"does not accept our client \(401, invalid_client\).*env CLIENT, env CLIENT_SECRET"
    ) as caught:
        asked.tokens.current()
    assert "planted" not in f"{caught.value}{caught.value!r}"
    assert len(server.requests) == 2, "the secret was read again in between"


def test_a_rotated_secret_is_read_again(server: TokenServer, folder: Path) -> None:
    asked = Asked(oauth(server, folder))
    asked.tokens.current()
    server.secret = asked.variables["CLIENT_SECRET"] = "the new one"
    asked.time.sleep(3601)
    assert asked.tokens.current().value == server.tokens[-1]


def test_a_token_is_masked_and_the_one_before_it(server: TokenServer, folder: Path) -> None:
    asked = Asked(oauth(server, folder))
    for _ in range(3):
        asked.tokens.current()
        asked.time.sleep(3601)
    oldest, *others = server.tokens
    redact = asked.secrets.redactor.redact
    assert [redact(f"sent {token}") for token in others] == ["sent [redacted]"] * 2
    assert redact(oldest) == oldest, "tokens that have expired are not kept"
    assert "eyJ" not in repr(asked.tokens.current())


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"{}", b'{"access_token": 1}', b'{"access_token": "planted\\r\\nX: 1"}', b'{"access_token": "planted b"}',
        b'{"access_token": "planted", "expires_in": -1}', b'{"access_token": "planted", "expires_in": true}',
    ],
)  # fmt: skip
def test_an_answer_without_a_usable_token_is_refused(server: TokenServer, folder: Path, body: bytes) -> None:
    server.always = 200, body
    with pytest.raises(TokenUnavailable, match="its answer has no") as caught:
        Asked(oauth(server, folder)).tokens.current()
    assert "planted" not in str(caught.value)


def test_an_endpoint_that_is_not_trusted_is_an_outage(server: TokenServer, folder: Path) -> None:
    asked = Asked(oauth(server, folder, ca=str(folder / "stranger.crt")))
    with pytest.raises(TokenUnavailable, match=r"certificate is not trusted \(unable to get .*\)\. Check oauth\.ca"):
        asked.tokens.current()
    assert asked.time.sleeps == []


@pytest.mark.parametrize("body", [b"", b"[]", b'{"error": "planted!"}', b'{"error": ["planted"]}'])
def test_a_refusal_shows_no_text_of_the_endpoint_but_a_code(server: TokenServer, folder: Path, body: bytes) -> None:
    server.always = 400, body
    with pytest.raises(TokenRefused, match=r"accept our client \(400\)\."):
        Asked(oauth(server, folder)).tokens.current()


def test_a_body_without_an_end_is_an_outage(server: TokenServer, folder: Path) -> None:
    server.always = 200, b" " * 300_000
    with pytest.raises(TokenUnavailable, match="the last failure: OSError"):
        Asked(oauth(server, folder)).tokens.current()


def test_an_answer_that_drips_is_an_outage(server: TokenServer, folder: Path) -> None:
    server.always = 200, b" " * 100_000
    settings, time = oauth(server, folder), FakeTime(tick_seconds=4.0)
    endpoint = TokenEndpoint(settings, Secrets(VARIABLES), now=time.clock, sleep=time.sleep)
    with pytest.raises(TokenUnavailable, match="the last failure: TimeoutError"):
        endpoint.fetch()


def test_a_redirect_gets_no_secret(server: TokenServer, folder: Path) -> None:
    server.always = 302, b""
    with pytest.raises(TokenUnavailable, match="status 302"):
        Asked(oauth(server, folder)).tokens.current()
    assert len(server.requests) == 1


def test_a_missing_file_of_authorities_is_refused_when_the_client_is_made(server: TokenServer, folder: Path) -> None:
    with pytest.raises(TokenUnavailable, match=r"/nowhere/ca\.pem"):
        Asked(oauth(server, folder, ca="/nowhere/ca.pem"))


class TestRegistry:
    """A registry over TLS that wants the tokens of the endpoint."""

    @pytest.fixture
    def registry(self, folder: Path) -> Iterator[RegistryServer]:
        running = RegistryServer(authorization="Bearer none yet")
        running.store.register("s", '"int"')
        running.secure(str(folder / "server.crt"), str(folder / "server.key"))
        with running:
            yield running

    def of(self, registry: RegistryServer, settings: OAuth, folder: Path) -> Registry:
        return Registry.of(
            environment.Registry(url=registry.url, oauth=settings, ca=str(folder / "ca.crt")), Secrets(VARIABLES)
        )

    def test_one_token_serves_many_requests_with_confluents_headers(
        self, server: TokenServer, registry: RegistryServer, folder: Path
    ) -> None:
        settings = oauth(server, folder, logical_cluster="lsrc-a1", identity_pool="pool-b2")
        client = self.of(registry, settings, folder)
        registry.authorization = None
        for _ in range(3):
            assert client.subjects() == ("s",)
        assert registry.authorizations == [f"Bearer {server.tokens[0]}"] * 3
        assert {(sent["target-sr-cluster"], sent["Confluent-Identity-Pool-Id"]) for sent in registry.headers} == {
            ("lsrc-a1", "pool-b2")
        }

    def test_a_token_that_the_registry_refuses_is_renewed_once(
        self, server: TokenServer, registry: RegistryServer, folder: Path
    ) -> None:
        client = self.of(registry, oauth(server, folder), folder)
        with pytest.raises(RegistryRefused, match=r"does not accept our login \(401\).*env CLIENT") as caught:
            client.subjects()
        assert registry.authorizations == [f"Bearer {token}" for token in server.tokens]
        assert len(server.tokens) == 2
        assert "eyJ" not in str(caught.value)

    def test_a_wrong_client_is_an_outage_of_its_own_name(
        self, server: TokenServer, registry: RegistryServer, folder: Path
    ) -> None:
        server.secret = "another"
        with pytest.raises(TokenRefused, match="token endpoint https://127"):
            self.of(registry, oauth(server, folder), folder).subjects()
        assert registry.requests == []
