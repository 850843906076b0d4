"""Write modes: how a record becomes rows. A mode is a value with its own parameters; a document tags it by `type`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from frazil.declaration.chosen import Chosen, default
from frazil.declaration.declared import Declared
from frazil.declaration.options import Tombstones
from frazil.declaration.validation import validate


@dataclass(frozen=True, slots=True, kw_only=True)
class Append(metaclass=Declared):
    """Every record is one more row; the table only grows."""

    kind: ClassVar[str] = "append"

    on_tombstone: Annotated[Chosen[Tombstones], "How to handle a record without a value."] = default(
        Tombstones.DEAD_LETTER
    )

    def __post_init__(self) -> None:
        validate(self)


WriteMode = Append
"""The union of the write modes. Code that depends on the mode matches on it."""
