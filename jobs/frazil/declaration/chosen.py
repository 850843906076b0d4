"""How a field is typed that holds a choice and is given the choice or its text."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:

    class Chosen(Generic[T]):
        """A field that holds a `T` and is given a `T` or its text. Type checkers see a descriptor."""

        def __get__(self, instance: object, owner: Any) -> T: ...
        def __set__(self, instance: object, value: T | str) -> None: ...

else:

    class Chosen:
        """A field that holds a `T` and is given a `T` or its text. When the program runs, the hint is `T` itself."""

        def __class_getitem__(cls, kind):
            """Return the type that the field holds."""
            return kind


def default(member: object) -> Any:
    """Return the default of a `Chosen` field as it is; type checkers take it for a descriptor."""
    return member


def required() -> Any:
    """Return a `Chosen` field without a default. Type checkers take it for one with a default; the constructor does not."""
    return field()
