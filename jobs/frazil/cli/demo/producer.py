"""A producer: rows to records in the registry's wire format, as fast as one process can."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from random import Random

from frazil.cli.demo.topics import FRAME, KINDS, Row, Source, Version
from frazil.clients.registry.admin import RegistryAdmin
from frazil.local.produce.produce import TopicWriter


@dataclass(slots=True)
class Filling:
    """One topic while it is filled, a version at a time: what was sent so far, good and spoilt."""

    source: Source
    bootstrap: str
    registry_url: str
    share: float
    """Share of the rows that get a spoilt twin, of each kind in turn."""
    seed: int
    sent: int = 0
    spoilt: dict[str, int] = field(default_factory=dict)
    """The spoilt twins by reason."""
    _rows: Iterator[Row] | None = None
    _done: int = 0
    _random: Random = field(init=False)
    _places: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)
        self._places = set(self._random.sample(range(self.source.count), round(self.source.count * self.share)))

    def create(self, *, partitions: int) -> None:
        """Create the topic."""
        TopicWriter(self.bootstrap, self.source.topic).create(partitions)

    @property
    def is_unfinished(self) -> bool:
        """True if another version of the schema is to come."""
        return self._done < len(self.source.versions)

    def next_version(self) -> Version:
        """Register the next version and send its share of the rows."""
        version, rows = self.source.versions[self._done], self._share()
        schema_id = RegistryAdmin(self.registry_url).register(
            f"{self.source.topic}-value", version.text, self.source.type
        )
        frame = b"\0" + schema_id.to_bytes(4, "big") + self.source.index
        TopicWriter(self.bootstrap, self.source.topic).send(self._records(rows, frame, version))
        self._done += 1
        return version

    def _share(self) -> Iterator[Row]:
        if self._rows is None:
            self._rows = self.source.rows()
        if self._done == len(self.source.versions) - 1:
            return self._rows
        return islice(self._rows, self.source.count // len(self.source.versions))

    def _records(self, rows: Iterator[Row], frame: bytes, version: Version) -> Iterator[tuple[bytes, bytes]]:
        encode, key_of, place = version.encode, self.source.key, self.sent - sum(self.spoilt.values())
        for row in rows:
            key, value = key_of(row).encode(), frame + encode(row)
            yield key, value
            self.sent += 1
            if place in self._places:
                kind = list(KINDS)[sum(self.spoilt.values()) % len(KINDS)]
                self.spoilt[kind.value] = self.spoilt.get(kind.value, 0) + 1
                yield key, KINDS[kind](value, FRAME + len(self.source.index), self._random)
                self.sent += 1
            place += 1
