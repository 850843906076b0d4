"""The route of a topic with records of several types: which of them are one table's."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import field
from enum import StrEnum
from typing import Annotated, ClassVar

from frazil.declaration.checks.constraints import matching
from frazil.declaration.checks.declared import Chosen, declared, default
from frazil.declaration.checks.problems import Problem

_PATH = matching(r"[^.`]+(\.[^.`]+)*", "the path of a field", "Write it like type or event.type")
_NAME = matching(r"(?s).{1,256}", "the name of a header", "Write 1 to 256 characters")
_OF_TOPIC = ("key", "value")
"""The last parts of the subjects of a topic's keys and values. A type has another name."""
_TYPE = matching(r"(?s).{1,512}", "a type", "Write 1 to 512 characters")


@declared
class RecordName:
    """The full name of a record's type in its schema: that of an Avro record or a Protobuf message, the title of a JSON Schema."""

    kind: ClassVar[str] = "record_name"


@declared
class Field:
    """A field of the value, as text."""

    kind: ClassVar[str] = "field"
    path: Annotated[str, "The field's path, such as type or event.type.", _PATH] = field(kw_only=False)


@declared
class Header:
    """The last header of this name, as UTF-8."""

    kind: ClassVar[str] = "header"
    name: Annotated[str, "The header's name.", _NAME] = field(kw_only=False)


By = RecordName | Field | Header
"""The union of what says of which type a record is."""


class Rest(StrEnum):
    """The treatment of records of no named type, and of those without one.

    `filter`: they are another table's, or no table's; they are counted. `land`: they land here. `dead_letter`: they are rejected
    here (`unrouted`).
    """

    FILTER = "filter"
    LAND = "land"
    DEAD_LETTER = "dead_letter"


@declared
class Route:
    """The part of a topic's records that is one table's. `routes(…)` makes it for each table of the topic.

    All other records are filtered: counted by the reason `route`, and in no dead letter of this table.
    """

    by: Annotated[By, "What says of which type a record is."]
    types: Annotated[tuple[Annotated[str, _TYPE], ...], "The types of the table's records."] = ()
    others: Annotated[tuple[Annotated[str, _TYPE], ...], "The types of the topic's other tables."] = ()
    new_types: Annotated[
        tuple[Annotated[str, _TYPE], ...] | None,
        "Further types that have tables of their own, those to come included; `*` is any text without `-`.",
    ] = None
    rest: Annotated[Chosen[Rest], "What happens here to records of other types than these."] = default(Rest.FILTER)
    undecodable: Annotated[
        bool, "A record whose type cannot be read is a dead letter here. With false it is another table's."
    ] = False
    tombstones: Annotated[bool, "Records without a value are the table's."] = False
    hides_bytes: Annotated[
        bool, "Another table of the topic has masks: dead letters have no bytes here, and no read is shared."
    ] = False

    def _contradictions(self) -> Iterator[Problem]:
        if len({*self.types}) < len(self.types):
            yield Problem("types", "a type is named twice", "Name it once")
        if both := sorted({*self.types} & {*self.others}):
            yield Problem("others", f"{both[0]} is one of types, too", "Remove one of them")
        if not self.types and self.rest is not Rest.LAND:
            yield Problem("types", "no record lands", "Name a type")
        if self.new_types and not isinstance(self.by, RecordName):
            what = f"by {self.by.kind} the types are unknown before a record has them"
            yield Problem("new_types", what, "Name each type, or route by RecordName()")

    @property
    def of_topic(self) -> Hashable:
        """The division of the topic's records. All tables of one route have the same."""
        named = frozenset(name for name in (*self.types, *self.others) if not self._is_new(name))
        return self.by, named, self.new_types

    def is_new(self, name: str) -> bool:
        """Return whether a type has a table of its own by `new_types`."""
        return name not in self.others and self._is_new(name)

    def _is_new(self, name: str) -> bool:
        """Return whether a type is one of `new_types`: a subject with a further `-` may be that of another topic's type."""
        some = self.new_types if self.new_types is not None and name not in _OF_TOPIC else ()
        return any(re.fullmatch(re.escape(one).replace(r"\*", "[^-]*"), name) for one in some)

    def is_others(self, name: str) -> bool:
        """Return whether a type is that of another table."""
        return name not in self.types and (name in self.others or self._is_new(name))

    def is_elsewhere(self, name: str | None) -> bool:
        """Return whether records of this type are not the table's; None is a type that cannot be read."""
        if name is None:
            return not self.undecodable
        return name not in self.types and (self.rest is Rest.FILTER or self.is_others(name))
