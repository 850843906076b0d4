"""`frazil deploy acceptances`, against a local server of GitHub's API: whose comments count, and whose do not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from frazil.cli.main import app
from tests.support.github_server import TOKEN, GitHub, serving

DIGEST = "0123456789abcdef" * 4
LINE = f"frazil accept {DIGEST} data_lost: it is empty"


@pytest.fixture
def github() -> Iterator[GitHub]:
    with serving() as made:
        made.files["main", ".github/CODEOWNERS"] = "/deployed/dev.json @Ann\n/deployed/prod.json @org/platform\n"
        made.permissions = dict.fromkeys(("ann", "ben", "paul", "eve"), "write")
        made.teams = {"org/platform": {"ben": "active", "eve": "pending"}}
        yield made


@pytest.fixture
def ran(github: GitHub, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)

    def run(environment: str = "dev", *more: str) -> Result:
        told = ["--repository", "o/r", "--pull-request", "7", "--api", github.url]
        return CliRunner().invoke(app, ["deploy", "acceptances", environment, *told, *more])

    return run


def found(result: Result) -> tuple[list[Any], list[str]]:
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    return told["accepted"], [each["why"] for each in told["ignored"]]


def test_a_code_owners_line_counts_with_its_reason_and_place(github: GitHub, ran: Any) -> None:
    github.comment("Looks good")
    github.comment(LINE)
    accepted, ignored = found(ran())
    assert accepted == [
        {"digest": DIGEST, "codes": ["data_lost"], "reason": "it is empty", "by": "ann",
         "url": "https://github.test/o/r/pull/7#issuecomment-2"}
    ]  # fmt: skip
    assert ignored == []


@pytest.mark.parametrize("digits", [16, 63])
def test_a_part_of_a_digest_does_not_count_and_the_reason_is_printed(github: GitHub, ran: Any, digits: int) -> None:
    """Whoever chooses texts of two plans can make two digests with one beginning of 16 digits: that takes 2^32 attempts."""
    github.comment(f"{LINE}\nfrazil accept {DIGEST[:digits]} forgotten: it is empty")
    result = ran()
    accepted, [why] = found(result)
    assert [each["codes"] for each in accepted] == [["data_lost"]]
    assert why == f"{DIGEST[:digits]} has {digits} digits, and a digest has 64. Copy the line of the review"
    assert f"issuecomment-1: the comment does not count: {DIGEST[:digits]}" in result.stderr.replace("\n", "")


def test_without_such_a_line_nothing_else_is_asked(github: GitHub, ran: Any) -> None:
    github.comment("ship it")
    assert found(ran()) == ([], [])
    assert len(github.requests) == 1


@pytest.mark.parametrize(
    ("by", "more", "why"),
    [
        ("ben", {}, "ben does not own deployed/dev.json"),
        ("ann", {"updated_at": "2026-11-25T10:00:01Z"}, "it was edited"),
        ("ann", {"user": {"login": "ann", "type": "Bot"}}, "it is not from a person"),
        ("ann", {"performed_via_github_app": {"slug": "x"}}, "it is not from a person"),
        ("ann", {"user": None}, "it is not from a person"),
        ("github-actions[bot]", {"user": {"login": "github-actions[bot]", "type": "Bot"}}, "it is not from a person"),
    ],
)
def test_a_comment_of_another_does_not_count(github: GitHub, ran: Any, by: str, more: dict[str, Any], why: str) -> None:
    github.comment(LINE, by, **more)
    accepted, [said] = found(ran())
    assert (accepted, said.startswith(why)) == ([], True), said


def test_an_owner_who_may_not_write_any_longer_does_not_count(github: GitHub, ran: Any) -> None:
    github.permissions["ann"] = "read"
    github.comment(LINE)
    assert found(ran()) == ([], ["ann may not write to the repository"])


def test_who_wrote_the_pull_request_may_not_accept_it_unless_the_setting_says_so(github: GitHub, ran: Any) -> None:
    github.author = "ANN"
    github.comment(LINE)
    assert found(ran()) == ([], ["ann wrote the pull request"])
    assert len(found(ran("dev", "--author-may-accept"))[0]) == 1


def test_who_pushed_a_commit_wrote_it_too(github: GitHub, ran: Any) -> None:
    github.commits = [{"author": {"login": "paul"}, "committer": {"login": "web-flow"}}] * 150
    github.commits.append({"author": {"login": "Ann"}, "committer": None})
    github.comment(LINE)
    assert found(ran()) == ([], ["ann wrote the pull request"])


@pytest.mark.parametrize(
    ("commits", "said"),
    [
        ([{"author": {"login": "paul"}, "committer": None}] * 250, "it has 250 commits or more"),
        ([{"author": None, "committer": {"login": "web-flow"}, "sha": "ab" * 20}], "author of commit abababababab"),
    ],
)
def test_authors_that_github_does_not_say_are_refused(
    github: GitHub, ran: Any, commits: list[dict[str, Any]], said: str
) -> None:
    """GitHub lists 250 commits, and no account for an address that it does not know: one of them may be the owner's."""
    github.commits = commits
    github.comment(LINE)
    ended = ran()
    assert (ended.exit_code, said in ended.stderr) == (2, True), ended.output
    assert len(found(ran("dev", "--author-may-accept"))[0]) == 1


def test_a_team_owns_by_its_active_members(github: GitHub, ran: Any) -> None:
    for by in ("ben", "eve", "ann"):
        github.comment(LINE, by)
    accepted, ignored = found(ran("prod"))
    assert [each["by"] for each in accepted] == ["ben"]
    assert ignored == [f"{by} does not own deployed/prod.json" for by in ("eve", "ann")]


def test_a_team_that_the_token_may_not_read_owns_nothing_and_the_reason_is_printed(github: GitHub, ran: Any) -> None:
    github.teams = {}
    github.comment(LINE, "ben")
    result = ran("prod")
    assert found(result) == ([], ["ben does not own deployed/prod.json, and the token may not read @org/platform"])
    assert "the comment does not count" in result.stderr


def test_the_owners_are_those_of_the_base_branch(github: GitHub, ran: Any) -> None:
    """A pull request that makes its author's friend an owner changes nothing before it is merged."""
    github.files["attack", ".github/CODEOWNERS"] = "* @ben"
    github.comment(LINE, "ben")
    assert found(ran())[0] == []
    github.files = {("main", "CODEOWNERS"): "* @ben"}
    assert len(found(ran())[0]) == 1
    github.files = {}
    assert found(ran())[1] == ["CODEOWNERS of the base branch names no owner of deployed/dev.json"]


def test_all_pages_of_comments_are_read(github: GitHub, ran: Any) -> None:
    for _ in range(205):
        github.comment("+1", "ben")
    github.comment(LINE)
    assert len(found(ran())[0]) == 1


def test_a_server_that_fails_is_no_acceptance(github: GitHub, ran: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    github.comment(LINE)
    github.fails = 500
    result = ran()
    assert (result.exit_code, result.stdout) == (3, "")
    github.fails = 0
    monkeypatch.setenv("GITHUB_TOKEN", "wrong")
    refused = ran()
    assert refused.exit_code == 3
    assert "wrong" not in refused.stderr
    monkeypatch.delenv("GITHUB_TOKEN")
    assert ran().exit_code == 2
