"""Contenders stay from race to race, and all of a race have landed the same before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest

from bench.sessions import Sessions
from bench.topics import Topic

if TYPE_CHECKING:
    from bench.environment import BenchEnvironment


class Ground:
    """Contenders that only note what happens to them."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def job(self, name: str, label: str, topic: Topic) -> str:
        return name

    @contextmanager
    def served(self, name: str) -> Iterator[Any]:
        self.seen.append(f"start {name}")
        try:
            yield Noted(name, self.seen)
        except KeyError:
            self.seen.append(f"kill {name}")
            raise
        self.seen.append(f"wait {name}")


class Noted:
    def __init__(self, name: str, seen: list[str]) -> None:
        self.name, self.seen = name, seen

    def await_ready(self) -> None:
        self.seen.append(f"ready {self.name}")

    def end(self) -> None:
        self.seen.append(f"end {self.name}")


def sessions_on(ground: Ground) -> Sessions:
    return Sessions(cast("BenchEnvironment", ground))


def ways(*names: str) -> dict[str, tuple[str, Topic]]:
    """Return contenders, each with its process: `b` and `b2` share one."""
    topic = Topic(name="t", shape="light_avro", rows=1, partitions=1, schema_id=1)
    return {name: (name[0], topic) for name in names}


def test_contenders_stay_until_a_race_has_a_new_one() -> None:
    ground = Ground()
    with sessions_on(ground) as sessions:
        assert sessions.of(ways("a", "b", "b2")).keys() == {"a", "b"}
        assert ground.seen == ["start a", "start b", "ready a", "ready b"]
        for names in (("a",), ("b2", "a")):
            assert sessions.of(ways(*names)).keys() == {"a", "b"}
        assert len(ground.seen) == 4
        sessions.of(ways("a", "c"))  # `a` starts again: it has landed what `c` has not
        assert ground.seen[4:] == ["end a", "end b", "wait b", "wait a", "start a", "start c", "ready a", "ready c"]
    assert ground.seen[12:] == ["end a", "end c", "wait c", "wait a"]


def test_a_process_starts_again_for_another_way_of_it() -> None:
    ground = Ground()
    with sessions_on(ground) as sessions:
        sessions.of(ways("b"))
        sessions.of(ways("b", "b2"))
        assert ground.seen == ["start b", "ready b", "end b", "wait b", "start b", "ready b"]


def test_behind_an_error_no_contender_is_waited_for() -> None:
    ground = Ground()

    def race() -> None:
        with sessions_on(ground) as sessions:
            sessions.of(ways("a", "b"))
            raise KeyError

    with pytest.raises(KeyError):
        race()
    assert ground.seen[4:] == ["kill b", "kill a"]
