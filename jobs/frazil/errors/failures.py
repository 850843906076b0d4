"""Errors that neither an operator's decision nor a new attempt resolves by itself."""

from __future__ import annotations

from typing import Self

from frazil.errors.frazil_error import FrazilError


class IncompatibleSchema(FrazilError):
    """A schema change that cannot be made: Iceberg forbids it, or the declaration does."""


class UnreadableSchema(FrazilError):
    """A writer schema that cannot be understood, or has a construct that has no row type."""


class Fenced(FrazilError):
    """Another driver committed to this pipeline first; the run ends, and that is a success.

    `winner` is the run whose commit the table holds; empty if the table holds none.
    """

    def __init__(self, what: str, *, where: str = "", do: str = "", winner: str = "") -> None:
        super().__init__(what, where=where, do=do)
        self.winner = winner

    def is_by_another_than(self, run: str) -> bool:
        """Return whether a run other than `run` won. A lost ledger, or an own commit that came late, is no winner."""
        return self.winner not in ("", run)


class CommitRefused(FrazilError):
    """Iceberg, the catalog or a check of Frazil refuses a commit, and would refuse the same again; nothing was added."""


class TableReplaced(FrazilError):
    """The table, or a column that was written, is not the one the batch was staged for."""


class LedgerTooNew(FrazilError):
    """A newer release wrote the table's ledger in a format that this one cannot read; nothing was read or written."""


class RowsWouldChange(FrazilError):
    """Files that were rewritten hold more or fewer rows than the files they replace; they were not committed."""


class FenceUnproven(FrazilError):
    """The catalog let two drivers commit the same batch on a scratch table."""


class SchemaChanged(FrazilError):
    """The registry answers another schema for a known id than it did before."""


class ObjectDiffers(FrazilError):
    """A key that is written once holds other bytes than the ones it should hold."""


class ReleaseIncomplete(FrazilError):
    """A release cannot be built: something it is made of is missing, or is not what is locked."""


class ReleaseUntrusted(FrazilError):
    """No trusted key has signed a release; it was neither uploaded nor started."""


class RuntimeDiffers(FrazilError):
    """What runs is not what the release was built for; nothing was read or written."""


class LockHeld(FrazilError):
    """Another reconciler holds the lease of the job. The call had no effect."""


class RolloutFailed(FrazilError):
    """No generation could be started, and there is no earlier healthy one to roll back to."""


class SparkFailed(FrazilError):
    """A Spark job failed for a reason that neither a smaller batch nor a new attempt removes; nothing of it was published."""


class JvmEnded(FrazilError):
    """Spark's JVM ended while the run was going on. What was committed is safe; the process cannot continue."""

    @classmethod
    def of(cls, where: str = "") -> Self:
        """Return the error of a pipeline or a table."""
        do = "Run again; committed batches are safe. If it recurs, read Spark's log, and give the driver more memory"
        return cls("Spark's JVM ended", where=where, do=do)


class Fault(FrazilError):
    """An error that no other class describes: a defect of Frazil. The message names the exception and its place."""

    @classmethod
    def of(cls, error: BaseException, *, where: str, text: str = "") -> Self:
        """Return the error for an exception; `text` replaces its own, which may hold a secret or be long."""
        do = "This is a defect of Frazil. Report it with this message"
        return cls(f"{type(error).__name__}: {text or error}", where=where, do=do)


class LocalPartFailed(FrazilError):
    """A local process did not start, or did not stop."""


class JavaUnsuitable(FrazilError):
    """No Java is found, or it is older than what Spark and Kafka need."""


class JarsUnavailable(FrazilError):
    """A locked jar is not in the cache and could not be fetched."""


class JarMismatch(FrazilError):
    """A fetched jar is not the one that the lock names; it was not kept."""
