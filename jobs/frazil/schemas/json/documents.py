"""JSON Schema documents: a subject's schema with its references, and the resolution of a `$ref`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from frazil.declaration.checks.nesting import bounded
from frazil.errors import UnreadableSchema
from frazil.schemas.evolution.column_names import has_half_surrogates


@dataclass(frozen=True, slots=True)
class Node:
    """A schema in its place: its JSON, the URI its references are relative to, its file, and its JSON pointer."""

    schema: Any
    base: str
    file: str
    pointer: str = "#"

    @property
    def where(self) -> str:
        """Return the JSON pointer for people, with the file's name before it if it is a referenced one."""
        return f"{self.file}{self.pointer}"

    def child(self, *path: str | int) -> Node:
        """Return the schema at `path` below this one; the caller knows that it exists."""
        schema, base, pointer = self.schema, self.base, self.pointer
        for step in path:
            schema = schema[step]
            base = urljoin(base, _id(schema)) if _id(schema) else base
            pointer += "/" + str(step).replace("~", "~0").replace("/", "~1")
        return Node(schema, base, self.file, pointer)

    def unreadable(self, what: str, do: str = "") -> UnreadableSchema:
        """Return the error to raise about this schema."""
        return UnreadableSchema(what, where=self.where, do=do)


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """A readable JSON Schema, its references among the documents it came with."""

    root: Node
    by_uri: Mapping[str, Node]

    def resolve(self, reference: str, at: Node) -> Node:
        """Return what `reference`, found in `at`, refers to: in the same file, by `$id` or `$anchor`, or by registry name."""
        url, fragment = urldefrag(reference)
        candidates = [urljoin(at.base, url), url] if url else [at.base, at.file]
        found = [self.by_uri[uri] for uri in candidates if uri in self.by_uri]
        if not found:
            raise at.unreadable(
                f"$ref to {reference!r}, which the subject's references do not include",
                do="register the schema with that reference",
            )
        for document in found:
            target = self._within(document, unquote(fragment))
            if target is not None:
                return target
        raise at.unreadable(f"$ref to {reference!r}, where nothing is")

    def _within(self, document: Node, fragment: str) -> Node | None:
        if not fragment:
            return document
        if not fragment.startswith("/"):
            return self.by_uri.get(f"{document.base}#{fragment}") or self.by_uri.get(f"{document.file}#{fragment}")
        node = document
        for token in fragment[1:].split("/"):
            key: str | int = token.replace("~1", "/").replace("~0", "~")
            if isinstance(node.schema, list) and str(key).isdigit() and int(key) < len(node.schema):
                key = int(key)
            elif not (isinstance(node.schema, dict) and key in node.schema):
                return None
            node = node.child(key)
        return node


def parse(text: str, references: Mapping[str, str] | None = None) -> JsonSchema:
    """Return the schema in `text`; `references` holds the texts it refers to, by their registry names.

    Raises `UnreadableSchema` if a text is not JSON, or not a schema.
    """
    by_uri: dict[str, Node] = {}
    for name, document in {**(references or {}), "": text}.items():
        node = _document(document, name)
        _index(node, by_uri)
        by_uri[name] = node
    return JsonSchema(by_uri[""], by_uri)


def _document(text: str, file: str) -> Node:
    try:
        schema = bounded(json.loads(text))
    except ValueError as error:
        raise UnreadableSchema(f"not JSON: {error}", where=f"{file}#") from error
    except RecursionError:
        raise UnreadableSchema("nested too deeply to be read", where=f"{file}#") from None
    if has_half_surrogates(schema):
        raise UnreadableSchema("a text has half a surrogate pair, which is invalid Unicode", where=f"{file}#")
    if not isinstance(schema, dict | bool):
        raise UnreadableSchema("a JSON Schema is an object or a boolean", where=f"{file}#")
    old_id = schema.get("id") if isinstance(schema, dict) and "draft-04" in str(schema.get("$schema")) else None
    return Node(schema, _id(schema) or (old_id if isinstance(old_id, str) else "") or file, file)


def _index(document: Node, by_uri: dict[str, Node]) -> None:
    """Note every schema of the document that has a name: `$id`, `$anchor`, or an `$id` that is a fragment."""
    by_uri[document.base] = document
    for node in _below(document):
        if _id(node.schema):
            by_uri[node.base] = node
        fragment = node.schema.get("$id") if isinstance(node.schema.get("$id"), str) else ""
        for anchor in (node.schema.get("$anchor"), node.schema.get("$dynamicAnchor"), fragment.removeprefix("#")):
            if isinstance(anchor, str) and anchor and (anchor != fragment):
                by_uri[f"{node.base}#{anchor}"] = node


def _below(document: Node) -> Iterator[Node]:
    todo = [document]
    while todo:
        node = todo.pop()
        if isinstance(node.schema, dict):
            yield node
            todo.extend(node.child(key) for key, value in node.schema.items() if isinstance(value, dict | list))
        elif isinstance(node.schema, list):
            todo.extend(node.child(i) for i, value in enumerate(node.schema) if isinstance(value, dict | list))


def _id(schema: Any) -> str:
    """Return the schema's own URI; an `$id` that is only a fragment names a place, and is no URI."""
    uri = schema.get("$id") if isinstance(schema, dict) else None
    return urldefrag(uri)[0] if isinstance(uri, str) else ""
