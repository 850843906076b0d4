"""All errors of Frazil, in one tree.

FrazilError                    says what, where and what to do
├── InvalidInput               a command, an argument, a file or a setting is wrong; a new attempt changes nothing
│   └── InvalidDeclaration     a declaration or a document has problems; all of them are listed
├── IncompatibleSchema         a schema change that Iceberg forbids, or that the declaration does not allow
├── UnreadableSchema           a writer schema that cannot be understood
├── Fenced                     another driver writes this pipeline; it won, and nothing of this run was added
├── CommitRefused              Iceberg or the catalog refuses a commit, and would refuse the same again
├── TableReplaced              the table was dropped and made again, or a column was, under a staged batch
├── LedgerTooNew               a newer release wrote the table's ledger in a format that this one cannot read
├── DecisionRequired           the pipeline stops until an operator decides
│   ├── RejectedRecords        error mode `suspend` found a record it cannot land
│   ├── TooManyRejected        more of a batch is rejected than the pipeline's `max_rejected_percent` allows
│   ├── CountsDisagree         read != written + rejected + skipped, twice
│   ├── WriteModeDiffers       the table was made for another write mode or key than the declared ones
│   ├── KeysMissing            no record of a table's first batch has a key
│   ├── KeysMoved              records of one key are in two partitions, without an order
│   ├── DeletesLost            compaction may have removed deletes that an upsert table has not landed
│   ├── TooManyLate            more than 1 % of a batch is older than the rows of its keys, by the declared order
│   ├── RememberedDeletesLost  files of the deleted keys that a table with an order remembers are gone
│   ├── MasksDiffer            the declared masks are others than those of the table
│   ├── SourceTruncated        the source's table was truncated, and change data cannot say which rows of the table go
│   ├── LedgerLost             no snapshot says which offsets the table holds, or one is damaged
│   ├── OtherPipeline          the table has offsets of a pipeline of another name, or of another new type
│   ├── ForeignTable           another engine made what has the name of the pipeline's table
│   ├── ColumnsMissing         another engine dropped or renamed columns that Frazil writes
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
│   ├── TokenUnavailable       no token for a login can be had
│   │   └── TokenRefused       the token endpoint refused the client
│   ├── CatalogUnavailable     the catalog or the object store refused or did not answer
│   ├── ObjectStoreUnavailable the bucket of releases and desired states refused or did not answer
│   ├── AccountUnavailable     a service refused or did not answer while the account was prepared
│   └── EmrUnavailable         EMR Serverless refused or did not answer
├── RowsWouldChange            compaction wrote other rows than it read; nothing of it was committed
├── FenceUnproven              the catalog let two drivers commit the same batch in the start probe
├── ObjectDiffers              a key that is written once holds other bytes than it should
├── ReleaseIncomplete          a release cannot be built: something it is made of is missing or not what is locked
├── ReleaseUntrusted           no trusted key has signed a release
├── RuntimeDiffers             what runs is not what the release was built for: Spark, Iceberg, Python, or a class
├── LockHeld                   another reconciler holds the lease of the job
├── RolloutFailed              no generation could be started, and there is no earlier healthy one to roll back to
├── JvmEnded                   Spark's JVM ended while the run was going on
├── Fault                      an error that no class here describes: a defect of Frazil
├── SparkFailed                a Spark job failed, and a new attempt would fail too
├── LocalPartFailed            a local process (broker, registry, object store) did not start or stop
├── JavaUnsuitable             no Java is found, or it is too old
├── JarsUnavailable            a locked jar is not in the cache and could not be fetched
└── JarMismatch                a fetched jar is not the one that the lock names
"""

from __future__ import annotations

from frazil.errors.failures import *  # noqa: F403 - this package is the tree, and the modules are its parts
from frazil.errors.operator_decisions import *  # noqa: F403
from frazil.errors.state_tables import *  # noqa: F403
