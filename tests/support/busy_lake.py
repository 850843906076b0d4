"""A lake in which others commit while its tables are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from frazil.clients.secrets import Secrets
from frazil.declaration.environment import Environment
from frazil.lake.read.stored_tables import Lake, StoredTable


class BusyLake(Lake):
    """A lake in which one more of `happens` happens after each load of a table."""

    def __init__(self, environment: Environment, happens: Iterable[Callable[[], object]]) -> None:
        super().__init__(environment, Secrets(os.environ).read)
        self._happens = iter(happens)

    def table(self, identifier: str) -> StoredTable | None:
        found = super().table(identifier)
        next(self._happens, lambda: None)()
        return found
