"""The dangers that code owners accepted by comments on a pull request, each for the plan of one digest.

    frazil accept DIGEST data_lost, forgotten: the topic is empty since June
    frazil accept DIGEST all: agreed with the readers

DIGEST is the complete digest of the plan. A line counts if its comment was never edited, and if its author is a person who owns
the environment's file of deployed objects, may write to the repository, and did not write the pull request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from frazil.project.code_owners import owners

if TYPE_CHECKING:
    from frazil.clients.github import PullRequest

ALL = "all"
DIGITS = 64
"""Digits of a digest. Fewer do not count: who chooses texts of two plans can give both the same first digits."""
_LINE = re.compile(r"frazil accept ([0-9a-f]{1,128}) ([a-z0-9_]+(?:(?: *, *| +)[a-z0-9_]+)*) ?: *(\S.{0,499})")
_PLACEHOLDER = "the reason"
"""The text that the review suggests. A mail program may quote it without a mark."""
_UNSEEN = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """Dangers that one person accepted. `digest` is the plan's, complete; `codes` may be `all`."""

    digest: str
    codes: tuple[str, ...]
    reason: str
    by: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """A comment, or a line of it, that does not count, and why."""

    by: str
    url: str
    why: str


def owned_file(environment: str) -> str:
    """Return the file whose owners may accept an environment's dangers."""
    return f"deployed/{environment}.json"


def lines(body: str) -> list[tuple[str, tuple[str, ...], str]]:
    """Return digest, codes and reason of each line that accepts, whatever number of digits it has.

    Quotes, blocks of code and HTML comments have none.
    """
    found = []
    fence = ""
    for line in _UNSEEN.sub("", body).replace("\r\n", "\n").split("\n"):
        opening = _FENCE.match(line)
        if opening is not None:
            ticks = opening[1]
            if not fence:
                fence = ticks
            elif ticks[0] == fence[0] and len(ticks) >= len(fence) and not line[opening.end() :].strip():
                fence = ""
        elif not fence and (said := _LINE.fullmatch(line.rstrip())) and said[3] != _PLACEHOLDER:
            found.append((said[1], tuple(re.split(r"[ ,]+", said[2])), said[3]))
    return found


def acceptances(
    environment: str, pull: PullRequest, *, author_may_accept: bool = False
) -> tuple[list[Accepted], list[Ignored]]:
    """Return what was accepted for an environment, and the comments that do not count."""
    accepting = [(each, said) for each in pull.comments() if (said := lines(str(each.get("body") or "")))]
    if not accepting:
        return [], []
    owning = owners(pull.code_owners(), owned_file(environment))
    authors = frozenset[str]() if author_may_accept else pull.authors()
    accepted: list[Accepted] = []
    ignored: list[Ignored] = []
    for comment, said in accepting:
        user = comment.get("user") or {}
        by, url = str(user.get("login") or ""), str(comment.get("html_url") or "")
        why = next(_objections(comment, by, owning, authors, pull, owned_file(environment)), "")
        if why:
            ignored.append(Ignored(by=by, url=url, why=why))
            continue
        for digest, codes, reason in said:
            if len(digest) == DIGITS:
                accepted.append(Accepted(digest=digest, codes=codes, reason=reason, by=by, url=url))
            else:
                what = f"{digest} has {len(digest)} digits, and a digest has {DIGITS}. Copy the line of the review"
                ignored.append(Ignored(by=by, url=url, why=what))
    return accepted, ignored


def _objections(
    comment: Mapping[str, Any],
    by: str,
    owning: Sequence[str],
    authors: frozenset[str],
    pull: PullRequest,
    file: str,
) -> Iterator[str]:
    """Yield why a comment does not count; the cheap reasons come first."""
    if not by or (comment.get("user") or {}).get("type") != "User" or comment.get("performed_via_github_app"):
        yield "it is not from a person"
        return
    if not comment.get("created_at") or comment.get("created_at") != comment.get("updated_at"):
        yield "it was edited, and others than its author may edit a comment. Write a new one"
    if by.lower() in authors:
        yield f"{by} wrote the pull request"
    if not owning:
        yield f"CODEOWNERS of the base branch names no owner of {file}"
    yield from _not_an_owner(by, owning, pull, file)
    if not pull.may_write(by):
        yield f"{by} may not write to the repository"


def _not_an_owner(by: str, owning: Sequence[str], pull: PullRequest, file: str) -> Iterator[str]:
    unknown = []
    for owner in owning:
        organization, is_team, team = owner.removeprefix("@").partition("/")
        if not is_team and organization.lower() == by.lower():
            return
        if is_team:
            is_member = pull.is_member(organization, team, by)
            if is_member:
                return
            unknown += [owner] if is_member is None else []
    asked = f", and the token may not read {', '.join(unknown)}" if unknown else ""
    yield f"{by} does not own {file}{asked}"
