"""The values that an SQL expression can have where some of its columns are null, by SQL's three-valued logic."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Path = tuple[str, ...]
Values = frozenset[bool | None]
"""The values that an expression can have. `_VALUE` is in place of a value of another type than boolean."""
_VALUE: Values = frozenset({True, False})
_ANY: Values = frozenset({True, False, None})
_NULL: Values = frozenset({None})
_FIRST_VALUE, _OF_ANY_VALUE = ("coalesce", "ifnull", "nvl"), ("concat_ws", "greatest", "least")
_CHOICES = (*_FIRST_VALUE, "greatest", "least", "concat")
_ELEMENTS = ("element_at", "array_max", "array_min")


ELEMENT = "[]"
"""The part of a path that is an element of a list or a value of a map."""


def paths_of(tree: Expr) -> frozenset[Path]:
    """Return the columns or fields one of which an expression is, in lower case: null if all are. Empty for another expression."""
    from sqlglot import expressions as e

    found: list[Expr | None]
    last: tuple[str, ...] = ()
    match node := tree.unnest():
        case e.Column():
            return frozenset({tuple(part.name.lower() for part in node.parts)})
        case e.Dot():
            found, last = [node.this], (node.expression.name.lower(),)
        case e.Bracket():
            found, last = [node.this], (ELEMENT,)
        case e.Case():
            found = [*(each.args["true"] for each in node.args["ifs"]), node.args.get("default")]
        case e.Anonymous(expressions=[first, *others]):
            match node.name.lower():
                case name if name in _ELEMENTS:
                    found, last = [first], (ELEMENT,)
                case "map_values" | "nullif":
                    found = [first]
                case "if":
                    found = [*others]
                case name if name in _CHOICES:
                    found = [first, *others]
                case _:
                    found = []
        case _:
            found = []
    parts = [paths_of(each) for each in found if each is not None and not isinstance(each.unnest(), e.Null)]
    return frozenset((*path, *last) for paths in parts for path in paths) if all(parts) else frozenset()


def reads_of(tree: Expr) -> Iterator[Path]:
    """Yield the columns and fields that an expression reads, in lower case: only the column where more is not known."""
    from sqlglot import expressions as e

    match node := tree.unnest():
        case e.Column():
            yield from paths_of(node)
        case e.Dot() | e.Bracket() if _is_field(node):
            yield from paths_of(node)
        case e.Anonymous(expressions=[_, *others]) if _is_field(node):
            yield from paths_of(node)
            for each in others:
                yield from reads_of(each)
        case _:
            for each in node.iter_expressions():
                yield from reads_of(each)
    for index in node.expressions if isinstance(node, e.Bracket) else ():
        yield from reads_of(index)


def _is_field(tree: Expr) -> bool:
    """Return whether an expression is a column or what is in one."""
    from sqlglot import expressions as e

    match node := tree.unnest():
        case e.Column():
            return True
        case e.Dot() | e.Bracket():
            return _is_field(node.this)
        case e.Anonymous(expressions=[first, *_]):
            return node.name.lower() in (*_ELEMENTS, "map_values") and _is_field(first)
    return False


def is_null(tree: Expr, nulls: Collection[Path]) -> bool:
    """Return whether an expression is a column or field that is null if the columns or fields `nulls` are."""
    paths = paths_of(tree)
    return bool(paths) and all(any(path[: len(one)] == one for one in nulls) for path in paths)


def may_be(tree: Expr, nulls: Collection[Path]) -> Values:
    """Return what an expression may be if the columns or fields `nulls` (in lower case) are null, and all others are anything.

    An expression of which nothing else is known is null if one of its parts is, as most functions of SQL are.
    """
    from sqlglot import expressions as e

    def of(node: Expr) -> Values:
        return may_be(node, nulls)

    if is_null(tree, nulls):
        return _NULL
    match node := tree.unnest():
        case e.Column():
            return _ANY
        case e.Null():
            return _NULL
        case e.Boolean():
            return frozenset({bool(node.this)})
        case e.Not():
            return frozenset(None if one is None else not one for one in of(node.this))
        case e.And() | e.Or():
            decides = isinstance(node, e.Or)  # the value of one side that decides alone
            pairs = [(a, b) for a in of(node.this) for b in of(node.expression)]
            return frozenset(decides if decides in pair else None if None in pair else not decides for pair in pairs)
        case e.Is():
            wanted = None if isinstance(node.expression, e.Null) else bool(node.expression.this)
            return frozenset(one is wanted for one in of(node.this))
        case e.NullSafeEQ():
            return _VALUE
        case e.Case():
            return _of_case(node, nulls)
        case e.Between() if of(node.this) != _NULL:
            bounds = (of(node.args["low"]), of(node.args["high"]))
            return frozenset({None, False}) if _NULL in bounds else _ANY
        case e.In():
            return _strict([of(node.this)])
        case e.Anonymous():
            return _of_function(node.name.lower(), [of(each) for each in node.expressions])
        case e.Literal() | e.RawString() | e.Identifier() | e.DataType() | e.Var():
            return _VALUE
    return _strict(map(of, node.iter_expressions()))


def _strict(parts: Iterable[Values]) -> Values:
    return _NULL if _NULL in list(parts) else _ANY


def _of_function(name: str, arguments: list[Values]) -> Values:
    if name in _FIRST_VALUE:
        found, is_open = frozenset[bool | None](), True
        for one in arguments:
            if is_open:
                found |= one - _NULL
                is_open = None in one
        return found | _NULL if is_open else found
    if name in ("isnull", "isnotnull"):
        return frozenset((one is None) is (name == "isnull") for one in arguments[0])
    if name == "if":
        return _chosen([(arguments[0], arguments[1])], arguments[2] if len(arguments) > 2 else _NULL)
    if name == "nullif":
        return _strict(arguments[:1])
    return _ANY if name in _OF_ANY_VALUE else _strict(arguments)


def _of_case(node: Expr, nulls: Collection[Path]) -> Values:
    compared, other = node.args.get("this"), node.args.get("default")
    branches = []
    for each in node.args["ifs"]:
        condition = may_be(each.this, nulls)
        if compared is not None:
            condition = _strict([condition, may_be(compared, nulls)])
        branches.append((condition, may_be(each.args["true"], nulls)))
    return _chosen(branches, _NULL if other is None else may_be(other, nulls))


def _chosen(branches: Iterable[tuple[Values, Values]], other: Values) -> Values:
    found = frozenset[bool | None]()
    for condition, value in branches:
        if True in condition:
            found |= value
        if condition == {True}:
            return found
    return found | other
