"""Find files under a table's location that no metadata references. Reports them; deletes them only if asked.

Batches that were staged and never published, rewrites that lost, and expiries that died leave such files. So does
any other program that writes there: only the table belongs under its location. A table that was renamed keeps its location, and the
next one of its former name gets the same: as long as metadata of another table is there, no file is an orphan.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain

from frazil.declaration.partitioning import quoted
from frazil.errors import InvalidInput
from frazil.lake.commit.dead_letters.decide import open_decision
from frazil.lake.data_location import own_data_path
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java, items
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entries import entry_behind
from frazil.lake.ledger.entry import Entry
from frazil.lake.snapshot_retention import DAY_MS
from frazil.maintain.choose_upkeep import ORPHANS_AT_LEAST_MS, namer, path_of
from frazil.maintain.target import Action, MaintenanceRun, Outcome, Status, Target

SHOWN = 5
_OF_FILES = frozenset({ledger.REMEMBERED_DELETES, ledger.STALE_KEYS})
"""Entries of a summary that name files of keys."""
METADATA_SUFFIX = ".metadata.json"  # gzipped ones, too: `<version>.gz.metadata.json`


def check_age(seconds: float) -> None:
    """Raise `InvalidInput` for an age under three days: staged batches are published up to six hours after they were written."""
    if seconds * 1000 < ORPHANS_AT_LEAST_MS:
        what = f"files {seconds / 3600:.0f} hours old may belong to a commit that is under way"
        raise InvalidInput(what, where="orphans", do=f"Give an age of at least {ORPHANS_AT_LEAST_MS // DAY_MS} days")


def orphans(run: MaintenanceRun, target: Target, *, remove: bool) -> Outcome:
    """Report a table's orphans, and delete them if asked to `remove` and this is no dry run.

    What an open decision names is no orphan, at the table and at its dead letters, nor are files of deleted keys that a snapshot
    names, or that a rollback to one would need. Before a file is deleted it is asked for by itself, so only existing files are
    counted. Raises `InvalidInput` for an age under three days, and before a removal if metadata of another table is in the table's
    folder; `CatalogUnavailable` when an open decision cannot be read: what it names is not known then.
    """
    check_age(run.policy.orphan_seconds)
    declared = target.pipeline.table
    table = run.job.iceberg.load(target.identifier)
    removes = remove and not run.policy.dry_run
    if refusal := _shared(run, table, target.identifier):
        if removes:
            raise refusal
        return target.outcome(Action.ORPHANS, Status.DRY_RUN, why=str(refusal))

    def named_by_open() -> tuple[str, ...]:
        return open_decision(run.job.iceberg, declared.identifier, declared.dead_letters, target.pipeline.name) or ()

    # Asked before the listing, so that files of a decision that a driver finishes meanwhile are known, and after it, so that
    # those of one that is made meanwhile are.
    named = named_by_open()
    found = chain(
        _unreferred(run, target.identifier, str(table.location())),
        *(_unreferred(run, target.identifier, path) for path in (own_data_path(table),) if path is not None),
    )
    if removes:
        run.job.failpoint("orphans.listed")
    named += named_by_open()
    newest = run.job.iceberg.load(target.identifier)
    deleted_keys = namer(remembered_files(run.job.iceberg, newest, target.pipeline.name))
    if removes:
        run.job.failpoint("orphans.decided")
    unnamed = (location for location in found if not deleted_keys(location))
    files, size, left, first = _gone(table, unnamed, namer(named), remove=removes)
    return target.outcome(
        Action.ORPHANS,
        Status.DONE if removes else Status.DRY_RUN,
        files_removed=files,
        bytes_removed=size,
        left={"named_by_open_decision": left} if left else {},
        why=f"{', '.join(first)}{', …' if files > SHOWN else ''}",
    )


def remembered_files(iceberg: Iceberg, table: Java, pipeline: str) -> set[str]:
    """Return the files of deleted keys, and of stale ones, that a table needs, or would after a rollback to one of its snapshots.

    A snapshot that is no batch, such as a compaction, goes by the batch before it. If that one is expired, older metadata still
    names it, and `frazil accept` finds it there, so its files are needed as long.
    """
    snapshots = iceberg.metadata(table).get("snapshots", ())
    summaries = {snapshot["snapshot-id"]: snapshot.get("summary", {}) for snapshot in snapshots}
    found = [Entry.of(0, summary) for summary in summaries.values() if _OF_FILES & summary.keys()]
    for one in snapshots if table.properties().get(ledger.WRITE_MODE) is not None else ():
        if one.get("parent-snapshot-id") not in summaries and ledger.END not in summaries[one["snapshot-id"]]:
            expired = entry_behind(iceberg, table, pipeline, one["snapshot-id"])
            found += [expired] if expired is not None else []
    stale = {entry.stale_keys.file for entry in found if entry.stale_keys is not None}
    return {location for entry in found for location in entry.remembered_deletes.locations} | (stale - {""})


def _gone(
    table: Java, found: Iterable[str], is_named: Callable[[str], bool], *, remove: bool
) -> tuple[int, int, int, list[str]]:
    """Return the orphans' number and bytes, the number that an open decision names, and a few locations; `remove` them if asked."""
    files, size, left, first = 0, 0, 0, list[str]()
    for location in found:
        if is_named(location):
            left += 1
        elif (length := _size(table, location)) is not None:
            files, size, first = files + 1, size + length, sorted((*first, location))[:SHOWN]
            if remove:
                table.io().deleteFile(location)
    return files, size, left, first


