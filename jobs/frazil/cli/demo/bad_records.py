"""Records that cannot be landed, of the kinds that real topics have, made on purpose from good ones."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from frazil.schemas.reasons import Reason

NO_SUCH_ID = 2_000_000_001
"""A schema id that no registry has given out."""

FRAME = 5
"""Bytes of magic byte and schema id."""

Spoil = Callable[[bytes, int, Random], bytes]


def _wrong_magic(value: bytes, body: int, random: Random) -> bytes:
    return bytes([random.randrange(1, 256)]) + value[1:]


def _too_short(value: bytes, body: int, random: Random) -> bytes:
    return value[: random.randrange(1, FRAME)]


def _unknown_schema(value: bytes, body: int, random: Random) -> bytes:
    return b"\0" + NO_SUCH_ID.to_bytes(4, "big") + value[FRAME:]


def _undecodable(value: bytes, body: int, random: Random) -> bytes:
    """Return a body that ends in the middle of the row's first fields."""
    return value[: body + random.randrange(1, 5)]


KINDS: dict[Reason, Spoil] = {
    Reason.WRONG_MAGIC: _wrong_magic,
    Reason.TOO_SHORT: _too_short,
    Reason.UNKNOWN_SCHEMA: _unknown_schema,
    Reason.UNDECODABLE: _undecodable,
}
"""How a good value, whose body begins at byte `body`, is spoilt so that it is rejected for each reason."""


class Poison:
    """Decides, from a seed, which records get a spoilt twin, and of which kind; `made` counts the twins by reason.

    `index` is the number of bytes between frame and body: Protobuf's message index.
    """

    def __init__(self, rows: int, *, share: float, seed: int, index: int = 0) -> None:
        self._body = FRAME + index
        self._random = Random(seed)
        self._places = set(self._random.sample(range(rows), round(rows * share)))
        self._kinds = list(KINDS)
        self.made: dict[str, int] = {}

    def after(self, place: int, value: bytes) -> bytes | None:
        """Return a bad copy of the value at this place of the topic, if there is to be one."""
        if place not in self._places:
            return None
        kind = self._kinds[sum(self.made.values()) % len(self._kinds)]
        self.made[kind.value] = self.made.get(kind.value, 0) + 1
        return KINDS[kind](value, self._body, self._random)
