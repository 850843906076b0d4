"""The rules about what events a connector writes, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from frazil.declaration.checks.column_notation import columns
from frazil.envelopes.connector_rules import Fed, Found, Rule, one_of

_WRITES_ROWS = ("rewrite", "rewrite-with-tombstone")
_FLAT = "ExtractNewRecordState"


def _classes(fed: Fed) -> Iterator[Found]:
    is_document = fed.connector.kind == "mongodb"
    if is_document and not any(each.type.endswith("ExtractNewDocumentState") for each in fed.connector.transforms):
        what = "connector.class is MongoDB's: its events have rows as text, which have no columns"
        yield Found(setting="connector.class", what=what, do="Flatten the events with ExtractNewDocumentState")


def _flattened_options(fed: Fed) -> Iterator[Found]:
    flat = fed.connector.flattening
    declared = {each.name for each in columns(fed.pipeline.topic.columns or ())}
    marks = declared & {"__op", "__deleted"}
    if flat is None:
        if marks and not fed.connector.flattens_some:
            name, what = min(marks), "the events are not flattened, and the column {} is declared, which they have not"
            yield Found(setting="transforms", what=what.format(name), do=f"Remove the column, or add {_FLAT}")
        return
    setting, prefix = flat.setting("add.fields"), flat.setting("add.fields.prefix")
    has_op = "op" in {part.rpartition(":")[2] for part in fed.connector.names(setting)}
    rewrites = fed.connector.value(flat.setting("delete.tombstone.handling.mode")).lower() in _WRITES_ROWS
    for name, is_declared in (
        ("source_column", fed.envelope.source_column),
        ("replica_identity", fed.envelope.has_before),
    ):
        if is_declared:
            what = f"{_FLAT} leaves out what envelope.{name} asks for"
            yield Found(setting="transforms", what=what, do=f"Remove {name}, or {_FLAT}")
    if fed.connector.value(prefix, "__") != "__":
        what = f"{fed.connector.stated(prefix, '__')}: __op and __deleted are known by their names"
        yield Found(setting=prefix, what=what, do=f"Remove {prefix}")
    if (fed.envelope.operation_column or "__op" in declared) and not has_op:
        what = f"{fed.connector.stated(setting, 'empty')}, and the column of the operation is declared"
        yield Found(setting=setting, what=what, do=f"Add op to {setting}")
    if "__deleted" in declared and not rewrites:
        mode = flat.setting("delete.tombstone.handling.mode")
        what = f"{fed.connector.stated(mode, 'tombstone')}: it does not write __deleted, which is declared"
        yield Found(setting=mode, what=what, do="Set it to rewrite, or remove the column")
    if declared and not marks:
        what = "the events are flattened, and no declared column says what an event does: all are rejected"
        yield Found(
            setting="transforms", what=what, do="Declare __op string and set add.fields to op, or __deleted string"
        )


def _deletes(fed: Fed) -> Iterator[Found]:
    flat = fed.connector.flattening
    if flat is None:
        return
    setting, tombstones = flat.setting("delete.tombstone.handling.mode"), "tombstones.on.delete"
    mode = fed.connector.value(setting, "tombstone").lower()
    has_tombstones = fed.connector.is_true(tombstones, default=True)
    if mode == "drop" or (mode == "tombstone" and not has_tombstones):
        with_false = "" if mode == "drop" else f", and {tombstones} is false"
        what = f"{fed.connector.stated(setting, 'tombstone')}{with_false}: no delete is written, and the rows stay"
        yield Found(setting=setting, what=what, do=f"Set {setting} to rewrite")


def _skipped(fed: Fed) -> Iterator[Found]:
    setting = "skipped.operations"
    skipped = {part.strip().lower() for part in fed.connector.value(setting, "t").split(",")}
    stated = fed.connector.stated(setting, "t")
    if lost := sorted(skipped & {"c", "u", "d"}):
        what = f"{stated}: changes of kind {', '.join(lost)} are not written, and the table is not the source's"
        yield Found(setting=setting, what=what, do=f"Set {setting} to none")
    elif fed.empties and fed.connector.flattening is not None:
        what = f"{_FLAT} writes no truncates, and on_truncate is delete_all"
        yield Found(setting="transforms", what=what, do=f"Remove {_FLAT}, or on_truncate")
    elif "t" in skipped:
        what = f"{stated}: truncates are not written, and the table keeps rows that the source has not"
        wants = " if the source truncates" if not fed.empties else ""
        yield Found(setting=setting, what=what, do=f"Set {setting} to none{wants}", is_note=not fed.empties)


def _placeholder(fed: Fed) -> Iterator[Found]:
    setting, default = "unavailable.value.placeholder", "__debezium_unavailable_value"
    written = fed.connector.value(setting, default)
    if written.startswith("hex:"):
        try:
            written = bytes.fromhex(written.removeprefix("hex:")).decode()
        except ValueError:
            written = ""
    if written != fed.envelope.unavailable_value:
        what = (
            f"{fed.connector.stated(setting, default)}, and Debezium(unavailable_value=…) is another one: it would land"
        )
        yield Found(setting=setting, what=what, do="Declare the same unavailable_value")


def _binary(fed: Fed) -> Iterator[Found]:
    setting = "binary.handling.mode"
    if fed.connector.kind == "postgresql" and fed.replica_identity != "FULL":
        what = "bytes are text, and a value that is left out is not recognised in them"
        yield from one_of(setting, "bytes", ("bytes",), what, is_note=True)(fed)


def _failures(setting: str, default: str) -> Callable[[Fed], Iterator[Found]]:
    return one_of(setting, default, (default,), "events that fail are left out, and nothing says so", is_note=True)


RULES = (
    Rule(
        setting="`connector.class`",
        default="",
        takes="those of relational databases; MongoDB's with `ExtractNewDocumentState`",
        why="MongoDB's events have rows as text",
        check=_classes,
    ),
    Rule(
        setting="`tombstones.on.delete`, `delete.tombstone.handling.mode` of `ExtractNewRecordState`",
        default="`true`, `tombstone`",
        takes="any by which a delete is written",
        why=(
            "a `d`, a tombstone or both delete the row, and so does null in JSON, which its converters write for "
            "some flattened deletes. Flattened with `drop`, or with the default and `tombstones.on.delete=false`,"
            " deletes are not written, and the rows stay"
        ),
        check=_deletes,
    ),
    Rule(
        setting="`add.fields`, `add.fields.prefix` of `ExtractNewRecordState`",
        default="empty, `__`",
        takes=(
            "`op` for `operation_column` or the column `__op`; the prefix as it is. Declare `__deleted` only if "
            "the mode above writes it"
        ),
        why=(
            "a flattened event says what it does by these names alone. With declared columns one of them must be "
            "declared"
        ),
        check=_flattened_options,
    ),
    Rule(
        setting="`skipped.operations`",
        default="`t`",
        takes=(
            '`none` with `on_truncate="delete_all"`, else `none` if the source truncates (advice). Never `c`, `u`'
            " or `d`"
        ),
        why=(
            "by default truncates are not written, and the table keeps rows that the source has not. "
            "`ExtractNewRecordState` writes none at all"
        ),
        check=_skipped,
    ),
    Rule(
        setting="`decimal.handling.mode`",
        default="`precise`",
        takes="`precise` or `string` (advice)",
        why="with `double`, digits are lost in the connector",
        check=one_of("decimal.handling.mode", "precise", ("precise", "string"), "digits are lost", is_note=True),
    ),
    Rule(
        setting="`time.precision.mode`",
        default="`adaptive`",
        takes="`adaptive` or `adaptive_time_microseconds` (advice)",
        why=(
            "with `connect`, times are cut to milliseconds, and a timestamp without time zone lands as "
            "`timestamptz`. With `isostring`, times are text"
        ),
        check=one_of(
            "time.precision.mode",
            "adaptive",
            ("adaptive", "adaptive_time_microseconds"),
            "times lose digits or their meaning",
            is_note=True,
        ),
    ),
    Rule(
        setting="`unavailable.value.placeholder`",
        default="`__debezium_unavailable_value`",
        takes="as `Debezium(unavailable_value=…)`",
        why="another one would land as a value",
        check=_placeholder,
    ),
    Rule(
        setting="`binary.handling.mode`",
        default="`bytes`",
        takes="`bytes`, for PostgreSQL without `REPLICA IDENTITY FULL` (advice)",
        why="else bytes are text, and a value that is left out is not recognised in them",
        check=_binary,
    ),
    Rule(
        setting="`event.processing.failure.handling.mode`",
        default="`fail`",
        takes="`fail` (advice)",
        why="an event that the connector leaves out is missing, and nothing says so",
        check=_failures("event.processing.failure.handling.mode", "fail"),
    ),
    Rule(
        setting="`errors.tolerance` of Kafka Connect",
        default="`none`",
        takes="`none` (advice)",
        why="the same for records that a transform or a converter fails on",
        check=_failures("errors.tolerance", "none"),
    ),
)
