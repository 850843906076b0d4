"""Secrets: a plan without them. Terraform writes every value in plain text into a plan's JSON, and marks what is sensitive.

What is marked is masked where it stands. A value so marked may stand unmarked somewhere else as well (in a resource's id, in a
policy, in an output), so all texts are searched for it too, in the ways in which JSON, URLs and base64 write it.
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
"""Stands for a secret that the change makes another one."""
_HANDED_ON = "cross-stack-output-"
"""CDKTF marks whatever one stack hands to another, names and ARNs too. A secret among it is marked where it is made."""
SHORTEST = 8
"""Characters of a secret that is searched for in other texts; shorter ones stand in too many words."""


def cleaned(plan: Json, others: Iterable[Json] = ()) -> dict[str, Any]:
    """What a review needs of `terraform show -json`, without a sensitive value anywhere. The plan itself stays as it is.

    What is marked in one of the `others` is hidden too: a value that one stack marks may come to another unmarked. Of the
    configuration only references stay: constants written into it are not marked.
    """
    known = _known(plan, *others)

    def resource(told: Json) -> dict[str, Any]:
        kept = {key: value for key, value in told.items() if key != "change"}
        return {**_without(kept, known), "change": _change(told["change"], known)}

    kept = {key: plan[key] for key in ("errored", "complete", "applyable", "format_version") if key in plan}
    planned = plan.get("planned_values", {}).get("root_module", {})
    return {
        **kept,
        "resource_changes": [resource(each) for each in plan.get("resource_changes") or ()],
        "resource_drift": [resource(each) for each in plan.get("resource_drift") or ()],
        "relevant_attributes": _without(plan.get("relevant_attributes") or [], known),
        "output_changes": {
            _hidden(name, known): {"actions": each.get("actions", [])}
            for name, each in (plan.get("output_changes") or {}).items()
        },
        "planned_values": {"root_module": _module(planned, known)},
        "configuration": {"root_module": _references(plan.get("configuration", {}).get("root_module", {}), known)},
    }


def hidden(text: str, plan: Json) -> str:
    """A text about a plan, like Terraform's own words, without the plan's secrets."""
    return _hidden(text, _known(plan))


def _known(*plans: Json) -> list[str]:
    """What is searched for in all texts, the longest first: a secret may be a part of another."""
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
    """Both sides' marks as one: what is sensitive on one side is masked on both."""
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


def _masked(value: Any, marks: Any, beside: Any, known: list[str], mask: str) -> Any:
    """The value with what is marked masked; `mask` where it differs from what stands on the other side."""
    if value is None:
        return None
    if marks is True:
        return MASK if value == beside else mask
    if isinstance(value, Mapping):
        others = beside if isinstance(beside, Mapping) else {}
        inner = marks if isinstance(marks, Mapping) else {}
        return {
            _hidden(key, known): _masked(part, inner.get(key), others.get(key), known, mask)
            for key, part in value.items()
        }
    if isinstance(value, list):
        other_items, inner_marks = (side if isinstance(side, list) else [] for side in (beside, marks))
        return [
            _masked(part, _at(inner_marks, index), _at(other_items, index), known, mask)
            for index, part in enumerate(value)
        ]
    return _without(value, known)


def _without(value: Any, known: list[str]) -> Any:
    """The value with known secrets hidden in all of its texts."""
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


def _module(module: Json, known: list[str]) -> dict[str, Any]:
    return {
        "resources": [
            {**_without({k: v for k, v in each.items() if k != "values"}, known), "values": _values(each, known)}
            for each in module.get("resources", ())
        ],
        "child_modules": [_module(child, known) for child in module.get("child_modules", ())],
    }


def _values(resource: Json, known: list[str]) -> Any:
    return _masked(resource.get("values") or {}, resource.get("sensitive_values"), None, known, MASK)


def _references(module: Json, known: list[str]) -> dict[str, Any]:
    """Addresses of the configured resources, and what each of their arguments refers to."""
    kept = [
        {
            "address": each.get("address", ""),
            "expressions": {
                name: {"references": expression["references"]}
                for name, expression in each.get("expressions", {}).items()
                if isinstance(expression, Mapping) and expression.get("references")
            },
        }
        for each in module.get("resources", ())
    ]
    return {"resources": _without(kept, known)}


def _found(plan: Json) -> Iterator[str]:
    """Every sensitive text of a plan, wherever Terraform tells values."""
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
    """The texts and numbers of a value that are marked; of a marked JSON text, those inside it too."""
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
    """The values of a sensitive JSON text; its names are no secrets."""
    if isinstance(parsed, Mapping | list):
        for part in parsed.values() if isinstance(parsed, Mapping) else parsed:
            yield from _inside(part)
    elif parsed is not None and not isinstance(parsed, bool):
        yield str(parsed)


def _ways(secret: str) -> Iterator[str]:
    """How a secret may be written in another text."""
    yield secret
    for text in (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
        yield text
        yield text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")  # as Go, so Terraform, does
    yield quote(secret, safe="", errors="surrogatepass")
    yield base64.b64encode(secret.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def _at(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else None
