"""Run: the order of one maintenance run, top to bottom: each pipeline's table, then its dead letters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from frazil.declaration import Pipeline
from frazil.declaration.engines import refuse_foreign
from frazil.errors import Fault, FrazilError, JvmEnded, SparkFailed
from frazil.lake.commit.append import entry
from frazil.lake.commit.check import rolled_back
from frazil.lake.iceberg_java import message, thrown, told
from frazil.lake.lineage import head_follows
from frazil.lake.session import jvm_answers
from frazil.maintain import lease as leases
from frazil.maintain.advance_tag import carry
from frazil.maintain.compact import compact
from frazil.maintain.expire import expire
from frazil.maintain.keeper import Keeper, Kept
from frazil.maintain.lease import Lease
from frazil.maintain.orphans import check_age
from frazil.maintain.orphans import orphans as look_for_orphans
from frazil.maintain.result import Action, Ended, Outcome, Reporter, Sink

TRIES = 3
GONE = re.compile("FileNotFoundException|NotFoundException|NoSuchKeyException|NoSuchFileException")
BROKEN = (FrazilError, Py4JJavaError, PySparkException)


def maintain(pipelines: Sequence[Pipeline], keeper: Keeper, sink: Sink, *, orphans: bool) -> dict[str, list[Outcome]]:
    """Keep the tables of all pipelines, one after another; the outcomes by pipeline.

    One table's error is an outcome (`FAILED`) and not another's. Orphans are told, and removed only with `orphans`.
    Raises `InvalidInput` for an orphan age under three days, before anything is done.
    """
    check_age(keeper.policy.orphan_seconds)
    refuse_foreign(pipelines)
    done: dict[str, list[Outcome]] = {}
    for pipeline in pipelines:
        report = Reporter(sink, pipeline.name, keeper.run, keeper.clock)
        outcomes = done.setdefault(pipeline.name, [])
        for kept in (Kept(pipeline, is_side=False), Kept(pipeline, is_side=True)):
            for outcome in _whatever_happens(keeper, kept, orphans=orphans):
                report(outcome)
                outcomes.append(outcome)
    return done


def _whatever_happens(keeper: Keeper, kept: Kept, *, orphans: bool) -> Iterable[Outcome]:
    """The outcomes at one table. An error that no action expects is this table's outcome, and no reason to leave the others."""
    try:
        yield from keep(keeper, kept, orphans=orphans)
    except Exception as error:  # noqa: BLE001 - see above
        yield _failed(keeper, Action.COMPACT, kept, error)


def keep(keeper: Keeper, kept: Kept, *, orphans: bool) -> Iterable[Outcome]:
    """The outcomes of all actions at one table, under its lease. A table that is not there, or is empty, needs none."""
    try:
        if not _has_snapshots(keeper, kept):
            return
        if refusal := _rolled_back(
            keeper, kept.pipeline
        ):  # before the lease: not one commit at a table that was rolled back
            yield _waiting(Action.COMPACT, kept, refusal)
            return
        lease = Lease.of(keeper.iceberg.metadata(keeper.iceberg.load(kept.identifier)).get("properties", {}))
        if not keeper.dry_run:
            taken = _take(keeper, kept)
            if taken is None:
                yield Outcome(action=Action.COMPACT, table=kept.identifier, ended=Ended.BUSY, why=_told(lease))
                return
            lease = taken
    except BROKEN as error:
        yield _failed(keeper, Action.COMPACT, kept, error)
        return
    try:
        yield from _all(keeper, kept, lease, orphans=orphans)
    finally:
        if not keeper.dry_run:
            _release(keeper, kept)


def _all(keeper: Keeper, kept: Kept, lease: Lease, *, orphans: bool) -> Iterable[Outcome]:
    taken_ms = keeper.now_ms()

    def hold() -> bool:
        """Whether the lease still is ours; it is taken anew when a good part of it has passed."""
        nonlocal taken_ms
        if keeper.dry_run or keeper.now_ms() - taken_ms < keeper.policy.lease_seconds * 1000 / 4:
            return True
        taken_ms = keeper.now_ms()
        return _take(keeper, kept) is not None

    acts: Mapping[Action, Callable[[], Outcome]] = {
        Action.COMPACT: lambda: compact(keeper, kept, lease, hold=hold),
        Action.CARRY: lambda: carry(keeper, kept),
        Action.EXPIRE: lambda: expire(keeper, kept),
        Action.ORPHANS: lambda: look_for_orphans(keeper, kept, remove=orphans),
    }
    for action in Action:
        if keeper.stopping():
            yield Outcome(action=action, table=kept.identifier, ended=Ended.STOPPED, why="the run was asked to end")
            return
        try:
            if action is not Action.COMPACT and not keeper.dry_run and _take(keeper, kept) is None:
                why = "another maintainer took the lease, which had run out"
                yield Outcome(action=action, table=kept.identifier, ended=Ended.STOPPED, why=why)
                return
            if refusal := _rolled_back(keeper, kept.pipeline):
                yield _waiting(action, kept, refusal)
                return
            outcome = _tried(keeper, kept, action, acts[action])
        except BROKEN as error:
            outcome = _failed(keeper, action, kept, error)
        yield outcome


