"""GitHub's REST API, as far as reviews need it: a pull request, its comments, owners and their rights. It only reads."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import quote

import urllib3
from urllib3.exceptions import HTTPError

from frazil.errors import InvalidInput, ServiceUnavailable

API = "https://api.github.com"
_PAGE = 100
_MOST_PAGES = 100
_MISSING = 404
_MOST_COMMITS = 250
"""https://docs.github.com/en/rest/pulls/pulls#list-commits-on-a-pull-request"""
_WRITERS = frozenset({"admin", "maintain", "write"})


class PullRequest:
    """One pull request. `code_owner_files` are looked for on its base branch."""

    def __init__(
        self, repository: str, number: int, *, token: str, code_owner_files: Sequence[str], api: str = API
    ) -> None:
        self._repository, self._number, self._files = repository, number, code_owner_files
        self._api, self._token = api.rstrip("/"), token
        self._http = urllib3.PoolManager(timeout=urllib3.Timeout(connect=10, read=30), retries=urllib3.Retry(2))

    def authors(self) -> frozenset[str]:
        """Return the logins of those who opened the pull request or have a commit in it, in lower case.

        Raises `InvalidInput` if GitHub does not list all commits, or knows no login of a commit's author.
        """
        found = [self._of_pull.get("user")]
        commits = self._list(f"{self._path}/pulls/{self._number}/commits")
        what, where = "", f"pull request {self._number}"
        if len(commits) >= _MOST_COMMITS:
            what = f"it has {_MOST_COMMITS} commits or more, and GitHub lists no more, so not all authors are known"
        for commit in commits:
            found += [commit.get("author"), commit.get("committer")]
            if not (commit.get("author") or {}).get("login"):
                what = f"GitHub knows no account of the author of commit {str(commit.get('sha'))[:12]}"
        if what:
            do = "Open a pull request of fewer commits by known accounts, or give --author-may-accept"
            raise InvalidInput(what, where=where, do=do)
        return frozenset(str(each["login"]).lower() for each in found if each and each.get("login"))

    def comments(self) -> list[Mapping[str, Any]]:
        """Return the comments of the pull request, the oldest first."""
        return self._list(f"{self._path}/issues/{self._number}/comments")

    def code_owners(self) -> str:
        """Return the text of CODEOWNERS on the base branch; empty if it does not exist."""
        branch = quote(str(self._of_pull["base"]["ref"]), safe="")
        for file in self._files:
            status, found = self._get(f"{self._path}/contents/{quote(file)}?ref={branch}")
            if status != _MISSING:
                return base64.b64decode(self._success(status, found, file)["content"]).decode("utf-8")
        return ""

    def may_write(self, login: str) -> bool:
        """Return whether a user may write to the repository."""
        status, found = self._get(f"{self._path}/collaborators/{quote(login, safe='')}/permission")
        return status != _MISSING and self._success(status, found, login).get("permission") in _WRITERS

    def is_member(self, organization: str, team: str, login: str) -> bool | None:
        """Return whether a user is an active member of a team; None if the token may not ask.

        GitHub answers 404 for a user who is no member, and for a team that the token may not see. Asking for the team shows which.
        """
        place = f"/orgs/{quote(organization, safe='')}/teams/{quote(team, safe='')}"
        status, found = self._get(f"{place}/memberships/{quote(login, safe='')}")
        if status == 200:
            return isinstance(found, dict) and found.get("state") == "active"
        return False if self._get(place)[0] == 200 else None

    @property
    def _path(self) -> str:
        return "/repos/" + "/".join(quote(part, safe="") for part in self._repository.split("/"))

    @cached_property
    def _of_pull(self) -> Mapping[str, Any]:
        return self._success(*self._get(f"{self._path}/pulls/{self._number}"), f"pull request {self._number}")

    def _list(self, path: str) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        for page in range(1, _MOST_PAGES + 1):
            status, part = self._get(f"{path}?per_page={_PAGE}&page={page}")
            if status != 200 or not isinstance(part, list):
                self._success(status, part if isinstance(part, dict) else {}, path)
                raise self._unavailable("it did not answer with a list")
            found += part
            if len(part) < _PAGE:
                return found
        raise InvalidInput(f"it has more than {_PAGE * _MOST_PAGES} entries", where=path, do="Open a new pull request")

    def _success(self, status: int, found: Any, what: str) -> Mapping[str, Any]:
        if status == _MISSING:
            do = "Name an existing one, and give the token read permission"
            raise InvalidInput(f"{what} does not exist, or the token may not read it", where=self._repository, do=do)
        if status != 200 or not isinstance(found, dict):
            raise self._unavailable(f"it answered {status} when asked for {what}")
        return found

    def _get(self, path: str) -> tuple[int, Any]:
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self._token}",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "frazil",
        }
        try:
            # The token goes to no other address: a redirect is no answer.
            answer = self._http.request("GET", f"{self._api}{path}", headers=headers, redirect=False)
            return answer.status, json.loads(answer.data or b"null")
        except (HTTPError, ValueError) as error:
            raise self._unavailable(f"it did not answer as expected ({type(error).__name__})") from None

    def _unavailable(self, what: str) -> ServiceUnavailable:
        return ServiceUnavailable(what, where=f"GitHub {self._api}", do="Try again, or check the token's permissions")
