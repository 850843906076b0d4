"""What an operator can do instead of a replay that is refused, as texts of errors."""

from __future__ import annotations

from frazil.declaration import Pipeline
from frazil.lake.ledger.entry import Entry


def head_again(last: Entry) -> str:
    """Return the one way out for a table that can neither be landed again nor be left as it is."""
    return f"Set the head to snapshot {last.snapshot_id} again"


def head_or_hold(pipeline: Pipeline, last: Entry) -> str:
    """Return the ways out for a table that was rolled back; `last` is its newest entry."""
    return (
        f"{head_again(last)}, or "
        f"`frazil accept {pipeline.name} rolled-back-hold --reason …` keeps the tables as they are"
    )


def restored(pipeline: Pipeline) -> str:
    """Return the ways out for a table that was set back to before commits of its dead-letter table."""
    table = pipeline.table
    return (
        f"Restore {table.dead_letters} and {table.identifier} to the same moment, or rename the former and "
        f"`frazil accept {pipeline.name} side-table-replaced --reason …`"
    )
