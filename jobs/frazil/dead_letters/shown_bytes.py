"""Keys and headers of dead letters as people read them."""

from __future__ import annotations

HEADER_BYTES = 256
"""Bytes of a header's value that are shown."""

KEY_CHARACTERS = 40
"""Characters of a key that the list shows."""


def key_text(key: bytes | None) -> str:
    """Return a key as its text, or as hexadecimal digits if it is not UTF-8. A long key is cut."""
    if key is None:
        return "–"
    text = key.decode("utf-8", "replace")
    is_text = "\ufffd" not in text and text.isprintable()
    shown = text if is_text else f"0x{key.hex()}"
    return shown if len(shown) <= KEY_CHARACTERS else f"{shown[:KEY_CHARACTERS]}…"


def header_text(value: bytes | None) -> str:
    """Return bytes as Python writes them; long ones are cut, `--json` has all of them."""
    if value is None:
        return "no value"
    return repr(value) if len(value) <= HEADER_BYTES else f"{value[:HEADER_BYTES]!r}… ({len(value)} bytes)"
