"""`python -m policies`: what a person or a pipeline sees of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from policies.__main__ import main
from tests.policies.review.planning import change, plan
from tests.policies.reviewing import TODAY, allow, stack

BAD, GOOD = (
    stack(aws_iam_role_policy__p={"policy": allow(Action=action, Resource="*")}) for action in ("s3:*", "s3:GetObject")
)


def written(folder: Path, **documents: object) -> list[str]:
    files = []
    for name, document in documents.items():
        file = folder / f"{name}.json"
        file.write_text(document if isinstance(document, str) else json.dumps(document))
        files.append(str(file))
    return files


def test_nothing_found_is_silence_and_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(written(tmp_path, good=GOOD), TODAY) == 0
    assert capsys.readouterr() == ("", "")


def test_a_finding_is_a_line_and_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(written(tmp_path, good=GOOD, bad=BAD), TODAY) == 1
    assert capsys.readouterr().out == (
        "aws_iam_role_policy.p: allows s3:*. "
        "Name each action; policies/documents has what our jobs need [wildcard_action]\n"
    )


def test_findings_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([*written(tmp_path, bad=BAD), "--json"], TODAY)
    [finding] = json.loads(capsys.readouterr().out)
    assert set(finding) == {"rule", "resource", "what", "do", "touches"}


def test_what_loses_data_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lost = plan(change("aws_s3_bucket.tables", "delete", {"bucket": "b"}))
    main(written(tmp_path, bad=BAD, lost=lost), TODAY)
    assert [line.rpartition("[")[2] for line in capsys.readouterr().out.splitlines()] == [
        "data_lost]",
        "wildcard_action]",
    ]


@pytest.mark.parametrize("text", ["no JSON", "[]", "{}", '{"version": 1}'])
def test_a_file_that_is_neither_is_an_error_that_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert main(written(tmp_path, odd=text), TODAY) == 2
    assert "odd.json: " in capsys.readouterr().err


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    assert main([str(tmp_path / "none.json")], TODAY) == 2


def test_it_runs_as_a_module(root: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "policies", *written(tmp_path, bad=BAD)]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (1, "")
