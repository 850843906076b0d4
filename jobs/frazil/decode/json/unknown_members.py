"""The fields of a record that are no column, as JSON text.

`from_json` ignores what its type does not name. So the names at the top of the document are compared, and only a document with
another name is read once more, each of its members as a variant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.decode.json import doubts

_MEMBERS = "map<string, variant>"
_NOT_KEPT = ""


@dataclass(frozen=True, slots=True)
class UnknownFields:
    """The first two steps of a decoder that keeps fields whose names are not known. `options` are those of `from_json`.

    They are projections of their own: Spark interprets what they do, so an expression that is used twice would be done twice.
    """

    known: Sequence[str]
    options: dict[str, str]

    @property
    def steps(self) -> tuple[Callable[..., Column], ...]:
        """The document, and the object of its unknown fields: null if there are none, empty if they cannot be kept unchanged."""
        return (lambda body: F.try_validate_utf8(body.cast("string")), self._others)

    def _others(self, body: Column, document: Column) -> Column:
        names = F.array(*map(F.lit, self.known)).cast("array<string>")
        has_unknown = F.size(F.array_except(F.json_object_keys(document), names)) > 0
        members = F.from_json(doubts.with_long_integers_as_strings(document), _MEMBERS, self.options)
        others = F.to_json(F.map_filter(members, lambda name, _: ~F.array_contains(names, name)))
        return F.when(has_unknown, F.coalesce(F.when(doubts.is_json(document), others), F.lit(_NOT_KEPT)))

    @staticmethod
    def text(made: Column) -> Column:
        """Return the column: text that is written again, without spaces, and numbers as a variant has them."""
        return doubts.digits(made)

    @staticmethod
    def is_kept(made: Column) -> Column:
        """Return whether the record may land; never null."""
        return made.isNull() | (made != _NOT_KEPT)

    def before(self, steps: Sequence[Callable[..., Column]]) -> tuple[Callable[..., Column], ...]:
        """Return these steps, and behind them others, which take no notice of them."""

        def after(step: Callable[..., Column]) -> Callable[..., Column]:
            def of_later(body: Column, *earlier: Column) -> Column:
                return step(body, *earlier[len(self.steps) :])

            return of_later

        return (*self.steps, *map(after, steps))