def _shared(run: MaintenanceRun, table: Java, name: str) -> InvalidInput | None:
    """Return why no file under the table's location may go: metadata of another table is in its folder. Else None."""
    current = table.operations().current()
    newest, known = str(current.metadataFileLocation()), items(current.previousFiles())
    own = {path_of(location) for location in (newest, *(str(log.file()) for log in known))}
    for location in _listed(table, newest.rpartition("/")[0]):
        if not location.endswith(METADATA_SUFFIX) or path_of(location) in own or _size(table, location) is None:
            continue
        if (uuid := str(run.job.iceberg.older_metadata(table, location).uuid())) != str(table.uuid()):
            return InvalidInput(
                f"{location} is metadata of table {uuid}, whose files are no orphans as long as it exists",
                where=f"table {name}, whose uuid is {table.uuid()}",
                do="If that table was dropped, delete its metadata files. If it was renamed, its files are still here: copy it "
                "to a location of its own first (CREATE TABLE … AS SELECT), or leave the orphans where they are",
            )
    return None


def _listed(table: Java, folder: str) -> Iterator[str]:
    """Yield the locations of the files in a folder, and below it."""
    if "://" not in folder or folder.startswith("file:"):  # Hadoop's listing fails if a file goes meanwhile
        yield from (f"{folder}/{name}" for name in os.listdir(path_of(folder)))
        return
    files = table.io().listPrefix(f"{folder}/").iterator()
    while files.hasNext():
        yield str(files.next().location())


def _unreferred(run: MaintenanceRun, table: str, folder: str) -> Iterator[str]:
    """Return what Iceberg's own procedure, which has then listed all, would remove below a folder. Nothing is deleted.

    Object stores are listed by prefix. In a folder that way of listing asks `ls` about each file, and fails if one was deleted
    meanwhile, as manifests are after an expiry.
    """
    before = datetime.fromtimestamp(run.job.clock() - run.policy.orphan_seconds, UTC)
    # A procedure's arguments cannot be bound. These are a time, a name that declarations keep to a-z, 0-9 and _, and a folder.
    by_prefix, location = folder.startswith("s3"), folder.replace("\\", "\\\\").replace("'", "\\'")
    answer = run.job.spark.sql(
        f"CALL {quoted(run.job.iceberg.name)}.system.remove_orphan_files(table => '{quoted(table)}', "
        f"older_than => TIMESTAMP '{before:%Y-%m-%d %H:%M:%S}', dry_run => true, prefix_listing => {str(by_prefix).lower()}, "
        f"location => '{location}')"
    )
    return (row["orphan_file_location"] for row in answer.toLocalIterator())


def _size(table: Java, location: str) -> int | None:
    """Return a file's bytes, by a request for this file alone; None if it does not exist."""
    file = table.io().newInputFile(location)
    return int(file.getLength()) if file.exists() else None
