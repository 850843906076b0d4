"""Executors refuse to read a partition in the same group with other options, and hold records that they fetched ahead."""

from frazil.job.context import ConsumerGroups


def test_the_same_options_have_the_same_group() -> None:
    consumers = ConsumerGroups()
    assert [consumers.group("orders", {"a": "1"}) for _ in range(3)] == ["frazil-orders"] * 3


def test_other_options_have_another_group_and_old_ones_their_own_again() -> None:
    consumers = ConsumerGroups()
    groups = [consumers.group("orders", {"a": value}) for value in ("1", "2", "3", "1", "2")]
    assert groups == ["frazil-orders", "frazil-orders.2", "frazil-orders.3", "frazil-orders", "frazil-orders.2"]


def test_pipelines_do_not_share_groups() -> None:
    consumers = ConsumerGroups()
    assert [consumers.group(name, {"a": name}) for name in ("a", "b")] == ["frazil-a", "frazil-b"]


def test_a_new_leader_has_a_group_of_its_own_and_a_new_partition_has_not() -> None:
    consumers, options = ConsumerGroups(), {"a": "1"}
    leaders = [{0: 5, 1: 5}, {0: 5, 1: 5, 2: 0}, {0: 5}, {0: 5, 1: 6, 2: 0}, {1: 6}, {0: 6, 1: 6, 2: 0}, {0: None}]
    groups = [consumers.group("orders", options, "of", now) for now in leaders]
    assert groups == ["frazil-orders"] * 3 + ["frazil-orders.2"] * 2 + ["frazil-orders.3", "frazil-orders.4"]


def test_options_whose_leaders_changed_meanwhile_have_a_new_group() -> None:
    consumers = ConsumerGroups()
    seen = [("a", 1), ("b", 1), ("b", 2), ("a", 2), ("a", 2)]
    groups = [consumers.group("orders", {"option": option}, "of", {0: epoch}) for option, epoch in seen]
    assert groups == ["frazil-orders", *(f"frazil-orders.{n}" for n in (2, 3, 4, 4))]


def test_a_topic_that_was_created_again_has_a_group_of_its_own_though_its_leaders_count_from_0_too() -> None:
    consumers = ConsumerGroups()
    groups = [consumers.group("orders", {"a": "1"}, topic, {0: 0}) for topic in ("old", "old", "new", "new")]
    assert groups == ["frazil-orders", "frazil-orders", "frazil-orders.2", "frazil-orders.2"]
