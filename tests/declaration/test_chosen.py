"""Fields that take a choice or its text: one type when the program runs, two for whoever gives it."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from frazil.declaration import KeyFormat, ValueFormat
from frazil.declaration.chosen import Chosen, default

JOBS = Path(__file__).parents[2] / "jobs"


def test_the_hint_is_the_choice_itself_when_the_program_runs():
    assert Chosen[ValueFormat] is ValueFormat
    assert default(KeyFormat.TEXT) is KeyFormat.TEXT


def test_a_type_checker_takes_the_text_and_gives_the_choice(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        dedent(
            """
            from frazil import Topic, ValueFormat
            Topic("a", value_format="avro", key_format="text").value_format.has_schema
            Topic("a", value_format=ValueFormat.AVRO)
            Topic("a", value_format=3)
            """
        )
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(file)]
    ended = subprocess.run(command, env={"MYPYPATH": str(JOBS)}, cwd=tmp_path, capture_output=True, text=True)
    lines = [line for line in ended.stdout.splitlines() if line.startswith(("mine.py", str(file)))]
    assert len(lines) == 1, ended.stdout
    assert "mine.py:5: error:" in lines[0]