def _rolled_back(keeper: Keeper, pipeline: Pipeline) -> str:
    """Return why nothing may be done at the pipeline's tables, or nothing.

    A rollback of either table concerns both: the operator's decision needs the snapshots of both.
    """
    for identifier in (pipeline.table.identifier, pipeline.table.dead_letters):
        if not keeper.iceberg.exists(identifier):
            continue
        table = keeper.iceberg.load(identifier)
        if not head_follows(keeper.iceberg, table, entry(table, pipeline.name)):
            return str(rolled_back(pipeline.name, where=f"table {identifier}"))
    return ""


def _tried(keeper: Keeper, kept: Kept, action: Action, act: Callable[[], Outcome]) -> Outcome:
    """Do an action, and again if it failed while the table moved on: what it was reading may have gone rightly.

    Where files go faster than they can be read, it is another writer who wins.
    """
    for tries_left in reversed(range(TRIES)):
        before = _version(keeper, kept)
        try:
            return act()
        except (Py4JJavaError, PySparkException) as error:
            if keeper.stopping() or _version(keeper, kept) == before:
                raise
            if not tries_left:
                if not GONE.search(told(error)):
                    raise
                return Outcome(action=action, table=kept.identifier, ended=Ended.CONFLICT, why=_words(error))
    raise AssertionError("unreachable")


def _version(keeper: Keeper, kept: Kept) -> str:
    """The table's metadata file: another one after each commit."""
    return str(keeper.iceberg.load(kept.identifier).operations().current().metadataFileLocation())


def _take(keeper: Keeper, kept: Kept) -> Lease | None:
    return leases.take(
        keeper.iceberg,
        kept.identifier,
        holder=keeper.run,
        now_ms=keeper.now_ms(),
        seconds=keeper.policy.lease_seconds,
        wait=keeper.wait,
        reach=keeper.reach,
    )


def _release(keeper: Keeper, kept: Kept) -> None:
    """Give the lease back; if that fails it runs out, which is no reason to fail what was done."""
    try:
        leases.release(keeper.iceberg, kept.identifier, holder=keeper.run, now_ms=keeper.now_ms(), wait=keeper.wait)
    except (*BROKEN, Py4JError, OSError):  # the last two: the JVM ended
        return


def _has_snapshots(keeper: Keeper, kept: Kept) -> bool:
    iceberg = keeper.iceberg
    return iceberg.exists(kept.identifier) and iceberg.load(kept.identifier).currentSnapshot() is not None


def _told(lease: Lease) -> str:
    return f"maintenance run {lease.holder} is at this table"


def _waiting(action: Action, kept: Kept, refusal: str) -> Outcome:
    return Outcome(action=action, table=kept.identifier, ended=Ended.DECISION_REQUIRED, why=refusal)


def _failed(keeper: Keeper, action: Action, kept: Kept, error: Exception) -> Outcome:
    if keeper.stopping():  # jobs are cancelled when a run is to end
        return Outcome(action=action, table=kept.identifier, ended=Ended.STOPPED, why="the run was asked to end")
    where = f"table {kept.identifier}"
    if not isinstance(error, (FrazilError, *BROKEN)):
        if jvm_answers(keeper.spark):
            error = Fault(f"{type(error).__name__}: {error}", where=where, do="This is a defect of Frazil. Report it")
        else:
            error = JvmEnded("Spark's JVM ended", where=where, do="Run again; nothing but files was changed")
    if not isinstance(error, FrazilError):
        error = SparkFailed(_words(error), where=where, do="Run again; nothing but files was changed")
    return Outcome(action=action, table=kept.identifier, ended=Ended.FAILED, why=str(error))


def _words(error: Exception) -> str:
    if isinstance(error, Py4JJavaError):
        return f"{thrown(error)}: {message(error)}"
    return next(iter(str(error).splitlines()), type(error).__name__)
