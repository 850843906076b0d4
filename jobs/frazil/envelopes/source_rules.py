"""The rules about what a connector captures of its source, which keys its records have, and into which topics they go."""

from __future__ import annotations

from collections.abc import Iterator

from frazil.envelopes.connector_rules import Fed, Found, Rule
from frazil.envelopes.plugins import ADVISED, REFUSED, TRANSFORMS

_SNAPSHOT, _BY_SETTINGS = "snapshot.mode", "snapshot.mode.configuration.based"
_NO_ROWS = "the connector reads no rows, so rows that do not change are missing in the table"
_NO_CHANGES = "the connector stops behind the snapshot, and writes no change after it"
_AT_EACH_START = "rows that are deleted while the connector is stopped stay in the table"
_AT_A_LOSS = "rows that are deleted in a part of the log that the source no longer has stay in the table"
_OF_A_CLASS = "a class decides which rows the connector reads, and whether it writes changes"
_SET_INITIAL = f"Set {_SNAPSHOT} to initial"
_READ_ROWS = f"{_SET_INITIAL}, or have an incremental snapshot read the rows"
_MODES = {
    "initial_only": (_NO_CHANGES, _SET_INITIAL),
    "always": (_AT_EACH_START, _SET_INITIAL),
    "when_needed": (_AT_A_LOSS, _SET_INITIAL),
    **dict.fromkeys(("no_data", "never", "schema_only", "when_needed_no_data"), (_NO_ROWS, _READ_ROWS)),
    **dict.fromkeys(
        ("recovery", "schema_only_recovery"),
        (f"the mode is for a lost history of schemas; {_NO_ROWS}", f"{_SET_INITIAL} behind the start that rebuilds it"),
    ),
    "custom": (_OF_A_CLASS, _SET_INITIAL),
}


def _key_columns(fed: Fed) -> Iterator[Found]:
    setting = "message.key.columns"
    entries = [entry.rpartition(":")[0] for entry in fed.connector.value(setting).split(";")]
    if (
        fed.is_one_of([entry for entry in entries if entry])
        and fed.connector.kind == "postgresql"
        and fed.replica_identity != "FULL"
    ):
        what = (
            f"{setting} names columns of {fed.table}: without REPLICA IDENTITY FULL, a change of one leaves a row "
            f"of the old key"
        )
        yield Found(
            setting=setting,
            what=what,
            do=f"Set the table's REPLICA IDENTITY to FULL, or remove {setting}",
            is_note=True,
        )


def _identity(fed: Fed) -> Iterator[Found]:
    setting = "replica.identity.autoset.values"
    if not fed.envelope.has_before or fed.connector.kind != "postgresql" or fed.replica_identity == "FULL":
        return
    if fed.replica_identity:
        what = (
            f'{setting} sets {fed.replica_identity} for {fed.table}, and Debezium(replica_identity="full") is declared'
        )
        yield Found(setting=setting, what=what, do="Set FULL there, or remove replica_identity")
    else:
        what = f'{setting} does not name {fed.table}, and Debezium(replica_identity="full") is declared'
        yield Found(setting=setting, what=what, do=f"Run ALTER TABLE {fed.table} REPLICA IDENTITY FULL", is_note=True)


def _heartbeats(fed: Fed) -> Iterator[Found]:
    setting = "heartbeat.interval.ms"
    if fed.connector.kind == "postgresql" and fed.connector.value(setting, "0") == "0":
        what = f"{fed.connector.stated(setting, '0')}: while captured tables do not change, the source keeps its log"
        yield Found(setting=setting, what=what, do="Set it to a minute, 60000, if other tables change", is_note=True)


def _transforms(fed: Fed) -> Iterator[Found]:
    for each in fed.connector.transforms:
        if each.is_conditional and each.type in TRANSFORMS:
            what = f"transform {each.alias} is {each.type.rpartition('.')[2]}: it applies to some topics only, and is not checked"
            do = "Check that its predicate leaves out the topic, or that the transform may be there"
            yield Found(setting=each.setting("predicate"), what=what, do=do, is_note=True)
            continue
        for known, is_note in ((REFUSED, False), (ADVISED, True)):
            if each.type in known:
                what = f"transform {each.alias} is {each.type.rpartition('.')[2]}: {known[each.type]}"
                do = "Check that it leaves the topic and all changes as they are" if is_note else "Remove it"
                yield Found(setting="transforms", what=what, do=do, is_note=is_note)


