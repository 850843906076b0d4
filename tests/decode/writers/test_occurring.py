"""Few of many writers are decoded: the newest, and those that were seen."""

from __future__ import annotations

from collections.abc import Iterable

from frazil.declaration import Topic
from frazil.decode.decoder import Body
from frazil.decode.writers.record_type import RecordType
from frazil.decode.writers.registered_writers import AvroWriters
from frazil.decode.writers.seen_frames import SeenFrames
from frazil.decode.writers.writer_schemas import FEW, NEWEST
from frazil.envelopes.envelope import NO_ENVELOPE
from frazil.schemas.types import Struct

MANY = list(range(1, 31))
ROW = Struct(())


def writers_of(*numbers: int) -> AvroWriters:
    made = AvroWriters(Topic("orders", value="avro"), None, NO_ENVELOPE, is_key=False)
    for number in numbers:
        made.types[number] = RecordType(name="", row=ROW, body=lambda target, *, is_closed=False: Body(()))
        made._frames[str(number).encode()] = number
    return made


def see(writers: AvroWriters, numbers: Iterable[int]) -> bool:
    return writers.learn(SeenFrames(waiting=tuple(str(number).encode() for number in numbers)))


def decoded(writers: AvroWriters) -> set[int]:
    return set(writers.decoder(ROW, {}).bodies)


def test_the_newest_and_those_that_were_seen_are_decoded() -> None:
    writers = writers_of(*MANY)
    assert decoded(writers) == {29, 30}
    assert see(writers, [3, 99])
    assert not see(writers, [99])
    assert decoded(writers) == {3, 29, 30}
    assert decoded(writers_of()) == set()
    assert NEWEST == 2


def test_a_few_are_not_forgotten_and_many_are() -> None:
    writers = writers_of(*MANY)
    see(writers, MANY[:FEW])
    assert not writers.forget()
    see(writers, [20])
    assert writers.forget()
    assert decoded(writers) == {29, 30}


def test_what_an_earlier_run_decoded_is_decoded_from_the_start_if_it_is_little() -> None:
    writers = writers_of(7 << 32 | 4, *MANY)  # the first is a type of the schema 4
    writers.recall(MANY)
    assert decoded(writers) == {29, 30}
    writers.recall([4, 999])
    assert decoded(writers) == {4, 7 << 32 | 4, 29, 30}
