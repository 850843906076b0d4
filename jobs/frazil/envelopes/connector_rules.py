"""The settings of a Debezium connector that Frazil needs, refuses or advises against: a rule each, as docs/change-data.md has it.

Defaults are those of Debezium 3.6 and Kafka Connect 4.3, as their classes have them. What a rule yields is a problem if events
would be refused, lost or land as something else for certain, and a note if that depends on the source or on the worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from frazil.declaration.envelopes import Debezium
from frazil.declaration.options import Truncation
from frazil.declaration.pipeline import Pipeline
from frazil.declaration.write_modes import Upsert
from frazil.envelopes.connector import Connector
from frazil.envelopes.name_patterns import matches


@dataclass(frozen=True, slots=True)
class Fed:
    """A pipeline with the connector that feeds its topic, and the table, as its name follows the prefix."""

    connector: Connector
    pipeline: Pipeline
    table: str

    @property
    def envelope(self) -> Debezium:
        """The pipeline's envelope."""
        assert isinstance(self.pipeline.envelope, Debezium)
        return self.pipeline.envelope

    def is_one_of(self, patterns: Iterable[str]) -> bool:
        """Return whether one of these patterns is one of the table, with or without its database."""
        names = filter(None, (self.table, self.table.partition(".")[2]))
        return any(matches(patterns, name) for name in names)

    @property
    def replica_identity(self) -> str:
        """The replica identity that the connector sets, in capitals; empty if it sets none."""
        for entry in self.connector.names("replica.identity.autoset.values"):
            pattern, _, identity = entry.rpartition(":")
            if self.is_one_of([pattern]):
                return identity.strip().upper()
        return ""

    @property
    def empties(self) -> bool:
        """Whether a truncate is to delete all rows."""
        write = self.pipeline.write
        return isinstance(write, Upsert) and write.on_truncate is Truncation.DELETE_ALL


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What is wrong with a setting, and what to do; a note if nothing is wrong for certain."""

    setting: str
    what: str
    do: str
    is_note: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A setting as the page has it: its default, what Frazil takes, and why; and how it is checked."""

    setting: str
    default: str
    takes: str
    why: str
    check: Callable[[Fed], Iterator[Found]]


def one_of(
    setting: str, default: str, taken: tuple[str, ...], what: str, *, is_note: bool = False
) -> Callable[[Fed], Iterator[Found]]:
    """Return the check of a setting that has to be one of these values."""

    def check(fed: Fed) -> Iterator[Found]:
        if fed.connector.value(setting, default).lower() not in taken:
            do = f"Set {setting} to {' or '.join(taken)}"
            yield Found(
                setting=setting, what=f"{fed.connector.stated(setting, default)}: {what}", do=do, is_note=is_note
            )

    return check
