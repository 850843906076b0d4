"""`frazil local demo`: land real data, from the start of a broker to a proven table."""

from __future__ import annotations

import shutil
import signal
import sys
import threading
import time
import webbrowser
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from frazil.cli.console import duration, number, out, say, show_json, table
from frazil.cli.demo.changes import BOOKINGS, Captured
from frazil.cli.demo.land import Landed, fill_and_land, heading
from frazil.cli.options import AsJson, command_secrets
from frazil.cli.pipelines.run import Memory
from frazil.cli.pipelines.ui import Open, facts_of, listening_on, write_page
from frazil.cli.pipelines.verify import PROOFS
from frazil.declaration import Environment, Pipeline, Table, Topic, each_topic
from frazil.exit_codes import Exit
from frazil.project import declaration_file
from frazil.project.environments import documents_folder
from frazil.project.project_file import state_folder

if TYPE_CHECKING:
    from frazil.audit.files.proofs import ProofFolder
    from frazil.lake.read.stored_tables import Lake

DOCUMENT = ".frazil/demo/pipelines.json"
NEXT = (
    ("frazil status flights --env demo", "offsets, schema, snapshots"),
    ("frazil ui --env demo", "all tables in a browser; status.html in .frazil/demo has them as one file"),
    ("frazil dead-letters list flights --env demo", "rejected records, with reasons"),
    ("frazil verify flights --env demo --deep", "the proof again"),
    ("stacks/pipelines.py", "the declarations of these tables; add yours there"),
    ("README.md", "a pipeline on your own broker"),
)
ELSEWHERE = tuple((f"{command} --pipelines {DOCUMENT}", what) for command, what in NEXT[:4])
"""The same outside of a checkout, whose declarations are the demo's document."""


def next_steps(command: str | None, python: Path) -> tuple[tuple[str, str], ...]:
    """Return what to look at next. If `frazil` is no command of the shell, first how to make it one."""
    steps = NEXT if Path("stacks/pipelines.py").exists() else ELSEWHERE
    if command is not None:
        return steps
    activate = python.parent / "activate"
    shown = activate.relative_to(Path.cwd()) if activate.is_relative_to(Path.cwd()) else activate
    return ((f"source {shown}", "puts frazil on the PATH"), *steps)


PAGE = "status.html"
"""The demo's page as one file, in its folder."""
FOLDER = "demo"
"""The demo's folder in `.frazil`."""
ENVIRONMENT = "demo"

FLIGHTS = Pipeline(
    topic=Topic("flights", value="avro"),
    table=Table("nyc.flights", partition_by=("months(time_hour)",), sort_by=("time_hour",)),
)
WEATHER = Pipeline(
    topic=Topic("weather", value="json_schema"),
    table=Table("nyc.weather", partition_by=("months(time_hour)",), sort_by=("time_hour",)),
)
PLANES = Pipeline(topic=Topic("planes", value="protobuf"), table=Table("nyc.planes"))
PIPELINES = (FLIGHTS, WEATHER, PLANES)
"""The demo's pipelines; `stacks/pipelines.py` declares the same."""
DEPARTURES = each_topic(r"departures\.(?P<group>.*)", table="nyc.departures_{group}", value="avro")
"""The demo's pattern: flights in a topic for each group of carriers."""


