"""The keywords of a JSON Schema about a value, with its `$ref`s followed and its `allOf` merged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

from frazil.schemas.json.documents import JsonSchema, Node

_TYPE_OF = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
"""The type of a value, by the Python type that `json` reads it as."""
TYPES = frozenset(_TYPE_OF.values())

NO_VALUE = "no value"
"""The entry in `Keywords.types` if nothing can be valid: a `false` schema, or two that exclude each other."""

_ANYTHING = TYPES - {"integer"}
_HINTS = ("description", "title", "format", "contentEncoding", "connect.type", "connect.parameters", "connect.index")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_CONDITIONS = ("if", "then", "else")
_SOME_ITEMS = ("contains", "additionalItems", "unevaluatedItems")
_ANY_NAME = {"", ".*", "^.*$", ".+", "^.+$", "^.*", "^.+"}
_OBJECT_KEYWORDS = ("properties", "patternProperties", "additionalProperties")


class Keywords:
    """The keywords that decide a value's type, of one schema or of several that hold together.

    `node` is the first of them. `types` is empty if any type is valid. `properties` has several schemas for a name if several
    speak of it. `alternatives` are the `oneOf` and `anyOf` lists, `conditional` the schemas that hold for some values only.
    `definitions` names the `$ref` targets that were followed. `others` are the keywords that describe properties without a schema
    of their own: those of patterns, and all others. `some_items` are schemas of some elements of a list.
    `named` are properties of which a keyword has the name alone.
    """

    def __init__(self, node: Node | None = None) -> None:
        self.node = node
        self.types: frozenset[str] = frozenset()
        self.properties: dict[str, tuple[Node, ...]] = {}
        self.required: frozenset[str] = frozenset()
        self.patterns: tuple[Node, ...] = ()
        self.additional: Node | None = None
        self.is_closed = False
        self.others: tuple[str, ...] = ()
        self.named: dict[str, str] = {}
        self.conditional: tuple[Node, ...] = ()
        self.items: tuple[Node, ...] = ()
        self.is_tuple = False
        self.some_items: tuple[Node, ...] = ()
        self.alternatives: tuple[tuple[Node, ...], ...] = ()
        self.hints: dict[str, Any] = {}
        self.definitions: tuple[str, ...] = ()

    @property
    def is_map(self) -> bool:
        """Return whether every value of the object is known to be valid under `patterns` or `additional`."""
        names = {node.pointer.rpartition("/")[2] for node in self.patterns}
        is_closed = self.additional is not None or self.is_closed or bool(names & _ANY_NAME)
        return not self.properties and is_closed

    def branches(self, schema: JsonSchema) -> Iterator[Keywords]:
        """Yield the keywords as each member of the first `oneOf` or `anyOf` would have them."""
        members, *rest = self.alternatives
        for member in members:
            branch = copy(self)
            branch.properties, branch.hints = dict(self.properties), dict(self.hints)
            branch.named = dict(self.named)
            branch.alternatives = tuple(rest)
            branch.absorb(schema, member, ())
            yield branch

    def absorb(self, schema: JsonSchema, node: Node, trail: tuple[str, ...]) -> None:
        """Let the node hold as well; `trail` names the references that led here, so that a circle is noticed."""
        if node.schema is False:
            self.types = frozenset({NO_VALUE})
        if isinstance(node.schema, bool):
            return
        if not isinstance(node.schema, dict):
            raise node.unreadable("a schema is an object or a boolean")
        self._absorb_own(node)
        for keyword in _REFERENCES:
            if keyword in node.schema:
                self._follow(schema, node, keyword, trail)
        for member in _schemas(node, "allOf"):
            self.absorb(schema, member, trail)

    def _follow(self, schema: JsonSchema, node: Node, keyword: str, trail: tuple[str, ...]) -> None:
        reference = node.schema[keyword]
        if not isinstance(reference, str):
            raise node.unreadable(f"{keyword} is not a string")
        target = schema.resolve(reference, node)
        if target.where in trail:
            raise node.unreadable(f"{keyword} {reference!r} leads back to itself")
        if target.where in self.definitions:
            return  # it holds already; `oneOf` may return to a definition without end
        self.definitions += (target.where,)
        self.absorb(schema, target, (*trail, target.where))

    def _absorb_own(self, node: Node) -> None:
        own: Mapping[str, Any] = node.schema
        self._narrow(_types(node))
        for name in _mapping(node, "properties"):
            self.properties[name] = (*self.properties.get(name, ()), node.child("properties", name))
        required = own.get("required")
        if isinstance(required, list):  # `required` is a boolean in draft-03
            self.required |= {name for name in required if isinstance(name, str)}
        self.patterns += tuple(node.child("patternProperties", p) for p in _mapping(node, "patternProperties"))
        self.others += tuple(
            f"patternProperties {p}" for p, of in _mapping(node, "patternProperties").items() if of is not False
        )
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            if isinstance(own.get(keyword), dict) and own[keyword]:
                self.others += (keyword,)
            self.is_closed |= own.get(keyword) is False
        if isinstance(own.get("additionalProperties"), dict):
            self.additional = self.additional or node.child("additionalProperties")
        self._absorb_conditions(node)
        self._absorb_items(node)
        for keyword in ("oneOf", "anyOf"):
            if members := _schemas(node, keyword):
                self.alternatives += (members,)
        for hint in _HINTS:
            if hint in own:
                self.hints.setdefault(hint, own[hint])

    def _absorb_conditions(self, node: Node) -> None:
        own: Mapping[str, Any] = node.schema
        self.conditional += tuple(node.child(keyword) for keyword in _CONDITIONS if keyword in own)
        for keyword in ("dependentSchemas", "dependencies"):
            for name, of in _mapping(node, keyword).items():
                if isinstance(of, dict | bool):
                    self.conditional += (node.child(keyword, name),)
        for keyword, names in _names(own):
            self.named |= {name: keyword for name in names if isinstance(name, str) and name not in self.named}

    def _absorb_items(self, node: Node) -> None:
        own, items = node.schema, node.schema.get("items")
        self.some_items += tuple(node.child(keyword) for keyword in _SOME_ITEMS if isinstance(own.get(keyword), dict))
        for keyword in ("prefixItems", "items"):
            if isinstance(own.get(keyword), list):
                self.some_items += _schemas(node, keyword)
        if isinstance(items, list) or "prefixItems" in node.schema:
            self.is_tuple = True
        elif isinstance(items, dict):
            self.items += (node.child("items"),)

    def _narrow(self, types: frozenset[str]) -> None:
        if not types or not self.types:
            self.types = self.types or types
            return
        both = {kind for kind in types | self.types if _allows(types, kind) and _allows(self.types, kind)}
        self.types = frozenset(both or {NO_VALUE})


def keywords(schema: JsonSchema, nodes: Sequence[Node]) -> Keywords:
    """Return what the nodes require together.

    Raises `UnreadableSchema` if a keyword is malformed, or a reference leads nowhere or in a circle.
    """
    together = Keywords(nodes[0] if nodes else None)
    for node in nodes:
        together.absorb(schema, node, (node.where,))
    return together


def _allows(types: frozenset[str], kind: str) -> bool:
    return kind in types or (kind == "integer" and "number" in types)


def _types(node: Node) -> frozenset[str]:
    """Return the types that the schema's own keywords allow; empty for all. A keyword of objects or lists means that type."""
    said = node.schema.get("type")
    names = said if isinstance(said, list) else [] if said is None else [said]
    if not all(isinstance(name, str) and name in TYPES for name in names):
        raise node.unreadable(f"unknown type {said!r}")
    types = frozenset(names)
    values = node.schema.get("enum", [node.schema["const"]] if "const" in node.schema else None)
    if isinstance(values, list) and values:
        kinds = frozenset(_TYPE_OF[type(value)] for value in values)
        if not types:
            return kinds
        valid = frozenset("number" if "number" in types and kind == "integer" else kind for kind in kinds)
        return frozenset(kind for kind in valid if _allows(types, kind)) or frozenset({NO_VALUE})
    if not types and any(isinstance(node.schema.get(keyword), dict) for keyword in _OBJECT_KEYWORDS):
        return frozenset({"object"})
    if not types and isinstance(node.schema.get("items"), dict | list):
        return frozenset({"array"})
    return frozenset() if types >= _ANYTHING else types


