import stat
from collections.abc import Callable
from pathlib import Path

import boto3
import botocore
import pytest
from botocore.exceptions import ClientError

from frazil.errors import LocalPartFailed
from frazil.local import seaweedfs
from frazil.local.process import Process, is_alive, noted
from frazil.local.seaweedfs import BUCKET, REGION, key_files
from frazil.local.services import LocalServices, Part, world

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def endpoint(whole_world: LocalServices) -> str:
    return whole_world.addresses[Part.OBJECT_STORE]["s3"]


def test_a_store_that_is_not_ready_in_time_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started, wait = list[int](), seaweedfs.await_ready

    def impatient(process: Process, is_ready: Callable[[], bool], *, seconds: float) -> None:
        started.append(process.pid)
        wait(process, is_ready if len(started) == 2 else lambda: False, seconds=seconds if len(started) == 2 else 0.1)

    monkeypatch.setattr(seaweedfs, "await_ready", impatient)
    with world(tmp_path, parts=(Part.OBJECT_STORE,)) as running:
        assert [is_alive(process) for process in noted(running.home)] == [True]
    assert len(set(started)) == 2


def test_a_store_that_is_never_ready_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seaweedfs, "READY_SECONDS", 0.0)
    monkeypatch.setattr(seaweedfs, "_is_ready", lambda *_: False)
    with pytest.raises(LocalPartFailed, match="was not ready after 0 s"), world(tmp_path, parts=(Part.OBJECT_STORE,)):
        pass
    assert not list(noted(tmp_path / ".frazil"))


def test_beside_a_store_that_does_not_end_none_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = list[int]()

    def left(process: Process, is_ready: object, *, seconds: float) -> None:
        started.append(process.pid)
        raise LocalPartFailed("it did not end")

    monkeypatch.setattr(seaweedfs, "await_ready", left)
    with pytest.raises(LocalPartFailed, match="did not end"), world(tmp_path, parts=(Part.OBJECT_STORE,)):
        pass
    assert len(started) == 1


def test_a_request_without_the_keys_is_refused(endpoint: str) -> None:
    stranger = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        config=botocore.config.Config(signature_version=botocore.UNSIGNED),
    )
    with pytest.raises(ClientError, match="AccessDenied"):
        stranger.put_object(Bucket=BUCKET, Key="a/c", Body=b"content")


def test_the_keys_are_for_their_user_only(whole_world: LocalServices) -> None:
    keys = key_files(whole_world.home)
    for file in (keys.access_key_id, keys.secret_access_key):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_store_does_no_upkeep_of_tables_by_itself(whole_world: LocalServices) -> None:
    """Its worker has no way to its orders; without that it would compact what Frazil has committed."""
    log = (whole_world.home / "logs" / "object-store.log").read_text()
    assert "invalid port" in log
    assert "registered with admin" not in log.lower()
