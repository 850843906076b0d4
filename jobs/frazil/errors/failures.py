"""Errors that neither an operator's decision nor a new attempt resolves by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Self


class FrazilError(Exception):
    """An error for people: what happened, where, and what to do about it.

    The facts are kept as attributes for programs; `str()` is the sentence for people.
    """

    def __init__(self, what: str, *, where: str = "", do: str = "") -> None:
        self.what, self.where, self.do = what, where, do
        super().__init__(what)

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that the remedy names."""
        return tuple(re.findall(r"`(frazil [^`]+)`", self.do))

    def __str__(self) -> str:
        """`where: what. do`, on one line."""
        place = f"{self.where}: " if self.where else ""
        remedy = f". {self.do}" if self.do else ""
        return f"{place}{self.what}{remedy}"


class InvalidInput(FrazilError):
    """A command, an argument, a file or a setting is wrong. A new attempt with the same input changes nothing."""

    @classmethod
    def unreadable(cls, file: object, error: OSError, *, do: str = "") -> Self:
        """Return the error for a file that cannot be read."""
        return cls(f"it cannot be read ({error.strerror})", where=str(file), do=do)

    @classmethod
    def unwritable(cls, file: object, error: OSError) -> Self:
        """Return the error for a file that cannot be written."""
        return cls(f"it cannot be written ({error.strerror})", where=str(file))


EVENTS = {
    "topic-recreated": "lands the new topic from its beginning",
    "log-truncated": "continues and skips the records that replaced others",
    "log-truncated-replay": "lands the records that replaced others",
    "offsets-lost": "records the loss and continues after it",
    "rolled-back-replay": "lands the undone records again, or restores the dead letters",
    "rolled-back-hold": "leaves the table as it is and continues",
    "ledger-lost": "derives the offsets from the rows",
    "counts-recount": "counts the rows and reduces the number of gaps",
    "rejected-records": "keeps these records as dead letters and lands the others",
    "rows-deleted": "counts the rows that another engine deleted as deleted",
    "rejected-share": "lands the records that the topic holds, whatever share is rejected",
    "late-records": "leaves out the late records, whatever share of those that the topic holds they are",
    "keys-moved": "lands what the topic holds by the times of its records, then takes each key from its new partition",
    "deletes-lost": "continues, and rows of keys that were deleted meanwhile may stay",
    "remembered-deletes-lost": "continues without the deleted keys whose files are gone or damaged",
    "source-truncated": "leaves the rows that the source has truncated in the table",
    "mask-from-now-on": "masks records from now on as declared; rows and dead letters that landed stay as they are",
    "side-table-replaced": "continues with the dead-letter table as it is",
}
"""The effects of `frazil accept PIPELINE EVENT`, by event (docs/running.md)."""


def quoted(name: str) -> str:
    """Return the name of a column as Spark SQL takes it: one that is no plain word is in backticks."""
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else "`" + name.replace("`", "``") + "`"


class DecisionRequired(FrazilError):
    """The pipeline stops until an operator decides; the message names the commands.

    `pipeline` is its name, `events` are those that `frazil accept` takes; without any, the operator removes the cause.
    `facts` are what the pipeline's stop keeps of it in the table, besides the message.
    """

    def __init__(
        self,
        what: str,
        *,
        pipeline: str,
        table: str = "",
        topic: str = "",
        place: str = "",
        events: Sequence[str] = (),
        do: str = "",
        hint: str = "",
        **facts: Any,
    ) -> None:
        self.pipeline, self.events, self.facts = pipeline, tuple(events), facts
        place = place or (f"table {table}" if table else f"topic {topic}")
        commands = ", ".join(f"`frazil accept {pipeline} {event} --reason …` {EVENTS[event]}" for event in events)
        self._hint = hint
        remedies = ", or ".join(part for part in (do, commands) if part)
        super().__init__(
            what, where=f"pipeline {pipeline}, {place}", do="; ".join(part for part in (remedies, hint) if part)
        )

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that let the pipeline continue, without those of the hint."""
        return tuple(re.findall(r"`(frazil [^`]+)`", self.do.removesuffix(self._hint)))


class ServiceUnavailable(FrazilError):
    """A service, or a secret for it, did not answer or refused. Nothing is rejected because of it; retrying may help."""


class KafkaUnavailable(ServiceUnavailable):
    """The Kafka cluster did not answer, or refused."""


class KafkaRefused(KafkaUnavailable):
    """The broker refused the login twice; in between the secrets were read again."""

    authentication = True


class TopicMissing(KafkaUnavailable):
    """The cluster answered that it has no such topic. It says so too of a topic that may not be described."""


class RegistryUnavailable(ServiceUnavailable):
    """The schema registry did not answer, or not with a schema."""


class RegistryRefused(RegistryUnavailable):
    """The registry refused the login (401), or the request (403)."""

    authentication = True


class SecretUnavailable(ServiceUnavailable):
    """A secret that the environment names cannot be read."""


class TokenUnavailable(ServiceUnavailable):
    """No token for a login can be had: its endpoint, or AWS's default credential chain, gave none."""


class TokenRefused(TokenUnavailable):
    """The token endpoint refused the client twice; in between its secret was read again."""

    authentication = True


class CatalogUnavailable(ServiceUnavailable):
    """The catalog or the object store refused or did not answer."""


class ObjectStoreUnavailable(ServiceUnavailable):
    """The bucket of releases and desired states refused or did not answer."""


class AccountUnavailable(ServiceUnavailable):
    """A service of the AWS account refused or did not answer while the account was prepared."""


class EmrUnavailable(ServiceUnavailable):
    """EMR Serverless refused or did not answer."""


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


class ObjectDiffers(FrazilError):
    """A key that is written once holds other bytes than the ones it should hold."""


class ReleaseIncomplete(FrazilError):
    """A release cannot be built: something it is made of is missing, or is not what is locked."""


class ReleaseUntrusted(FrazilError):
    """No trusted key has signed a release; it was neither uploaded nor started."""


class RuntimeDiffers(FrazilError):
    """The runtime is not the one that the release was built for; nothing was read or written."""


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
