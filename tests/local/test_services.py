import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from frazil.declaration.documents.document import parse_environment
from frazil.errors import LocalPartFailed
from frazil.local import services as module
from frazil.local.process import Process, await_ready, is_alive, noted, start, stop
from frazil.local.seaweedfs import BUCKET, REGION, key_files
from frazil.local.services import LocalServices, Part, down, up
from tests.standin.aws.launch import glue_environment
from tests.standin.aws.launch import key_files as aws_key_files
from tests.support.kafka_broker import KafkaBroker

from .conftest import SESSION_PARTS
from .listening import listening
from .registry_requests import asked, record


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A project folder whose world ends with the test."""
    yield tmp_path
    down(tmp_path)


def processes(folder: Path) -> list[Process]:
    return noted(folder / ".frazil")


def sleeping(name: str, address: str) -> Callable[..., str]:
    """Return what starts a process that does nothing, in place of a part at an address."""

    def begin(home: Path, **_: object) -> str:
        start(name, ["sleep", "1000"], home=home)
        return address

    return begin


def broken(home: Path, **_: object) -> str:
    raise LocalPartFailed("the registry is broken")


def topics(place: LocalServices) -> set[str]:
    return set(AdminClient({"bootstrap.servers": place.bootstrap, "log_level": 0}).list_topics(timeout=30).topics)


@pytest.mark.e2e
def test_everything_listens_on_this_machine_only(whole_world: LocalServices) -> None:
    for process in noted(whole_world.home):
        addresses = listening(process)
        assert addresses, process.name
        assert {address.removeprefix("::ffff:") for address in addresses} == {"127.0.0.1"}, process.name


@pytest.mark.e2e
def test_up_again_keeps_what_runs(whole_world: LocalServices) -> None:
    before = noted(whole_world.home)
    again = up(whole_world.home.parent, parts=SESSION_PARTS)
    assert again == whole_world
    assert noted(whole_world.home) == before


@pytest.mark.e2e
def test_the_documents_tell_every_environment(whole_world: LocalServices) -> None:
    environments = whole_world.environment_file.parent
    assert parse_environment((environments / "local.json").read_bytes()) == whole_world.environment
    assert parse_environment((environments / "rest.json").read_bytes()) == whole_world.rest_environment
    assert parse_environment((environments / "glue.json").read_bytes()) == glue_environment(whole_world)
    for keys in (key_files(whole_world.home), aws_key_files(whole_world.home)):
        secret = keys.secret_access_key.read_text()
        assert not any(secret in document.read_text() for document in environments.iterdir())


@pytest.mark.e2e
@pytest.mark.long
def test_two_worlds_are_up_at_once_and_what_they_hold_outlives_the_processes(
    whole_world: LocalServices, folder: Path
) -> None:
    def s3(place: LocalServices) -> Any:
        keys = key_files(place.home).credentials()
        return boto3.client(
            "s3",
            endpoint_url=place.addresses[Part.OBJECT_STORE]["s3"],
            region_name=REGION,
            aws_access_key_id=keys.access_key,
            aws_secret_access_key=keys.secret_key,
        )

    first = up(folder, parts=SESSION_PARTS)
    addresses = [
        address for place in (whole_world, first) for part in place.addresses.values() for address in part.values()
    ]
    assert len(set(addresses)) == 8
    KafkaBroker(first.bootstrap).create("kept")
    assert "kept" not in topics(whole_world)
    assert "kept" in topics(first)
    producer = Producer({"bootstrap.servers": first.bootstrap, "log_level": 0})
    producer.produce("kept", b"record")
    assert producer.flush(30) == 0
    schema_id = asked(first, "POST", "/subjects/kept-value/versions", record("a"))["id"]
    s3(first).put_object(Bucket=BUCKET, Key="kept", Body=b"object")
    running = processes(folder)
    assert len(running) == len(SESSION_PARTS)

    down(folder)
    assert not any(psutil.pid_exists(process.pid) for process in running)
    assert processes(folder) == []
    assert not first.environment_file.exists()
    assert all(is_alive(process) for process in noted(whole_world.home))

    again = up(folder, parts=SESSION_PARTS)
    assert again == first, "each part has its ports again"
    assert "kept" in topics(again)
    assert json.loads(asked(again, "GET", f"/schemas/ids/{schema_id}")["schema"])["name"] == "Order"
    assert asked(again, "POST", "/subjects/other-value/versions", record("b"))["id"] > schema_id
    assert s3(again).get_object(Bucket=BUCKET, Key="kept")["Body"].read() == b"object"

    down(folder, data=True)
    assert not {*SESSION_PARTS, "lake", "logs", "run", "secrets", "local.json"} & {
        left.name for left in again.home.iterdir()
    }


@pytest.mark.e2e
@pytest.mark.long
def test_a_part_is_added_to_what_runs_and_one_that_was_killed_is_started_again(folder: Path) -> None:
    first = up(folder, parts=[Part.OBJECT_STORE])
    both = up(folder, parts=[Part.REGISTRY])
    assert set(both.addresses) == {Part.REGISTRY, Part.OBJECT_STORE}
    assert both.addresses[Part.OBJECT_STORE] == first.addresses[Part.OBJECT_STORE]
    running = {process.name: process for process in processes(folder)}
    killed = psutil.Process(running[Part.OBJECT_STORE].pid)
    killed.kill()
    psutil.wait_procs([killed], timeout=10)
    second = up(folder, parts=[Part.REGISTRY, Part.OBJECT_STORE])
    again = {process.name: process for process in processes(folder)}
    assert again[Part.REGISTRY] == running[Part.REGISTRY]
    assert again[Part.OBJECT_STORE] != running[Part.OBJECT_STORE]
    assert second.addresses == both.addresses
    assert second.moved == ()


def test_when_one_part_fails_the_others_are_stopped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker waits for ever to be ready; the registry fails as soon as the broker's process is there."""
    is_started = threading.Event()

    def start_kafka(home: Path) -> str:
        broker = start("kafka", ["sleep", "1000"], home=home)
        is_started.set()
        await_ready(broker, lambda: False, seconds=60)
        return "127.0.0.1:1"

    def start_registry(home: Path, **_: object) -> str:
        assert is_started.wait(10)
        return broken(home)

    monkeypatch.setattr(module, "start_kafka", start_kafka)
    monkeypatch.setattr(module, "start_registry", start_registry)
    with pytest.raises(LocalPartFailed, match="the registry is broken"):
        up(folder)
    assert processes(folder) == []
    assert not (folder / ".frazil" / "local.json").exists()


