"""The steps of the demonstration: commands that are named, printed, timed and logged, and that end with this process."""

from __future__ import annotations

import os
import resource
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

TAIL = 30
"""Lines of a log that are shown when its command has failed."""
_END_SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A completed step. `command` has a line per command and may be empty; `exit` is the first one's exit code.

    `cpu_seconds` are those of the command and its children, which other load does not change; servers and job
    runs are not included.
    """

    name: str
    command: str
    seconds: float
    cpu_seconds: float
    exit: int = 0


@dataclass(eq=False, kw_only=True)
class StepFailed(Exception):
    """A command had an unexpected exit code, or a check failed. `log` has its complete output."""

    name: str
    what: str
    log: Path | None = None
    tail: str = ""

    def __str__(self) -> str:
        where = f"\nits log: {self.log}" if self.log else ""
        return f"{self.name}: {self.what}{where}" + (f"\n{self.tail}" if self.tail else "")


@dataclass(kw_only=True)
class Steps:
    """The steps so far. Commands run in `folder`, with exactly the variables of `environment`."""

    folder: Path
    logs: Path
    environment: dict[str, str]
    console: Console
    done: list[Done] = field(default_factory=list)

    def run(
        self,
        name: str,
        *command: str,
        expect: Sequence[int] = (0,),
        quiet: bool = False,
        more: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command and return its output. `more` is added to its environment, `folder` is another working folder.

        Raises `StepFailed` for an unexpected exit code. A `quiet` step is printed and counted only if it fails.
        """
        return self.run_at_once(name, command, expect=expect, quiet=quiet, more=more, folder=folder)[0]

    def run_at_once(
        self,
        name: str,
        *commands: Sequence[str],
        expect: Sequence[int] = (0,),
        quiet: bool = False,
        more: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> list[subprocess.CompletedProcess[str]]:
        """Run commands in parallel as one step, which fails if one of them does; otherwise like `run`."""
        more = more or {}
        settings = " ".join(f"{key}={value}" for key, value in more.items())
        shown = [f"{settings} {shlex.join(command)}".strip() for command in commands]
        log = self.logs / f"{len(self.done) + 1:02d}-{name.replace(' ', '-')}.log"
        with nullcontext() if quiet else self._shown(name, shown) as codes:
            ended = self._ended(commands, {**self.environment, **more}, folder or self.folder)
            with log.open("a") as file:
                for line, each in zip(shown, ended, strict=True):
                    file.write(f"$ {line}\n{each.stdout}{each.stderr}\n")
            for line, each in zip(shown, ended, strict=True):
                if each.returncode not in expect:
                    lines = (each.stdout + each.stderr).splitlines()[-TAIL:]
                    wanted = " or ".join(map(str, expect))
                    what = f"exit code {each.returncode}, and not {wanted}, of `{line}`"
                    raise StepFailed(name=name, what=what, log=log, tail="\n".join(lines))
            if codes is not None:
                codes.append(ended[0].returncode)
        return ended

    @contextmanager
    def watch(self, name: str) -> Iterator[None]:
        """Record a step of this process itself."""
        with self._shown(name, []):
            yield

    def require(self, holds: bool, name: str, what: str) -> None:
        """Raise `StepFailed` unless something holds."""
        if not holds:
            raise StepFailed(name=name, what=what)

    @contextmanager
    def _shown(self, name: str, commands: Sequence[str]) -> Iterator[list[int]]:
        began, worked, codes = time.monotonic(), _worked(), list[int]()
        self.console.print(f"{len(self.done) + 1:2}  [bold]{name}[/bold]")
        for command in commands:
            self.console.print(f"    $ {command}", style="dim", markup=False, soft_wrap=True)
        with self.console.status(name) if self.console.is_terminal else nullcontext():
            yield codes
        seconds, cpu = round(time.monotonic() - began, 1), round(_worked() - worked, 1)
        code = codes[0] if codes else 0
        self.done.append(Done(name=name, command="\n".join(commands), seconds=seconds, cpu_seconds=cpu, exit=code))
        self.console.print(f"    {seconds:.1f} s", style="green")

    def _ended(
        self, commands: Sequence[Sequence[str]], environment: Mapping[str, str], folder: Path
    ) -> list[subprocess.CompletedProcess[str]]:
        # Sessions of their own: Ctrl-C reaches us alone, and we end them with all of their children.
        children = [
            subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            for command in commands
        ]
        try:
            said = [child.communicate() for child in children]
        except BaseException:
            for child in children:
                _end(child)
            raise
        return [
            subprocess.CompletedProcess(command, child.returncode, out, err)
            for command, child, (out, err) in zip(commands, children, said, strict=True)
        ]


def _worked() -> float:
    """Return the CPU seconds of all commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _end(child: subprocess.Popen[str]) -> None:
    """Stop a command and its children, with a signal first, so that Terraform writes its state."""
    for number, seconds in ((signal.SIGINT, _END_SECONDS), (signal.SIGKILL, None)):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            break
        try:
            child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            continue
