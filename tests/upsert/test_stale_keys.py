"""Which keys are stale after a batch, and what a commit says of them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from frazil.lake.ledger.key_totals import StaleKeys
from frazil.upsert.stale_keys import Places, as_text, parse_hashes, stale_after


def places(*records: tuple[int, int, int]) -> Places:
    """Hash, partition and offset of records."""
    columns = zip(*records, strict=True) if records else ([], [], [])
    hashes, partitions, offsets = (np.array(list(column), np.int64) for column in columns)
    return Places(hashes, partitions, offsets)


@pytest.mark.parametrize("seed", range(5))
def test_the_keys_whose_newest_record_was_rejected_are_stale(seed: int) -> None:
    dice = random.Random(seed)
    before = {dice.randrange(-5, 30) for _ in range(10)}
    at = [(dice.randrange(3), offset) for offset in range(60)]
    dice.shuffle(at)
    records = [(dice.randrange(-5, 30), *place) for place in at]
    is_rejected = [dice.random() < 0.5 for _ in records]
    last = {
        key: max((place, bad) for (k, *place), bad in zip(records, is_rejected, strict=True) if k == key)[1]
        for key, *_ in records
    }
    landed, rejected = (
        places(*(record for record, bad in zip(records, is_rejected, strict=True) if bad is of)) for of in (False, True)
    )
    found = stale_after(np.array(sorted(before), np.int64), landed, rejected)
    assert found.tolist() == sorted({*(before - last.keys()), *(key for key, bad in last.items() if bad)})


def test_a_record_that_is_in_both_was_rejected() -> None:
    nothing = np.empty(0, np.int64)
    assert stale_after(nothing, places((1, 0, 5)), places((1, 0, 5))).tolist() == [1]
    assert stale_after(nothing, places(), places()).tolist() == []


def test_what_is_written_is_read_again_and_anything_else_is_refused() -> None:
    hashes = np.array([-(2**63), -1, 0, 2**63 - 1], np.int64)
    assert parse_hashes(as_text(hashes), 4).tolist() == hashes.tolist()
    for text, count in ((as_text(hashes), 3), (as_text(hashes)[:-5], 4), ("zz" * 8 + "\n", 1)):
        with pytest.raises(ValueError, match="keys|invalid literal"):
            parse_hashes(text, count)
    for stale in (StaleKeys(), StaleKeys(keys=2, unknown=1, file="s3://a/b", since=5)):
        assert StaleKeys.parse(str(stale)) == stale


def test_nothing_is_said_of_a_table_without_stale_keys() -> None:
    assert StaleKeys().notes == []
    assert StaleKeys(keys=1234).notes == ["1,234 keys are stale: their newest record was rejected"]
    assert "since 1970-01-02 00:00 UTC" in StaleKeys(unknown=1, since=86_400_000_000).notes[0]
