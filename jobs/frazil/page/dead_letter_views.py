"""The dead letters of a pipeline as its page shows them: no more than `frazil dead-letters` does, and no bytes next to masks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from frazil.dead_letters.listing import DeadLetter, listing
from frazil.dead_letters.show import DeadLetterView, Part, show
from frazil.declaration import Pipeline
from frazil.errors import FrazilError
from frazil.lake.read.scan import Where
from frazil.lake.read.stored_tables import Lake

if TYPE_CHECKING:
    from frazil.clients.registry.client import Registry

LISTED, EXAMPLES = 20, 6
"""Dead letters that are listed, and reasons of which the newest one is decoded."""
HEADER_BYTES, KEY_CHARACTERS = 256, 40


@dataclass(frozen=True, slots=True, kw_only=True)
class PartView:
    """A record's key or value: its schema, what decoding it once more comes to, and its bytes as lines."""

    name: str
    size: int | None
    schema: str
    attempt: str
    decoded: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One dead letter. If the pipeline `is_masked`, there are neither headers nor parts."""

    topic: str
    place: str
    reason: str
    message: str
    rejected_at: datetime | None
    recorded: str
    run: str
    earlier: int = 0
    is_masked: bool = False
    masked: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    parts: tuple[PartView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The dead letters of a pipeline: counts by reason, the newest ones, and one of each reason; or a `problem`."""

    counts: Mapping[str, int] = field(default_factory=dict)
    newest: tuple[DeadLetter, ...] = ()
    examples: Mapping[str, Letter] = field(default_factory=dict)
    problem: str = ""

    @property
    def total(self) -> int:
        """All dead letters."""
        return sum(self.counts.values())


def rejected(pipeline: Pipeline, lake: Lake, registry: Registry | None) -> Rejected:
    """Return the dead letters of a pipeline. What cannot be read is a problem."""
    try:
        found = listing(pipeline, lake, limit=LISTED)
        examples = {}
        for reason in list(found.counts)[:EXAMPLES]:
            of_reason = (one for one in found.letters if one.reason == reason)
            conditions = [Where(column="reason", equal=reason)]
            newest = next(of_reason, None) or next(iter(listing(pipeline, lake, conditions, limit=1).letters), None)
            if newest is not None and (one := letter(pipeline, lake, registry, newest.partition, newest.offset)):
                examples[reason] = one
    except FrazilError as error:
        return Rejected(problem=str(error))
    listed = [replace(one, key=None) if pipeline.shape.is_masked else one for one in found.letters]
    return Rejected(counts=found.counts, newest=tuple(listed), examples=examples)


def letter(pipeline: Pipeline, lake: Lake, registry: Registry | None, partition: int, offset: int) -> Letter | None:
    """Return one dead letter; None if it does not exist. Raises what reading it raises."""
    found = show(pipeline, lake, partition=partition, offset=offset, schemas=registry)
    return None if found is None else letter_view(found, is_masked=pipeline.shape.is_masked)


def letter_view(found: DeadLetterView, *, is_masked: bool) -> Letter:
    """Return a dead letter for the page. Encrypted bytes are not decrypted for a masked pipeline, as a page may be sent."""
    one, is_masked = found.letter, is_masked or found.is_masked
    is_odd = one.timestamp is None and one.timestamp_ms is not None
    return Letter(
        topic=found.topic,
        place=f"{one.partition}:{one.offset}",
        reason=one.reason,
        message=one.message or "",
        rejected_at=one.rejected_at,
        recorded=f"{one.timestamp_ms} ms after 1970" if is_odd else f"{one.timestamp or '–'}",
        run=one.run or "–",
        earlier=found.earlier,
        is_masked=is_masked,
        masked=found.masked or "",
        headers=() if is_masked else tuple((name, _header(value)) for name, value in found.headers),
        parts=() if is_masked else (_part("value", found.value), _part("key", found.key)),
    )


def key_text(key: bytes | None) -> str:
    """Return a key as its text, or as hexadecimal digits if it is not UTF-8. A long key is cut."""
    if key is None:
        return "–"
    text = key.decode("utf-8", "replace")
    shown = text if "\ufffd" not in text and text.isprintable() else f"0x{key.hex()}"
    return shown if len(shown) <= KEY_CHARACTERS else f"{shown[:KEY_CHARACTERS]}…"


def _part(name: str, part: Part) -> PartView:
    writer, tried, schema, sentence = part.writer, part.attempt, "", ""
    if writer is not None:
        subjects = f" of {', '.join(writer.subjects)}" if writer.subjects else ""
        problem = f": {writer.problem}" if writer.problem else ""
        schema = f"schema {'–' if writer.id is None else writer.id}{subjects}{problem}"
    if tried is not None:
        at = f" at byte {part.body_at + tried.at}" if tried.at is not None else ""
        path = f", field {tried.path}" if tried.path else ""
        sentence = f"{tried.what}{at}{path}{f': {tried.value}' if tried.value else ''}"
    return PartView(
        name=name,
        size=None if part.data is None else len(part.data),
        schema=schema,
        attempt=sentence,
        decoded=(tried.decoded or "") if tried is not None else "",
        lines=part.view() if part.data else (),
    )


def _header(value: bytes | None) -> str:
    if value is None:
        return "no value"
    return repr(value) if len(value) <= HEADER_BYTES else f"{value[:HEADER_BYTES]!r}… ({len(value)} bytes)"
