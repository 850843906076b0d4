"""Terraform's expressions in texts of JSON, `${…}`: which of them a stack from elsewhere may have.

The stacks use references and three functions. Everything else is refused, whatever it does: functions read files and variables of
the machine that plans (`file`, `templatefile`, `pathexpand`), and `nonsensitive` shows secrets.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

FUNCTIONS = frozenset({"replace", "sha256", "substr"})
_ROOTS = frozenset({"local", "self", "true", "false", "null"})
_TOKEN = re.compile(
    r"(?P<space>[ ]+)|(?P<name>[A-Za-z_][A-Za-z0-9_-]*)|(?P<number>[0-9]+)|(?P<sign>==|!=|&&|\|\||[.,()\[\]?:!])"
    r"|(?P<quote>\")|(?P<end>\})"
)


class _Refused(Exception):
    """An expression may not be used. The text is the reason."""


def problem(text: str, resources: Collection[str], data: Collection[str]) -> str:
    """Return why a text has an expression that is not allowed; empty if it has none.

    `resources` and `data` are the types that an expression may refer to.
    """
    try:
        _template(text, 0, resources, data, is_quoted=False)
    except _Refused as refused:
        return str(refused)
    return ""


def _template(text: str, at: int, resources: Collection[str], data: Collection[str], *, is_quoted: bool) -> int:
    """Check a template from `at` on, and return where it ends: at the end of the text, or after the closing quote."""
    while at < len(text):
        if text.startswith(("$${", "%%{"), at):
            if at and text[at - 1] in "$%":
                raise _Refused("it has more signs than an escape has")
            at += 3
        elif text.startswith("%{", at):
            raise _Refused("it has a directive, %{")
        elif text.startswith("${", at):
            at = _expression(text, at + 2, resources, data)
        elif is_quoted and text[at] == "\\":
            at += 2
        elif is_quoted and text[at] == '"':
            return at + 1
        else:
            at += 1
    if is_quoted:
        raise _Refused("a text in an expression has no end")
    return at


def _expression(text: str, at: int, resources: Collection[str], data: Collection[str]) -> int:
    """Check an expression, and return where the template continues."""
    tokens: list[str] = []
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _Refused(f"its expression has {text[at]!r}")
        at = found.end()
        if found.lastgroup == "end":
            for reason in _reasons(tokens, resources, data):
                raise _Refused(reason)
            return at
        if found.lastgroup == "quote":
            at = _template(text, at, resources, data, is_quoted=True)
            tokens.append('"')
        elif found.lastgroup != "space":
            tokens.append(found[0])
    raise _Refused("its expression has no end")


def _reasons(tokens: list[str], resources: Collection[str], data: Collection[str]) -> Iterator[str]:
    for index, word in enumerate(tokens):
        before = tokens[index - 1] if index else ""
        after = tokens[index + 1] if index + 1 < len(tokens) else ""
        if not re.match(r"[A-Za-z_]", word):
            if word == "(" and re.match(r"[])\"0-9]", before):
                yield "it calls what is no function"
        elif after == "(":
            if word not in FUNCTIONS or before == ".":
                yield f"it calls {word}"
        elif before != "." and not _is_root(word, tokens[index + 1 : index + 3], resources, data):
            yield f"it refers to {word}"


def _is_root(word: str, following: list[str], resources: Collection[str], data: Collection[str]) -> bool:
    if word == "data":
        return len(following) == 2 and following[0] == "." and following[1] in data
    if word == "terraform":
        return following == [".", "workspace"]
    return word in _ROOTS or word in resources
