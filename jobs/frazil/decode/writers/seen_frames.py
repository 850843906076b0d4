"""The frames of a batch's records for which its plan had no decoder."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass

from frazil.schemas.wire_format import GUID_BYTES, GUID_MAGIC, PREFIX_BYTES

MOST = 1_000
"""So many distinct unknown frames are listed for one batch at most, and the registry is asked for no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFrames:
    """Frames that records of a batch have, of values or of keys.

    `waiting` are those of registered versions that the plan omitted, all of them. `unknown` are those that nothing final is known
    of, at most `MOST`; `is_all` says that these are all, `has_guids` that some, listed or not, hold a GUID.
    """

    waiting: tuple[bytes, ...] = ()
    unknown: tuple[bytes, ...] = ()
    is_all: bool = True
    has_guids: bool = False

    def __bool__(self) -> bool:
        return bool(self.waiting or self.unknown) or not self.is_all


class UnknownSchemas(Exception):
    """A batch seen schemas for which its plan had no decoder. They are known by now, so the caller stages the batch again.

    `most_rows`: how many records the batch may have then, if it seen too many to ask for; else None.
    """

    def __init__(self, values: SeenFrames, keys: SeenFrames, *, most_rows: int | None = None) -> None:
        self.values, self.keys, self.most_rows = values, keys, most_rows
        super().__init__("records name schemas that are not decoded yet")

    @property
    def looked_up(self) -> str:
        """Return what was looked up: `new schema id 7 was looked up`."""
        names = sorted({_named(frame) for seen in (self.values, self.keys) for frame in (*seen.waiting, *seen.unknown)})
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        ids = ", ".join(names[:_NAMED]) + more
        return f"new schema id {ids} was looked up" if len(names) == 1 else f"new schema ids {ids} were looked up"


_NAMED = 5


def _named(frame: bytes) -> str:
    if frame[:1] == bytes([GUID_MAGIC]):
        return str(uuid.UUID(bytes=frame[1:GUID_BYTES]))
    if frame[:1] == b"\0":
        return str(int.from_bytes(frame[1:PREFIX_BYTES], "big"))
    return hashlib.sha256(frame).hexdigest()[:8]  # the text of a schema in the record
