"""A class that reads paths gives instances, and what it refuses stays a path."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.declaration.path_values import path_refusal, read
from frazil.declaration.problems import Refusal


@dataclass
class Number:
    of: int

    @classmethod
    def read(cls, path: str) -> Number | Refusal:
        return cls(int(path)) if path.isdecimal() else Refusal("no number", "Write one")


def test_paths_are_read_and_other_values_stay() -> None:
    assert read(Number, ("1", "x", Number(2), None)) == (Number(1), "x", Number(2), None)
    assert read(str, ("1",)) == ("1",)


def test_a_path_that_is_refused_says_why() -> None:
    assert path_refusal(Number, "x") == Refusal("no number", "Write one")
    assert path_refusal(Number, "1") is path_refusal(Number, None) is path_refusal(str, "x") is None
