"""The topics of the race of state tables: a load, then one batch of changes, with the keys that `fill.key` gives to records."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bench.fill import fill, last_records
from bench.topics import Topic

SHAPE = "keyed_avro"
KEY = "_kafka_key"
"""The column of a record's key, as Frazil names it."""
IS_DELETE = "_is_delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The records of a topic of so many keys: the load, then inserts of the other keys, then updates and deletes.

    A hundredth of the changes has a key that the batch inserted.
    """

    load: int
    updates: int
    inserts: int
    deletes: int
    live: int
    """Rows that they leave."""
    ids: int
    """The sum of the ids of these rows. A row has the id of its record, so that a stale version is found."""

    @property
    def batch(self) -> int:
        """Return the records of the batch."""
        return self.updates + self.inserts + self.deletes


def loaded(topic: Topic) -> int:
    """Return the records of the load: all keys but a hundredth, the same number in each partition."""
    return topic.keys - topic.keys // 100 // topic.partitions * topic.partitions


def produced(topic: Topic) -> int:
    """Return the records of load and batch together."""
    return loaded(topic) + topic.keys // 10 // topic.partitions * topic.partitions


def changes(topic: Topic) -> Changes:
    """Return what a topic's records do, and what they leave."""
    load, rows = loaded(topic), produced(topic)
    last = last_records(topic, rows)
    inserts, deletes = topic.keys - load, topic.keys - len(last)
    return Changes(
        load=load,
        updates=rows - load - inserts - deletes,
        inserts=inserts,
        deletes=deletes,
        live=len(last),
        ids=sum(last.values()),
    )


def fill_load(bootstrap: str, topic: Topic, *, seed: int) -> float:
    """Produce the load. Return the seconds."""
    return fill(bootstrap, [replace(topic, rows=loaded(topic))], seed=seed)


def fill_batch(bootstrap: str, topic: Topic, *, seed: int) -> float:
    """Produce the batch behind the load. Return the seconds."""
    load = loaded(topic)
    return fill(bootstrap, [replace(topic, rows=produced(topic) - load)], seed=seed, first=load)


def staging_of(table: str) -> str:
    """Return the name of the table that a `MERGE` takes its batch from."""
    return f"{table}__staging"
