from __future__ import annotations

import json
from pathlib import Path

import pytest

from frazil.declaration import Environment, Kafka, LocalCatalog
from frazil.declaration.documents.document import environment_document


@pytest.fixture
def place(tmp_path: Path) -> str:
    """The file of an environment without an artifact bucket."""
    catalog = LocalCatalog(path="/x/c.db", warehouse="file:///x")
    made = Environment(name="dev", kafka=Kafka(bootstrap="k:9092"), catalog=catalog, emr_application="app1")
    file = tmp_path / "dev.json"
    file.write_text(json.dumps(environment_document(made)))
    return str(file)