def _snapshot(fed: Fed) -> Iterator[Found]:
    """Yield what a mode leaves out. No event says of a row that it is missing in a snapshot."""
    mode = fed.connector.value(_SNAPSHOT, "initial").lower()
    if mode == "configuration_based":
        yield from _snapshot_by_settings(fed)
    elif mode != "initial":
        why, do = _MODES.get(mode, ("it is no mode that is known", _SET_INITIAL))
        what = f"{fed.connector.stated(_SNAPSHOT, 'initial')}: {why}"
        yield Found(setting=_SNAPSHOT, what=what, do=do, is_note=mode != "initial_only")


def _snapshot_by_settings(fed: Fed) -> Iterator[Found]:
    stream, data, again = (
        f"{_BY_SETTINGS}.{name}" for name in ("start.stream", "snapshot.data", "snapshot.on.data.error")
    )
    if not fed.connector.is_true(stream):
        what = f"{fed.connector.stated(stream, 'false')}: {_NO_CHANGES}"
        yield Found(setting=stream, what=what, do="Set it to true")
    why, do = (_AT_EACH_START, _SET_INITIAL) if fed.connector.is_true(data) else (_NO_ROWS, _READ_ROWS)
    yield Found(setting=data, what=f"{fed.connector.stated(data, 'false')}: {why}", do=do, is_note=True)
    if fed.connector.is_true(again):
        what = f"{fed.connector.stated(again, 'false')}: {_AT_A_LOSS}"
        yield Found(setting=again, what=what, do="Set it to false", is_note=True)


def _nothing(fed: Fed) -> Iterator[Found]:
    yield from ()


RULES = (
    Rule(
        setting="`topic.prefix`, `table.include.list` and the other lists",
        default="all tables",
        takes="those by which the declared topics are written",
        why="a topic that no connector writes stays empty",
        check=_nothing,
    ),
    Rule(
        setting="`transforms`",
        default="none",
        takes="not `ValueToKey`, `EventRouter`, `PartitionRouting`; those with a `predicate` are not checked (advice)",
        why=(
            "a key must name its row, and all its changes must be in one partition "
            "([order](#when-offsets-do-not-order-changes)). `RegexRouter` and `ByLogicalTableRouter` are followed"
            " to the declared topics"
        ),
        check=_transforms,
    ),
    Rule(
        setting="`message.key.columns`",
        default="the primary key",
        takes="unset, or with `REPLICA IDENTITY FULL` (advice)",
        why=(
            "with the default replica identity, the connector does not know the old values of other columns than "
            "the primary key, so it cannot delete the row of an old key"
        ),
        check=_key_columns,
    ),
    Rule(
        setting="`replica.identity.autoset.values`",
        default="none",
        takes=(
            '`FULL` for the table, if `Debezium(replica_identity="full")` is declared and the source does not have it'
        ),
        why="with another one, updates have no row before, and deletes an invented one",
        check=_identity,
    ),
    Rule(
        setting="`snapshot.mode`",
        default="`initial`",
        takes="`initial`; never one that writes no changes. Of others there is advice ([modes](#modes-of-the-snapshot))",
        why="a mode may read no rows, write no changes, or leave out deletes",
        check=_snapshot,
    ),
    Rule(
        setting="`heartbeat.interval.ms`",
        default="`0`",
        takes="more than 0 for PostgreSQL (advice)",
        why=(
            "while no captured table changes, the connector confirms no position, and the source keeps its log. "
            "The topic of heartbeats is none of a table"
        ),
        check=_heartbeats,
    ),
    Rule(
        setting="`provide.transaction.metadata`",
        default="`false`",
        takes="any",
        why=(
            "the topic of transactions, `PREFIX.transaction`, is none of a table; the field `transaction` of "
            "events is not read"
        ),
        check=_nothing,
    ),
)
