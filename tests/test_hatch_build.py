"""Deployment is in the wheel under one name: every import of its folders is rewritten, or the build fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from hatch_build import FOLDERS, LEFT_OUT, rewritten, write_package


def test_imports_are_rewritten_on_their_lines_and_nothing_else_is() -> None:
    source = (
        '"""Read policies.\n\nfrom stacks import app\n"""\nfrom frazil.errors import X\n'
        "from policies.review import (\n    review,\n)\ndef f():\n    from stacks import app\n    return 'from infra import y'\n"
    )
    wanted = source.replace("from policies.", "from frazil_deploy.policies.").replace(
        "    from stacks", "    from frazil_deploy.stacks"
    )
    assert rewritten(source, "x.py") == wanted


@pytest.mark.parametrize(
    "line", ["import stacks.workflow.app", "import os, infra", "from  stacks import app", "from \\\n stacks import app"]
)
def test_an_import_of_another_form_fails_the_build(line: str) -> None:
    with pytest.raises(ValueError, match=r"^x\.py:2: write `from "):
        rewritten(f"x = 1\n{line}\n", "x.py")


@pytest.mark.parametrize("line", ["from infrared import x", "from .stacks import x", "import policies_of"])
def test_modules_with_similar_names_are_others(line: str) -> None:
    assert rewritten(line, "x.py") == line


def test_every_module_of_deployment_is_in_the_package(root: Path, tmp_path: Path) -> None:
    write_package(root, tmp_path)
    here = {str(file.relative_to(root)) for folder in FOLDERS for file in (root / folder).rglob("*.py")}
    there = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.py")}
    assert there == {name for name in here if not name.startswith(LEFT_OUT)} | {"__init__.py"}
    assert (tmp_path / "policies" / "documents" / "boundary.json").is_file()
