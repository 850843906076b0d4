"""The conditions of a statement, which say when it applies.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
"""

from __future__ import annotations

import operator as operators
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any


class Unsupported(NotImplementedError):
    """A policy has an element that the evaluator does not know."""


@lru_cache(maxsize=4096)
def _compiled(pattern: str, *, any_case: bool) -> re.Pattern[str]:
    if "${" in pattern:
        raise Unsupported(f"a policy variable in {pattern!r}")
    known = {"*": ".*", "?": "."}
    text = "".join(known.get(character, re.escape(character)) for character in pattern)
    return re.compile(text, re.DOTALL | (re.IGNORECASE if any_case else 0))


def matches(pattern: str, action: str) -> bool:
    """Return whether a pattern matches an action, ignoring case."""
    return _compiled(pattern, any_case=True).fullmatch(action) is not None


def like(pattern: str, value: str) -> bool:
    """Return whether a pattern matches a text, with case."""
    return _compiled(pattern, any_case=False).fullmatch(value) is not None


def matches_arn(pattern: str, arn: str) -> bool:
    """Return whether a pattern matches an ARN, part by part; the sixth part is the rest. A final `*` matches all further parts.

    Raises `Unsupported` for a pattern of fewer parts that ends otherwise.
    """
    if pattern == "*":
        return True
    wanted, given = pattern.split(":", 5), arn.split(":", 5)
    if len(wanted) < 6 and wanted[-1] != "*":
        raise Unsupported(f"a resource without its six parts: {pattern!r}")
    wanted += ["*"] * (6 - len(wanted))
    return len(given) == 6 and all(like(one, other) for one, other in zip(wanted, given, strict=True))


Context = Mapping[str, str | Sequence[str]]
Compare = Callable[[str, str], bool]


def _number(compare: Callable[[Decimal, Decimal], bool]) -> Compare:
    def compared(wanted: str, given: str) -> bool:
        try:
            return compare(Decimal(given), Decimal(wanted))
        except InvalidOperation:
            return False

    return compared


# The comparison of a request's value with a value of the policy, by operator.
_POSITIVE: Mapping[str, Compare] = {
    "StringEquals": lambda wanted, given: wanted == given,
    "StringEqualsIgnoreCase": lambda wanted, given: wanted.casefold() == given.casefold(),
    "StringLike": like,
    "ArnEquals": matches_arn,
    "ArnLike": matches_arn,
    "Bool": lambda wanted, given: wanted.lower() == given.lower(),
    "NumericEquals": _number(operators.eq),
    "NumericLessThan": _number(operators.lt),
    "NumericLessThanEquals": _number(operators.le),
    "NumericGreaterThan": _number(operators.gt),
    "NumericGreaterThanEquals": _number(operators.ge),
}
_NEGATED = {
    "StringNotEquals": "StringEquals",
    "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "StringNotLike": "StringLike",
    "ArnNotEquals": "ArnEquals",
    "ArnNotLike": "ArnLike",
    "NumericNotEquals": "NumericEquals",
}


def holds(conditions: Mapping[str, Mapping[str, Any]], context: Context) -> bool:
    """Return whether all conditions of a statement hold. Raises `Unsupported` for an unknown operator."""
    known = {key.lower(): _values(value) for key, value in context.items()}
    # All are evaluated before the result: an unknown operator is an error at any position.
    asked = [
        _holds(operator, wanted, known.get(key.lower()))
        for operator, keys in conditions.items()
        for key, wanted in keys.items()
    ]
    return all(asked)


def _holds(operator: str, wanted: Any, given: Sequence[str] | None) -> bool:
    quantifier, _, plain = operator.rpartition(":")
    name, is_lenient = plain.removesuffix("IfExists"), plain.endswith("IfExists")
    if quantifier not in {"", "ForAllValues", "ForAnyValue"} or not {name} & {"Null", *_POSITIVE, *_NEGATED}:
        raise Unsupported(f"the condition operator {operator}")
    values = _values(wanted)
    if name == "Null":
        if is_lenient or quantifier:
            raise Unsupported(f"the condition operator {operator}")
        return any(value.lower() == str(given is None).lower() for value in values)
    if given is None:
        return is_lenient or quantifier == "ForAllValues" or (name in _NEGATED and not quantifier)
    compare = _POSITIVE[_NEGATED.get(name, name)]
    fitting = [any(compare(one, value) for one in values) for value in given]
    if name in _NEGATED:
        fitting = [not fits for fits in fitting]
    if quantifier == "ForAllValues":
        return all(fitting)
    if quantifier == "ForAnyValue" or name not in _NEGATED:
        return any(fitting)
    return all(fitting)


def _values(value: Any) -> Sequence[str]:
    """Return one value or several as a list of texts: JSON's true is "true"."""
    several = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    return [str(one).lower() if isinstance(one, bool) else str(one) for one in several]
