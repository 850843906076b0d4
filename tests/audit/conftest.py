from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.audited_table import Landed


@pytest.fixture
def landed(tmp_path: Path) -> Landed:
    """Two partitions, two batches: the first all rows, the second with a dead letter in each partition."""
    lake = Landed(tmp_path)
    lake.land({0: 100, 1: 50})
    lake.land({0: 200, 1: 60}, rejected=[(0, 107), (1, 53)])
    return lake
