"""A shop whose records are rejected until a schema is registered, and what replays make of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from frazil.declaration import ErrorMode
from frazil.replay.open_letters import Wanted
from frazil.replay.replay import Replayed, replay
from tests.support.registry_server import RegistryServer
from tests.support.shop import ORDER, Shop, avro, frame

MORE: Mapping[str, Any] = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": ""}]}
KEPT = {"on_error": ErrorMode.DEAD_LETTER, "max_rejected_percent": 100, "key_format": "text"}


class Repaired:
    """A shop whose second schema is registered after its records were rejected."""

    def __init__(self, shop: Shop, registry: RegistryServer) -> None:
        self.shop, self.registry = shop, registry
        self.first = registry.store.register(f"{shop.topic}-value", json.dumps(ORDER))
        self.second = self.first + 1

    def good(self, order_id: int, user: str = "g", *, partition: int = 0) -> None:
        value = avro(ORDER, {"order_id": order_id, "user": user, "amount": 1.0})
        self.shop.produce([frame(self.first, value)], partition=partition, key=f"k{order_id}".encode())

    def early(self, order_id: int, user: str = "e", *, partition: int = 0) -> None:
        """Produce a record whose schema is registered later."""
        value = avro(MORE, {"order_id": order_id, "user": user, "amount": 2.0, "note": "n"})
        self.shop.produce([frame(self.second, value)], partition=partition, key=f"k{order_id}".encode())

    def delete(self, order_id: int, *, partition: int = 0) -> None:
        self.shop.produce([None], partition=partition, key=f"k{order_id}".encode())

    def bad(self, order_id: int, *, partition: int = 0) -> None:
        self.shop.produce([b"\x07no frame"], partition=partition, key=f"k{order_id}".encode())

    def repair(self) -> None:
        assert self.registry.store.register(f"{self.shop.topic}-value", json.dumps(MORE)) == self.second

    def drain(self) -> None:
        self.shop.drain(registry=self.shop.registry(self.registry.url))

    def replay(self, wanted: Wanted = Wanted(), **options: Any) -> Replayed:  # noqa: B008 # frozen
        of_job = {name: options.pop(name) for name in ("failpoint", "run", "clock", "secret") if name in options}
        registry = self.shop.registry(self.registry.url)
        return replay(self.shop.pipeline, self.shop.job(**of_job), registry, wanted, **options)

    def users(self) -> dict[int, str]:
        return {row["order_id"]: row["user"] for row in self.shop.landed()}

    def outcomes(self) -> list[tuple[int, int, str | None, int | None]]:
        return sorted((row["partition"], row["offset"], row["outcome"], row["attempts"]) for row in self.shop.dead())


def produce(repaired: Repaired) -> None:
    """Produce eight orders: two of them early, one that stays bad."""
    for number in range(5):
        repaired.good(number)
    repaired.early(5)
    repaired.bad(6)
    repaired.early(7, partition=1)
    repaired.drain()
