"""The order of one maintenance run, top to bottom: each pipeline's table, then its dead letters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from frazil.declaration import Pipeline
from frazil.declaration.engines import refuse_foreign
from frazil.errors import Fault, ForeignTable, FrazilError, JvmEnded, RolledBack, SparkFailed
from frazil.job.context import JobContext
from frazil.lake.iceberg_java import error_text, said
from frazil.lake.layout import Layout
from frazil.lake.ledger.entries import entry
from frazil.lake.ledger.lineage import head_follows
from frazil.lake.spark_session import jvm_answers
from frazil.maintain import lease as leases
from frazil.maintain.compact import compact, merge_deletes
from frazil.maintain.expire import carry, expire
from frazil.maintain.lease import Lease
from frazil.maintain.orphans import check_age
from frazil.maintain.orphans import orphans as look_for_orphans
from frazil.maintain.target import Action, MaintenanceRun, Outcome, Policy, Sink, Status, Target

TRIES = 3
_SHUFFLE = "spark.sql.shuffle.partitions"
GONE = re.compile("FileNotFoundException|NotFoundException|NoSuchKeyException|NoSuchFileException")
BROKEN = (FrazilError, Py4JJavaError, PySparkException)


def prepare(job: JobContext, policy: Policy) -> MaintenanceRun:
    """Return a run of this job, whose session is set up for what maintenance compares (see `shuffle_partitions`)."""
    spark = job.spark
    if not spark.sparkContext.getConf().contains(_SHUFFLE):
        spark.conf.set(_SHUFFLE, shuffle_partitions(spark.sparkContext.defaultParallelism))
    return MaintenanceRun(job, policy)


def maintain(
    pipelines: Sequence[Pipeline], run: MaintenanceRun, sink: Sink, *, orphans: bool
) -> dict[str, list[Outcome]]:
    """Maintain the tables of all pipelines, one after another; return the outcomes by pipeline.

    One table's error is an outcome (`FAILED`) and not another's. Orphans are reported, and deleted only with `orphans`.
    Raises `InvalidInput` for an orphan age under three days, before anything is done.
    """
    check_age(run.policy.orphan_seconds)
    refuse_foreign(pipelines)
    done: dict[str, list[Outcome]] = {}
    for pipeline in pipelines:
        names = {"event": "maintained", "pipeline": pipeline.name, "run": run.job.run}
        outcomes = done.setdefault(pipeline.name, [])
        for target in Target.of(pipeline):
            for outcome in _whatever_happens(run, target, orphans=orphans):
                sink({"time": round(run.job.clock(), 3), **names, **outcome.document()})
                outcomes.append(outcome)
    return done


def shuffle_partitions(cores: int) -> int:
    """Return into how many tasks expiry and the search for orphans divide what they compare: 4 a core, 16 at least.

    Spark's 200 are mostly empty on tables of a few thousand files, and cost seconds an action.
    """
    return max(16, 4 * cores)


def _whatever_happens(run: MaintenanceRun, target: Target, *, orphans: bool) -> Iterable[Outcome]:
    """Yield the outcomes at one table. An error that no action expects is this table's outcome; the other tables go on."""
    try:
        yield from keep(run, target, orphans=orphans)
    except Exception as error:  # noqa: BLE001 - see above
        yield _failed(run, Action.COMPACT, target, error)


def keep(run: MaintenanceRun, target: Target, *, orphans: bool) -> Iterable[Outcome]:
    """Yield the outcomes of all actions at one table, under its lease. A table that does not exist, or is empty, needs none."""
    iceberg = run.job.iceberg
    if not iceberg.exists(target.identifier) or iceberg.load(target.identifier).currentSnapshot() is None:
        return
    if refusal := _rolled_back(run, target.pipeline):  # before the lease: no commit at a table that was rolled back
        yield target.outcome(Action.COMPACT, Status.DECISION_REQUIRED, refusal)
        return
    metadata = iceberg.metadata(iceberg.load(target.identifier))
    if not target.is_dead_letter_table and not Layout.of(metadata).is_ours:
        foreign = ForeignTable.of(target.pipeline.name, target.identifier)
        yield target.outcome(Action.COMPACT, Status.DECISION_REQUIRED, str(foreign))
        return
    lease = Lease.of(metadata.get("properties", {}))
    if run.policy.dry_run:
        yield from _all(run, target, lease, orphans=orphans)
        return
    if (taken := _take(run, target)) is None:
        yield target.outcome(Action.COMPACT, Status.BUSY, f"maintenance run {lease.holder} is at this table")
        return
    try:
        yield from _all(run, target, taken, orphans=orphans)
    finally:
        _release(run, target)


