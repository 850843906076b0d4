"""The masking of secrets in a plan. Terraform writes all values into a plan's JSON in plain text, and marks sensitive ones.

Marked values are masked in place. A marked value may also occur unmarked elsewhere (in a resource's id, in a policy, in an
output), so all texts are searched for it too, in the spellings of JSON, URLs and base64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

Json = Mapping[str, Any]

MASK = "(secret)"
OTHER = "(another secret)"
"""The placeholder of a secret that the change replaces."""
_HANDED_ON = "cross-stack-output-"
"""CDKTF marks whatever one stack hands to another, names and ARNs too. A secret among it is marked where it is made."""
SHORTEST = 8
"""The shortest secret that is searched for in other texts; shorter ones occur in too many words."""


def cleaned(plan: Json, others: Iterable[Json] = ()) -> dict[str, Any]:
    """Return the parts of `terraform show -json` that a review needs, without sensitive values. Does not change the plan.

    Values marked in one of the `others` are masked too: a value that one stack marks may be unmarked in another. The
    configuration is omitted, because its constants are not marked.
    """
    known = _known(plan, *others)

    def resource(change: Json) -> dict[str, Any]:
        kept = {key: value for key, value in change.items() if key != "change"}
        return {**_without(kept, known), "change": _change(change["change"], known)}

    kept = {key: plan[key] for key in ("errored", "complete") if key in plan}
    return {
        **kept,
        "resource_changes": [resource(each) for each in plan.get("resource_changes") or ()],
        "output_changes": {
            _hidden(name, known): _change({"actions": [], **each}, known)
            for name, each in (plan.get("output_changes") or {}).items()
        },
    }


def hidden(text: str, *plans: Json) -> str:
    """Mask the secrets of plans in a text, for example in Terraform's output."""
    return _hidden(text, _known(*plans))


def _known(*plans: Json) -> list[str]:
    """Return the secrets to search for, the longest first: a secret may be a part of another."""
    found = {way for plan in plans for secret in _found(plan) if len(secret) >= SHORTEST for way in _ways(secret)}
    return sorted(found, key=lambda way: (-len(way), way))


def _change(change: Json, known: list[str]) -> dict[str, Any]:
    before, after = change.get("before"), change.get("after")
    marked = (change.get("before_sensitive"), change.get("after_sensitive"))
    return {
        "actions": change["actions"],
        "replace_paths": _without(change.get("replace_paths") or [], known),
        "importing": _without(change.get("importing"), known),
        "before": _masked(before, _either(*marked), after, known, MASK),
        "after": _masked(after, _either(*marked), before, known, OTHER),
        "after_unknown": _without(change.get("after_unknown") or {}, known),
    }


def _either(one: Any, other: Any) -> Any:
    """Combine the marks of both sides: a value that is sensitive on one side is masked on both."""
    if one is True or other is True:
        return True
    if isinstance(one, Mapping) or isinstance(other, Mapping):
        left, right = (side if isinstance(side, Mapping) else {} for side in (one, other))
        return {key: _either(left.get(key), right.get(key)) for key in {*left, *right}}
    if isinstance(one, list) or isinstance(other, list):
        left_items, right_items = (side if isinstance(side, list) else [] for side in (one, other))
        longest = max(len(left_items), len(right_items))
        return [_either(_at(left_items, index), _at(right_items, index)) for index in range(longest)]
    return False


