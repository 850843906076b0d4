"""Asking the registry by its Confluent API, as any client does."""

import json
import urllib.request
from typing import Any

from frazil.local.services import LocalServices


def asked(world: LocalServices, method: str, path: str, body: object = None) -> Any:
    """What the registry answers. Raises `HTTPError` when it refuses."""
    request = urllib.request.Request(
        world.registry_url + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def record(*fields: str) -> dict[str, str]:
    columns = [{"name": name, "type": "long"} for name in fields]
    return {"schema": json.dumps({"type": "record", "name": "Order", "fields": columns})}
