"""The data files and deletes that came and went between two snapshots of a table, and whether an index can follow them.

An index follows commits whose effect on rows is known by data files: its own driver's, appends, overwrites of complete files, and
Iceberg's `replace`, which changes no row. It cannot follow deletes of others, and a head that does not descend from its snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frazil.lake.delete_files.staged_deletes import StagedDeletes
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.lineage import ancestors

REPLACE = "replace"
MOST_COMMITS = 100
"""So many commits are followed; after more of them reading the table again is no slower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The data files and delete files that one snapshot added and removed, by location.

    `removed_of` are the data files that the removed delete files name, None for one that may name several. `is_frazils` says
    whether the table's account of keys knows the commit's rows.
    """

    operation: str
    is_frazils: bool = False
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    added_deletes: tuple[str, ...] = ()
    removed_of: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Followed:
    """The work of an index: delete the rows that `deleted` found, forget the files that are `gone`, and read the `new` ones.

    If rows `are_counted`, the table's account knows all that changed.
    """

    deleted: StagedDeletes | None = None
    gone: frozenset[str] = frozenset()
    new: frozenset[str] = frozenset()
    are_counted: bool = True


def follow(commits: Sequence[Commit], known: frozenset[str], made: Sequence[StagedDeletes]) -> Followed | str:
    """Return how an index of the data files `known` follows commits, oldest first; else why it cannot, in words.

    `made` are deletes that were written for its snapshot, one of which may have been committed.
    """
    deleted: StagedDeletes | None = None
    new, gone = set[str](), set[str]()
    for number, commit in enumerate(commits):
        own = None if number else next((one for one in made if _is_of(commit, one)), None)
        if own is not None:
            deleted = own
        elif commit.operation != REPLACE and commit.added_deletes:
            return "another writer deleted rows"
        elif (
            commit.operation != REPLACE and not commit.is_frazils and not set(commit.removed_of) <= set(commit.removed)
        ):
            return "another writer took deletes back"
        gone |= known & {*commit.removed}
        new -= {*commit.removed}
        if (known - gone) & {*commit.added} or new & {*commit.added}:
            return "a data file was added twice"
        new |= {*commit.added}
    are_counted = all(commit.is_frazils or commit.operation == REPLACE for commit in commits)
    return Followed(deleted, frozenset(gone), frozenset(new), are_counted)


def _is_of(commit: Commit, made: StagedDeletes) -> bool:
    """Return whether a commit's deletes are these, by the names of their files: no other writer has the same."""
    return bool(made.added) and {str(file.location()) for file in made.added} == {*commit.added_deletes}


def commits_between(iceberg: Iceberg, table: Java, since: int, head: int) -> list[Commit] | None:
    """Return the commits after the snapshot `since`, up to `head` of the loaded table, oldest first.

    None if `head` does not descend from it, as far as the table still has the snapshots, or by too many commits.
    """
    found: list[Java] = []
    for snapshot in ancestors(table, head):
        if len(found) == MOST_COMMITS:
            return None
        found.append(snapshot)
        parent = snapshot.parentId()
        if parent is not None and int(parent) == since:
            return [_commit(iceberg, table, one) for one in reversed(found)]
    return None


def _commit(iceberg: Iceberg, table: Java, snapshot: Java) -> Commit:
    io, classes = table.io(), iceberg.classes
    location = classes.function("ContentFile", "location")
    added, removed, added_deletes = (
        tuple(classes.values(classes.each(files, location)))
        for files in (snapshot.addedDataFiles(io), snapshot.removedDataFiles(io), snapshot.addedDeleteFiles(io))
    )
    of = classes.function("util.ContentFileUtil", "referencedDataFileLocation", "DeleteFile")
    return Commit(
        operation=str(snapshot.operation()),
        is_frazils=snapshot.summary().get(ledger.COMMIT_ID) is not None,
        added=added,
        removed=removed,
        added_deletes=added_deletes,
        removed_of=tuple(classes.values(classes.each(snapshot.removedDeleteFiles(io), of))),
    )
