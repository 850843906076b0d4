from __future__ import annotations

import json
from pathlib import Path

import pytest

from frazil.declaration.documents.document import environment_document
from tests.support.documents import environment_in


@pytest.fixture
def place(tmp_path: Path) -> str:
    """The file of an environment without an artifact bucket."""
    file = tmp_path / "dev.json"
    file.write_text(json.dumps(environment_document(environment_in(tmp_path, emr_application="app1"))))
    return str(file)
