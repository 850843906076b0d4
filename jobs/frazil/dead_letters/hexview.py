"""Bytes for eyes: offset, hex and text side by side, as `xxd` shows them."""

from __future__ import annotations

SHOWN_BYTES = 512
WIDTH = 16


def hexview(data: bytes, *, at_most: int = SHOWN_BYTES, start: int = 0) -> tuple[str, ...]:
    """Return lines like `00000000: 0000 0000 2a06 666f 6f                   ....*.foo`, of up to `at_most` bytes from `start`.

    `start` is rounded down to the beginning of its line. A last line says how many bytes follow that are not shown.
    """
    start = max(0, min(start, len(data))) // WIDTH * WIDTH
    shown = data[start : start + at_most]
    lines = [_line(start + at, shown[at : at + WIDTH]) for at in range(0, len(shown), WIDTH)]
    rest = len(data) - start - len(shown)
    return (*lines, f"… {rest} more bytes") if rest else tuple(lines)


def _line(at: int, part: bytes) -> str:
    pairs = " ".join(part[i : i + 2].hex() for i in range(0, len(part), 2))
    text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
    return f"{at:08x}: {pairs:<39}  {text}"
