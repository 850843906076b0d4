"""The package: its public names, its purity, its shape."""

import ast
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import frazil
import frazil.declaration as declaration

ROOM = Path(declaration.__file__).parent


def test_the_names_that_people_write_are_few_and_are_those_of_the_declaration():
    assert len(frazil.__all__) <= 26
    assert frazil.__all__ == sorted(frazil.__all__)
    assert [name for name in frazil.__all__ if getattr(frazil, name) is not getattr(declaration, name)] == []


def test_a_class_that_people_write_has_few_fields():
    written = [each for name in frazil.__all__ if is_dataclass(each := getattr(frazil, name))]
    assert {each.__name__: len(fields(each)) for each in written if len(fields(each)) > 12} == {}
    assert len(fields(frazil.Topic)) <= 6
    assert len(fields(frazil.Upsert)) <= 4


def test_frazil_is_imported_without_any_package():
    code = f"import sys; sys.path.insert(0, {str(ROOM.parents[1])!r}); from frazil import Pipeline; print(Pipeline.__name__)"
    ended = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "Pipeline\n"


def test_only_the_standard_library_and_the_errors_are_imported():
    imported = set()
    for module in ROOM.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module)
    foreign = {name for name in imported if name.split(".")[0] not in sys.stdlib_module_names}
    assert {name for name in foreign if not name.startswith("frazil.declaration.")} == {"frazil.errors"}


def test_every_module_has_its_test_at_the_same_place():
    modules = [module.relative_to(ROOM) for module in ROOM.rglob("*.py") if module.stem != "__init__"]
    tests = Path(__file__).parent
    assert [str(each) for each in modules if not (tests / each.parent / f"test_{each.name}").exists()] == []
