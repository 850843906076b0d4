"""The escaping of untrusted text in Markdown, for example a column named like a mention or a topic named like a script.

Values and names are written as code spans, in which mentions, links, HTML and markup have no effect. Sentences that contain
such text are escaped character by character.
"""

from __future__ import annotations

import html
import re
import unicodedata

LONGEST = 160
_NOT_SHOWN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_MARKUP = re.compile(r"([\\`*\[\]|~$]|(?<!\w)_|_(?!\w))")
# GitHub turns these into mentions, references and links, except in code spans.
_LINKING = re.compile(r"[@#]+|://|(?i:www)(?=\.)")
_LINE_START = re.compile(r"^(\s*)([-+#>]|\d+[.)])")


def plain(text: str) -> str:
    """Return one line of visible characters."""
    return "".join(_visible(character) for character in str(text))


def code(text: str) -> str:
    """Return a text as a code span. Pipes are escaped for tables, so in a list use it only for texts without pipes."""
    shown = plain(text)
    ticks = max((len(run) for run in re.findall(r"`+", shown)), default=0) + 1
    fence = "`" * ticks
    edge = " " if not shown.strip() or shown[:1] in {"`", " "} or shown[-1:] in {"`", " "} else ""
    return f"{fence}{edge}{shown or '(empty)'}{edge}{fence}"


def cell(text: str) -> str:
    """Return a code span for a table, where a pipe would end the cell. A long text is truncated."""
    shown = plain(text)
    return code(shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…").replace("|", "\\|")


def prose(text: str) -> str:
    """Escape a sentence that contains untrusted text."""
    parts = []
    end = 0
    shown = plain(text)
    for found in _LINKING.finditer(shown):
        parts += [_escaped(shown[end : found.start()]), f"`{found[0]}`"]
        end = found.end()
    parts.append(_escaped(shown[end:]))
    return _LINE_START.sub(r"\1\\\2", "".join(parts))


def _escaped(text: str) -> str:
    return html.escape(_MARKUP.sub(r"\\\1", text), quote=False)


def _visible(character: str) -> str:
    if character in "\n\r\t":
        return " "
    if unicodedata.category(character) in _NOT_SHOWN:
        return repr(character)[1:-1] if unicodedata.category(character) != "Co" else "?"
    return character
