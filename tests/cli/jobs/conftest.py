from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from frazil.cli.jobs import aws, reconcile
from frazil.clients.emr import Emr
from frazil.declaration import Environment, Kafka, LocalCatalog
from frazil.declaration.documents.document import environment_document
from frazil.rollout import readiness
from tests.support.rollout_world import BUCKET, World


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """The services that the commands find are the world's; one bucket has everything."""
    made = World()
    made.store.bucket = BUCKET  # type: ignore[attr-defined]
    monkeypatch.setattr(aws, "artifact_store", lambda place, secrets: made.store)
    monkeypatch.setattr(aws, "bucket", lambda place, secrets, name: made.store)
    monkeypatch.setattr(aws, "emr", lambda place, secrets: Emr(made.emr, clock=made.time.clock))
    monkeypatch.setattr(readiness, "ProofReadiness", lambda store: made)
    monkeypatch.setattr(reconcile, "time", SimpleNamespace(time=made.time.clock, sleep=made.time.sleep))
    return made


@pytest.fixture
def place(tmp_path: Path) -> str:
    """The file of an environment without an artifact bucket."""
    catalog = LocalCatalog(path="/x/c.db", warehouse="file:///x")
    made = Environment(name="dev", kafka=Kafka(bootstrap="k:9092"), catalog=catalog, emr_application="app1")
    file = tmp_path / "dev.json"
    file.write_text(json.dumps(environment_document(made)))
    return str(file)
