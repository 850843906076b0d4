"""The README's quickstart, run block by block in an empty folder; only addresses and the lake's folder are replaced."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from frazil.clients.registry.admin import RegistryAdmin
from frazil.local.services import LocalServices
from tests.support.shop import ORDER, avro, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def quickstart(root: Path) -> list[tuple[str, str]]:
    """The blocks of `A pipeline of your own`: language and text, without the indent of the list."""
    text = (root / "README.md").read_text()
    section = text.split("## A pipeline of your own", 1)[1].split("\n## ", 1)[0]
    return [(language, re.sub("^   ", "", block, flags=re.MULTILINE)) for language, block in FENCE.findall(section)]


@dataclass(frozen=True)
class Landed:
    """The folder and the environment variables in which the quickstart ran up to its last command."""

    folder: Path
    variables: dict[str, str]
    lands: str
    follows: str
    ended: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def landed(local_world: LocalServices, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Landed:
    tmp_path = tmp_path_factory.mktemp("quickstart")
    admin = AdminClient({"bootstrap.servers": local_world.bootstrap})
    admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result()
    schema_id = RegistryAdmin(local_world.registry_url).register("orders-value", json.dumps(ORDER))
    producer = Producer({"bootstrap.servers": local_world.bootstrap})
    for number in range(20):
        producer.produce("orders", frame(schema_id, avro(ORDER, {"order_id": number, "user": "u", "amount": None})))
    producer.flush()

    (_, environment), (_, declaration), (_, commands) = blocks = quickstart(root)
    assert [language for language, _ in blocks] == ["json", "python", ""]
    for written, here in (
        ("broker:9092", local_world.bootstrap),
        ("http://127.0.0.1:8081", local_world.registry_url),
        ("/tmp/lake", str(tmp_path / "lake")),
    ):
        assert written in environment
        environment = environment.replace(written, here)
    (tmp_path / "my-environment.json").write_text(environment)
    (tmp_path / "my_pipelines.py").write_text(declaration)

    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    lands, follows = commands.rsplit("\n", 2)[:2]
    assert follows == "frazil run orders --follow"
    begun = {key: value for key, value in os.environ.items() if not key.startswith("FRAZIL_")} | {"PATH": path}
    ended = subprocess.run(
        ["bash", "-euc", lands], cwd=tmp_path, env=begun, capture_output=True, text=True, timeout=240, check=False
    )
    return Landed(tmp_path, begun, lands, follows, ended)


def test_the_quickstart_of_the_readme_lands_and_proves_a_topic(landed: Landed) -> None:
    assert landed.ended.returncode == 0, landed.ended.stderr
    assert "proven" in landed.ended.stdout.lower()


@pytest.mark.long
def test_the_quickstart_of_the_readme_then_follows_the_topic(landed: Landed) -> None:
    assert landed.ended.returncode == 0, landed.ended.stderr
    exported = next(line for line in landed.lands.splitlines() if line.startswith("export "))
    following = subprocess.Popen(
        ["bash", "-euc", f"{exported}\nexec {landed.follows}"],
        cwd=landed.folder,
        env=landed.variables,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert following.stderr is not None
    events = []
    for line in following.stderr:
        events.append(json.loads(line)["event"] if line.startswith("{") else line)
        if events[-1] == "idle":
            following.send_signal(signal.SIGINT)
            break
    rest = following.stderr.read()
    assert following.wait(60) == 0, rest
    assert "idle" in events, events