def _at(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else None


def _masked(value: Any, marks: Any, other: Any, known: list[str], mask: str) -> Any:
    """Return the value with its marked parts masked; `mask` replaces parts that differ from the other side."""
    if value is None:
        return None
    if marks is True:
        return MASK if value == other else mask
    if isinstance(value, Mapping):
        others = other if isinstance(other, Mapping) else {}
        inner = marks if isinstance(marks, Mapping) else {}
        return {
            _hidden(key, known): _masked(part, inner.get(key), others.get(key), known, mask)
            for key, part in value.items()
        }
    if isinstance(value, list):
        other_items, inner_marks = (side if isinstance(side, list) else [] for side in (other, marks))
        return [
            _masked(part, _at(inner_marks, index), _at(other_items, index), known, mask)
            for index, part in enumerate(value)
        ]
    shown = _without(value, known)
    if mask is OTHER and isinstance(shown, str) and value != other and shown == _without(other, known):
        return shown.replace(MASK, OTHER)
    return shown


def _without(value: Any, known: list[str]) -> Any:
    """Return the value with known secrets masked in all of its texts."""
    if isinstance(value, Mapping):
        return {_hidden(key, known): _without(part, known) for key, part in value.items()}
    if isinstance(value, list):
        return [_without(part, known) for part in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return MASK if _hidden(str(value), known) != str(value) else value
    return _hidden(value, known) if isinstance(value, str) else value


def _hidden(text: str, known: list[str]) -> str:
    for secret in known:
        text = text.replace(secret, MASK)
    return text


def _found(plan: Json) -> Iterator[str]:
    """Yield every sensitive text of a plan."""
    for each in (*(plan.get("resource_changes") or ()), *(plan.get("resource_drift") or ())):
        yield from _in_change(each["change"])
    for name, each in (plan.get("output_changes") or {}).items():
        if not name.startswith(_HANDED_ON):
            yield from _in_change(each)
    for values in (plan.get("planned_values") or {}, (plan.get("prior_state") or {}).get("values") or {}):
        yield from _in_module(values.get("root_module") or {})
        for name, output in (values.get("outputs") or {}).items():
            if not name.startswith(_HANDED_ON):
                yield from _leaves(output.get("value"), bool(output.get("sensitive")))
    declared = plan.get("configuration", {}).get("root_module", {}).get("variables") or {}
    for name, variable in (plan.get("variables") or {}).items():
        yield from _leaves(variable.get("value"), bool((declared.get(name) or {}).get("sensitive")))


def _in_change(change: Json) -> Iterator[str]:
    marks = _either(change.get("before_sensitive"), change.get("after_sensitive"))
    yield from _leaves(change.get("before"), marks)
    yield from _leaves(change.get("after"), marks)


def _in_module(module: Json) -> Iterator[str]:
    for each in module.get("resources", ()):
        yield from _leaves(each.get("values"), each.get("sensitive_values"))
    for child in module.get("child_modules", ()):
        yield from _in_module(child)


def _leaves(value: Any, marks: Any) -> Iterator[str]:
    """Yield the marked texts and numbers of a value; of a marked JSON text, also those inside it."""
    if value is None or not marks:
        return
    if isinstance(value, Mapping):
        for key, part in value.items():
            inner = True if marks is True else marks.get(key) if isinstance(marks, Mapping) else None
            yield from _leaves(part, inner)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            inner = True if marks is True else _at(marks, index) if isinstance(marks, list) else None
            yield from _leaves(part, inner)
    elif marks is True and not isinstance(value, bool):
        yield str(value)
        if isinstance(value, str) and value[:1] in {"{", "["}:
            try:
                yield from _inside(json.loads(value))
            except ValueError:
                return


def _inside(parsed: Any) -> Iterator[str]:
    """Yield the values of a sensitive JSON text. Its names are no secrets."""
    if isinstance(parsed, Mapping | list):
        for part in parsed.values() if isinstance(parsed, Mapping) else parsed:
            yield from _inside(part)
    elif parsed is not None and not isinstance(parsed, bool):
        yield str(parsed)


def _ways(secret: str) -> Iterator[str]:
    """Yield the spellings of a secret in other texts."""
    yield secret
    for text in (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
        yield text
        yield text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")  # as Go, so Terraform, does
    yield quote(secret, safe="", errors="surrogatepass")
    yield base64.b64encode(secret.encode("utf-8", "surrogatepass")).decode().rstrip("=")
