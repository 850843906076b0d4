"""Every error a person meets, in one tree.

FrazilError                    says what, where and what to do
├── InvalidInput               a command, an argument, a file or a setting is wrong; a new attempt changes nothing
│   └── InvalidDeclaration     a declaration or a document has problems; all of them are listed
├── IncompatibleSchema         a schema change that Iceberg forbids, or that the declaration does not allow
├── UnreadableSchema           a writer schema that cannot be understood
├── Fenced                     another driver writes this pipeline; it won, nothing of ours was counted
├── CommitRefused              Iceberg or the catalog refuses a commit, and would refuse the same again
├── TableReplaced              the table was dropped and made again, or a column was, under a staged batch
├── LedgerTooNew               a newer release wrote the table's ledger in a format that this one cannot read
├── DecisionRequired           the pipeline stops until an operator decides
│   ├── RejectedRecords        error mode `suspend` met a record it cannot land
│   ├── TooManyRejected        more of a batch is rejected than the pipeline's `max_rejected_percent` allows
│   ├── CountsDisagree         read != written + rejected + skipped, twice
│   ├── LedgerLost             no snapshot says which offsets the table holds
│   ├── RolledBack             the table's head is not the snapshot that the ledger names, nor its descendant
│   ├── DeadLetterTableMismatch  the dead-letter table is not the one that the table's ledger describes
│   ├── TopicRecreated         the topic has another id than the one the ledger holds
│   ├── LogTruncated           the topic ends before an offset that the table already holds
│   └── OffsetsLost            the topic no longer has records that the table does not hold yet
├── ServiceUnavailable         a service, or a secret for it, does not answer; retrying may help
│   ├── KafkaUnavailable       the broker did not answer, or refused
│   │   ├── KafkaRefused       the broker refused the login
│   │   └── TopicMissing       the cluster has no such topic, or does not describe it
│   ├── RegistryUnavailable    the registry did not answer, or not with a schema; nothing is rejected because of it
│   │   └── RegistryRefused    the registry refused the login, or the request
│   ├── SecretUnavailable      a secret that an environment names cannot be read
│   ├── CatalogUnavailable     the catalog or the object store refused or did not answer
│   ├── ObjectStoreUnavailable the bucket of releases and desired states refused or did not answer
│   └── EmrUnavailable         EMR Serverless refused or did not answer
├── RowsWouldChange            compaction wrote other rows than it read; nothing of it was committed
├── FenceUnproven              the catalog let two drivers commit the same batch in the start probe
├── SchemaChanged              the registry answers another schema for an id than before
├── ObjectDiffers              a key that is written once holds other bytes than it should
├── ReleaseIncomplete          a release cannot be built: something it is made of is missing or not what is locked
├── RuntimeDiffers             what runs is not what the release was built for: Spark, Iceberg, Python, or a class
├── LockHeld                   another reconciler holds the lease of the job
├── RolloutFailed              no generation could be started, and there is no earlier healthy one to roll back to
├── JvmEnded                   Spark's JVM ended while the run was going on
├── Fault                      an error that no class here describes: a defect of Frazil
├── SparkFailed                a Spark job failed, and doing it again would not mend it
├── LocalPartFailed            a local process (broker, registry, object store) did not start or stop
├── JavaUnsuitable             no Java is found, or it is too old
├── JarsUnavailable            a locked jar is not in the cache and could not be fetched
└── JarMismatch                a fetched jar is not the one that the lock names
"""

from __future__ import annotations


class FrazilError(Exception):
    """An error for people: what happened, where, and what to do about it.

    The facts are kept as attributes for programs; `str()` is the sentence for people.
    """

    def __init__(self, what: str, *, where: str = "", do: str = "") -> None:
        self.what, self.where, self.do = what, where, do
        super().__init__(what)

    def __str__(self) -> str:
        """`where: what. do`, on one line."""
        place = f"{self.where}: " if self.where else ""
        remedy = f". {self.do}" if self.do else ""
        return f"{place}{self.what}{remedy}"


class InvalidInput(FrazilError):
    """A command, an argument, a file or a setting is wrong. A new attempt with the same input changes nothing."""


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
    """Iceberg or the catalog refuses a commit, and would refuse the same again; nothing was added."""


class TableReplaced(FrazilError):
    """The table, or a column that was written, is not the one the batch was staged for."""


class LedgerTooNew(FrazilError):
    """A newer release wrote the table's ledger in a format that this one cannot read; nothing was read or written."""


class DecisionRequired(FrazilError):
    """The pipeline stops until an operator decides; the message names the command."""


class RejectedRecords(DecisionRequired):
    """Error mode `suspend` met records that cannot be landed."""


class TooManyRejected(DecisionRequired):
    """More of a batch is rejected than the topic allows; nothing of it was committed."""


class CountsDisagree(DecisionRequired):
    """Twice in a row, the rows staged and rejected were not the records read."""


class LedgerLost(DecisionRequired):
    """No snapshot of the table says which offsets it holds."""


class RolledBack(DecisionRequired):
    """The head of main is not the snapshot that the ledger names, nor a descendant of it."""


class DeadLetterTableMismatch(DecisionRequired):
    """The dead-letter table was dropped, replaced or restored, or belongs to another table, or cannot get what was decided."""


class TopicRecreated(DecisionRequired):
    """The topic was deleted and created again: its offsets mean other records now."""


class LogTruncated(DecisionRequired):
    """The topic ends before an offset that the table already holds."""


class OffsetsLost(DecisionRequired):
    """Retention removed records that the table does not hold yet."""


class RowsWouldChange(FrazilError):
    """Files that were rewritten hold more or fewer rows than those they stand for; they were not committed."""


class FenceUnproven(FrazilError):
    """The catalog let two drivers commit the same batch on a scratch table."""


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


class SchemaChanged(FrazilError):
    """The registry answers another schema for a known id than it did before."""


class SecretUnavailable(ServiceUnavailable):
    """A secret that the environment names cannot be read."""


class CatalogUnavailable(ServiceUnavailable):
    """The catalog or the object store refused or did not answer."""


class ObjectStoreUnavailable(ServiceUnavailable):
    """The bucket of releases and desired states refused or did not answer."""


class ObjectDiffers(FrazilError):
    """A key that is written once holds other bytes than the ones it should hold."""


class EmrUnavailable(ServiceUnavailable):
    """EMR Serverless refused or did not answer."""


class ReleaseIncomplete(FrazilError):
    """A release cannot be built: something it is made of is missing, or is not what is locked."""


class RuntimeDiffers(FrazilError):
    """What runs is not what the release was built for; nothing was read or written."""


class LockHeld(FrazilError):
    """Another reconciler holds the lease of the job. The call had no effect."""


class RolloutFailed(FrazilError):
    """No generation could be started, and there is no earlier healthy one to roll back to."""


class SparkFailed(FrazilError):
    """A Spark job failed for a reason that a smaller batch or another try does not mend; nothing of it was published."""


class JvmEnded(FrazilError):
    """Spark's JVM ended while the run was going on. What was committed is safe; the process cannot continue."""


class Fault(FrazilError):
    """An error that no other class describes: a defect of Frazil. The message names the exception and its place."""


class LocalPartFailed(FrazilError):
    """A local process did not start, or did not stop."""


# The local parts' own, see `frazil.local`.


class JavaUnsuitable(FrazilError):
    """No Java is found, or it is older than what Spark and Kafka need."""


class JarsUnavailable(FrazilError):
    """A locked jar is not in the cache and could not be fetched."""


class JarMismatch(FrazilError):
    """A fetched jar is not the one that the lock names; it was not kept."""
