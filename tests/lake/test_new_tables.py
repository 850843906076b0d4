"""The properties that a new table has."""

from __future__ import annotations

from typing import Any

from frazil.lake.layout import FEW_MANIFESTS, properties

MERGED_FROM = "commit.manifest.min-count-to-merge"


def of(**declared: str) -> dict[str, Any]:
    return properties(
        format_version=2,
        target_file_size_bytes=1 << 27,
        keep_snapshots=100,
        offset_columns=("_kafka_offset",),
        declared=declared,
    )


def test_a_declared_property_wins() -> None:
    assert of()[MERGED_FROM] == str(FEW_MANIFESTS)
    found = of(team="checkout", **{MERGED_FROM: "100"})
    assert (found["team"], found[MERGED_FROM]) == ("checkout", "100")
    assert found["write.metadata.metrics.column._kafka_offset"] == "full"
