"""Writers whose schemas are in the records themselves. They are known as records are seen; no registry is asked for them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from frazil.decode.connect_json.connect_decoder import EmbeddedConnectJson, has_null_payload
from frazil.decode.writers.record_type import UNREADABLE, embedded_type, why
from frazil.decode.writers.seen_frames import MOST, SeenFrames
from frazil.decode.writers.writer_schemas import FramedWriters
from frazil.envelopes.envelope import NO_ENVELOPE, Envelope
from frazil.errors import IncompatibleSchema, InvalidInput
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Struct


class EmbeddedWriters(FramedWriters):
    """The writers of a topic's values, or keys, in the order in which they were seen. A frame is the text of a schema."""

    is_in_records = True

    def __init__(self, envelope: Envelope = NO_ENVELOPE, *, is_key: bool = False) -> None:
        super().__init__(None, envelope, is_key=is_key)

    def number_inside(self, value: bytes) -> int | None:
        """Return the writer whose schema a record holds; None if it is not known."""
        try:
            inside = json.loads(value)["schema"]
            return next((n for text, n in self._frames.items() if json.loads(text) == inside), None)
        except (ValueError, KeyError, TypeError, RecursionError):
            return None

    def learn(self, seen: SeenFrames) -> bool:
        """Read the schemas that records have and that `decoder` omitted; return whether `decoder` differs then.

        Raises `InvalidInput` if there are more than a topic can have, or if the envelope unwraps none of them.
        """
        for text in seen.unknown:
            self._read(text)
        self._occur((*seen.unknown, *seen.waiting))
        self._check_envelope()
        return bool(seen)

    def _read(self, text: bytes) -> None:
        if text in self._frames or text in self._rejected:
            return
        if len(self._frames) + len(self._rejected) == MOST:
            raise InvalidInput(
                f"the records have more than {MOST} schemas, so each may have another one",
                where="the member schema of records of format connect_json",
                do="Declare the columns of the format: then the schema in the record is not read",
            )
        try:
            made = self._unwrapped(embedded_type(text.decode()))
        except UNREADABLE as problem:
            self._rejected[text], self.problems[len(self.problems)] = Reason.UNREADABLE_SCHEMA, why(problem)
            return
        self._frames[text] = len(self.types)
        self.types[len(self.types)] = made

    def decoder(
        self, target: Struct, unfit: Mapping[int, IncompatibleSchema], *, is_closed: bool = False
    ) -> EmbeddedConnectJson:
        """Return the decoder of records by the schemas that were seen."""
        parts = self._parts(target, unfit.keys(), is_closed=is_closed)
        return EmbeddedConnectJson(**parts, is_null=has_null_payload)
