"""The code blocks of a page, by heading and language."""

from __future__ import annotations

import re
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, heading: str, language: str) -> list[str]:
    """Return the blocks of a language below a heading of the second level, in their order. Fails if there are none."""
    section = page.read_text().split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    found = [text for named, text in FENCE.findall(section) if named == language]
    assert found, f"{page.name} has no block of {language or 'plain text'} below {heading}"
    return found


def statements(block: str) -> list[str]:
    """Return the statements of SQL text, each of which ends with its line."""
    return [statement.strip() for statement in re.split(r";\n", block) if statement.strip()]


def properties(block: str) -> dict[str, str]:
    """Return the settings of a properties file, whose lines are `name=value` or `name  value`."""
    return dict(re.split(r"\s*[=\s]\s*", line, maxsplit=1) for line in block.splitlines())
