"""A page of `docs/guides` as something to run: its files, its commands, and what they must print."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
import typer
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.clients.secrets import Secrets
from frazil.declaration.environment import Environment
from frazil.job import session as job_session
from frazil.lake.catalogs import make_folder
from tests.support import extra_catalogs

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
_BLOCK = re.compile(r"(?P<before>[^\n]*)\n+```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"`(?P<file>[\w./@-]+)`:$")


@dataclass(frozen=True)
class Block:
    """A fenced block. `file` is the name in the line before it that ends with a colon, as in: `orders.jsonl`:"""

    language: str
    text: str
    file: str | None

    @property
    def commands(self) -> list[str]:
        """The lines of a shell block, with continued lines joined; none of another block."""
        if self.language != "sh":
            return []
        return [line for line in self.text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]


def blocks(page: str, section: str | None = None) -> list[Block]:
    """Return the blocks of a page, or of the section of a heading like `## Find`."""
    text = (GUIDES / page).read_text()
    if section is not None:
        text = re.split(r"\n#{2,3} ", text.split(f"\n{section}\n", 1)[1], maxsplit=1)[0]
    return [
        Block(found["language"], found["text"], named["file"] if (named := _NAMED.search(found["before"])) else None)
        for found in _BLOCK.finditer(text)
    ]


def block(page: str, file: str) -> str:
    """Return the content of a page's file."""
    (found,) = (one.text for one in blocks(page) if one.file == file)
    return found


@cache
def application() -> Any:
    """Return the application's commands. To make them takes longer than to parse a line."""
    return typer.main.get_command(app)


def parse(command: str) -> None:
    """Parse a command line as the application does, without running it. Raises a base of `typer.BadParameter` for a wrong one."""
    found = application()
    words = shlex.split(command, comments=True)[1:]
    while below := getattr(found, "commands", None):
        if not words or words[0] not in below:
            raise typer.BadParameter(f"there is no command {command}")
        found, words = below[words[0]], words[1:]
    found.make_context(found.name, words).close()


@dataclass
class Terminal:
    """Runs blocks in a folder, in this process. `replaced` are texts of the page, and what they are here."""

    folder: Path
    replaced: Mapping[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    exit_codes: Mapping[str, int] = field(default_factory=dict)
    """The exit codes of commands that are not to end with 0."""
    skipped: tuple[str, ...] = ()
    """Beginnings of commands that are parsed only."""
    catalog: str = ""
    """The name of the project's catalog in Spark."""
    printed: str = ""

    def run(self, page: Sequence[Block]) -> None:
        """Write the files, run the commands, and compare each `text` block with what the commands before it printed."""
        for one in page:
            if one.file:
                (self.folder / one.file).write_text(self.here(one.text))
            elif one.commands:
                self.printed = "".join(map(self.command, one.commands))
            elif one.language == "text":
                self._compare(one.text)

    def command(self, line: str) -> str:
        """Run one command, and return its output."""
        if line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            self.variables[name] = value
            return ""
        if line.startswith("cd "):
            self.folder /= line.removeprefix("cd ")
            os.chdir(self.folder)
            return ""
        assert line.startswith("frazil "), line
        parse(line)
        if line.startswith(self.skipped):
            return ""
        arguments = shlex.split(self.here(line), comments=True)[1:]
        ended = CliRunner(env=self.variables).invoke(
            app, arguments, obj=Secrets(self.variables), terminal_width=200, prog_name="frazil"
        )
        assert ended.exit_code == self.exit_codes.get(line, 0), f"{line}\n{ended.output}"
        return ended.stdout + ended.stderr

    def name_catalog(self) -> None:
        """Give the catalog of the project in the folder the name that it has in Spark here."""
        file = self.folder / "frazil.toml"
        usual = 'type = "local", '
        assert usual in file.read_text()
        file.write_text(file.read_text().replace(usual, f'{usual}name = "{self.catalog}", '))

    def here(self, text: str) -> str:
        """Return a text of the page as it is here."""
        for written, here in self.replaced.items():
            text = text.replace(written, here)
        return text

    def _compare(self, text: str) -> None:
        printed = [" ".join(line.split()) for line in self.printed.splitlines()]
        for line in filter(None, (" ".join(line.split()) for line in self.here(text).splitlines())):
            assert any(line in one for one in printed), f"{line}\nis not in:\n{self.printed}"


@contextmanager
def on_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let commands in this process use the session of the tests, to which the catalog of their environment is added."""

    def opened(environment: Environment, read: Any, **_: Any) -> SparkSession:
        place = f"spark.sql.catalog.{environment.catalog.name}.uri"
        make_folder(environment)
        before = spark.conf.get(place, None)
        extra_catalogs.added(spark, environment, environment.catalog.name)
        if before not in (None, spark.conf.get(place)):  # `preview` has a temporary catalog, which a session keeps
            cast(Any, spark)._jsparkSession.sessionState().catalogManager().reset()
        return spark

    with monkeypatch.context() as patched:
        patched.setattr(job_session, "session", opened)
        patched.setattr(job_session, "end", lambda session: None)
        yield
