"""The batches of random changes, and what a table must hold after them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from bench.contenders.keyed_rows import BATCH, Changes, Held
from frazil.upsert.resolver_protocol import IS_DELETE


def held() -> Held:
    """Return ten ids: two in version 1, one of these in version 2, and one gone."""
    made = Held(10)
    made.put(np.array([3, 4]), 1)
    made.put(np.array([4]), 2)
    made.alive[9] = False
    return made


def test_rows_ids_and_versions_are_summed() -> None:
    assert held().expected == (9, 36, 204, 3)
    again = held()
    again.put(np.array([9]), 3)
    assert again.expected == (10, 45, 285, 6)


def test_a_batch_is_updates_inserts_and_deletes_of_random_rows(tmp_path: Path) -> None:
    """Have 80 %, 10 % and 10 %, in no order; each key comes once, and only rows that are there are updated or deleted."""
    changes = Changes(400_000, np.random.default_rng(1))
    for number in (1, 2):
        before = changes.alive.copy()
        changes.batch(number, tmp_path / "batch.parquet")
        batch = pq.read_table(tmp_path / "batch.parquet")
        ids, is_delete = batch["id"].to_numpy(), batch[IS_DELETE].to_numpy()
        written, deleted = ids[~is_delete], ids[is_delete]
        is_new = written >= len(before)
        assert (np.sum(~is_new), np.sum(is_new), len(deleted)) == (BATCH * 0.8, BATCH * 0.1, BATCH * 0.1)
        assert len(np.unique(ids)) == BATCH == 30_000
        assert before[written[~is_new]].all()
        assert before[deleted].all()
        assert 0.4 < np.median(deleted) / len(before) < 0.6
        assert 0.4 < np.median(np.flatnonzero(is_delete)) / BATCH < 0.6
        assert not changes.alive[deleted].any()
        assert changes.alive[written].all()
        assert set(changes.version[written]) == {number}
