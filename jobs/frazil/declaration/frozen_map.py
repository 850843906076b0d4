"""A mapping that cannot change, so that what holds it can be frozen, hashed, pickled and compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

K = TypeVar("K", str, int)
V = TypeVar("V")


class FrozenMap(Mapping[K, V]):
    """A hashable mapping in the order of its keys, equal to any mapping of the same items."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        self._items: dict[K, V] = dict(sorted(dict(items).items(), key=lambda item: item[0]))

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(tuple(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)