def test_when_an_added_part_fails_what_ran_before_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "start_kafka", sleeping("kafka", "127.0.0.1:1"))
    monkeypatch.setattr(module, "start_registry", broken)
    up(folder, parts=[Part.KAFKA])
    with pytest.raises(LocalPartFailed, match="the registry is broken"):
        up(folder)
    assert [process.name for process in processes(folder) if is_alive(process)] == ["kafka"]


def test_a_start_that_was_killed_is_cleaned_up_by_the_next(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process is noted before it is ready; `local.json` tells of it after."""
    half_started = start("kafka", ["sleep", "1000"], home=folder / ".frazil")
    monkeypatch.setattr(module, "start_kafka", lambda home: "127.0.0.1:1")
    up(folder, parts=[Part.KAFKA])
    assert not is_alive(half_started)


def test_a_part_with_another_address_is_reported_and_its_documents_are_written_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = []
    for port in (20_001, 20_001, 20_002):
        monkeypatch.setattr(module, "start_kafka", sleeping("kafka", f"127.0.0.1:{port}"))
        started = up(folder, parts=[Part.KAFKA])
        assert parse_environment(started.environment_file.read_bytes()).kafka.bootstrap == started.bootstrap
        moved.append([str(one) for one in started.moved])
        down(folder)
    assert moved == [
        [],
        [],
        ["kafka: the address is now 127.0.0.1:20002, because another process uses a port of 127.0.0.1:20001"],
    ]
    down(folder, data=True)
    assert list((folder / ".frazil").glob("*.json")) == []


def test_the_connect_worker_starts_after_the_broker_and_again_with_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker may have another address after a start, which the worker must know."""
    known: list[str] = []

    def start_connect(home: Path, *, bootstrap: str) -> str:
        known.append(bootstrap)
        return sleeping("connect", "http://127.0.0.1:8083")(home)

    monkeypatch.setattr(module, "start_kafka", lambda home: sleeping("kafka", f"127.0.0.1:{len(known) + 1}")(home))
    monkeypatch.setattr(module, "start_connect", start_connect)
    up(folder, parts=[Part.CONNECT, Part.KAFKA])
    assert known == ["127.0.0.1:1"]
    up(folder, parts=[Part.CONNECT])
    assert known == ["127.0.0.1:1"]
    (broker,) = [process for process in processes(folder) if process.name == "kafka"]
    stop(broker)
    again = up(folder, parts=[])
    assert known == ["127.0.0.1:1", "127.0.0.1:2"]
    assert set(again.addresses) == {Part.KAFKA, Part.CONNECT}
    assert all(is_alive(process) for process in processes(folder))


def test_the_connect_worker_needs_a_broker(folder: Path) -> None:
    with pytest.raises(LocalPartFailed, match="the local part kafka does not run"):
        up(folder, parts=[Part.CONNECT])


def test_down_is_fine_when_nothing_runs(tmp_path: Path) -> None:
    down(tmp_path)
    down(tmp_path / "not there", data=True)
    assert list(tmp_path.iterdir()) == []
