"""A relay in front of a REST catalog that loses a commit, or the answer to one: the client gets `502 Bad Gateway`."""

from __future__ import annotations

import re
from collections.abc import Callable
from email.message import Message
from enum import StrEnum

from tests.support.relay import Answer, Relay

COMMIT = re.compile(r"/tables/[^/?]+$")


class Lost(StrEnum):
    """What is lost: the request, so that nothing is committed, or the answer."""

    COMMIT = "commit"
    ANSWER = "answer"


class LosingRelay(Relay):
    """The relay. `loses` is what it loses next; `lost` is what it has lost."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.loses: Lost | None = None
        self.lost: list[Lost] = []

    def relayed(self, method: str, target: str, headers: Message, ask: Callable[[], Answer]) -> Answer:
        """Lose a commit, once."""
        if self.loses is None or method != "POST" or not COMMIT.search(target):
            return ask()
        loses, self.loses = self.loses, None
        self.lost.append(loses)
        if loses is Lost.ANSWER:
            answer = ask()
            assert answer.status == 200, answer.body
        return Answer(502)
