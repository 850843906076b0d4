"""Namespaces: pipelines of one driver meet in a new one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from frazil.lake.iceberg_java import Iceberg

pytestmark = pytest.mark.spark


def test_many_may_make_one_namespace_at_once(iceberg: Iceberg, name: str) -> None:
    at_once = Barrier(8)

    def make(_: int) -> None:
        at_once.wait(30)
        iceberg.create_namespace(name)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(make, range(8))) == [None] * 8
    assert iceberg.catalog.namespaceExists(iceberg.identifier(f"{name}.table").namespace())
