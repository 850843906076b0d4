"""Swap delete files for others that delete the same rows, in a commit that changes no row.

Deletes that name a data file which has gone mean nothing, as long as the table's head descends from the snapshot on which the file
was missing: after a rollback they may count again. So the commit is made only on such a head.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from frazil.lake.commit.commit_rows_and_offsets import FOREVER_MS
from frazil.lake.commit.request import Committer
from frazil.lake.commit.table_state import ANCESTORS
from frazil.lake.delete_files.merged_deletes import Merged
from frazil.lake.ledger.lineage import ancestors


def swap(job: Committer, name: str, merged: Merged, tag: str, summary: Mapping[str, str]) -> bool:
    """Swap them; False if the table's head does not descend from the snapshot that they were planned on.

    `tag` is the pipeline's. Setting it to where it is fences the transaction: if another commit comes in between, it fails with a
    Java exception.
    """
    transaction = job.iceberg.load(name).newTransaction()
    base = transaction.table()
    head = base.currentSnapshot()
    if head is None or not base.refs().containsKey(tag):
        return False
    if merged.planned_on not in (
        int(one.snapshotId()) for one in islice(ancestors(base, head.snapshotId()), ANCESTORS)
    ):
        return False
    change = transaction.newRewrite().validateFromSnapshot(merged.planned_on)
    for file in merged.removed:
        change.deleteFile(file.java)
    for added, sequence in merged.added:
        change.addFile(added, sequence)
    for key, value in summary.items():
        change.set(key, value)
    change.commit()
    transaction.manageSnapshots().setMaxRefAgeMs(tag, FOREVER_MS).commit()
    job.failpoint("merge.filled")
    transaction.commitTransaction()
    return True
