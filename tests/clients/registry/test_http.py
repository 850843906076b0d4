"""HTTP to a registry that misbehaves: slow, broken, hostile, or no registry at all. No test waits for a pause."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from frazil.clients.registry.auth import Login, basic_login
from frazil.clients.registry.http import RegistryHttp, RetryPolicy, retry_after
from frazil.clients.secrets import Redactor, Secrets
from frazil.declaration.secret import Secret
from frazil.errors import RegistryRefused, RegistryUnavailable
from tests.support.fake_time import FakeTime
from tests.support.registry_server import Misbehaviour, RegistryServer, cuts, drips, hangs, says

PLANTED = "planted-secret-4711"


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as running:
        running.store.register("s", '"int"')
        yield running


class Asked:
    """A connection whose pauses are noted and not waited for."""

    def __init__(
        self,
        base: str,
        *,
        login: Login | None = None,
        time: FakeTime | None = None,
        ca: str | None = None,
        random: float = 1.0,
        **retry: Any,
    ) -> None:
        self.time, self.redactor = time or FakeTime(), Redactor()
        self.http = RegistryHttp(
            base,
            login or Login(),
            self.redactor,
            retry=RetryPolicy(**retry),
            clock=self.time.clock,
            sleep=self.time.sleep,
            random=lambda: random,
            ca=ca,
        )

    def get(self, path: str = "/subjects") -> Any:
        return self.http.get(path).body

    @property
    def sleeps(self) -> list[float]:
        return self.time.sleeps


def login(password: str = PLANTED) -> Login:
    return basic_login(Secrets({"USER": "app", "PASSWORD": password}), Secret(env="USER"), Secret(env="PASSWORD"))


BASIC = "Basic YXBwOnBsYW50ZWQtc2VjcmV0LTQ3MTE="


class TestPatience:
    @pytest.mark.parametrize("passing", [says(500), says(503, "<html>"), says(429), says(408), cuts])
    def test_what_passes_is_asked_again(self, server: RegistryServer, passing: Misbehaviour) -> None:
        server.misbehaviours += [passing, passing]
        asked = Asked(server.url)
        assert asked.get() == ["s"]
        assert asked.sleeps == [0.2, 0.4]

    def test_pauses_double_up_to_the_longest(self, server: RegistryServer) -> None:
        server.always = says(500)
        asked = Asked(server.url)
        with pytest.raises(RegistryUnavailable, match="status 500"):
            asked.get()
        assert asked.sleeps == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]

    def test_pauses_are_random_from_nothing_on(self, server: RegistryServer) -> None:
        server.misbehaviours.append(says(500))
        asked = Asked(server.url, random=0.0)
        asked.get()
        assert asked.sleeps == [0.0]

    def test_retry_after_makes_a_pause_longer(self, server: RegistryServer) -> None:
        server.misbehaviours.append(says(429, Retry_After="7"))
        asked = Asked(server.url)
        asked.get()
        assert asked.sleeps == [7.0]

    def test_retry_after_beyond_the_deadline_ends_at_once(self, server: RegistryServer) -> None:
        server.always = says(429, Retry_After="86400")
        asked = Asked(server.url)
        with pytest.raises(RegistryUnavailable, match="status 429"):
            asked.get()
        assert asked.sleeps == []
        assert len(server.requests) == 1

    def test_pauses_end_before_the_deadline(self, server: RegistryServer) -> None:
        server.always = says(500)
        asked = Asked(server.url, total_seconds=1.0)
        with pytest.raises(RegistryUnavailable):
            asked.get()
        assert sum(asked.sleeps) < 1.0

    def test_a_registry_that_hangs_is_left(self, server: RegistryServer) -> None:
        server.misbehaviours.append(hangs)
        assert Asked(server.url, attempt_seconds=0.1).get() == ["s"]

    def test_a_registry_that_only_hangs_is_an_outage(self, server: RegistryServer) -> None:
        server.always = hangs
        with pytest.raises(RegistryUnavailable, match="did not answer within"):
            Asked(server.url, attempt_seconds=0.05, attempts=2).get()

    def test_an_answer_that_never_ends_ends_with_the_time(self, server: RegistryServer) -> None:
        server.always = drips
        with pytest.raises(RegistryUnavailable, match="in the middle of the answer"):
            Asked(server.url, time=FakeTime(tick_seconds=1.0)).get()

    def test_a_registry_that_is_down_is_an_outage(self) -> None:
        with pytest.raises(RegistryUnavailable, match="Connection refused"):
            Asked("http://127.0.0.1:1").get()

    def test_a_name_that_does_not_resolve_is_an_outage(self) -> None:
        with pytest.raises(RegistryUnavailable, match=r"registry http://registry\.invalid:8081"):
            Asked("http://registry.invalid:8081", attempts=1).get()

    def test_one_connection_serves_many_requests(self, server: RegistryServer) -> None:
        asked = Asked(server.url)
        for _ in range(5):
            asked.get()
        assert server.connections == 1

    def test_threads_may_share_it(self, server: RegistryServer) -> None:
        asked, found = Asked(server.url), list[Any]()
        threads = [threading.Thread(target=lambda: found.append(asked.get())) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [["s"]] * 16


class TestWhatIsNoRegistry:
    @pytest.mark.parametrize("status", [200, 404, 418])
    def test_html_is_refused_at_once(self, server: RegistryServer, status: int) -> None:
        server.always = says(status, f"<html>{PLANTED}", Content_Type="text/html; charset=utf-8")
        with pytest.raises(RegistryUnavailable, match=f"answered {status} with text/html that is not JSON") as caught:
            Asked(server.url).get()
        assert PLANTED not in str(caught.value)
        assert len(server.requests) == 1

    @pytest.mark.parametrize("body", ["", "[", "[" * 200_000, b"\xff\xfe\x00", "{} {}"])
    def test_what_is_not_json_is_refused(self, server: RegistryServer, body: str | bytes) -> None:
        server.always = says(200, body)
        with pytest.raises(RegistryUnavailable, match="not JSON"):
            Asked(server.url).get()

    def test_an_answer_beyond_the_cap_is_refused(self, server: RegistryServer) -> None:
        server.always = says(200, " " * 5000 + "[]")
        assert Asked(server.url, body_bytes=5002).get() == []
        with pytest.raises(RegistryUnavailable, match="larger than 5001 bytes"):
            Asked(server.url, body_bytes=5001).get()

    def test_the_cap_is_of_what_a_compressed_answer_becomes(self, server: RegistryServer) -> None:
        server.always = says(200, gzip.compress(b" " * 10_000_000 + b"[]"), Content_Encoding="gzip")
        with pytest.raises(RegistryUnavailable, match="larger than"):
            Asked(server.url).get()

    def test_a_compressed_answer_is_read(self, server: RegistryServer) -> None:
        server.always = says(200, gzip.compress(b'["x"]'), Content_Encoding="gzip")
        assert Asked(server.url).get() == ["x"]


class TestRedirects:
    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_they_are_refused_and_told(self, server: RegistryServer, status: int) -> None:
        with RegistryServer() as other:
            server.always = says(status, Location=f"{other.url}/subjects?token={PLANTED}")
            with pytest.raises(RegistryUnavailable, match="it redirects to") as caught:
                Asked(server.url, login=login()).get()
            assert other.requests == []
            assert other.url.removesuffix("/base") in str(caught.value)
        assert PLANTED not in str(caught.value)

    @pytest.mark.parametrize(
        "place", ["//evil.example/", "/base/subjects/s/versions", "http://[::1", "http://127.0.0.1:99999999/", None]
    )
    def test_wherever_they_lead_they_are_refused(self, server: RegistryServer, place: str | None) -> None:
        server.always = says(302, **({"Location": place} if place else {}))
        with pytest.raises(RegistryUnavailable, match="redirects to"):
            Asked(server.url).get()


class TestLogin:
    def test_the_login_goes_with_each_request(self, server: RegistryServer) -> None:
        server.authorization = BASIC
        assert Asked(server.url, login=login()).get() == ["s"]

    def test_a_login_that_is_refused_is_read_again_once(self, server: RegistryServer) -> None:
        server.authorization = BASIC
        environment = {"USER": "app", "PASSWORD": "old"}
        rotating = basic_login(Secrets(environment), Secret(env="USER"), Secret(env="PASSWORD"))
        asked = Asked(server.url, login=rotating)
        with pytest.raises(RegistryRefused):
            asked.get()
        assert len(server.requests) == 2
        environment["PASSWORD"] = PLANTED
        assert asked.get() == ["s"]
        assert asked.sleeps == []

    def test_the_refusal_names_the_secret_and_not_its_value(self, server: RegistryServer) -> None:
        server.authorization = "Basic of somebody else"
        with pytest.raises(RegistryRefused, match="env USER, env PASSWORD") as caught:
            Asked(server.url, login=login()).get()
        assert caught.value.authentication
        assert PLANTED not in f"{caught.value}{caught.value!r}{vars(caught.value)}"

    def test_without_a_login_it_says_where_one_is_given(self, server: RegistryServer) -> None:
        server.always = says(401, "")
        with pytest.raises(
            RegistryRefused, match="Give the environment's registry a login: username and password, or oauth"
        ):
            Asked(server.url).get()
        assert len(server.requests) == 1

    def test_403_is_told_with_the_registrys_words_redacted(self, server: RegistryServer) -> None:
        server.always = says(403, f'{{"error_code":40301,"message":"no right for {PLANTED}"}}')
        known = login()
        asked = Asked(server.url, login=known)
        asked.redactor.add(PLANTED)
        with pytest.raises(RegistryRefused, match=r"does not allow .* no right for \[redacted\]"):
            asked.get()
        assert len(server.requests) == 1

    def test_a_message_is_cut_after_it_was_redacted(self, server: RegistryServer) -> None:
        server.always = says(403, f'{{"message":"{"x" * 290}{PLANTED}"}}')
        asked = Asked(server.url, login=login())
        asked.redactor.add(PLANTED)
        with pytest.raises(RegistryRefused) as caught:
            asked.get()
        assert PLANTED[:5] not in str(caught.value)

    def test_no_failure_tells_the_secret(self, server: RegistryServer) -> None:
        for misbehaviour in (says(500, PLANTED), says(200, PLANTED), says(302, Location=f"http://{PLANTED}@x/"), cuts):
            server.always = misbehaviour
            asked = Asked(server.url, login=login(), attempts=2)
            with pytest.raises(RegistryUnavailable) as caught:
                asked.get()
            told = f"{caught.value}{caught.value!r}{caught.value.__cause__}{asked.http!r}"
            assert PLANTED not in told


class TestTls:
    """A registry with a certificate of its own authority."""

    @pytest.fixture(scope="class")
    def secure(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
        openssl = shutil.which("openssl")
        if openssl is None:
            pytest.skip("there is no openssl to make a certificate")
        folder: Path = tmp_path_factory.mktemp("tls")
        certificate, key = folder / "ca.pem", folder / "key.pem"
        made = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
        subprocess.run(
            [openssl, *made.split(), "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True
        )
        server = RegistryServer()
        server.store.register("s", '"int"')
        server.secure(str(certificate), str(key))
        with server:
            yield server.url, str(certificate)

    def test_our_own_authority_is_trusted(self, secure: tuple[str, str]) -> None:
        url, ca = secure
        assert Asked(url, ca=ca).get() == ["s"]

    def test_a_certificate_that_is_not_trusted_is_told_at_once(self, secure: tuple[str, str]) -> None:
        asked = Asked(secure[0])
        with pytest.raises(RegistryUnavailable, match=r"certificate is not trusted.*registry\.ca"):
            asked.get()
        assert asked.sleeps == []

    def test_a_certificate_of_another_host_is_not_trusted(self, secure: tuple[str, str]) -> None:
        url, ca = secure
        with pytest.raises(RegistryUnavailable, match=r"certificate is not trusted \(.*not valid for 'localhost'"):
            Asked(url.replace("127.0.0.1", "localhost"), ca=ca).get()

    def test_http_where_https_is_spoken_is_an_outage(self, secure: tuple[str, str]) -> None:
        with pytest.raises(RegistryUnavailable):
            Asked(secure[0].replace("https", "http"), attempts=1).get()

    def test_https_where_http_is_spoken_is_an_outage(self, server: RegistryServer) -> None:
        with pytest.raises(RegistryUnavailable):
            Asked(server.url.replace("http", "https"), attempts=1).get()

    def test_a_missing_file_of_authorities_is_told_when_the_client_is_made(self) -> None:
        with pytest.raises(RegistryUnavailable, match=r"/nowhere/ca\.pem"):
            Asked("https://x", ca="/nowhere/ca.pem")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0.0),
        ({"Retry-After": "0"}, 0.0),
        ({"Retry-After": " 12 "}, 12.0),
        ({"Retry-After": "-1"}, 0.0),
        ({"Retry-After": "1.5"}, 0.0),
        ({"Retry-After": "٣"}, 0.0),
        ({"Retry-After": "Wed, 01 Jan 2031 00:00:09 GMT"}, 0.0),
        ({"Retry-After": "Wed, 01 Jan 2031 00:00:09 GMT", "Date": "Wed, 01 Jan 2031 00:00:00 GMT"}, 9.0),
        ({"Retry-After": "Wed, 01 Jan 2031 00:00:00 GMT", "Date": "Wed, 01 Jan 2031 00:00:09 GMT"}, 0.0),
        ({"Retry-After": "Wed, 01 Jan 2031 00:00:09 GMT", "Date": "2031"}, 0.0),
        ({"Retry-After": "Wed, 01 Jan 2031 00:00:09 -0000", "Date": "Wed, 01 Jan 2031 00:00:00 GMT"}, 0.0),
    ],
)
def test_retry_after_is_seconds_or_a_date_by_the_servers_clock(headers: dict[str, str], seconds: float) -> None:
    assert retry_after(headers) == seconds
