"""The properties that a new table has."""

from __future__ import annotations

import pytest

from frazil.lake.tables import FEW_MANIFESTS, properties

MERGED_FROM = "commit.manifest.min-count-to-merge"


@pytest.mark.parametrize(("is_state", "count"), [(True, str(FEW_MANIFESTS)), (False, None)])
def test_only_a_table_of_current_state_merges_its_manifests_early(is_state: bool, count: str | None) -> None:
    found = properties(
        format_version=2,
        target_file_size_bytes=1 << 27,
        keep_snapshots=100,
        offset_columns=("_kafka_offset",),
        declared={"team": "checkout"},
        is_state=is_state,
    )
    assert found.get(MERGED_FROM) == count
    assert found["team"] == "checkout"
    assert found["write.metadata.metrics.column._kafka_offset"] == "full"
