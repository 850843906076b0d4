"""README, docs, workflows, templates and the messages of the source name commands and options that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.guides import application

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "SECURITY", "CONTRIBUTING")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / ".github").rglob("*.yml")),
    *sorted((ROOT / "jobs" / "frazil" / "project" / "templates").iterdir()),
]
MODULES = [module for folder in ("jobs", "stacks", "policies", "infra") for module in (ROOT / folder).rglob("*.py")]


def commands(page: str) -> Iterator[str]:
    """Yield the commands of a page: lines of code blocks, and code in sentences."""
    yield from re.findall(r"(?m)^ *(frazil [a-z].*)$", page)
    yield from re.findall(r"`(frazil [a-z][^`]*)`", page)


def texts(module: Path) -> Iterator[str]:
    """Yield the texts of a module; each part that is known at run time is an X."""
    tree = ast.parse(module.read_text())
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else " X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def problem_of(command: str) -> str:
    """Return what is wrong with a command's name and options; nothing if it is right."""
    found = application()
    words = re.split(r"  +#|  +[a-z;]|[;|()]", command)[0].split()[1:]
    for word in words:
        below = getattr(found, "commands", None)
        if below and not word.startswith("-"):
            if word not in below:
                return f"no command {word}"
            found = below[word]
        elif (option := re.match(r"--[a-z-]+", word)) and option[0] != "--help":
            known = {name for parameter in found.params for name in (*parameter.opts, *parameter.secondary_opts)}
            if option[0] not in known:
                return f"no option {option[0]}"
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_exist(page: Path) -> None:
    named = list(commands(page.read_text()))
    assert {command: problem for command in named if (problem := problem_of(command))} == {}


def test_the_commands_of_messages_and_docstrings_exist() -> None:
    named = {
        (str(module.relative_to(ROOT)), command)
        for module in MODULES
        for text in texts(module)
        for command in (
            *re.findall(r"`(frazil [a-z][^`]*)`", text),
            *re.findall(r"\bfrazil (?!on |import )[a-z][\w -]*", text),
        )
    }
    assert len(named) > 50
    assert {(place, command): problem for place, command in named if (problem := problem_of(command))} == {}
