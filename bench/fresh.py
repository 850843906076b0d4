"""Fresh processes: `frazil run` of a small topic from the shell, and the first rows that a session lands."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench import rounds
from bench.environment import NAMESPACE, BenchEnvironment, tell
from bench.shapes import SHAPES
from frazil.declaration import Pipeline, Table
from frazil.declaration import Topic as DeclaredTopic
from frazil.declaration.documents.document import document
from frazil.declaration.documents.to_json import canonical

SMALL_SHAPE, SMALL_ROWS = "light_avro", 1_000
SHAPE, FIRST_ROWS = "nested_avro", 200_000
ROUNDS = 2
NAME = "small"


def measure(here: BenchEnvironment, measured: int) -> dict[str, Any]:
    """Run both in turns, `measured` times each. Return `shell`, the wall seconds of the command, and `first`, CPU-seconds.

    Of a session's first rows its start is not part, and neither is the broker. Each run makes a new table, and is checked.
    """
    tell(f"fresh processes: {SMALL_ROWS:,} records from the shell, {FIRST_ROWS:,} in a new session")
    small, first = here.topic(SMALL_SHAPE, f"fresh_{NAME}", SMALL_ROWS), here.topic(SHAPE, "fresh_first", FIRST_ROWS)
    shell, sessions = list[float](), list[float]()
    for number in range(measured):
        shell.append(_shell(here, small.name, f"{NAMESPACE}.{small.name}_{number}"))
        here.check(f"{NAMESPACE}.{small.name}_{number}", small)
        here.drop(f"{NAMESPACE}.{small.name}_{number}")
        with here.served(here.job("ours", f"fresh_{number}", first, batch_rows=FIRST_ROWS)) as contender:
            sessions.append(rounds.land(here, contender, "ours", first, number).cpu)
        tell(f"  round {number + 1}: {shell[-1]:.2f} s, {sessions[-1]:.2f} CPU-s")
    here.drop_topics(small, first)
    return {"shell": shell, "first": sessions}


def _shell(here: BenchEnvironment, topic: str, table: str) -> float:
    """Return the seconds of `frazil run`, from its start to its end."""
    folder = here.out / "runs" / "shell"
    folder.mkdir(parents=True, exist_ok=True)
    declared = Pipeline(
        name=NAME,
        topic=DeclaredTopic(topic, value=SHAPES[SMALL_SHAPE].value_format),
        table=Table(table),
    )
    (folder / "pipelines.json").write_bytes(canonical(document([declared])))
    command = [str(Path(sys.executable).parent / "frazil"), "run", NAME, "--once", "--pipelines", "pipelines.json"]
    began = time.monotonic()
    ended = subprocess.run(
        [*command, "--env", str(here.world.environment_file), "--master", f"local[{here.cores}]"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - began
    if ended.returncode:
        raise RuntimeError(f"frazil run ended with {ended.returncode}:\n{ended.stderr[-4000:]}")
    return seconds
