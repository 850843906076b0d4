"""`frazil ui`: pipelines in a browser, from a server on this machine. Nothing can be changed there."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from frazil.cli.console import say, write_at_once
from frazil.cli.known_pipelines import with_topics
from frazil.cli.options import EnvironmentChoice, PipelinesFile, command_secrets, flag
from frazil.cli.pipelines.verify import PROOFS
from frazil.declaration import Pipeline
from frazil.errors import InvalidInput
from frazil.project import declaration_file, environments, project_file
from frazil.project.declaration_file import Found

if TYPE_CHECKING:
    from frazil.page.facts import Facts

PORT = 8410
DETAILED = 50
"""Pipelines that a file has in full, unless they are named."""

Open = Annotated[bool, flag("--open", "Open the page in the browser.")]


def ui(
    port: Annotated[
        int | None, flag("--port", f"Port of the page. Default: {PORT}, or a free one.", "N", min=1, max=65_535)
    ] = None,
    is_opened: Open = False,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
) -> None:
    """Show all pipelines in a browser, read only.

    For example: frazil ui --open

    Serves on 127.0.0.1 until Ctrl-C, for this machine only.
    Facts are at most 30 seconds old; the page shows their age.
    Reads catalogs, Kafka and the registry, without a JVM.

    Exit codes: 0 ended by Ctrl-C; 2 invalid input, or the port is taken
    """
    from frazil.page.server import address, server

    facts = facts_of(_read_when_changed(file), env)
    listening = listening_on(port)
    say(f"{address(listening)} shows the environment {env}; Ctrl-C ends")
    if is_opened:
        webbrowser.open(address(listening))
    try:
        server(facts, listening).run(sockets=[listening])
    except KeyboardInterrupt:  # the way in which it is ended
        return


def facts_of(found: Callable[[], Found], env: str, *more: Pipeline) -> Facts:
    """Return the facts of an environment for a page: of the pipelines of a file, which each overview reads, and of more."""
    from frazil.audit.files.proofs import ProofFolder
    from frazil.page.facts import Facts

    place, secrets = environments.environment(env), command_secrets()
    proofs = ProofFolder(project_file.state_folder() / PROOFS / place.name)
    return Facts(place, env, secrets, lambda report: (*with_topics(found(), env, secrets, report), *more), proofs)


def _read_when_changed(file: Path) -> Callable[[], Found]:
    """Read a file of declarations, and return what reads it again if it has changed. Both raise what reading it raises."""
    kept = {_changed_at(file): declaration_file.found(file)}

    def found() -> Found:
        at = _changed_at(file)
        if (newest := kept.get(at)) is None:  # another thread may replace it meanwhile
            newest = declaration_file.found(file)
            kept.clear()
            kept[at] = newest
        return newest

    return found


def _changed_at(file: Path) -> int:
    return file.stat().st_mtime_ns if file.is_file() else 0


def listening_on(port: int | None = None) -> socket.socket:
    """Return a socket of the page. Raises `InvalidInput` if the port that was asked for is taken."""
    from frazil.page.server import bound

    try:
        return bound(port or PORT, is_usual=port is None)
    except OSError as error:
        what = f"port {port} cannot be used ({error.strerror})"
        raise InvalidInput(what, where="--port", do="Name another one, or leave it out") from None


def write_page(facts: Facts, file: Path, names: Sequence[str] | None = None) -> None:
    """Write one file with all pipelines, and with the named ones in full; without names, with the first ones."""
    from frazil.page.rendering import Rendering, urgent_first

    overview = facts.overview()
    chosen = names or [one.pipeline for one in urgent_first(overview.rows)][:DETAILED]
    details = [*facts.details(overview, chosen)]
    write_at_once(file, Rendering(facts.environment, facts.redactor, is_file=True).file(overview, details).encode())
