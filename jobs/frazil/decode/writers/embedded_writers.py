"""Writers whose schemas are in the records themselves. They are known as records are met; no registry is asked for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from frazil.declaration.options import ValueFormat
from frazil.decode.decoding import Decoding
from frazil.decode.json.nulls import null_of
from frazil.decode.keys.closed_keys import decoder_of
from frazil.decode.writers.occurring import Occurring
from frazil.decode.writers.record_type import UNREADABLE, RecordType, why
from frazil.decode.writers.seen_frames import MOST, Met
from frazil.errors import IncompatibleSchema, InvalidInput
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Struct


class EmbeddedWriters:
    """The writers of a topic's values, or keys, in the order in which they were met. The number of each is its place.

    `made` returns the record type of a schema's text. A frame is that text.
    """

    def __init__(self, made: Callable[[str], RecordType]) -> None:
        self._made = made
        self._types: list[RecordType] = []
        self._frames: dict[bytes, int] = {}
        self._refused: dict[bytes, Reason] = {}
        self._occurring = Occurring()
        self.problems: dict[int, str] = {}

    @property
    def versions(self) -> tuple[tuple[int, Struct], ...]:
        """The row type of each, by its number."""
        return tuple(enumerate(each.row for each in self._types))

    def is_single_value(self, number: int) -> bool:
        """Return whether this writer's records are no objects of fields but one value each."""
        return self._types[number].is_single_value

    def number_of(self, value: bytes) -> int | None:
        """Return the writer whose schema a record holds; None if it is not known."""
        try:
            inside = json.loads(value)["schema"]
            return next((n for text, n in self._frames.items() if json.loads(text) == inside), None)
        except (ValueError, KeyError, TypeError, RecursionError):
            return None

    def learn(self, met: Met) -> bool:
        """Read the schemas that records have and that `decoding` left out; return whether `decoding` differs then.

        Raises `InvalidInput` if there are more than a topic can have, or if the envelope unwraps none of them.
        """
        for text in met.unknown:
            self._read(text)
        self._occurring.meet(self._frames[text] for text in (*met.unknown, *met.waiting) if text in self._frames)
        return bool(met)

    def forget(self) -> bool:
        """Forget which writers were met, if they are more than a few; whether `decoding` has fewer then."""
        return self._occurring.forget()

    def _read(self, text: bytes) -> None:
        if text in self._frames or text in self._refused:
            return
        if len(self._frames) + len(self._refused) == MOST:
            raise InvalidInput(
                f"the records have more than {MOST} schemas, so each may have another one",
                where="the member schema of records of format connect_json",
                do="Declare columns or key_columns: then the schema in the record is not read",
            )
        try:
            made = self._made(text.decode())
        except UNREADABLE as problem:
            self._refused[text], self.problems[len(self.problems)] = Reason.UNREADABLE_SCHEMA, why(problem)
            return
        self._frames[text] = len(self._types)
        self._types.append(made)

    def decoding(
        self, base: Decoding, target: Struct, unfit: Mapping[int, IncompatibleSchema], *, is_closed: bool
    ) -> Decoding:
        """Return `base` with how these writers' records are decoded into `target`; those in `unfit` are refused."""
        fitting = {number: each for number, each in enumerate(self._types) if number not in unfit}
        decoded = self._occurring.of(list(fitting))
        misfits = {text: Reason.INCOMPATIBLE_SCHEMA for text, number in self._frames.items() if number in unfit}
        of = ValueFormat.CONNECT_JSON
        return replace(
            base,
            frames={text: number for text, number in self._frames.items() if number in decoded},
            waiting={text for text, number in self._frames.items() if number in fitting.keys() - decoded},
            refused={**self._refused, **misfits},
            bodies={n: decoder_of(fitting[n], target, of, is_closed=is_closed) for n in sorted(decoded)},
            is_null=null_of(of),
            has_schemas_inside=True,
        )
