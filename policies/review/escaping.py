"""Escaping: other people's text in Markdown. It may name a column after a mention, or a topic after a script; it is only shown.

Values and names stand in code spans, where nothing is a mention, a link, HTML or markup. Sentences that hold such text are
escaped character by character.
"""

from __future__ import annotations

import html
import re
import unicodedata

LONGEST = 160
_NOT_SHOWN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_MARKUP = re.compile(r"([\\`*\[\]|~$]|(?<!\w)_|_(?!\w))")
# What GitHub makes a mention, a reference or a link of. In a code span it is none of them.
_LINKING = re.compile(r"[@#]+|://|(?i:www)(?=\.)")
_LINE_START = re.compile(r"^(\s*)([-+#>]|\d+[.)])")


def plain(text: str, longest: int | None = LONGEST) -> str:
    """One line of visible characters, cut to a length that tells how long it was."""
    shown = "".join(_visible(character) for character in str(text))
    if longest is not None and len(shown) > longest:
        return f"{shown[: longest - 20]}… ({len(shown):,} characters)"
    return shown


def code(text: str, longest: int | None = LONGEST) -> str:
    """A code span of a text. A pipe in it is escaped as tables need it, so use it in lists only where none is expected."""
    shown = plain(text, longest)
    ticks = max((len(run) for run in re.findall(r"`+", shown)), default=0) + 1
    fence = "`" * ticks
    edge = " " if not shown.strip() or shown[:1] in {"`", " "} or shown[-1:] in {"`", " "} else ""
    return f"{fence}{edge}{shown or '(empty)'}{edge}{fence}"


def cell(text: str, longest: int | None = LONGEST) -> str:
    """A code span inside a table, where a pipe would end the cell."""
    return code(text, longest).replace("|", "\\|")


def prose(text: str) -> str:
    """A sentence that holds other people's words, as a sentence."""
    parts = []
    end = 0
    shown = plain(text, None)
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
