"""The contenders that run, from race to race."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from tests.bench.environment import BenchEnvironment, Contender
from tests.bench.topics import Topic


class Sessions:
    """Contenders that stay for the next race if it needs no other one, so that all of a race have landed the same before."""

    def __init__(self, ground: BenchEnvironment) -> None:
        self._ground = ground
        self._up: dict[str, Contender] = {}
        self._left = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.end()
        self._left.__exit__(kind, error, trace)  # behind an error they are killed

    def of(self, topics: Mapping[str, Topic]) -> Mapping[str, Contender]:
        """Return contenders by name, with their first topics. If one of them has to start, all start, at once."""
        if not topics.keys() <= self._up.keys():
            self.end()
            for name, topic in topics.items():
                job = self._ground.job(name, f"{topic.shape}_{name}", topic)
                self._up[name] = self._left.enter_context(self._ground.served(job))
            for contender in self._up.values():
                contender.await_ready()  # none warms up beside a start
        return {name: self._up[name] for name in topics}

    def end(self) -> None:
        """Let all of them end."""
        for contender in self._up.values():
            contender.end()
        self._up = {}
        self._left.close()
