"""A shell without variables of Frazil, an empty folder, and the services of a job in memory."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from frazil.cli.jobs import aws, reconcile
from frazil.clients.emr import Emr
from frazil.rollout import readiness
from tests.support.rollout_world import BUCKET, World

VARIABLES = ("AWS_ENDPOINT_URL", "FRAZIL_DEBUG", "FRAZIL_ENV", "FRAZIL_PIPELINES", "FRAZIL_RELEASE")


@pytest.fixture(autouse=True)
def shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
