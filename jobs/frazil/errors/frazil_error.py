"""The base of all errors, and wrong input."""

from __future__ import annotations

import re
from typing import Self


class FrazilError(Exception):
    """An error for people: what happened, where, and what to do about it.

    The facts are kept as attributes for programs; `str()` is the sentence for people.
    """

    def __init__(self, what: str, *, where: str = "", do: str = "") -> None:
        self.what, self.where, self.do = what, where, do
        super().__init__(what)

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that the remedy names."""
        return tuple(re.findall(r"`(frazil [^`]+)`", self.do))

    def __str__(self) -> str:
        """`where: what. do`, on one line."""
        place = f"{self.where}: " if self.where else ""
        remedy = f". {self.do}" if self.do else ""
        return f"{place}{self.what}{remedy}"


class InvalidInput(FrazilError):
    """A command, an argument, a file or a setting is wrong. A new attempt with the same input changes nothing."""

    @classmethod
    def unreadable(cls, file: object, error: OSError, *, do: str = "") -> Self:
        """Return the error for a file that cannot be read."""
        return cls(f"it cannot be read ({error.strerror})", where=str(file), do=do)

    @classmethod
    def unwritable(cls, file: object, error: OSError) -> Self:
        """Return the error for a file that cannot be written."""
        return cls(f"it cannot be written ({error.strerror})", where=str(file))
