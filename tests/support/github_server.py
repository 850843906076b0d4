"""A local HTTP server that answers as GitHub's REST API does, for one repository that a test describes."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.local_server import LocalServer, QuietHandler

TOKEN = "token-of-the-workflow"


@dataclass
class GitHub:
    """The repository `o/r` with its pull request 7, and the requests that were made."""

    comments: list[dict[str, Any]] = field(default_factory=list)
    commits: list[dict[str, Any]] = field(default_factory=list)
    files: dict[tuple[str, str], str] = field(default_factory=dict)
    """The text of files by branch and path."""
    permissions: dict[str, str] = field(default_factory=dict)
    teams: dict[str, dict[str, str]] = field(default_factory=dict)
    """The state of members by `org/team`. A team that is missing here may not be read."""
    author: str = "paul"
    requests: list[str] = field(default_factory=list)
    fails: int = 0
    url: str = ""

    def comment(self, body: str, by: str = "ann", **more: Any) -> None:
        """Add a comment."""
        at = "2026-11-25T10:00:00Z"
        number = len(self.comments) + 1
        self.comments.append(
            {"id": number, "user": {"login": by, "type": "User"}, "body": body, "created_at": at, "updated_at": at,
             "html_url": f"https://github.test/o/r/pull/7#issuecomment-{number}", "performed_via_github_app": None, **more}
        )  # fmt: skip

    def answer(self, target: str) -> tuple[int, Any]:
        """Return status and body for a request of this path and query."""
        if self.fails:
            return self.fails, {"message": "out of order"}
        split = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(split.query).items()}
        match [unquote(part) for part in split.path.split("/")[1:]]:
            case ["repos", "o", "r", "pulls", "7"]:
                return 200, {"user": {"login": self.author}, "base": {"ref": "main"}, "head": {"sha": "f" * 40}}
            case ["repos", "o", "r", "pulls", "7", "commits"]:
                return 200, self._page(self.commits, query)
            case ["repos", "o", "r", "issues", "7", "comments"]:
                return 200, self._page(self.comments, query)
            case ["repos", "o", "r", "contents", *path]:
                text = self.files.get((query["ref"], "/".join(path)))
                found = None if text is None else {"content": base64.encodebytes(text.encode()).decode()}
                return (404, {"message": "Not Found"}) if found is None else (200, found)
            case ["repos", "o", "r", "collaborators", login, "permission"]:
                return 200, {"permission": self.permissions.get(login.lower(), "read")}
            case ["orgs", org, "teams", team]:
                return (200, {"slug": team}) if f"{org}/{team}" in self.teams else (404, {"message": "Not Found"})
            case ["orgs", org, "teams", team, "memberships", login]:
                state = self.teams.get(f"{org}/{team}", {}).get(login.lower())
                return (200, {"state": state}) if state else (404, {"message": "Not Found"})
        return 404, {"message": "Not Found"}

    def _page(self, listed: list[dict[str, Any]], query: dict[str, str]) -> list[dict[str, Any]]:
        size, page = int(query.get("per_page", "30")), int(query.get("page", "1"))
        return listed[(page - 1) * size : page * size]


@contextmanager
def serving() -> Iterator[GitHub]:
    """Serve a repository until the block ends."""
    made = GitHub()

    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 - http.server's name
            made.requests.append(self.path)
            allowed = self.headers.get("Authorization") == f"Bearer {TOKEN}"
            status, body = made.answer(self.path) if allowed else (401, {"message": "Bad credentials"})
            self.answer(status, json.dumps(body).encode())

    with LocalServer(Handler) as server:
        made.url = server.address
        yield made
