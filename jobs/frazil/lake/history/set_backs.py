"""Where offsets of a history went back, and which of its commits offsets name since then. Pure.

The ledger goes back if an operator accepts that the topic was created again, or that its log was truncated. Then an offset has been
that of two records, and commits before and after it may have the same ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frazil.errors import InvalidInput
from frazil.lake.offsets import Offsets, canonical


@dataclass(frozen=True, slots=True)
class SetBack:
    """The state's commit of a sequence number set the offsets back to `at`: offsets before these name the same records as ever.

    Another topic has none of the former one's records, so `at` is empty: every offset is one of the new topic.
    """

    sequence: int
    at: Mapping[int, int]


def set_backs_after(known: Sequence[SetBack], before: Offsets, now: Offsets, sequence: int) -> tuple[SetBack, ...]:
    """Return the set-backs with a commit's, if its offsets are not all those of `before` or later ones.

    Earlier ones to the same offsets or later ones go: no offsets can lie behind them and before the new one.
    """
    is_same = before.topic_id == now.topic_id
    if is_same and not _is_before(now.at, before.at):
        return tuple(known)
    new = SetBack(sequence, dict(now.at) if is_same else {})
    return (*(one for one in known if _is_before(one.at, new.at)), new)


def present_from(known: Sequence[SetBack], at: Mapping[int, int], held: Mapping[int, int]) -> int:
    """Return the sequence number of the newest set-back that `at` is not before; 0 if there is none.

    Only commits behind it can be later than `at`, as offsets name records of the topic as it is now. `held` are the offsets of the
    newest commit. Raises `InvalidInput` if `at` may mean records of before a set-back.
    """
    beyond = [partition for partition, offset in at.items() if offset > held.get(partition, 0)]
    if known and beyond:
        raise InvalidInput(
            f"the table ends before these offsets in partition {beyond[0]}, and its offsets went back once",
            where="--at",
            do=f"Name offsets up to {_text(held)}. Behind them, records of before may be meant",
        )
    for one in reversed(known):
        if not _is_before(at, one.at):
            return one.sequence
        if _is_before(one.at, at):
            raise InvalidInput(
                f"offsets went back to {_text(one.at)}; these are before it in one partition, and behind it in another",
                where="--at",
                do="Name offsets that are up to it in all partitions, or from it on in all",
            )
    return 0


def _is_before(one: Mapping[int, int], other: Mapping[int, int]) -> bool:
    """Return whether offsets are before others in some partition."""
    return any(one.get(partition, 0) < offset for partition, offset in other.items())


def _text(at: Mapping[int, int]) -> str:
    return canonical({str(partition): offset for partition, offset in at.items()})
