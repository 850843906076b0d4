"""Write docs/reference/commands.md from the command line: the help of each command, its options and its exit codes.

python -m tests.support.commands_page
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from frazil.cli.main import app

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
ENV = "Same as ENV"
OFTEN = 8
"""Commands that take an option, from which on it is described once for all of them."""
PLAIN_TYPE = re.compile(r" <(str|path|list\[str\]|int range)>")
TOP = """# Commands

`python -m tests.support.commands_page` writes this page from the help texts of the commands. `frazil COMMAND --help` prints the same.
"""
Command = tuple[str, Any]
"""A command's name, and the command."""


def commands(below: Any, before: str = "frazil") -> Iterator[Command]:
    """Yield all commands, those of a group after the group."""
    for name, command in below.commands.items():
        if not command.hidden:
            yield f"{before} {name}", command
            yield from commands(command, f"{before} {name}") if hasattr(command, "commands") else ()


def parameters(command: Any) -> list[str]:
    """Return a line for each argument and option."""
    context = command.context_class(command, info_name="frazil")
    records = [parameter.get_help_record(context) for parameter in command.params]
    return [f"- `{PLAIN_TYPE.sub('', name)}`: {' '.join(text.split())}" for name, text in filter(None, records)]


def described(text: str) -> list[str]:
    """Return the help of a command as Markdown: examples are code, and exit codes are one sentence."""
    lines = []
    for paragraph in text.replace("\b\n", "").split("\n\n"):
        first, *others = (line.strip() for line in paragraph.strip().splitlines())
        if first == "Exit codes:":
            coded = (code.split(" ", 1) for code in others)
            lines += ["", f"Exit codes: {'; '.join(f'`{code}` {meaning}' for code, meaning in coded)}."]
        elif first.startswith("For example: ") and " then " not in first:
            lines += ["", f"For example: `{first.removeprefix('For example: ')}`"]
        else:
            lines += ["", " ".join(line if line[-1] in ".:;," else f"{line}." for line in [first, *others])]
    return lines


def page() -> str:
    """Return the page of the commands as they are."""
    root: Any = typer.main.get_command(app)
    listed = list(commands(root))
    found = Counter(line for _, command in listed for line in parameters(command))
    often = [line for line, times in found.items() if times >= OFTEN and ENV not in line]
    lines = [TOP, "## frazil", *described(root.help or ""), "", "Options of several commands:", "", *sorted(often)]
    for name, command in listed:
        lines += ["", f"{'##' if name.count(' ') == 1 else '###'} {name}", *described(command.help or "")]
        own = [line for line in parameters(command) if line not in often]
        common = [line.split("`")[1].split()[0].rstrip(",") for line in parameters(command) if line in often]
        lines += ["", *own] if own else []
        usual = [f"`{name}`" for name in common if name not in ("--help", "-h")]
        lines += ["", f"Also: {', '.join(usual)}."] if usual else []
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())
