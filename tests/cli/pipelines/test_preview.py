"""`frazil preview` makes no catalog where there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from frazil.cli.pipelines.preview import _unwritten
from frazil.declaration import LocalCatalog
from tests.support.documents import environment_in


def test_a_catalog_file_that_does_not_exist_is_a_temporary_one(tmp_path: Path) -> None:
    file = tmp_path / "lake" / "catalog.db"
    environment = environment_in(file.parent)
    with _unwritten(environment) as reading:
        assert isinstance(reading.catalog, LocalCatalog)
        temporary = Path(reading.catalog.path)
        assert temporary.parent.is_dir()
        assert temporary != file
        assert reading == replace(environment, catalog=reading.catalog)
    assert not temporary.parent.exists()
    file.parent.mkdir()
    file.touch()
    with _unwritten(environment) as reading:
        assert reading is environment
