"""The README's quickstart: its commands, run in order in one folder, and what the README says that they print."""

from __future__ import annotations

import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

_TRANSCRIPT = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """A command that ended: what it printed, and what the README shows of it."""

    command: str
    shown: list[str]
    printed: list[str]
    stderr: str
    seconds: float


def transcript(readme: str) -> list[tuple[str, list[str]]]:
    """Return the commands of the quickstart, each with the lines of output that it shows."""
    (text,) = _TRANSCRIPT.findall(readme)
    commands: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(line)
    return commands


def followed(root: Path, folder: Path, programs: Path, **variables: str) -> list[Step]:
    """Run the commands as a user who has set nothing else, with these programs first on the PATH. Each must succeed."""
    shell = {name: value for name, value in os.environ.items() if not name.startswith(("FRAZIL_", "PYTHON", "SPARK_"))}
    shell |= {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", **variables}
    steps = []
    for command, shown in transcript((root / "README.md").read_text()):
        began = time.monotonic()
        ended = subprocess.run(
            ["bash", "-euc", command], cwd=folder, env=shell, capture_output=True, text=True, timeout=900, check=False
        )
        assert ended.returncode == 0, (command, ended.stderr)
        printed = [line.rstrip() for line in ended.stdout.splitlines()]
        steps.append(Step(command, shown, printed, ended.stderr, time.monotonic() - began))
    assert [step.command.split()[1] for step in steps] == ["init", "local", "local", "run", "query"]
    return steps


def check(steps: list[Step]) -> None:
    """Compare what the commands printed with the README, where it shows something."""
    shown = [step for step in steps if step.shown]
    assert [(step.command, step.printed) for step in shown] == [(step.command, step.shown) for step in shown]
    assert len(shown) >= 3
