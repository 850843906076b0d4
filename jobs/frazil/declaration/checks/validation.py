"""Check values against their fields, by the dataclass's own type hints and the rules in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from enum import Enum, StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from frazil.declaration.checks.constraints import ALONE, PRIVATE, Rule, shown
from frazil.declaration.checks.problems import InvalidDeclaration, Problem, Refusal

K = TypeVar("K", str, int)
V = TypeVar("V")


class FrozenMap(Mapping[K, V]):
    """A hashable mapping in the order of its keys, equal to any mapping of the same items."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        self._items: dict[K, V] = dict(sorted(dict(items).items(), key=lambda item: item[0]))

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(tuple(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)


def read(kind: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values with each path replaced by what is read there. A path stays if that is refused, see `path_refusal`."""
    reader = _reader(kind)
    if reader is None:
        return values
    found = [reader(value) if type(value) is str else value for value in values]
    return tuple(value if isinstance(new, Refusal) else new for value, new in zip(values, found, strict=True))


def path_refusal(kind: Any, value: Any) -> Refusal | None:
    """Return why the path is not read; None for what is no path."""
    reader = _reader(kind)
    refused = reader(value) if reader is not None and type(value) is str else None
    return refused if isinstance(refused, Refusal) else None


def _reader(kind: Any) -> Callable[[str], Any] | None:
    return getattr(kind, "read", None) if is_dataclass(kind) else None


_UNPRINTABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


class Hint(NamedTuple):
    """A type hint taken apart."""

    types: tuple[Any, ...]
    """Several for a union; None's is not among them."""
    type: Any
    """The one type, or the first of a union of dataclasses; None's own if nothing but None is allowed."""
    origin: Any
    """`tuple` or `Mapping` of a container, None of anything else."""
    is_choice: bool
    """Whether it is one of a union of dataclasses, distinguished by `kind`. The union may have one member, or none yet."""
    is_optional: bool
    rules: tuple[Rule, ...]
    meaning: str
    is_private: bool
    may_be_alone: bool

    @property
    def is_enum(self) -> bool:
        """True for a closed set of texts."""
        return isinstance(self.type, type) and issubclass(self.type, StrEnum)


@cache
def taken_apart(hint: Any) -> Hint:
    """Return the hint's parts; `Annotated` may wrap a union, but not be a member of one."""
    notes: tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        notes = tuple(rest)
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    types = tuple(member for member in members if member is not NoneType)
    first = types[0] if types else NoneType
    return Hint(
        types=types,
        type=first,
        origin=get_origin(first),
        is_choice=not types or (is_dataclass(first) and isinstance(getattr(first, "kind", None), str)),
        is_optional=NoneType in members,
        rules=tuple(note for note in notes if isinstance(note, Rule)),
        meaning=next((note for note in notes if isinstance(note, str)), ""),
        is_private=PRIVATE in notes,
        may_be_alone=ALONE in notes,
    )


@cache
def hints(cls: Any) -> Mapping[str, Any]:
    """Return the type hint of each field of a dataclass, in the order of the fields."""
    every = get_type_hints(cls, include_extras=True)
    return {field.name: every[field.name] for field in fields(cls)}


def validate(instance: Any, contradictions: Callable[[], Iterable[Problem]] = tuple) -> None:
    """Raise every problem of a frozen dataclass that is being made; freeze the mappings it was given.

    `contradictions` yields the problems that more than one field has a part in, with paths below the instance. It is
    asked even when single values are refused, but not when a field has the wrong type; what is refused already is not
    refused again.
    """
    cls: Any = type(instance)
    root = root_of(cls)
    given = {name: getattr(instance, name) for name in hints(cls)}
    values = chosen(cls, given)
    for name, value in values.items():
        if value is not given[name]:
            object.__setattr__(instance, name, value)
    problems, types_fit = field_problems(cls, values, root)
    if types_fit:
        for name, value in values.items():
            if isinstance(value, Mapping):
                object.__setattr__(instance, name, FrozenMap(value))
        refused = {problem.path for problem in problems}
        found = [problem.moved("", f"{root}.") for problem in contradictions()]
        problems += [problem for problem in found if problem.path not in refused]
    if problems:
        raise InvalidDeclaration(problems)


def chosen(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with each text replaced by the member, the value without parameters, or the tuple of one that it means."""
    of = hints(cls)
    return {name: _named_by(taken_apart(of[name]), value) for name, value in values.items()}


def _named_by(hint: Hint, value: Any) -> Any:
    if type(value) is tuple and hint.origin is tuple:
        return read(get_args(hint.type)[0], value)
    if not isinstance(value, str):
        return value
    if hint.is_enum:
        return hint.type(value) if value in list(hint.type) else value
    if hint.is_choice:
        return next((kind() for kind in hint.types if kind.kind == value and not required_fields(kind)), value)
    if hint.may_be_alone and hint.origin is not tuple:
        return hint.type(value)
    return read(get_args(hint.type)[0], (value,)) if hint.may_be_alone else value


def required_fields(cls: Any) -> tuple[str, ...]:
    """Return the fields that have no default."""
    return tuple(each.name for each in fields(cls) if each.default is MISSING and each.default_factory is MISSING)


def root_of(cls: type) -> str:
    """Return the start of a problem's path if the object was created alone: `Topic` -> `topic`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()


def field_problems(cls: type, values: Mapping[str, Any], path: str) -> tuple[list[Problem], bool]:
    """Return the problems of single fields, and whether all values have the right type."""
    wrong: list[Problem] = []
    unruly: list[Problem] = []
    for name, value in values.items():
        _judge(hints(cls)[name], value, f"{path}.{name}", wrong, unruly)
    return wrong + unruly, not wrong


def value_problems(hint: Any, value: Any, path: str) -> list[Problem]:
    """Return the problems of one value and its parts."""
    problems: list[Problem] = []
    _judge(hint, value, path, problems, problems)
    return problems


def _judge(hint: Any, value: Any, path: str, wrong: list[Problem], unruly: list[Problem]) -> None:
    """Add to `wrong` what has the wrong type, to `unruly` what breaks a rule."""
    for apart, part, place in _parts(hint, value, path):
        if mismatch := _mismatch(apart, part):
            wrong.append(Problem(place, *mismatch))
        elif refusal := _refusal(apart, part):
            unruly.append(Problem(place, *refusal))


def _refusal(hint: Hint, value: Any) -> Refusal | None:
    """Return why a value of the right type is refused, by its first rule that refuses it."""
    if value is None:
        return None
    bad_text = _bad_text(value) if isinstance(value, str) else None
    return bad_text or next(filter(None, (rule.refusal(value) for rule in hint.rules)), None)


def _parts(hint: Any, value: Any, path: str) -> Iterator[tuple[Hint, Any, str]]:
    """Yield the value and, if it is the expected container, each of its parts; with hint and path."""
    outer = taken_apart(hint)
    yield outer, value, path
    inner = get_args(outer.type)
    if outer.origin is tuple and isinstance(value, tuple):
        for index, part in enumerate(value):
            yield from _parts(inner[0], part, f"{path}[{index}]")
    elif outer.origin is Mapping and isinstance(value, Mapping):
        for key, part in value.items():
            yield from _parts(inner[0], key, f"{path}[{shown(key)}]")
            yield from _parts(inner[1], part, f"{path}[{shown(key)}]")


def _mismatch(hint: Hint, value: Any) -> Refusal | None:
    """Return why the value has the wrong type; parts of containers are not checked."""
    if (value is None and hint.is_optional) or any(_fits(kind, value) for kind in hint.types):
        return None
    if isinstance(value, type) and is_dataclass(value) and value in hint.types:
        return Refusal(f"this is {named(value)}, not an instance", f"Write {_call(value, required_fields(value))}")
    if refused := path_refusal(hint.type, value):
        return refused
    # A value in a dataclass's place may be a password where a `Secret` belongs: only its type is shown.
    is_secret = hint.is_private or (is_dataclass(hint.type) and not hint.is_choice)
    is_shown = isinstance(value, str | int | float) and not is_secret
    what = f"{shown(value)} is {named(value)}" if is_shown else f"this is {named(value)}"
    if is_shown and type(value) is str and (hint.is_enum or hint.is_choice):
        what = f"{shown(value)} is not one of its values"
    if hint.is_enum:
        return Refusal(what, f"Write one of {', '.join(hint.type)}")
    if hint.origin is tuple and isinstance(value, list):
        return Refusal(what, "Write a tuple: it cannot change afterwards")
    if hint.origin is tuple and isinstance(value, str):
        return Refusal(what, f"Write a tuple, also of one: ({shown(value)},)")
    return Refusal(what, f"Write {wanted(hint)}")


def _fits(kind: Any, value: Any) -> bool:
    origin = get_origin(kind)
    if origin in (tuple, Mapping):
        return isinstance(value, origin)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool | Enum)
    if kind is str:
        return isinstance(value, str) and not isinstance(value, Enum)  # f"{member}" is its name, not its text
    return isinstance(value, kind)


def named(value: Any) -> str:
    """Return what a value is, as a message says it: nothing, a class, or of a type."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return "nothing (None)" if value is None else f"of type {type(value).__name__}"


def _call(cls: type, arguments: Sized) -> str:
    return f"{cls.__name__}({'…' if arguments else ''})"


def wanted(hint: Hint) -> str:
    """Return a description of the values that a field of this hint takes."""
    words = {str: "text", int: "a whole number", bool: "True or False", datetime: "a datetime with a time zone"}
    if hint.is_enum:
        return f"one of {', '.join(hint.type)}"
    if not hint.types:
        return "None: this release has nothing for it"
    if hint.is_choice or is_dataclass(hint.type):
        text = " or ".join(_call(kind, hints(kind)) for kind in hint.types)
    elif hint.origin is tuple:
        text = "text or a tuple" if hint.may_be_alone else "a tuple"
    elif hint.origin is Mapping:
        text = "a mapping"
    else:
        text = words.get(hint.type) or hint.type.__name__
    return f"{text}, or None" if hint.is_optional else text


def _bad_text(text: str) -> Refusal | None:
    if "${" in text or "TfToken[" in text:
        return Refusal(
            "this is a Terraform token, known only when Terraform runs",
            "Write the value itself: what Terraform knows belongs in the environment document that it writes",
        )
    if _UNPRINTABLE.search(text):
        return Refusal("the text has control characters or half a surrogate pair", "Write printable Unicode")
    return None
