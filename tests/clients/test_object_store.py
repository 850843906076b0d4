"""The artifact bucket: written once, swapped by who has seen the newest version. On S3 (moto), and on the fake in memory."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import pytest
from botocore.exceptions import ClientError, NoCredentialsError, ReadTimeoutError

from frazil.clients.aws_session import LOGIN, unanswered
from frazil.clients.object_store import ObjectStore, Stored, s3_client
from frazil.declaration import ObjectStore as Place
from frazil.errors import ObjectDiffers, ObjectStoreUnavailable
from frazil.local.services import LocalServices
from tests.standin.aws.launch import BUCKET, key_files, up
from tests.support.fake_store import FakeStore


class Store(Protocol):
    def read(self, key: str) -> Stored | None: ...

    def put_once(self, key: str, source: Path | bytes) -> bool: ...

    def swap(self, key: str, data: bytes, *, version: str | None) -> str | None: ...

    def keys(self, prefix: str) -> tuple[str, ...]: ...
    def folders(self, prefix: str) -> tuple[str, ...]: ...

    def delete(self, key: str) -> None: ...


@pytest.fixture(scope="session")
def s3(local_world: LocalServices) -> Any:
    endpoint = up(local_world)
    pair = key_files(local_world.home).credentials()
    place = Place(endpoint=endpoint, path_style=True)
    return s3_client(place, keys=(pair.access_key, pair.secret_key))


@pytest.fixture(params=["memory", pytest.param("s3", marks=pytest.mark.e2e)])
def store(request: pytest.FixtureRequest) -> Store:
    return FakeStore() if request.param == "memory" else ObjectStore(request.getfixturevalue("s3"), BUCKET)


@pytest.fixture
def key() -> str:
    return f"test/{uuid.uuid4().hex}"


def test_what_is_not_there_is_none(store: Store, key: str) -> None:
    assert store.read(key) is None


def test_what_is_put_is_read(store: Store, key: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    assert store.put_once(key, tmp_path / "file")
    held = store.read(key)
    assert held is not None
    assert held.data == b"content"


def test_what_is_deleted_is_gone_and_may_be_deleted_again(store: Store, key: str) -> None:
    store.put_once(key, b"content")
    for _ in range(2):
        store.delete(key)
        assert store.read(key) is None


def test_keys_are_listed_by_how_they_begin(store: Store, key: str) -> None:
    for name in ("b/2", "b/1", "c"):
        store.put_once(f"{key}/{name}", b"")
    assert store.keys(f"{key}/b/") == (f"{key}/b/1", f"{key}/b/2")
    assert store.keys(f"{key}/d/") == ()


def test_folders_are_what_is_directly_below(store: Store, key: str) -> None:
    for name in ("b/2/x", "b/1", "c/1", "d"):
        store.put_once(f"{key}/{name}", b"")
    assert store.folders(f"{key}/") == ("b", "c")
    assert store.folders(f"{key}/b/") == ("2",)
    assert store.folders(f"{key}/e/") == ()


def test_the_same_content_again_changes_nothing(store: Store, key: str) -> None:
    assert store.put_once(key, b"content")
    before = store.read(key)
    assert not store.put_once(key, b"content")
    assert store.read(key) == before


def test_other_content_never_overwrites(store: Store, key: str) -> None:
    store.put_once(key, b"content")
    with pytest.raises(ObjectDiffers, match="other content"):
        store.put_once(key, b"others!")  # of the same length
    held = store.read(key)
    assert held is not None
    assert held.data == b"content"


def test_an_object_is_created_by_one_writer_only(store: Store, key: str) -> None:
    assert store.swap(key, b"mine", version=None)
    assert store.swap(key, b"twins", version=None) is None
    held = store.read(key)
    assert held is not None
    assert held.data == b"mine"


def test_only_who_has_seen_the_newest_version_may_replace_it(store: Store, key: str) -> None:
    first = store.swap(key, b"1", version=None)
    second = store.swap(key, b"2", version=first)
    assert second
    assert store.swap(key, b"3", version=first) is None
    held = store.read(key)
    assert held is not None
    assert (held.data, held.version) == (b"2", second)


def test_a_version_of_what_is_gone_replaces_nothing(store: Store, key: str) -> None:
    assert store.swap(key, b"1", version='"d41d8cd98f00b204e9800998ecf8427e"') is None


def test_of_many_that_swap_one_version_exactly_one_wins(store: Store, key: str) -> None:
    version = store.swap(key, b"0", version=None)
    with ThreadPoolExecutor(8) as threads:
        won = [v for v in threads.map(lambda n: store.swap(key, b"by %d" % n, version=version), range(16)) if v]
    assert len(won) == 1


def test_a_swap_whose_answer_was_lost_is_told_by_its_content(store: Store, key: str) -> None:
    version = store.swap(key, b"ours", version=None)
    assert store.swap(key, b"ours", version=None) == version


class Broken:
    """A client whose calls all fail."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        def call(**said: Any) -> Mapping[str, Any]:
            raise self.error

        return call


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ClientError({"Error": {"Code": "AccessDenied", "Message": "x"}}, "GetObject"), "AccessDenied"),
        (ReadTimeoutError(endpoint_url="http://x"), "ReadTimeoutError"),
    ],
)
def test_a_refusal_names_the_key_and_the_reason(error: Exception, said: str) -> None:
    store = ObjectStore(Broken(error), "bucket")
    for ask in (
        lambda: store.read("a/b"),
        lambda: store.put_once("a/b", b"x"),
        lambda: store.swap("a/b", b"x", version=None),
    ):
        with pytest.raises(ObjectStoreUnavailable, match=rf"s3://bucket/a/b: .*{said}"):
            ask()


def test_without_credentials_the_remedy_is_to_log_in() -> None:
    told, do = unanswered("S3", NoCredentialsError())
    assert (told, do) == ("there are no valid AWS credentials (NoCredentialsError)", LOGIN)
    assert unanswered("S3", TimeoutError()) == ("S3 did not answer (TimeoutError)", "Try again")
