"""The contenders that run, from race to race."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from bench.environment import BenchEnvironment, Contender
from bench.topics import Topic


class Sessions:
    """Contenders, which stay for the next race if all of it were in the race that started them: then they have landed the same.

    Those that share a process count one by one: for a new one, the process starts again.
    """

    def __init__(self, ground: BenchEnvironment) -> None:
        self._ground = ground
        self._ways: set[str] = set()
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

    def of(self, ways: Mapping[str, tuple[str, Topic]]) -> Mapping[str, Contender]:
        """Return the processes of a race by their names. `ways` has the process and the first topic of each contender.

        If one of them was not in the race that started the others, all start, at once.
        """
        if not ways.keys() <= self._ways:
            self.end()
            self._ways = set(ways)
            for name, topic in dict(ways.values()).items():
                job = self._ground.job(name, f"{topic.shape}_{name}", topic)
                self._up[name] = self._left.enter_context(self._ground.served(job))
            for contender in self._up.values():
                contender.await_ready()  # none warms up beside a start
        return self._up

    def end(self) -> None:
        """Let all of them end."""
        for contender in self._up.values():
            contender.end()
        self._ways, self._up = set(), {}
        self._left.close()
