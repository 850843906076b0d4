"""A shop with dead letters of several reasons, for tests that list, show and replay them."""

from __future__ import annotations

from pyspark.sql import SparkSession

from frazil.declaration.environment import Environment
from frazil.local.services import LocalServices
from tests.support.shop import Shop, frame

HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202e"
"""What a terminal must never get: it sets the title, clears the screen, turns the direction of writing."""

HEADERS = [("trace", b"\x01"), ("trace", None), ("", b""), (HOSTILE, HOSTILE.encode())]


def with_letters(world: LocalServices, spark: SparkSession, lake: Environment, name: str) -> Shop:
    """Return a shop after two runs: 3 rows and 4 dead letters by `first`, a row and 2 dead letters by `second`."""
    shop = Shop(world, spark, lake, name, partitions=2)
    schema_id = shop.register()
    shop.produce(shop.orders(3, schema_id), partition=0)
    bad = [b"\x00\x00\x01", b"{'json': 1}", frame(schema_id, b"\x02\xff"), None]
    shop.produce(bad, partition=1, headers=HEADERS, key=b"k\x00\xff", timestamp=1_700_000_000_123)
    shop.drain(run="first", clock=lambda: 1_800_000_000.0)
    shop.produce(shop.orders(1, schema_id, first=3), partition=0)
    broken = shop.registry_admin.register(f"{name}-value", TAGGED)
    key = HOSTILE.encode()
    body = b"\x02\x02u\x02" + bytes([len(key) * 2]) + key + b"\x09"  # order 1, user u, one tag of length -5
    shop.produce([frame(2_000_000_000, b"\x02"), frame(broken, body)], partition=0, key=None)
    shop.drain(run="second", clock=lambda: 1_800_003_600.0)
    return shop


TAGGED = """{"type": "record", "name": "Order", "fields": [
    {"name": "order_id", "type": "long"}, {"name": "user", "type": "string", "default": ""},
    {"name": "tags", "type": {"type": "map", "values": "string"}, "default": {}}]}"""
"""A version with a map, so that a field's path holds a part of the record."""
