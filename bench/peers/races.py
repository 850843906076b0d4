"""The races beside Flink and Kafka Connect, and what a peer cannot land."""

from __future__ import annotations

from bench.rounds import Race

CAPTIONS = {
    "flink_bare": "Flink SQL, no metadata columns",
    "flink": "Flink SQL, four metadata columns",
    "connect": "Kafka Connect, four metadata columns",
    "ours_as_spike": "Frazil, four metadata columns",
    "ours": "Frazil, its eight metadata columns",
}
_ALL = ("flink", "connect", "ours_as_spike", "ours")

RACES = (
    Race(shape="nested_avro", ways=("flink_bare", *_ALL), rows=1_000_000, rounds=3),
    Race(shape="light_json", ways=_ALL, rows=600_000, rounds=2),
    Race(shape="nested_json", ways=_ALL, rows=600_000, rounds=2),
    Race(shape="wide_avro", ways=_ALL, rows=150_000, rounds=2),
    Race(shape="nested_protobuf", ways=("ours",), rows=300_000, rounds=2),
)
CANNOT = {
    ("nested_protobuf", "flink"): "`flink-protobuf` needs a compiled class, and reads no schema id",
    ("nested_protobuf", "connect"): "Confluent's converter is not on Maven Central, and Apicurio has none",
}
"""Why a peer is in no race, by shape and contender."""
