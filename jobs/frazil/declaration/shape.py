"""The shape of a table's rows: which records of the topic become rows, of which columns, and with which masks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

from frazil.declaration.checks.column_rules import KEY_COLUMN_PATTERN, is_reserved, key_column_refusal
from frazil.declaration.checks.constraints import Rule, matching, notation, seconds_of, shown
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import Problem, Refusal
from frazil.declaration.checks.select_list import Selected, select_list
from frazil.declaration.checks.sql_expressions import RowExpression, row_expression
from frazil.declaration.route import Rest, Route
from frazil.declaration.secret import Secret

if TYPE_CHECKING:
    from frazil.declaration.pipeline import Pipeline

_SPAN = notation(seconds_of)
_NAME = Rule(key_column_refusal, {"pattern": KEY_COLUMN_PATTERN})


@declared
class EventTime:
    """The time of an event, and how far from its record's time it may be, such as `"30 days"`. Null is not compared."""

    column: Annotated[str, "The column, a date or a timestamp.", _NAME] = field(kw_only=False)
    oldest: Annotated[str | None, "An event that is longer before its record is rejected (`event_time`).", _SPAN] = None
    newest: Annotated[str | None, "An event that is longer after its record is rejected.", _SPAN] = None
    lateness: Annotated[str | None, "Rows of events that are longer before their record are counted.", _SPAN] = None

    def _contradictions(self) -> Iterator[Problem]:
        if self.oldest is self.newest is self.lateness is None:
            yield Problem("", "no bound is declared", "Write oldest, newest or lateness, or remove event_time")


UNITS = ("year", "month", "day", "hour")
KEY, HEADERS = "_kafka_key", "_kafka_headers."
"""The record's key among the paths of masks, and what the names of headers begin with there."""
_TO = matching(
    rf"{'|'.join(UNITS)}|[1-9][0-9]{{0,8}}", "a unit or a number", f"Write {', '.join(UNITS)}, or a number such as '4'"
)


@declared
class Hmac:
    """The HMAC-SHA256 of the value's text, as 64 hex digits: equal values stay equal, in each table with the secret."""

    kind: ClassVar[str] = "hmac"
    secret: Annotated[Secret, "The key of the HMAC, at least 16 characters."] = field(kw_only=False)


@declared
class Redact:
    """The text `***` in place of the value."""

    kind: ClassVar[str] = "redact"


@declared
class Nullify:
    """Null in place of the value."""

    kind: ClassVar[str] = "nullify"


@declared
class Truncate:
    """The beginning of a text, or a time or a number rounded down."""

    kind: ClassVar[str] = "truncate"
    to: Annotated[str, "A unit of a time, the characters of a text, or what a number is a multiple of.", _TO] = field(
        kw_only=False
    )


@declared
class Encrypted:
    """Key, value and headers of rejected records, encrypted with AES-256-GCM."""

    kind: ClassVar[str] = "encrypted"
    secret: Annotated[Secret, "What the key is derived from, at least 16 characters."] = field(kw_only=False)


Mask = Hmac | Redact | Nullify | Truncate
"""The union of the masks."""


def _path_refusal(path: str) -> Refusal | None:
    parts = path.removeprefix(HEADERS).split(".")
    if all(parts) and (path == KEY or path.startswith(HEADERS) or not is_reserved(parts[0])):
        return None
    return Refusal(f"{shown(path)} is not the path of a field", f"Write it like card.number, {KEY} or {HEADERS}name")


PATH = Rule(_path_refusal)


@declared
class Shape:
    """The shape of rows before they land. An expression is SQL over its columns; the page shape-rows says what it may hold.

    A record for which an expression fails is rejected (`transform_failed`), as `on_error` says.
    """

    route: Annotated[Route | None, "Which records of a topic with several tables are this one's."] = None

    where: Annotated[
        str | None,
        "Which records land: those for which this is true. With upserts any other one deletes the row of its key.",
        notation(row_expression),
    ] = None

    select: Annotated[
        str | None,
        "The columns of the table, of those of the topic: with names, expressions and stars. Default: all.",
        notation(select_list),
    ] = None

    mask: Annotated[
        Mapping[Annotated[str, PATH], Mask] | None,
        "Values that no table, dead letter or message has: a mask for each path of a field of the topic, such as card.number.",
    ] = None

    event_time: Annotated[EventTime | None, "Bounds of the time of an event."] = None

    dead_letters: Annotated[
        Encrypted | None, "Keeps the bytes of dead letters next to masks, encrypted. Default: none are kept."
    ] = None

    def _contradictions(self) -> Iterator[Problem]:
        if self.dead_letters is not None and not self.mask:
            what = "no mask is declared, so that dead letters keep the bytes as they are"
            yield Problem("dead_letters", what, "Declare a mask, or remove dead_letters")
        for path, mask in self.masks.items():
            if outer := next((other for other in self.masks if path.startswith(f"{other}.")), None):
                yield Problem("mask", f"{path} is inside {outer}, which is masked, too", "Remove one of them")
            if path == KEY and not isinstance(mask, Hmac):
                yield Problem("mask", f"{mask.kind} of {path} makes several keys one", "Choose Hmac(…)")
            if path.startswith(HEADERS) and isinstance(mask, Truncate):
                yield Problem(
                    "mask", f"{path} is bytes, which are not rounded", "Choose Hmac(…), Redact() or Nullify()"
                )

    @property
    def condition(self) -> RowExpression | None:
        """The expression of `where`."""
        return None if self.where is None else RowExpression(self.where)

    @property
    def masks(self) -> Mapping[str, Mask]:
        """The masks by their paths."""
        return self.mask or {}

    @property
    def is_masked(self) -> bool:
        """True if the topic has values that may be kept nowhere as they are: of this table, or of another one of its route."""
        return bool(self.mask) or (self.route is not None and self.route.hides_bytes)

    @property
    def of_rows(self) -> Shape:
        """The shape without what no row of the table depends on: dead letters, and the names of other tables' types."""
        route = self.route
        if route is not None:
            if route.rest is Rest.FILTER:
                route = replace(route, others=(), new_types=None)
            route = replace(route, undecodable=False, hides_bytes=False)
        return replace(self, dead_letters=None, route=route)

    @property
    def has_columns(self) -> bool:
        """True if the table's columns are not those of the topic."""
        return self.select is not None or bool(self.mask)

    @property
    def selected(self) -> tuple[Selected, ...]:
        """The elements of `select`, and all columns if only masks are declared; empty if neither is."""
        return select_list(self.select or "*") if self.has_columns else ()


def shape_secrets(pipelines: Iterable[Pipeline]) -> list[str]:
    """Return the secrets in AWS Secrets Manager that the shapes of these pipelines need, by name or ARN."""
    of = [one for each in pipelines for one in (*each.shape.masks.values(), each.shape.dead_letters)]
    found = (one.secret.secretsmanager for one in of if isinstance(one, Hmac | Encrypted))
    return list(dict.fromkeys(name for name in found if name is not None))
