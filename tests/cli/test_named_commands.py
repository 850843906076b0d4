"""Each command that a message or a docstring of the source names is one that the command line accepts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.guides import application, parse

ROOT = Path(__file__).parents[2]
VALUES = {"NUMBER": "12", "X": "x"}
"""What a number, or a value that is known at run time, is here."""
OF_ONE_TEXT = {"jobs/frazil/cli/options.py", "jobs/frazil/local/services.py"}
"""Modules whose messages name the command that runs, or the part that is missing."""


def texts(module: Path) -> Iterator[str]:
    """Yield the texts of a module, but its docstrings; each part that is known at run time is an X."""
    tree = ast.parse(module.read_text())
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone | parts:
            yield node.value


def named() -> list[tuple[str, str]]:
    found = set()
    for folder in ("jobs", "stacks", "policies", "infra"):
        for module in (ROOT / folder).rglob("*.py"):
            place = str(module.relative_to(ROOT))
            for text in texts(module) if place not in OF_ONE_TEXT else ():
                found |= {(place, command) for command in re.findall(r"`frazil ([^`]+)`", text)}
    return sorted(found)


def mentioned() -> set[tuple[str, str]]:
    """Return the first words of commands in sources, with their places: in messages, and in backquotes of docstrings."""
    found, words = set(), r"frazil ([a-z][a-z-]+(?: [a-z][a-z-]+)?)"
    for folder in ("jobs", "stacks", "policies", "infra"):
        for module in (ROOT / folder).rglob("*.py"):
            source = re.findall(f"`{words}", module.read_text())
            found |= {
                (str(module.relative_to(ROOT)), each)
                for text in texts(module)
                for each in re.findall(rf"\b{words}", text)
            }
            found |= {(str(module.relative_to(ROOT)), each) for each in source}
    return found


NAMED = named()
NO_COMMANDS = {"on"}
"""Words after the name in messages that name no command."""


def test_there_are_commands_in_messages() -> None:
    assert len(NAMED) > 20


@pytest.mark.parametrize(("place", "command"), NAMED)
def test_a_named_command_is_accepted(place: str, command: str) -> None:
    parse(" ".join(["frazil", *(VALUES.get(word, word) for word in command.split())]))


def test_a_command_that_a_sentence_names_exists() -> None:
    groups = application().commands
    wrong = []
    for place, words in sorted(mentioned()):
        first, _, second = words.partition(" ")
        group = getattr(groups.get(first), "commands", None)
        if first not in {*groups, *NO_COMMANDS} or (group and second and second not in group):
            wrong.append((place, words))
    assert wrong == []
