"""Uploading twice is uploading once; what is not what its manifest says is not uploaded at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from frazil.errors import ReleaseIncomplete
from frazil.release.manifest import MANIFEST, Role, parse_manifest
from frazil.release.upload import upload_release
from tests.support import small_release
from tests.support.fake_store import FakeStore


@pytest.fixture
def folder(root: Path, own_wheel: Path, tmp_path: Path) -> Path:
    small_release.built(root, own_wheel, tmp_path, tmp_path / "out")
    return tmp_path / "out"


def test_every_file_is_kept_under_a_key_with_its_hash_and_the_manifest_is_last(folder: Path) -> None:
    store = FakeStore()
    release, uploaded = upload_release(folder, store)
    assert list(uploaded) == [*(file.key for file in release.files), release.key]
    for file in release.files:
        assert store.objects[file.key].data == (folder / file.name).read_bytes()
    assert parse_manifest(store.objects[release.key].data) == release


def test_the_second_upload_writes_nothing(folder: Path) -> None:
    store = FakeStore()
    upload_release(folder, store)
    before = dict(store.objects)
    _, again = upload_release(folder, store)
    assert not any(again.values())
    assert store.objects == before


def test_an_upload_that_was_broken_off_is_gone_on_with(folder: Path) -> None:
    store = FakeStore()
    release, _ = upload_release(folder, store)
    for key in (release.key, release.the(Role.PACKAGE).key):
        del store.objects[key]
    _, again = upload_release(folder, store)
    assert [key for key, is_new in again.items() if is_new] == [release.the(Role.PACKAGE).key, release.key]


def test_releases_share_the_files_they_have_in_common(
    root: Path, own_wheel: Path, folder: Path, tmp_path: Path
) -> None:
    store = FakeStore()
    upload_release(folder, store)
    other = replace(small_release.checkout(root), commit="d" * 40)
    small_release.built(root, own_wheel, tmp_path, tmp_path / "other", of=other)
    release, uploaded = upload_release(tmp_path / "other", store)
    assert [key for key, is_new in uploaded.items() if is_new] == [release.key]


@pytest.mark.parametrize("role", [Role.PACKAGE, Role.JAR, Role.INGEST])
def test_a_file_that_was_changed_or_lost_stops_the_upload_before_it_begins(folder: Path, role: Role) -> None:
    store = FakeStore()
    name = parse_manifest((folder / MANIFEST).read_bytes()).the(role).name
    (folder / name).write_bytes(b"changed")
    with pytest.raises(ReleaseIncomplete, match=name):
        upload_release(folder, store)
    (folder / name).unlink()
    with pytest.raises(ReleaseIncomplete, match=name):
        upload_release(folder, store)
    assert store.objects == {}


def test_a_folder_without_a_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReleaseIncomplete, match="frazil release build"):
        upload_release(tmp_path, FakeStore())
