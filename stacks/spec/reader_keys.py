"""The two slots of the keys by which jobs read, and the steps of a rotation from one to the other.

| step, modulo 6 | keys that exist | keys in the secret |
| --- | --- | --- |
| 0 | a | a |
| 1 | a, b | b |
| 2, 3 | b | b |
| 4 | a, b | a |
| 5 | a | a |

So the new key exists before the secret names it, and the old one is deleted only after the next step. The last step of a rotation
changes nothing: it says that the old key is deleted. The step is in the file of deployed objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from frazil.errors import InvalidInput

READER_KEYS = "confluent-reader"
"""The secret with the keys of the jobs' account, without the environment."""
VARIABLE = "FRAZIL_KEY_STEP"
_MOST = 10**6


class Slot(StrEnum):
    """The two places of a key."""

    A = "a"
    B = "b"

    def id_of(self, what: str) -> str:
        """Return the id of a key in its account."""
        return what if self is Slot.A else f"{what}-{self.value}"


@dataclass(frozen=True, slots=True)
class KeySlots:
    """The slots that have keys, and the one whose keys are in the secret."""

    made: tuple[Slot, ...]
    active: Slot


def slots_at(step: int) -> KeySlots:
    """Return the slots at a step of the rotations."""
    is_back = step % 6 >= 4 or step % 6 == 0
    active = Slot.A if is_back else Slot.B
    return KeySlots(tuple(Slot) if step % 3 == 1 else (active,), active)


def wanted_step(settings: Mapping[str, str], deployed: int | None) -> int | None:
    """Return the step that `frazil deploy rotate-keys` asks for, else the deployed one. Raises `InvalidInput` for a gap."""
    text = settings.get(VARIABLE, "")
    if not text:
        return deployed
    before = deployed or 0
    if not (text.isascii() and text.isdigit()) or int(text) not in (before, before + 1) or int(text) > _MOST:
        do = "Let frazil deploy rotate-keys set it"
        raise InvalidInput(f"{text} is not the step after {before}", where=VARIABLE, do=do)
    return int(text) or None
