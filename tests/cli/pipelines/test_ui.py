"""`frazil ui` serves until Ctrl-C, and `frazil status --html` writes one file."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.cli.pipelines import ui as module
from frazil.cli.pipelines.ui import _read_when_changed, facts_of
from frazil.clients.secrets import Secrets
from tests.cli.pipelines.test_status import DECLARED, project  # noqa: F401 # a fixture


@pytest.mark.usefixtures("project")
def test_the_page_is_served_until_ctrl_c() -> None:
    command = [sys.executable, "-m", "frazil.cli.main", "ui"]
    with socket.create_server(("127.0.0.1", 0)):
        served = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
        )
        assert served.stdout is not None
        line = served.stdout.readline()
        found = re.fullmatch(r"(http://127\.0\.0\.1:\d+/) shows the environment env.json; Ctrl-C ends\n", line)
        assert found, line
        with urllib.request.urlopen(found[1] + "static/page.css", timeout=30) as answer:
            assert answer.status == 200
        served.send_signal(signal.SIGINT)
        out, err = served.communicate(timeout=30)
        assert (served.returncode, out, err) == (0, "", "")


@pytest.mark.usefixtures("project")
def test_a_changed_declaration_is_read_again_and_an_invalid_one_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "command_secrets", lambda: Secrets({}))
    file = Path("pipelines.py")
    facts = facts_of(_read_when_changed(file), "env.json")

    def shown(text: str, at: int) -> tuple[list[str], int]:
        file.write_text(text)
        os.utime(file, ns=(at, at))
        overview = facts.overview()
        return [one.pipeline for one in overview.rows], len(overview.notes)

    assert shown(DECLARED, 1) == (["orders", "clicks"], 0)
    more = 'pipelines.append(Pipeline(topic=Topic("views", value="text"), table=Table("shop.views")))'
    assert shown(DECLARED + more, 2) == (["orders", "clicks", "views"], 0)
    assert shown(DECLARED + "pipelines.append(", 3) == (["orders", "clicks", "views"], 1)
    assert shown(DECLARED, 4) == (["orders", "clicks"], 0)
    file.unlink()
    assert len(facts.overview().notes) == 1


@pytest.mark.usefixtures("project")
def test_a_port_that_is_asked_for_and_taken_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = CliRunner().invoke(app, ["ui", "--port", str(taken.getsockname()[1])])
    assert ended.exit_code == 2
    assert "cannot be used (Address already in use). Name another one, or leave it out" in ended.stderr


@pytest.mark.usefixtures("project")
def test_one_file_has_all_pipelines_and_the_named_ones_in_full() -> None:
    ended = CliRunner().invoke(app, ["status", "orders", "--html", "out/status.html"])
    assert (ended.exit_code, ended.stdout) == (0, "out/status.html is written\n"), ended.output
    page = Path("out/status.html").read_text()
    assert page.count('<article class="one">') == 1
    assert "The local broker 127.0.0.1:9 does not run" in page
    assert "frazil verify orders --env env.json" in page
    assert CliRunner().invoke(app, ["status", "--html", "all.html"]).exit_code == 0
    assert Path("all.html").read_text().count('<article class="one">') == 2


@pytest.mark.usefixtures("project")
def test_a_file_of_an_unknown_pipeline_or_in_an_impossible_place_is_refused() -> None:
    assert CliRunner().invoke(app, ["status", "nothing", "--html", "x.html"]).exit_code == 2
    assert CliRunner().invoke(app, ["status", "--html", "x.html", "--json"]).exit_code == 2
    assert CliRunner().invoke(app, ["status", "--html", "env.json/x.html"]).exit_code == 2
