"""A topic whose values, and perhaps keys, have Avro schemas, and the check of its table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.support.shop import Shop, avro, frame

Schema = Mapping[str, Any]


def record(name: str, /, **fields: Any) -> dict[str, Any]:
    """Return an Avro record schema."""
    return {"type": "record", "name": name, "fields": [{"name": n, "type": kind} for n, kind in fields.items()]}


class KeyedTopic:
    """A topic of values; its records' keys have no schema unless one is given."""

    def __init__(self, shop: Shop, value: Schema, key: Any = None) -> None:
        self.shop = shop
        self.evolve(value)
        self.key, self.key_id = None, 0
        if key is not None:
            self.evolve_key(key)

    def evolve(self, value: Schema) -> None:
        """Register a further version of the values; the next ones are of it."""
        self.value, self.value_id = value, self.shop.register(value)

    def evolve_key(self, key: Any) -> None:
        """Do the same with the keys."""
        self.key, self.key_id = key, self.shop.registry_admin.register(f"{self.shop.topic}-key", json.dumps(key))

    def put(self, value: Any, key: Any = None, **record: Any) -> None:
        body = None if value is None else frame(self.value_id, avro(self.value, value))
        of_schema = self.key is not None and key is not None
        framed = frame(self.key_id, avro(self.key, key)) if of_schema else key
        self.shop.produce([body], **{"key": framed, "partition": 0, **record})


def check_column(shop: Shop, column: str, *expected: Any) -> None:
    """Check that the rows have these values in a column, and that both verifications prove it."""
    assert sorted(row[column] for row in shop.landed()) == sorted(expected)
    shop.assert_proven()
