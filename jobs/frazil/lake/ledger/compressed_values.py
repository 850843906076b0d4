"""A long value of a snapshot's summary as compressed text, so that the metadata of many partitions stays small.

Metadata files are compressed by gzip, which finds repetitions within 32 KB. Three JSON values of 1,000 partitions in each snapshot
are longer than that, so nothing of a snapshot is found in the next one. Compressed one by one they are short enough.
"""

from __future__ import annotations

import base64
import zlib

MOST_PLAIN = 8_192
"""The most characters of a value that stays JSON. The offsets of 300 partitions are always shorter."""
MARK = "zlib:"
"""What a compact value begins with. The rest is base64 of zlib of the JSON text."""


def compact(text: str) -> str:
    """Return a value as a summary holds it: the text, or its compact form if it is longer than `MOST_PLAIN`."""
    if len(text) <= MOST_PLAIN:
        return text
    return MARK + base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def plain(value: str) -> str:
    """Return the text of which `compact` made a value."""
    if not value.startswith(MARK):
        return value
    return zlib.decompress(base64.b64decode(value.removeprefix(MARK))).decode()
