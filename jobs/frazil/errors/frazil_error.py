"""The base of all errors, and wrong input."""

from __future__ import annotations


class FrazilError(Exception):
    """An error for people: what happened, where, and what to do about it.

    The facts are kept as attributes for programs; `str()` is the sentence for people.
    """

    def __init__(self, what: str, *, where: str = "", do: str = "") -> None:
        self.what, self.where, self.do = what, where, do
        super().__init__(what)

    def __str__(self) -> str:
        """`where: what. do`, on one line."""
        place = f"{self.where}: " if self.where else ""
        remedy = f". {self.do}" if self.do else ""
        return f"{place}{self.what}{remedy}"


class InvalidInput(FrazilError):
    """A command, an argument, a file or a setting is wrong. A new attempt with the same input changes nothing."""
