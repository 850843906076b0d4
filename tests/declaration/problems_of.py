"""What tests ask of a refusal: which problems, and where."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from frazil.declaration import InvalidDeclaration


def problems_of(make: Callable[[], object]) -> dict[str, str]:
    """The problems that `make` raises: path -> what is wrong and what to do. Each must have all three parts."""
    with pytest.raises(InvalidDeclaration) as raised:
        make()
    problems = raised.value.problems
    assert all(problem.path and problem.what and problem.do for problem in problems)
    assert str(raised.value).splitlines() == [str(problem) for problem in problems]
    assert len({problem.path for problem in problems}) == len(problems), "a path has two problems"
    return {problem.path: f"{problem.what}. {problem.do}" for problem in problems}
