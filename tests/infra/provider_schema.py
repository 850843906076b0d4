"""What a provider's schema says of synthesised resources: every argument known, of its type, and none missing.

The schemas have the shape of `terraform providers schema -json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "infra" / "provider_schemas"
META = {"//", "depends_on", "lifecycle", "provider", "count", "for_each", "connection", "provisioner"}
REFERENCE = re.compile(r"(data\.)?[a-z0-9_]+\.[A-Za-z0-9_-]+")
ONE_REFERENCE = re.compile(r"\$\{.*\}", re.DOTALL)


@cache
def schema(provider: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FOLDER / f"{provider}.json").read_text())
    return loaded


def misfits(stack: Mapping[str, Any]) -> list[str]:
    """Everything in a stack's resources, data sources and providers that its provider's schema does not allow."""
    found = []
    for section, kinds in (("resource", "resource_schemas"), ("data", "data_source_schemas")):
        for kind, named in stack.get(section, {}).items():
            if kind == "terraform_remote_state":
                continue  # Terraform's own
            known = schema(kind.partition("_")[0]).get(kinds, {})
            if kind not in known:
                found.append(f"{kind}: no such {section}")
                continue
            for name, arguments in named.items():
                found += [
                    f"{kind}.{name}.depends_on: {each} is no reference by itself"
                    for each in arguments.get("depends_on", ())
                    if not REFERENCE.fullmatch(each)
                ]
                found += _block(known[kind]["block"], arguments, f"{kind}.{name}")
    for provider, configured in stack.get("provider", {}).items():
        for arguments in configured:
            found += _block(schema(provider)["provider"]["block"], arguments, f"provider.{provider}")
    return found


def _block(known: Mapping[str, Any], given: Mapping[str, Any], path: str) -> Iterator[str]:
    attributes, blocks = known.get("attributes", {}), known.get("block_types", {})
    for name, value in given.items():
        if name in META and name not in attributes:
            continue
        if name in attributes:
            yield from _attribute(attributes[name], value, f"{path}.{name}")
        elif name in blocks:
            yield from _blocks(blocks[name], value, f"{path}.{name}")
        else:
            yield f"{path}.{name}: no such argument"
    for name, attribute in attributes.items():
        if attribute.get("required") and given.get(name) is None:
            yield f"{path}.{name}: required, and missing"
    for name, block in blocks.items():
        if block.get("min_items") and not given.get(name):
            yield f"{path}.{name}: a required block, and missing"


def _attribute(known: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    if not known.get("required") and not known.get("optional"):
        yield f"{path}: computed, not to be given"
    yield from _typed(known["type"], value, path)


def _typed(kind: Any, value: Any, path: str) -> Iterator[str]:
    if value is None or (isinstance(value, str) and ONE_REFERENCE.fullmatch(value)):
        return
    if isinstance(kind, list):
        container, inner = kind
        if container == "map" and isinstance(value, dict):
            for key, part in value.items():
                yield from _typed(inner, part, f"{path}[{key}]")
        elif container in {"list", "set"} and isinstance(value, list):
            for index, part in enumerate(value):
                yield from _typed(inner, part, f"{path}[{index}]")
        elif container == "object" and isinstance(value, dict):
            for key, part in value.items():
                yield from _typed(inner[key], part, f"{path}.{key}") if key in inner else [f"{path}.{key}: unknown"]
        else:
            yield f"{path}: {value!r} is no {container}"
        return
    right: dict[str, tuple[type, ...]] = {"string": (str,), "number": (int, float), "bool": (bool,)}
    if not isinstance(value, right[kind]) or (kind == "number" and isinstance(value, bool)):
        yield f"{path}: {value!r} is no {kind}"


def _blocks(known: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    given = value if isinstance(value, list) else [value]
    if not isinstance(value, list) and known["nesting_mode"] not in {"list", "set", "single"}:
        yield f"{path}: one block, where there are {known['nesting_mode']}"
    if len(given) > known.get("max_items", len(given)):
        yield f"{path}: {len(given)} blocks, {known['max_items']} at most"
    for index, arguments in enumerate(given):
        yield from _block(known["block"], arguments, f"{path}[{index}]")