def _all(run: MaintenanceRun, target: Target, lease: Lease, *, orphans: bool) -> Iterable[Outcome]:
    taken_ms = run.job.now_ms()

    def hold() -> bool:
        """Return whether this run still holds the lease; it is renewed when a good part of it has passed."""
        nonlocal taken_ms
        if run.policy.dry_run or run.job.now_ms() - taken_ms < run.policy.lease_seconds * 1000 / 4:
            return True
        taken_ms = run.job.now_ms()
        return _take(run, target) is not None

    acts: Mapping[Action, Callable[[], Outcome]] = {
        Action.COMPACT: lambda: compact(run, target, lease, hold=hold),
        Action.MERGE: lambda: merge_deletes(run, target, hold=hold),
        Action.CARRY: lambda: carry(run, target),
        Action.EXPIRE: lambda: expire(run, target),
        Action.ORPHANS: lambda: look_for_orphans(run, target, remove=orphans),
    }
    for action in (action for action in Action if action is not Action.MERGE or target.has_own_deletes):
        if run.job.stopping():
            yield target.outcome(action, Status.STOPPED, "the run was asked to end")
            return
        began = run.job.clock()
        try:
            if action is not Action.COMPACT and not run.policy.dry_run and _take(run, target) is None:
                why = "another maintainer took the lease, which had run out"
                yield target.outcome(action, Status.STOPPED, why)
                return
            if refusal := _rolled_back(run, target.pipeline):
                yield target.outcome(action, Status.DECISION_REQUIRED, refusal)
                return
            outcome = _tried(run, target, action, acts[action])
        except Exception as error:  # noqa: BLE001 - the other actions go on
            outcome = _failed(run, action, target, error)
        yield replace(outcome, seconds=round(run.job.clock() - began, 3))
        if outcome.ended is Status.FAILED and not jvm_answers(run.job.spark):
            return


def _rolled_back(run: MaintenanceRun, pipeline: Pipeline) -> str:
    """Return why nothing may be done at the pipeline's tables, or nothing.

    A rollback of either table concerns both: the operator's decision needs the snapshots of both.
    """
    for identifier in (pipeline.table.identifier, pipeline.table.dead_letters):
        if not run.job.iceberg.exists(identifier):
            continue
        table = run.job.iceberg.load(identifier)
        if not head_follows(run.job.iceberg, table, entry(table, pipeline.name)):
            return str(RolledBack.of_table(pipeline.name, identifier))
    return ""


def _tried(run: MaintenanceRun, target: Target, action: Action, act: Callable[[], Outcome]) -> Outcome:
    """Do an action, and again if it failed while the table moved on: what it was reading may have gone rightly.

    Where files go faster than they can be read, it is another writer who wins.
    """
    for tries_left in reversed(range(TRIES)):
        before = _version(run, target)
        try:
            return act()
        except (Py4JJavaError, PySparkException) as error:
            if run.job.stopping() or _version(run, target) == before:
                raise
            if not tries_left:
                if not GONE.search(error_text(error)):
                    raise
                return target.outcome(action, Status.CONFLICT, _words(error))
    raise AssertionError("unreachable")


def _version(run: MaintenanceRun, target: Target) -> str:
    """Return the table's metadata file: another one after each commit."""
    return str(run.job.iceberg.load(target.identifier).operations().current().metadataFileLocation())


def _take(run: MaintenanceRun, target: Target) -> Lease | None:
    return leases.take(run.job, target.identifier, seconds=run.policy.lease_seconds)


def _release(run: MaintenanceRun, target: Target) -> None:
    """Give the lease back; if that fails it runs out, which is no reason to fail what was done."""
    try:
        leases.release(run.job, target.identifier)
    except (*BROKEN, Py4JError, OSError):  # the last two: the JVM ended
        return


def _failed(run: MaintenanceRun, action: Action, target: Target, error: Exception) -> Outcome:
    if run.job.stopping():  # jobs are cancelled when a run is to end
        return target.outcome(action, Status.STOPPED, "the run was asked to end")
    where = f"table {target.identifier}"
    if not isinstance(error, BROKEN):
        error = Fault.of(error, where=where) if jvm_answers(run.job.spark) else JvmEnded.of(where)
    if not isinstance(error, FrazilError):
        error = SparkFailed(_words(error), where=where, do="Run again; nothing but files was changed")
    return target.outcome(action, Status.FAILED, str(error))


def _words(error: Exception) -> str:
    if isinstance(error, Py4JJavaError | PySparkException):
        return said(error)
    return next(iter(str(error).splitlines()), type(error).__name__)
