"""The TLS handshake of the doctor trusts what Kafka's clients trust, on every Python."""

from __future__ import annotations

import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from frazil.clients.reachability import distrust, handshake
from tests.support.secure_kafka import careless_certificates, certificates


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make certificates")
    folder: Path = tmp_path_factory.mktemp("tls")
    certificates(folder)
    careless_certificates(folder)
    return folder


@contextmanager
def serving(folder: Path, name: str) -> Iterator[str]:
    """Answer one handshake with the certificate of that name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)

        def answer() -> None:
            plain, _ = server.accept()
            try:
                context.wrap_socket(plain, server_side=True).close()
            except OSError:
                plain.close()

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize(("name", "ca"), [("server", "ca"), ("careless", "careless-ca")])
def test_a_certificate_of_our_authority_is_trusted_even_if_that_has_no_key_usage(
    folder: Path, name: str, ca: str
) -> None:
    with serving(folder, name) as address:
        version, expires = handshake(address, str(folder / f"{ca}.crt"), 5)
    assert version.startswith("TLSv1.")
    assert expires is not None


def test_the_certificate_of_another_authority_is_refused_with_the_reason(folder: Path) -> None:
    with serving(folder, "server") as address, pytest.raises(ssl.SSLCertVerificationError) as refused:
        handshake(address, str(folder / "stranger.crt"), 5)
    assert distrust(str(refused.value)) == f"its certificate is not trusted ({refused.value.verify_message})"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("[SSL: CERTIFICATE_VERIFY_FAILED] in another form", "its certificate is not trusted"),
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1018)", ""),
        ("", ""),
    ],
)
def test_only_a_refused_certificate_is_distrust(error: str, told: str) -> None:
    assert distrust(error) == told
