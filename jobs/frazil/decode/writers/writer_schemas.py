"""The writer schemas of a topic's values, or keys: which there are, what rows they make, how their records are decoded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, MutableMapping
from typing import Any

from frazil.clients.registry.client import Registry
from frazil.decode.changes_in_rows import unwrapped
from frazil.decode.decoder import Decoder, Side
from frazil.decode.writers.record_type import RecordType
from frazil.decode.writers.seen_frames import SeenFrames
from frazil.envelopes.envelope import NO_ENVELOPE, Envelope
from frazil.errors import IncompatibleSchema, InvalidInput, UnreadableSchema
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Struct

NEWEST = 2
"""So many of the newest writers are decoded before a record of theirs is seen: those that producers use while they are changed."""
FEW = 8
"""So many decoders next to these cost next to nothing."""


class TooMany(Exception):
    """A batch has more frames than are asked for, and only the registry could classify them."""


class WriterSchemas(ABC):
    """All writer schemas of a topic's values that are known so far, oldest first; or of its keys.

    A writer is a record type of a schema, and has a number. In a registry it is the schema's id, and of a Protobuf file the
    message type's place in it: see `decoded_columns.schema_id_of`. Elsewhere it is the writer's place.

    The rows are those that records hold in their `envelope`. It is the keys' envelope, too, for their types alone.
    """

    is_in_records = False
    """True if the records hold their schemas, so that none is known before a record was read."""
    is_protobuf = False
    """True if frames hold the path of a message type."""
    has_columns = True
    """True if columns are described, so that a row is more than the bytes."""

    def __init__(self, registry: Registry | None, envelope: Envelope, *, is_key: bool) -> None:
        self.registry, self.envelope, self.is_key = registry, envelope, is_key
        self.of_topic = registry
        """The registry that describes the topic's keys, or values, also if it describes no writer here."""
        self.types: dict[int, RecordType] = {}  # of each writer, by its number, oldest first
        self.problems: dict[int, str] = {}  # why schemas cannot be read, by their ids, or numbers if they have no ids
        self._of_rows = NO_ENVELOPE if is_key else envelope
        self._refused: InvalidInput | None = None

    @property
    def problem(self) -> str:
        """Why a schema cannot be read; empty if all can."""
        return next(iter(self.problems.values()), "")

    @property
    def may_begin_without(self) -> bool:
        """Return whether no version is known before a record has it, so that a run begins without any."""
        return False

    @abstractmethod
    def decoder(self, target: Struct, unfit: Mapping[int, IncompatibleSchema], *, is_closed: bool = False) -> Decoder:
        """Return the decoder of records into `target`; writers in `unfit`, by number, do not fit it and are refused.

        `is_closed` is that of `MakeBody`. Raises the problem of declared columns, or schemas, none of which fit.
        """

    @property
    def versions(self) -> tuple[tuple[int, Struct], ...]:
        """The row type of each writer, by its number."""
        return tuple((number, writer.row) for number, writer in self.types.items())

    @property
    def omissions(self) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """The properties that land in no column, by the number of the writer; without those of schemas in records."""
        return tuple((number, writer.omits) for number, writer in self.types.items() if writer.omits)

    def required(self, target: Struct) -> tuple[str, ...]:
        """Return the columns of the target that each value must have."""
        return ()

    def subjects(self, registry: Registry) -> Collection[str]:
        """Return the topic's subjects in the registry."""
        return ()

    def number_inside(self, value: bytes) -> int | None:
        """Return the writer whose schema a record holds; None if it holds none that is known."""
        return None

    def refresh(self) -> bool:
        """Ask the registry for the versions of the topic's subjects; returns whether there are new writers.

        Raises `InvalidInput` if there are versions and the envelope can unwrap none of them.
        """
        return False

    def learn(self, seen: SeenFrames) -> bool:
        """Find out about frames that records have and that `decoder` omitted; return whether `decoder` differs then.

        Raises `TooMany` where only the registry would decide on more frames than it is asked for, `InvalidInput` as `refresh`
        does, and `RegistryUnavailable`, which is no verdict.
        """
        return False

    def recall(self, schema_ids: Collection[int]) -> None:  # noqa: B027 # most remember nothing
        """Take the writers of these schemas, if they are few, for seen: an earlier run decoded them."""

    def forget(self) -> bool:
        """Forget which writers were seen, if they are more than a few; whether `decoder` has fewer then."""
        return False

    def side(self, target: Struct) -> Side:
        """Return what is decoded into rows of this type."""
        return Side(target=target, is_key=self.is_key, has_changes=self._of_rows.has_changes)

    def _unwrapped(self, made: RecordType) -> RecordType:
        """Return the type of the rows in a schema's records. Raises `UnreadableSchema` if they are none of the envelope's."""
        try:
            return unwrapped(made, self._of_rows)
        except InvalidInput as refused:
            self._refused = refused
            raise UnreadableSchema(str(refused)) from refused

    def _check_envelope(self) -> None:
        """Raise `InvalidInput` if the envelope unwraps none of the known schemas."""
        if self._refused is not None and not self.types:
            raise self._refused


class FramedWriters(WriterSchemas):
    """Writers that frames name: `_frames` says which, `_rejected` why records of others do not land."""

    def __init__(self, registry: Registry | None, envelope: Envelope, *, is_key: bool) -> None:
        super().__init__(registry, envelope, is_key=is_key)
        self._seen: set[int] = set()  # writers whose records were seen: each decoder has a cost, even without a record
        self._frames: MutableMapping[bytes, int] = {}
        self._rejected: MutableMapping[bytes, Reason] = {}

    def forget(self) -> bool:
        """Forget which writers were seen, if they are more than a few; whether `decoder` has fewer then."""
        is_less = len(self._seen) > FEW
        if is_less:
            self._seen.clear()
        return is_less

    def _occur(self, frames: Iterable[bytes]) -> bool:
        """Note that there are records with these frames; return whether one of them names a writer."""
        found = {self._frames[frame] for frame in frames if frame in self._frames}
        self._seen |= found
        return bool(found)

    def _parts(self, target: Struct, unfit: Collection[int], *, is_closed: bool) -> dict[str, Any]:
        """Return the fields of `Framed`: of the writers whose records may have rows, those that are decoded and those that wait.

        Of changes in a schema that does not fit, only truncates have, and these are decoded once a record of it was seen.
        """
        makes = {n: make for n, each in self.types.items() if (make := each.rows(fits=n not in unfit)) is not None}
        newest = [number for number in self.types if number not in unfit][-NEWEST:]
        decoded, frames = {*newest, *self._seen.intersection(makes)}, self._frames.items()
        misfits = {frame: Reason.INCOMPATIBLE_SCHEMA for frame, number in frames if number in unfit}
        return {
            "side": self.side(target),
            "frames": {frame: number for frame, number in frames if number in decoded},
            "waiting": {frame for frame, number in frames if number in makes and number not in decoded},
            "refused": {**self._rejected, **misfits},
            "bodies": {n: make(target, is_closed=is_closed) for n, make in makes.items() if n in decoded},
        }
