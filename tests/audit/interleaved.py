"""A table of many rows in interleaved files, as bucket partitioning leaves it, and what verifying it costs.

`python -m tests.audit.interleaved FOLDER ROWS` makes one; with `--verify` it verifies it and prints what that took.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import parquet_file_to_data_file, schema_to_pyarrow

from frazil.audit.verify import verify
from frazil.lake.ledger.totals import Counts
from tests.audit.audited_table import Landed

PARTITIONS = 12
BUCKETS = 64
ROWS_OF_A_GROUP = 1 << 20


def fill(
    lake: Landed,
    rows: int,
    *,
    partitions: int = PARTITIONS,
    buckets: int = BUCKETS,
    rows_of_a_group: int = ROWS_OF_A_GROUP,
) -> None:
    """Land `rows` records at once; each file has a random share of every partition, in order of partition and offset."""
    table, each = lake.table, rows // partitions
    schema = pa.schema([field.with_nullable(True) for field in schema_to_pyarrow(table.schema())])
    owner = np.random.default_rng(7).integers(0, buckets, each * partitions, np.int8)
    folder = Path(lake.table.location().removeprefix("file://")) / "data"
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for bucket in range(buckets):
        at = np.flatnonzero(owner == bucket)
        known = {
            "_kafka_partition": pa.array((at // each).astype(np.int32)),
            "_kafka_offset": pa.array((at % each).astype(np.int64)),
            "_kafka_topic": pa.DictionaryArray.from_arrays(np.zeros(len(at), np.int32), ["orders"]),
        }
        columns = [known[f.name].cast(f.type) if f.name in known else pa.nulls(len(at), f.type) for f in schema]
        file = folder / f"bucket-{bucket}.parquet"
        made = pa.Table.from_arrays(columns, schema=schema)
        pq.write_table(made, file, compression="zstd", row_group_size=rows_of_a_group)
        files.append(parquet_file_to_data_file(table.io, table.metadata, f"file://{file}"))
    lake.commit(dict.fromkeys(range(partitions), each), Counts(each * partitions, each * partitions), {}, files)


def cost(lake: Landed) -> dict[str, float]:
    """Verify without remembered proofs. Return rows, seconds, CPU seconds, and by how many bytes the process grew at most."""
    lake.lake.table(lake.pipeline.table.identifier)  # PyIceberg and Arrow are imported: their size is not the rows'
    lake.table.scan(limit=1).to_arrow()
    process, is_done = psutil.Process(), threading.Event()
    before = peak = process.memory_info().rss

    def watch() -> None:
        nonlocal peak
        while not is_done.wait(0.01):
            peak = max(peak, process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    began, cpu = time.perf_counter(), time.process_time()
    try:
        found = verify(lake.pipeline, lake.lake, wait=lambda seconds: None)
    finally:
        is_done.set()
        watcher.join()
    return {
        "rows": found.sum_of("landed"),
        "exit_code": found.exit_code,
        "seconds": round(time.perf_counter() - began, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "grew_by_bytes": peak - before,
    }


if __name__ == "__main__":
    folder, rows = Path(sys.argv[1]), int(float(sys.argv[2]))
    folder.mkdir(parents=True, exist_ok=True)
    made = Landed(folder, partitions=PARTITIONS)
    fill(made, rows)
    sys.stdout.write(json.dumps(cost(made)) + "\n")
