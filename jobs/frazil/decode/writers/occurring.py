"""The choice of the writers of a topic that have a decoder in the plan. Each decoder has a cost, even without a record of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from frazil.decode.decoding import schema_id_of

NEWEST = 2
"""How many of the newest writers are decoded before a record of theirs is met: those that producers use while they are changed."""
FEW = 8
"""So many decoders beside these cost next to nothing."""


class Occurring:
    """The numbers of the writers whose records were met."""

    def __init__(self) -> None:
        self._met: set[int] = set()

    def meet(self, numbers: Iterable[int]) -> None:
        """Note that there are records of these."""
        self._met |= set(numbers)

    def recall(self, schema_ids: Collection[int], among: Iterable[int]) -> None:
        """Take the writers of these schemas, if they are few, for met: an earlier run decoded them."""
        if len(schema_ids) <= FEW:
            self.meet(number for number in among if schema_id_of(number) in schema_ids)

    def forget(self) -> bool:
        """Forget which were met, if they are more than a few; return whether they were."""
        is_less = len(self._met) > FEW
        if is_less:
            self._met.clear()
        return is_less

    def of(self, numbers: Sequence[int]) -> set[int]:
        """Return those of these writers, oldest first, that are decoded."""
        return {*numbers[-NEWEST:], *self._met} & set(numbers)
