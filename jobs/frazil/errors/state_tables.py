"""Errors of upsert tables that stop a pipeline until an operator decides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Self

from frazil.errors.failures import DecisionRequired, quoted

_STATE = re.compile(r"(?P<of>upsert(?: of \S+ events)?)(?: by (?P<key>.+?))?(?P<order> ordered by .+)?")


def _identified(table: str, key: Iterable[str]) -> str:
    return f"ALTER TABLE {table} SET IDENTIFIER FIELDS {', '.join(map(quoted, key))}"


def written(names: Sequence[str]) -> str:
    """Return names as Python writes them in a declaration: `("id",)`."""
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"({quoted},)" if len(names) == 1 else f"({quoted})"


class WriteModeDiffers(DecisionRequired):
    """The table was made for another write mode, or another key, than the declaration has."""

    @classmethod
    def of(cls, pipeline: str, table: str, *, declared: str, made_for: str) -> Self:
        """Return the error; both are write modes, with the columns of the key if there is one.

        Of a key alone, another engine changed the table's identifier fields since the batch was staged.
        """
        do = f"Declare {made_for} again, or name another table: it is made for the declared mode, from the declared start"
        of_table, of_rows = _STATE.fullmatch(made_for), _STATE.fullmatch(declared)
        if of_table and of_rows and of_rows["key"] and of_table.group("of", "order") == of_rows.group("of", "order"):
            do = f"Run {_identified(table, of_rows['key'].split(', '))}, or name another table"
        return cls._of(pipeline, table, declared, made_for, do=do)

    @classmethod
    def of_key(
        cls,
        pipeline: str,
        table: str,
        *,
        kind: str,
        key: Sequence[str],
        made_for: Sequence[str],
        is_of_records: bool,
        is_renamed: bool = False,
        may_identify: bool,
    ) -> Self:
        """Return the error of a table whose key has other columns.

        The key `is_of_records` if no columns of it are declared. It may be the table's identifier fields if `may_identify`: its
        columns exist and are required. A column `is_renamed` if no version of the records has one of its name.
        """
        do = f"Declare key={written(made_for)} again, or name another table"
        if is_of_records:
            do = (
                "If the declared format or columns of keys changed, declare them as before. If the source's primary key changed, "
                "name another table with start=At(…) after the change, and have the source write all rows again, such as by a "
                "snapshot of the connector"
            )
        now, then = (sorted({*one} - {*other}) for one, other in ((made_for, key), (key, made_for)))
        if not is_of_records and len(now) == len(then) == 1:
            step = f"ALTER TABLE {table} RENAME COLUMN {quoted(now[0])} TO {quoted(then[0])}"
            do = (
                f"Another engine renamed the column: run {step}"
                if is_renamed
                else f"{do}. If another engine renamed the column, run {step}"
            )
        if may_identify:
            do = f"{do}. If another engine changed the identifier fields, run {_identified(table, key)}"
        modes = [kind + " by " * bool(of) + ", ".join(sorted(of)) for of in (key, made_for)]
        if made_for:
            return cls._of(pipeline, table, *modes, do=do, whose="records have" if is_of_records else "declaration has")
        what = (
            "the table has no identifier fields, which name its key: another engine removed them, or replaced the table"
        )
        do = f"Run {_identified(table, key)}" if may_identify else "Restore the table, in which the key is optional now"
        return cls(what, pipeline=pipeline, do=f"{do}, or name another table", table=table)

    @classmethod
    def _of(
        cls, pipeline: str, table: str, declared: str, made_for: str, *, do: str, whose: str = "declaration has"
    ) -> Self:
        what = f"the table was made for write mode {made_for}, and the {whose} {declared}"
        return cls(what, pipeline=pipeline, do=do, table=table)


class KeysMissing(DecisionRequired):
    """No record of a table's first batch has a key, which the table needs for each row."""

    @classmethod
    def of(cls, pipeline: str, topic: str, number: int, *, write: str, may_name_key: bool) -> Self:
        """Return the error for a batch of `number` records; `write` is the mode, which has no key of the value in change data."""
        of_value = f", or with columns of the value as write={write}(key=…)" if may_name_key else ""
        what = (
            f"none of the first {number:,} records has a key, and each row of the table needs one; nothing of the batch was "
            "committed"
        )
        do = f"Name another table, with write=Append(){of_value}"
        return cls(what, pipeline=pipeline, do=do, topic=topic)