def _names(own: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the keywords that have names of properties and no schemas for them, each with the names."""
    yield "required", own["required"] if isinstance(own.get("required"), list) else []
    for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
        for name, names in own[keyword].items() if isinstance(own.get(keyword), dict) else ():
            yield keyword, [name, *(names if isinstance(names, list) else [])]
    for keyword, path in (("propertyNames", "enum"), ("not", "properties"), ("not", "required")):
        inner = own[keyword].get(path) if isinstance(own.get(keyword), dict) else None
        yield keyword, list(inner) if isinstance(inner, list | dict) else []
    enum = own.get("enum")
    for keyword, values in (("enum", enum if isinstance(enum, list) else []), ("const", [own.get("const")])):
        yield keyword, [name for value in values if isinstance(value, dict) for name in value]


def _mapping(node: Node, keyword: str) -> Mapping[str, Any]:
    value = node.schema.get(keyword, {})
    if not isinstance(value, dict):
        raise node.unreadable(f"{keyword} is not an object")
    return value


def _schemas(node: Node, keyword: str) -> tuple[Node, ...]:
    value = node.schema.get(keyword, [])
    if not isinstance(value, list):
        raise node.unreadable(f"{keyword} is not a list")
    return tuple(node.child(keyword, i) for i in range(len(value)))