def demo(memory: Memory = "2g", is_opened: Open = False, as_json: AsJson = False) -> None:
    """Land a year of flights, and a database's changes.

    For example: frazil local demo

    Starts a broker, a registry and PostgreSQL in .frazil/demo.
    Stops them at the end; the tables stay.
    The tables are in the environment `demo`.
    Shows them on a page meanwhile, and leaves it as status.html.
    With --open, services and page stay until Ctrl-C.
    A second run starts without data.

    Exit codes: 0 every record is landed or dead-lettered, and proven; 1 a record is missing; 3 a local service
    did not start
    """
    from frazil.audit.files.proofs import ProofFolder
    from frazil.lake.read.stored_tables import Lake
    from frazil.local.postgres import why_postgres_cannot_run
    from frazil.local.services import down, world
    from frazil.page.server import address, serving

    began = time.monotonic()
    secrets = command_secrets()
    console = Console(quiet=True) if as_json else out()
    folder = state_folder() / FOLDER
    down(folder, data=True)
    heading(console, "1", "A broker and a schema registry start", str(folder))
    with world(folder) as here, ExitStack() as pages:
        environment = _kept(here.environment)
        say(f"Kafka at {here.bootstrap}, registry at {here.registry_url}", to=console)
        lacking = why_postgres_cannot_run()
        declared = declaration_file.found(folder / Path(DOCUMENT).name)
        facts, listening = facts_of(lambda: declared, ENVIRONMENT, *(() if lacking else (BOOKINGS,))), listening_on()
        pages.enter_context(serving(facts, listening))
        say(f"{address(listening)} shows the pipelines in a browser meanwhile", to=console)
        if is_opened:
            webbrowser.open(address(listening))
        landed, captured = fill_and_land(
            PIPELINES,
            DEPARTURES,
            environment,
            here.registry_url,
            secrets,
            console,
            memory=memory,
            log=folder / "spark.log",
            begin_capture=None if lacking else lambda: Captured.begin(folder),
        )
        lake = Lake(environment, secrets.read)
        heading(console, "5", "The proof", "through PyIceberg; no JVM, no Kafka")
        remembered = ProofFolder(state_folder() / PROOFS / environment.name)
        proofs = [_prove(one, lake, remembered, console) for one in landed]
        if captured is not None:
            proofs.append(captured.proof(lake, remembered, console))
        else:
            say(f"no upsert table: {lacking}", "dim", to=console)
        write_page(facts, folder / PAGE)
        seconds, is_complete = time.monotonic() - began, all(proofs)
        summary(console, landed, seconds=seconds, is_complete=is_complete)
        if as_json:
            show_json(
                {
                    "verified": is_complete,
                    "seconds": round(seconds, 1),
                    "pipelines": [one.document() for one in landed],
                    "change_data": captured.document() if captured is not None else {"skipped": lacking},
                }
            )
        if is_opened:
            say(f"{address(listening)} stays until Ctrl-C, and so do Kafka and the registry", to=console)
            until_interrupted()
    if not is_complete:
        raise typer.Exit(Exit.DECISION_REQUIRED)


def until_interrupted() -> None:
    """Wait for Ctrl-C. The handler of a Spark session that has ended would fail."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        threading.Event().wait()


def _kept(environment: Environment) -> Environment:
    """Write the demo's environment where `--env demo` finds it, and its declarations; return the environment."""
    from frazil.declaration import canonical, environment_document
    from frazil.declaration.documents.document import document
    from frazil.local.ports import write_document

    named = replace(environment, name=ENVIRONMENT)
    write_document(documents_folder() / f"{ENVIRONMENT}.json", environment_document(named))
    (state_folder() / FOLDER / Path(DOCUMENT).name).write_bytes(canonical(document(PIPELINES, [DEPARTURES])))
    return named


def _prove(one: Landed, lake: Lake, remembered: ProofFolder, console: Console) -> bool:
    """Verify one pipeline with every file read, and print the result.

    Return whether it is proven, each produced record is landed or dead-lettered, and exactly the bad ones are dead letters.
    """
    from frazil.audit.verify import verify
    from frazil.cli.pipelines.verify import print_result
    from frazil.dead_letters.listing import listing

    found = verify(one.pipeline, lake, deep=True, proofs=remembered)
    print_result(found, console)
    one.rows, one.dead = found.sum_of("landed"), dict(listing(one.pipeline, lake, limit=0).counts)
    is_all = one.produced == found.sum_of("read") == one.rows + sum(one.dead.values())
    return found.exit_code == 0 and is_all and one.dead == one.spoilt


def summary(console: Console, landed: Sequence[Landed], *, seconds: float, is_complete: bool) -> None:
    """Print the counts of all records, and what to look at next."""
    console.rule("counts of all records", style="dim")
    by_reason = table("dead letters", "spoilt on purpose", "found", right=("spoilt on purpose", "found"))
    for one in landed:
        for reason in sorted({*one.spoilt, *one.dead}):
            spoilt, found = one.spoilt.get(reason, 0), one.dead.get(reason, 0)
            by_reason.add_row(f"{one.pipeline.topic.name}: {reason}", number(spoilt), number(found))
    console.print(by_reason)
    console.print()
    shown = table("next", "")
    for where, what in next_steps(shutil.which("frazil"), Path(sys.executable)):
        shown.add_row(where, what)
    console.print(shown)
    console.print()
    for one in landed:
        dead = f"{number(sum(one.dead.values()))} dead-lettered"
        equation = f"{number(one.produced)} produced {'=' if is_complete else '?'} {number(one.rows)} landed + {dead}"
        say(f"{one.pipeline.topic.name}: {equation}", to=console)
    say(f"in {duration(seconds)}", to=console)
    console.print("verified" if is_complete else "NOT verified", style="bold green" if is_complete else "bold red")
