"""The command line: what it answers, and how it ends."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.local.postgres import why_postgres_cannot_run

GOOD = """
from frazil.declaration import Pipeline, Table, Topic

pipelines = [Pipeline(topic=Topic("orders", value="avro"), table=Table("shop.orders"))]
"""


def with_value(of: str) -> str:
    """The declaration with another format of values."""
    return GOOD.replace('value="avro"', f"value={of}").replace("import ", "import Avro, Json, ", 1)


def frazil(*arguments: object, cwd: Path) -> Result:
    """Run a command in this process, in a folder."""
    with contextlib.chdir(cwd):
        return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200", "NO_COLOR": "1"})


@pytest.mark.parametrize(
    ("start", "kind"),
    [("Latest()", "latest"), ("At(datetime(2026, 1, 2, tzinfo=UTC))", "timestamp"), ("Offsets({0: 5})", "offsets")],
)
def test_check_says_that_a_state_will_not_be_complete(tmp_path: Path, start: str, kind: str) -> None:
    for mode, what in (("Changelog", "history"), ("Upsert", "state")):
        keyed = f'key="text"), write={mode}(), start={start}, table='
        text = GOOD.replace("), table=", f", {keyed}").replace("import ", f"import At, Latest, Offsets, {mode}, ")
        (tmp_path / "mine.py").write_text(f"from datetime import UTC, datetime\n{text}")
        said = f"the table is not the complete {what}: it begins at {kind}, later than older keys"
        assert f"orders: {said}\n" in frazil("check", "mine.py", cwd=tmp_path).stdout
    [told] = json.loads(frazil("check", "mine.py", "--json", cwd=tmp_path).stdout)["pipelines"]
    assert told["notes"] == [said]


CAPTURED = """
from frazil import Debezium

pipelines = Debezium().tables("shop", "public.orders", namespace="shop", value="avro", key="avro", write="upsert")
"""


def test_check_takes_connectors(tmp_path: Path) -> None:
    """Problems of all files are printed at once; notes are no problem. No value that no rule asks for is printed."""
    (tmp_path / "mine.py").write_text(CAPTURED)
    settings = {"connector.class": "io.debezium.connector.mysql.MySqlConnector", "topic.prefix": "shop"}
    settings |= {"database.password": "hunter2", "decimal.handling.mode": "double", "skipped.operations": "none"}
    (tmp_path / "shop.json").write_text(json.dumps({"name": "shop", "config": settings}))
    arguments = ("check", "mine.py", "--connector", "shop.json")
    ended = frazil(*arguments, cwd=tmp_path)
    assert ended.exit_code == 0, ended.stderr
    what = "decimal.handling.mode is 'double': digits are lost (pipeline orders)"
    do = "Set decimal.handling.mode to precise or string"
    assert f"note: shop.json: decimal.handling.mode: {what}. {do}\n" in ended.stdout
    notes = json.loads(frazil(*arguments, "--json", cwd=tmp_path).stdout)["connector_notes"]
    assert {"path": "shop.json: decimal.handling.mode", "what": what, "do": do} in notes
    settings["unavailable.value.placeholder"] = "?"
    (tmp_path / "shop.json").write_text(json.dumps(settings))
    (tmp_path / "broken.json").write_text('{"database.password": "hunter2"')
    both = frazil(*arguments, "--connector", "broken.json", cwd=tmp_path)
    assert both.exit_code == 2
    assert "shop.json: unavailable.value.placeholder: unavailable.value.placeholder is '?'" in both.stderr
    assert "broken.json: this is not JSON" in both.stderr
    [one] = json.loads(frazil(*arguments, "--json", cwd=tmp_path).stdout)["problems"]
    assert one["path"] == "shop.json: unavailable.value.placeholder"
    assert "hunter2" not in ended.stdout + ended.stderr + both.stdout + both.stderr
    lacking = frazil("check", "mine.py", "--connector", "none.json", cwd=tmp_path)
    assert (lacking.exit_code, "none.json: it cannot be read" in lacking.stderr) == (2, True)


def test_check_shows_the_columns_that_are_declared(tmp_path: Path) -> None:
    (tmp_path / "orders.avsc").write_text(
        '{"type": "record", "name": "O", "fields": [{"name": "Id", "type": "long"}, {"name": "note", "type": ["null", "string"]}]}'
    )
    (tmp_path / "mine.py").write_text(with_value('Avro(schema="orders.avsc")'))
    assert "orders: columns id long, note string\n" in frazil("check", "mine.py", cwd=tmp_path).stdout
    [told] = json.loads(frazil("check", "mine.py", "--json", cwd=tmp_path).stdout)["pipelines"]
    assert told["columns"] == {"id": "long", "note": "string"}
    (tmp_path / "mine.py").write_text(with_value('Json(columns=("id int", "at io.debezium.time.Date"))'))
    assert "orders: columns id int, at date\n" in frazil("check", "mine.py", cwd=tmp_path).stdout


def test_check_names_the_schema_file_that_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(with_value('Avro(schema="orders.avsc")'))
    ended = frazil("check", "mine.py", cwd=tmp_path)
    assert ended.exit_code == 2
    assert "mine.py:4: avro.schema[0]: the schema file orders.avsc does not exist" in ended.stderr
    (tmp_path / "orders.avsc").write_text('{"type": "record", "name": "O", "fields": [{"name": "a", "type": "b"}]}')
    ended = frazil("check", "mine.py", cwd=tmp_path)
    assert ended.exit_code == 2
    assert "mine.py: pipelines[0].topic.value.schema[0]: orders.avsc: O.a: there is no type 'b'" in ended.stderr


@pytest.mark.long
@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_the_demo_proves_what_it_lands(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).parent / "frazil"), "local", "demo"]
    settings = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    ended = subprocess.run(
        command, cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=500, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "336,776" in ended.stdout
    if why_postgres_cannot_run() is None:
        assert "5,608 rows with fare >= 50 in PostgreSQL, passengers masked: all rows equal" in ended.stdout
    assert ended.stdout.rstrip().endswith("verified")
