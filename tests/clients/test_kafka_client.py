"""What becomes of clients of librdkafka that nothing uses any more; `test_kafka_security` has brokers."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from frazil.clients import kafka_client
from frazil.clients.kafka_client import Client

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}


class Holder:
    """What refers to itself, as a frame of an exception may: only garbage collection removes it."""

    def __init__(self, client: Client) -> None:
        self.client, self.itself = client, self


def test_a_client_that_is_collected_is_destroyed_by_the_next_one() -> None:
    """Garbage collection may run on librdkafka's own thread, where to destroy it aborts the process."""
    kept: Any = kafka_client._dropped
    Client(NOWHERE, None)
    holder = Holder(Client(NOWHERE, None))
    gone, admin = weakref.ref(holder), id(holder.client.admin)
    assert admin not in map(id, kept)
    del holder
    gc.collect()
    assert gone() is None
    assert admin in map(id, kept)
    later = Client(NOWHERE, None)
    assert list(kept) == []
    assert later.failure is None


def test_a_client_that_is_replaced_is_collected_without_a_cycle() -> None:
    gc.disable()
    try:
        gone = weakref.ref(client := Client(NOWHERE, None))
        del client
        assert gone() is None
    finally:
        gc.enable()
