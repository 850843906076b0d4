"""`frazil verify` on tables as the ingest leaves them: its first line, its plan, what it remembers, narrow screens."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from rich.console import Console
from typer.testing import CliRunner

from frazil.audit.finding import Finding, Flaw, Outcome
from frazil.audit.verification import Replayed, Verification
from frazil.cli.main import app
from frazil.cli.pipelines.verify import print_result
from frazil.declaration import Latest
from tests.audit.audited_table import Landed
from tests.audit.landed_state import LandedState
from tests.support.documents import written

Ask = Callable[..., Result]


@pytest.fixture
def lake(tmp_path: Path) -> Landed:
    lake = Landed(tmp_path)
    lake.land({0: 5_000, 1: 1_004}, rejected=[(0, 107), (1, 53), (1, 54), (0, 9)])
    return lake


@pytest.fixture
def ask(lake: Landed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Runs `frazil verify orders …` in an empty folder."""
    return asking(lake, tmp_path, monkeypatch)


def asking(lake: Landed, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    options = written(folder, [lake.pipeline], lake.environment)
    (folder / "project").mkdir()
    monkeypatch.chdir(folder / "project")

    def run(*more: str) -> Result:
        return CliRunner().invoke(app, ["verify", "orders", *options, *more])

    return run


def test_the_first_line_is_the_proof(ask: Ask) -> None:
    ended = ask()
    assert ended.exit_code == 0, ended.output
    assert ended.stdout == "PROVEN orders (keys read): 6,004 read = 6,000 landed + 4 dead-lettered + 0 skipped\n"
    assert ask().stdout == "COUNTED orders: 6,004 read = 6,000 landed + 4 dead-lettered + 0 skipped\n"


def test_gaps_are_named_when_there_are_any(lake: Landed, ask: Ask) -> None:
    lake.land({0: 5_010, 1: 1_004}, gaps=[(0, 5_003)])
    assert ask().stdout.splitlines()[0].endswith("= 6,009 landed + 4 dead-lettered + 0 skipped + 1 gap")


def test_the_first_line_of_a_failed_proof_has_the_reasons(lake: Landed, ask: Ask) -> None:
    lake.table.delete("_kafka_partition = 1 and _kafka_offset = 20")
    lake.append("shop.orders", lake.files([(0, 42)]), {}, tag=False)
    ended = ask()
    assert ended.exit_code == 1
    first, *rest = ended.stdout.splitlines()
    assert first == "NOT PROVEN orders: 1 row doubled, 1 record missing"
    assert rest[0] == "doubled: table shop.orders, partition 0: 1 rows too many, of offsets 42"
    assert any("is not Frazil's" in line for line in rest)


def test_a_proof_of_an_incomplete_state_says_so(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    state = LandedState(tmp_path / "state")
    state.change(range(3))
    state.pipeline = replace(state.pipeline, start=Latest())
    shown = io.StringIO()
    print_result(state.verify(), Console(file=shown, width=90))
    assert shown.getvalue().splitlines()[1:] == [
        "the table is not the complete state: it begins at latest, later than older keys"
    ]


def test_keys_are_read_after_another_engines_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It replaced one row by that of another key: manifests have as many rows as before."""
    state = LandedState(tmp_path)
    state.change(range(6))
    ask = asking(state, tmp_path, monkeypatch)
    equation = "6 read = 6 landed + 0 dead-lettered + 0 skipped"
    ended = ask("--deep")
    assert (ended.exit_code, ended.stdout.splitlines()[0]) == (0, f"PROVEN orders (values read): {equation}")
    assert "shop.orders: 6 rows read in 1 files" in ended.stdout
    assert ask().stdout == f"COUNTED orders: {equation}\n"
    state.table.delete("order_id = 3")
    state.add_rows([77])
    ended = ask()
    first, second, *rest = ended.stdout.splitlines()
    assert sum("is not Frazil's" in line for line in rest) == 2
    assert (ended.exit_code, first) == (1, "NOT PROVEN orders: rows of other keys than the commits count")
    assert second.startswith("other_keys: table shop.orders: the keys of its rows are not those that its commits count")


def test_without_a_name_all_pipelines_are_verified(lake: Landed, ask: Ask) -> None:
    other = replace(lake.pipeline, name="absent", table=replace(lake.pipeline.table, identifier="shop.absent"))
    options = written(Path(".."), [other, lake.pipeline], lake.environment)
    ended = CliRunner().invoke(app, ["verify", *options])
    assert [line.split(":")[0] for line in ended.stdout.splitlines() if line[0] in "PCN"] == [
        "NOT CHECKED absent",
        "PROVEN orders (keys read)",
    ]
    assert ended.exit_code == 5
    lake.table.delete("_kafka_offset = 20")
    ended = CliRunner().invoke(app, ["verify", *options, "--json"])
    assert [one["outcome"] for one in json.loads(ended.stdout)["pipelines"]] == ["unchecked", "not_proven"]
    assert ended.exit_code == 1


def test_a_plan_reads_nothing(ask: Ask) -> None:
    ended = ask("--plan")
    assert ended.exit_code == 0, ended.output
    assert re.fullmatch(r"orders: 3 files to read, 6,004 rows, [\d.]+ k?B, about 1\.0 s\n", ended.stdout)
    assert json.loads(ask("--plan", "--json").stdout)["estimate"]["rows"] == 6_004
    ask()
    assert ask("--plan").stdout == "orders: nothing to read; 3 files are known\n"


def test_without_a_table_there_is_no_plan(lake: Landed, ask: Ask) -> None:
    lake.catalog.drop_table("shop.orders")
    for ended in (ask("--plan"), ask()):
        assert ended.exit_code == 5
        assert ended.stdout.startswith("NOT CHECKED orders: the table does not exist\n")


def test_what_takes_long_is_announced(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask("--fresh").stderr == ""
    monkeypatch.setattr("frazil.cli.pipelines.verify.LONG_SECONDS", 0.0)
    assert ask("--fresh").stderr.startswith("orders: 3 files to read, 6,004 rows, ")


def shown(found: Verification, width: int) -> list[str]:
    screen = io.StringIO()
    print_result(found, Console(file=screen, width=width, highlight=False), verbose=True)
    return screen.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 160])
def test_no_number_is_broken_on_a_narrow_screen(lake: Landed, width: int) -> None:
    lake.land({0: 5_010, 1: 1_004}, gaps=[(0, 5_003)], skipped=[(0, 5_004)])
    lines = shown(lake.verify(), width)
    assert max(len(line.rstrip()) for line in lines) <= width
    (row,) = [line for line in lines if line.strip().startswith("all")]
    assert row.split() == ["all", "6,014", "6,008", "4", "1", "1"]
    assert any("5,010" in line.split() for line in lines)


def test_many_findings_are_cut_on_screen(tmp_path: Path) -> None:
    (tmp_path / "wide").mkdir()
    lake = Landed(tmp_path / "wide", partitions=100)
    lake.land(dict.fromkeys(range(100), 3), per_file=50)
    lake.table.delete("_kafka_offset = 1")
    lines = shown(lake.verify(), 160)
    assert lines[0] == "NOT PROVEN orders: 100 records missing"
    assert sum(line.startswith("missing:") for line in lines) == 20
    assert "… and 80 more; --json has all" in lines


@pytest.mark.parametrize(("more", "said"), [((), "appends"), (("--plan",), "--replay and --plan exclude each other")])
def test_a_replay_is_refused_for_a_table_that_appends_and_is_not_planned(
    ask: Ask, more: tuple[str, ...], said: str
) -> None:
    ended = ask("--replay", *more)
    assert (ended.exit_code, said in ended.stderr) == (2, True), ended.output


def test_a_verification_loads_no_spark(ask: Ask) -> None:
    """A proof of files is done before a JVM, or the modules of one, would have started."""
    assert ask().exit_code == 0
    code = (
        "import sys; from frazil.cli.main import app; app(sys.argv[1:], standalone_mode=False); "
        "assert 'frazil.audit.verify' in sys.modules; assert 'pyspark.sql' not in sys.modules"
    )
    files = ["--pipelines", "../pipelines.json", "--env", "../environment.json"]
    subprocess.run([sys.executable, "-c", code, "verify", "orders", *files], check=True, capture_output=True)


def test_what_a_replay_found_is_printed() -> None:
    proven = Verification(pipeline="p", table="t", dead_letters="d", topic="p", outcome=Outcome.PROVEN, is_deep=False)
    shown = io.StringIO()
    print_result(proven.with_replay(Replayed(records=1_200, rows=80)), Console(file=shown, width=120))
    assert "the topic landed again: 1,200 records, the same 80 rows" in shown.getvalue()
    finding = Finding(flaw=Flaw.ROW_DIFFERS, where="table t", what="2 rows are not those", count=2)
    apart = proven.with_replay(Replayed(records=1_200, rows=80, findings=(finding,)))
    assert (apart.outcome, apart.exit_code) == (Outcome.NOT_PROVEN, 1)
    shown = io.StringIO()
    print_result(apart, Console(file=shown, width=120))
    assert shown.getvalue().splitlines()[0] == "NOT PROVEN p: 2 rows not of their keys' last records"
    assert "landed again" not in shown.getvalue()
