"""Executors refuse to read a partition in the same group with other options."""

from frazil.ingest.consumers import Consumers


def test_the_same_options_have_the_same_group() -> None:
    consumers = Consumers()
    assert [consumers.group("orders", {"a": "1"}) for _ in range(3)] == ["frazil-orders"] * 3


def test_other_options_have_another_group_and_old_ones_their_own_again() -> None:
    consumers = Consumers()
    groups = [consumers.group("orders", {"a": value}) for value in ("1", "2", "3", "1", "2")]
    assert groups == ["frazil-orders", "frazil-orders.2", "frazil-orders.3", "frazil-orders", "frazil-orders.2"]


def test_pipelines_do_not_share_groups() -> None:
    consumers = Consumers()
    assert [consumers.group(name, {"a": name}) for name in ("a", "b")] == ["frazil-a", "frazil-b"]
