"""The problems of a declaration, each with its place and its remedy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from frazil.errors import InvalidInput

_LONGEST = 600  # characters; a longer text repeats the input


class Refusal(NamedTuple):
    """The reason to refuse a value (`what`), and what to write instead (`do`). A problem whose place is not known yet."""

    what: str
    do: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to change: `path` is where (`pipelines[0].table.identifier`), `what` is wrong, `do` is the remedy."""

    path: str
    what: str
    do: str

    def __post_init__(self) -> None:
        for name in ("path", "what", "do"):
            text = getattr(self, name)
            if len(text) > _LONGEST:
                object.__setattr__(self, name, f"{text[:_LONGEST]}… ({len(text)} characters)")

    def __str__(self) -> str:
        """`path: what. do`, on one line."""
        return f"{self.path}: {self.what}. {self.do}"

    def moved(self, old: str, new: str) -> Problem:
        """Return the same problem with a path below `new` instead of `old`."""
        return replace(self, path=f"{new}{self.path.removeprefix(old)}")


class InvalidDeclaration(InvalidInput):
    """A declaration, a document or an environment has problems; `problems` holds all of them, `str()` one a line."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        super().__init__(f"{count} problem{'' if count == 1 else 's'} in the declaration")

    def __str__(self) -> str:
        """All problems, one a line."""
        return "\n".join(map(str, self.problems))

    def __reduce__(self) -> tuple[type[InvalidDeclaration], tuple[tuple[Problem, ...]]]:
        """Pickle by the problems, so that a worker process passes on all of them."""
        return InvalidDeclaration, (self.problems,)