class TooManyLate(DecisionRequired):
    """Many records of a batch are older than the rows of their keys, by the declared order; nothing of it was committed."""

    @classmethod
    def of(cls, pipeline: str, table: str, *, offsets: str, read: int, late: int) -> Self:
        """Return the error of a batch of which `late` of `read` records are late."""
        what = (
            f"{late:,} of {read:,} records at offsets {offsets} are older than the rows of their keys, as after a restore or a "
            "failover of the source; nothing of the batch was committed"
        )
        do = "If newer records have the lower order, name another table: no order of this one can be changed"
        return cls(what, pipeline=pipeline, events=("late-records",), do=do, table=table)


class DeletesLost(DecisionRequired):
    """Compaction may have removed records without a value that the table has not landed; nothing of the batch was committed."""

    @classmethod
    def of(cls, pipeline: str, topic: str, *, gaps: int, caught_up: int, retention_ms: int) -> Self:
        """Return the error of a batch with `gaps`; `caught_up` is in microseconds since 1970, 0 if it is not known."""
        when = datetime.fromtimestamp(caught_up / 1_000_000, UTC).isoformat(timespec="seconds") if caught_up else None
        since = f"since {when}" if when else "for a time that is not known"
        what = (
            f"the topic was not landed to its end {since}, {gaps:,} of the next offsets have no record, and compaction removes "
            f"deletes (records without a value) after {retention_ms / 1000:,.0f} s: rows of deleted keys may stay; nothing of the "
            "batch was committed"
        )
        do = (
            "Name another table: it is made from what the topic holds. A higher delete.retention.ms helps the next time"
        )
        return cls(what, pipeline=pipeline, events=("deletes-lost",), do=do, topic=topic)


class KeysMoved(DecisionRequired):
    """Records of one key are in two partitions of the topic, and nothing says which of them is the newer one."""

    @classmethod
    def of(cls, pipeline: str, table: str, number: int) -> Self:
        """Return the error for `number` keys."""
        what = (
            f"{number} keys have records in two partitions: partitions were added to the topic, or producers do not choose them "
            "by key; which of two records is newer is not known, and nothing of the batch was committed"
        )
        do = (
            "If partitions were not added, have producers choose the partition by the columns of the table's key, or land the "
            "topic in another table with write=Append()"
        )
        return cls(what, pipeline=pipeline, events=("keys-moved",), do=do, table=table)


class MasksDiffer(DecisionRequired):
    """The declared masks are others than those of the table, whose rows stay as they are; nothing of the batch was committed."""

    @classmethod
    def of(cls, pipeline: str, table: str, *, paths: str, may_accept: bool) -> Self:
        """Return the error; `paths` are those whose masks differ. They `may_accept` others that keep types and keys."""
        what = f"the declared masks are others than those of the table, whose rows stay as they are: {paths}"
        do = "Declare the masks as before, or name another table and delete this one"
        if not may_accept:
            what += ". The new ones may give a key other values, or a column another type, as far as the table knows it"
            do = "Declare the masks as before, of renamed fields by the earlier names, or name another table and delete this one"
        return cls(what, pipeline=pipeline, events=("mask-from-now-on",) if may_accept else (), do=do, table=table)


class SourceTruncated(DecisionRequired):
    """The source's table was truncated: its rows went without a delete for each, so the table would keep them."""

    @classmethod
    def of(cls, pipeline: str, table: str, *, offsets: str, number: int) -> Self:
        """Return the error of a batch with so many truncates."""
        what = (
            f"the source's table was truncated {number:,} times at offsets {offsets}, and no event deletes its rows one by one; "
            "nothing of the batch was committed"
        )
        do = (
            'Declare write=Upsert(on_truncate="delete_all") if the topic has one partition; else name another table, with '
            "start=At(…) after the truncate"
        )
        return cls(what, pipeline=pipeline, events=("source-truncated",), do=do, table=table)


class RememberedDeletesLost(DecisionRequired):
    """Files of the deleted keys that a table remembers do not exist or are damaged; nothing of the batch was committed."""

    @classmethod
    def of(cls, pipeline: str, table: str, files: str) -> Self:
        """Return the error for the table whose `files` are lost."""
        what = (
            f"files of the deleted keys that the table remembers do not exist, or are damaged: {files}; without them, an older "
            "record would bring a deleted row back, and nothing of the batch was committed"
        )
        do = "Restore them from a backup or an earlier version, and have nothing but Frazil remove orphan files"
        return cls(what, pipeline=pipeline, events=("remembered-deletes-lost",), do=do, table=table)
