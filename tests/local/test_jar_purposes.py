"""Which jars a local service needs."""

from __future__ import annotations

from frazil.local.services import Part, purposes_of
from frazil.local.toolchain.jars import purposes


def test_each_locked_purpose_of_this_platform_is_of_spark_or_of_a_service() -> None:
    assert sorted(["spark", *(purpose for part in Part for purpose in purposes_of(part))]) == sorted(purposes())
