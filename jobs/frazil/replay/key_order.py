"""Which dead letters of an upsert table without an order may change its rows: the last records of their keys.

The set of stale keys knows the keys whose last record was rejected, as far as they could be read then. Of another key, the row in
the table says whether a later record landed: offsets order the records of a partition.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError

from frazil.declaration import Pipeline
from frazil.errors import CatalogUnavailable, InvalidInput
from frazil.job.context import JobContext
from frazil.lake.commit.dead_letters.side_table import Look
from frazil.lake.commit.fence import StageAgain
from frazil.lake.iceberg_java import DAMAGED, thrown
from frazil.lake.ledger.entry import Entry
from frazil.replay.open_letters import DeadLetters, Letter
from frazil.replay.replay_staging import Place, ReplayStaging
from frazil.upsert.resolver_protocol import HASH
from frazil.upsert.stale_keys import parse_hashes

ORDER_UNKNOWN = "order_unknown"
"""The reason for which a dead letter stays open if it is not known whether a later record of its key landed."""


@dataclass(frozen=True, slots=True)
class Order:
    """The dead letters that land, by place, those that are superseded, and those of which it is not known.

    `hashes` are the stale keys of those that land. `unknown` is how many land though their key was not known to be stale.
    """

    landing: Mapping[Place, Letter]
    superseded: Mapping[Place, Letter]
    undecided: Mapping[Place, Letter]
    hashes: Collection[int] = ()
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """The order of dead letters of one pipeline."""

    pipeline: Pipeline
    job: JobContext

    def of(
        self,
        found: Look,
        dead: DeadLetters,
        staging: ReplayStaging,
        landing: Mapping[Place, Letter],
        hashes: Mapping[Place, int],
    ) -> Order:
        """Return the order of decoded dead letters; `hashes` are those of their keys. Raises `InvalidInput`, `StageAgain`."""
        last = found.last
        assert last is not None
        if not landing.keys() <= hashes.keys():
            raise StageAgain("the dead letters are not those of one reading", where=f"pipeline {self.pipeline.name}")
        if not landing:
            return Order({}, {}, {})
        stale = self.stale(found, last, min(landing.values()).staged_us)
        is_all_known = last.stale_keys is not None and not last.stale_keys.unknown
        asked = {hashes[place] for place in landing} if not is_all_known else stale
        newest = self._newest(dead, staging, asked)
        lands, superseded, undecided = dict[Place, Letter](), dict[Place, Letter](), dict[Place, Letter]()
        others = dict[Place, Letter]()
        for place, letter in landing.items():
            if newest.get(hashes[place]) != letter:
                superseded[place] = letter
            elif hashes[place] in stale:
                lands[place] = letter
            elif is_all_known:
                superseded[place] = letter
            else:
                others[place] = letter
        certain = [hashes[place] for place in lands]
        rows = self._rows(last, staging, others)
        for place, letter in others.items():
            row = rows.get(hashes[place])
            if row is None or row[0] != letter.partition:
                undecided[place] = letter
            else:
                (lands if row[1] < letter.offset else superseded)[place] = letter
        return Order(lands, superseded, undecided, certain, len(lands) - len(certain))

    def check(self, found: Look, now: Entry, order: Order) -> None:
        """Raise `StageAgain` if batches that came meanwhile may have later records of the keys that land."""
        where = f"pipeline {self.pipeline.name}"
        if order.unknown or not set(order.hashes) <= self.stale(found, now, now.at_ms * 1000):
            raise StageAgain("later records of keys may have landed meanwhile", where=where)

    def stale(self, found: Look, last: Entry, since_us: int) -> set[int]:
        """Return the stale keys. Raises `InvalidInput` if they are not known since this time, microseconds since 1970."""
        known, where = last.stale_keys, f"table {self.pipeline.table.identifier}"
        what = "the set of stale keys is not known, so it is not known which dead letters are the last of their key"
        do = "Land the topic again in another table, or produce the records again"
        if known is None:
            raise InvalidInput(what, where=where, do=do)
        if known.since > since_us:
            raise InvalidInput(f"{what}: its file was lost", where=where, do=f"Replay later ones (--since), or: {do}")
        if not known.file:
            return set()
        try:
            return {int(one) for one in parse_hashes(self.job.iceberg.read_text(found.main, known.file), known.keys)}
        except ValueError:
            raise InvalidInput(f"{what}: its file is damaged", where=where, do=do) from None
        except Py4JJavaError as error:
            if thrown(error) not in DAMAGED and found.main.io().newInputFile(known.file).exists():
                what = f"the stale keys cannot be read: {thrown(error)}"
                raise CatalogUnavailable(what, where=where, do="Try again") from None
            raise InvalidInput(f"{what}: its file is gone", where=where, do=do) from None

    def _newest(self, dead: DeadLetters, staging: ReplayStaging, asked: Collection[int]) -> Mapping[int, Letter]:
        """Return the last dead letter of each of these keys, whatever its outcome, by the key's hash."""
        if not asked:
            return {}
        frame = self.job.spark.createDataFrame([(one,) for one in asked], f"{HASH} long")
        return staging.over(dead.records()).last_of_keys(frame)

    def _rows(
        self, last: Entry, staging: ReplayStaging, letters: Mapping[Place, Letter]
    ) -> Mapping[int, tuple[int, int]]:
        """Return partition and offset of the row of each key of these dead letters, by the key's hash.

        Nothing is returned after a topic was created again or truncated: then offsets do not order the records.
        """
        if not letters or (last.totals is not None and last.totals.closed):
            return {}
        return staging.landing(letters).rows_of_keys()
