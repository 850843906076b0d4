"""Errors of tables of current state that stop a pipeline until an operator decides."""

from __future__ import annotations

from typing import Self

from frazil.errors.decision_required import DecisionRequired


class WriteModeDiffers(DecisionRequired):
    """The table was made for another write mode, or another key, than the declaration has."""

    @classmethod
    def of(cls, pipeline: str, table: str, *, declared: str, made_for: str) -> Self:
        """Return the error; both are write modes, with the columns of the key if there is one."""
        return cls(
            f"the table was made for write mode {made_for}, and the declaration has {declared}",
            pipeline=pipeline,
            place=f"table {table}",
            do=f"Declare {made_for} again, or name another table: it is made for the declared mode, from the declared start",
            facts={"table": table, "declared": declared, "made_for": made_for},
        )


class KeysMoved(DecisionRequired):
    """Records of one key are in two partitions of the topic, and nothing says which of them is the newer one."""

    @classmethod
    def of(cls, pipeline: str, table: str, number: int) -> Self:
        """Return the error for `number` keys."""
        return cls(
            f"{number} keys have records in two partitions: partitions were added to the topic, or producers do not choose them "
            "by key; which of two records is newer is not known, and nothing of the batch was committed",
            pipeline=pipeline,
            place=f"table {table}",
            do="Give the topic a key that decides the partition, or land it with write=Append()",
            facts={"table": table, "number": number},
        )
