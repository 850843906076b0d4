"""What can be found out again is forgotten, the oldest first."""

from __future__ import annotations

from frazil.decode.writers.registered_writers import Recent


def test_the_entries_that_were_set_last_are_kept() -> None:
    kept: Recent[str, int] = Recent(2)
    for name, number in (("a", 1), ("b", 2), ("a", 3), ("c", 4)):
        kept[name] = number
    assert kept == {"a": 3, "c": 4}
