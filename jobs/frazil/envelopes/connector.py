"""The check of a Debezium connector's settings against the pipelines that it feeds: a table of rules, and their one evaluator.

docs/change-data.md has the reasons. Defaults are those of Debezium 3.6 and Kafka Connect 4.3. A finding is a problem if events
would be refused, lost or land as something else for certain, otherwise a note.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from frazil.declaration.checks.column_notation import columns
from frazil.declaration.checks.constraints import shown
from frazil.declaration.checks.problems import InvalidDeclaration, Problem
from frazil.declaration.documents.from_json import parsed
from frazil.declaration.envelopes import Debezium
from frazil.declaration.pipeline import Pipeline
from frazil.declaration.write_modes import deletes_all

FLATTENING = "ExtractNewRecordState"
LISTS = tuple(f"{kind}.{how}.list" for kind in ("table", "schema", "database") for how in ("include", "exclude"))
_ROUTERS = ("RegexRouter", "ByLogicalTableRouter", "TimestampRouter", "ContentBasedRouter")
_ONLY_JAVA = re.compile(r"\\[^.$\-_wds]|&&|\[[^\]]*\[|\)[*+{]|[*+?}]\+|\(\?")
"""Matches patterns that Java and Python may read differently, and patterns that repeat a group."""
_DATABASES = {"Postgres", "MySql", "MariaDb", "SqlServer", "Oracle", "Db2", "MongoDb", "Informix", "Vitess", "Spanner"}


@dataclass(frozen=True, slots=True)
class Connector:
    """The settings of one connector. Only those that a rule asks for are ever printed: others may be secrets."""

    file: str
    settings: Mapping[str, str]

    def value(self, name: str, default: str = "") -> str:
        """Return the value of a setting, or its default."""
        return self.settings.get(name, default).strip()

    def names(self, name: str) -> tuple[str, ...]:
        """Return the parts of a list; a comma in one is escaped."""
        return tuple(part.strip() for part in re.split(r"(?<!\\),", self.value(name)) if part.strip())

    def stated(self, name: str, default: str = "") -> str:
        """Return the setting and its value, for a message."""
        default = f", and {default} by default" if default else ""
        return f"{name} is {shown(self.settings[name])}" if name in self.settings else f"{name} is not set{default}"

    def plugin(self, name: str, kind: str = "") -> str:
        """Return the short name of a plugin of Kafka, Debezium, Confluent or Apicurio; the class of another one."""
        known = r"^(org\.apache\.kafka\.connect|io\.debezium|io\.confluent\.connect|io\.apicurio)\.[\w.]*\.(?=\w+$)"
        return re.sub(known, "", self.value(name)).removesuffix(kind)

    def is_filled_in(self, name: str) -> bool:
        """Return whether only the worker knows the value, from a provider that the setting names."""
        return re.search(r"\$\{[^:}]+:", self.settings.get(name, "")) is not None

    @property
    def database(self) -> str:
        """The database as Debezium's class names it; empty for another connector."""
        name = self.plugin("connector.class", "Connector")
        return name if name in _DATABASES else ""

    def transforms(self, types: Iterable[str], *, conditional: bool = False) -> Iterator[str]:
        """Yield the prefix of the settings of each transform of these types, with or without a predicate."""
        for each in (f"transforms.{name}" for name in self.names("transforms")):
            if self.plugin(f"{each}.type") in types and bool(self.value(f"{each}.predicate")) is conditional:
                yield each

    @property
    def doubt(self) -> str:
        """The setting for which the written topics are not known for certain; empty if they are known."""
        routers = (*self.transforms(_ROUTERS), *self.transforms(_ROUTERS, conditional=True))
        found = [name for name in ("topic.prefix", *LISTS) if self.is_filled_in(name)]
        found += [name for name in ("topic.naming.strategy", "topic.delimiter") if self.value(name) not in ("", ".")]
        found += [f"{name}.type" for name in routers]
        found += [name for name in LISTS if re.search(r"\\\$|[ #]|[^ -~]", "".join(self.names(name)))]
        return next(iter(found), "")

    def table_of(self, topic: str) -> str:
        """Return the table that a topic of this prefix is named after, captured or not; empty for another topic."""
        prefix = f"{self.value('topic.prefix')}."
        return topic.removeprefix(prefix) if topic.startswith(prefix) else ""

    def fed(self, pipelines: Sequence[Pipeline]) -> list[Pipeline]:
        """Return the pipelines whose topics the connector writes; all of them in doubt, none of another connector."""
        tables = [(each, self.table_of(each.topic.name)) for each in pipelines if self.database]
        return [each for each, table in tables if self.doubt or (table and self._captures(table))]

    def _captures(self, table: str) -> bool:
        outer, _, _ = table.rpartition(".")
        of_kind = {"table": table, "schema": outer.rpartition(".")[2], "database": outer.partition(".")[0]}
        for kind, name in of_kind.items():
            included, excluded = (self.names(f"{kind}.{how}.list") for how in ("include", "exclude"))
            if (included and not names_table(included, name)) or names_table(excluded, name, in_doubt=False):
                return False
        return True


def names_table(patterns: Iterable[str], name: str, *, in_doubt: bool = True) -> bool:
    """Return whether a pattern is one of a name, with or without its first part.

    The answer for a pattern that Java may read otherwise, or that Python may compare without end, is `in_doubt`.
    """
    names = [each for each in (name, name.partition(".")[2]) if each]
    return any(
        any(re.fullmatch(each, one, re.IGNORECASE) for one in names) if _is_readable(each) else in_doubt
        for each in patterns
    )


def _is_readable(pattern: str) -> bool:
    try:
        return not _ONLY_JAVA.search(pattern) and bool(re.compile(pattern, re.IGNORECASE))
    except (re.error, OverflowError, RecursionError):
        return False


def connector(text: bytes, file: str) -> Connector:
    """Return the connector of a file. Raises `InvalidDeclaration` if it is something else, without a value in the message."""
    content = parsed(text, file)
    config = content.get("config", content) if isinstance(content, dict) else None
    if not isinstance(config, dict) or not config or any(isinstance(value, dict | list) for value in config.values()):
        what = "this is not the configuration of a connector"
        raise InvalidDeclaration([Problem(file, what, 'Write {"name": …, "config": {…}}, or the settings alone')])
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in config.items()}
    return Connector(file, {name: text for name, text in texts.items() if config[name] is not None})


@dataclass(frozen=True, slots=True)
class Fed:
    """A pipeline, and the connector that feeds its topic, for one side of its records. A text is empty if it is unknown."""

    connector: Connector
    envelope: Debezium
    table: str
    side: str
    converter: str
    written: str
    wanted: str
    columns: Mapping[str, str]
    mark: str
    identity: str
    empties: bool
    is_postgres: bool
    has_other_json: bool

    @classmethod
    def of(cls, connector: Connector, pipeline: Pipeline, envelope: Debezium, side: str = "value") -> Fed:
        """Return what the settings and the declaration say about a side."""
        topic, name = pipeline.topic, f"{side}.converter"
        table = connector.table_of(topic.name) or topic.name
        converter, has_schema = connector.plugin(name, "Converter"), connector.value(f"{name}.schemas.enable", "true")
        of_apicurio = "io.apicurio" if "." in connector.value(name) else f"{name}.apicurio."
        if converter == "Avro" and of_apicurio in " ".join((connector.value(name), *connector.settings)):
            converter = "Apicurio"
        json = "connect_json" if has_schema.lower() == "true" else "json"
        formats = {"Avro": "avro", "JsonSchema": "json_schema", "Apicurio": "avro", "Json": json}
        wanted = topic.side(is_key=side == "key").kind
        types = {each.name: each.type.name for each in columns(topic.value.columns or ())}
        mark = min({"__deleted", "__op"} & {*types}, default="")
        identities = (each.rpartition(":") for each in connector.names("replica.identity.autoset.values"))
        identity = next((each.strip().upper() for one, _, each in identities if names_table([one], table)), "")
        empties = deletes_all(pipeline.write)
        written = formats.get(converter, "")
        about = (written, wanted, types, mark, identity, empties, connector.database == "Postgres")
        return cls(connector, envelope, table, side, converter, *about, {written, wanted} == {"json", "connect_json"})


@dataclass(frozen=True, slots=True)
class Rule:
    """A setting, its default, the values that Frazil takes, the effect of others, what to do, and when the rule applies.

    A setting with `{side}` is of `key` and `value`, with `{Name}` of each such transform, with `{?}` of those with a predicate.
    """

    setting: str
    default: str
    takes: tuple[str, ...] | Callable[[Fed, str], bool]
    what: str
    do: str = "Set {setting} to {value}"
    when: Callable[[Fed], bool] = lambda fed: True
    is_note: bool = False


Note = partial(Rule, is_note=True)


def _not(*values: str) -> Callable[[Fed, str], bool]:
    return lambda fed, value: value not in values


def _is_of(*converters: str) -> Callable[[Fed], bool]:
    return lambda fed: fed.converter in converters


_NULLS = "null lands as the default of a column that has one"
_REGISTRY, _FLAT, _MODE = "{side}.converter.apicurio.registry", f"{{{FLATTENING}}}", "snapshot.mode"
_DELETES, _OPERATIONS = f"{_FLAT}.delete.tombstone.handling.mode", "skipped.operations"
_IDENTITY, _STREAM = "replica.identity.autoset.values", "snapshot.mode.configuration.based.start.stream"
_NO_TRUNCATES = "truncates are not written, and the table keeps rows that the source has not"
_FAILURES, _INITIAL = "events that fail are omitted, and nothing says so", "Set snapshot.mode to initial"
_NO_CHANGES = "the connector stops after the snapshot, and writes no change after it"
_NOT_READ = ("no_data", "never", "schema_only", "when_needed_no_data", "recovery", "schema_only_recovery")
_TRANSFORMS = {
    "ValueToKey": "a delete has no value to take the key from",
    "EventRouter": "its records are messages, not changes of a row",
    "PartitionRouting": "a key goes to another partition when the fields change that decide on it",
}

RULES = (
    Note("{side}.converter", "", lambda fed, name: bool(name), "the worker's converter writes the {fed.side}s",
         "Check that it writes {fed.wanted}, or set it in the connector"),
    Rule("{side}.converter", "", lambda fed, name: not name or bool(fed.written), "it writes no format that Frazil reads",
         "Choose Confluent's AvroConverter or JsonSchemaConverter, Apicurio's AvroConverter, or JsonConverter"),
    Rule("{side}.converter", "", lambda fed, _: fed.written in ("", fed.wanted) or fed.has_other_json,
         "it writes {fed.written}, but the topic's format of {fed.side}s is {fed.wanted}",
         'Declare {fed.side}="{fed.written}", or choose another converter'),
    Rule("{side}.converter.schemas.enable", "true", (), "the topic's format of {fed.side}s is {fed.wanted}",
         'Declare {fed.side}="{fed.written}", or change the setting', lambda fed: fed.has_other_json),
    Note("value.converter.replace.null.with.default", "true", ("false",), _NULLS, when=_is_of("Json")),
    Note("value.converter.ignore.default.for.nullables", "false", ("true",), _NULLS, when=_is_of("Avro", "JsonSchema")),
    Rule(f"{_REGISTRY}.as-confluent", "false", ("true",), "Frazil reads ids of four bytes", when=_is_of("Apicurio")),
    Rule(f"{_REGISTRY}.headers.enabled", "true", ("false",), "Frazil reads no id in a header", when=_is_of("Apicurio")),
    Rule(f"{_REGISTRY}.use-id", "globalId", ("contentid",), "such ids name other schemas in the Confluent API",
         "Set {setting} to contentId", _is_of("Apicurio")),
    Rule("value.converter.decimal.format", "BASE64", lambda fed, value: value == "numeric"
         or fed.connector.value("decimal.handling.mode", "precise") != "precise", "decimals do not say their scale",
         "Set {setting} to NUMERIC, or decimal.handling.mode to string",
         lambda fed: fed.written == "json" and "decimal" in fed.columns.values()),
    Rule("connector.class", "", lambda fed, _: any(fed.connector.transforms(["ExtractNewDocumentState"])),
         "its events have rows as text, which have no columns", "Flatten the events with ExtractNewDocumentState",
         lambda fed: fed.connector.database == "MongoDb"),
    Rule("transforms", "", lambda fed, _: any(FLATTENING in each for each in fed.connector.settings.values()),
         "the events are not flattened, and the column {fed.mark} is declared", f"Remove the column, or add {FLATTENING}",
         lambda fed: bool(fed.mark)),
    Rule(f"{_FLAT}.type", "", lambda fed, _: not (fed.envelope.source_column or fed.envelope.has_before),
         "it omits what envelope.source_column and replica_identity ask for", "Remove them, or the transform"),
    Rule(f"{_FLAT}.type", "", lambda fed, _: not fed.columns or bool(fed.mark),
         "no declared column says what an event does: all are rejected",
         "Declare __op string and set add.fields to op, or __deleted string"),
    Rule(f"{_FLAT}.add.fields.prefix", "__", ("__",), "Frazil knows __op and __deleted by their names"),
    Rule(f"{_FLAT}.add.fields", "", lambda fed, names: re.search(r"\bop\b(?!:)", names) is not None,
         "the column of the operation is declared", "Add op to {setting}",
         lambda fed: bool(fed.envelope.operation_column) or "__op" in fed.columns),
    Rule(_DELETES, "tombstone", ("rewrite", "rewrite-with-tombstone"), "it does not write __deleted, which is declared",
         "Set it to rewrite, or remove the column", lambda fed: "__deleted" in fed.columns),
    Rule(_DELETES, "tombstone", _not("drop"), "no delete is written, and the rows stay", "Set {setting} to rewrite"),
    Rule(_DELETES, "tombstone", _not("tombstone"), "tombstones.on.delete is false: no delete is written, and the rows stay",
         "Set {setting} to rewrite", lambda fed: fed.connector.value("tombstones.on.delete") == "false"),
    Rule(_OPERATIONS, "t", lambda fed, kinds: not {each.strip() for each in kinds.split(",")} & {*"cud"},
         "changes are not written, and the table is not the source's", "Set {setting} to none"),
    Rule(f"{_FLAT}.type", "", (), "it writes no truncates, and on_truncate is delete_all",
         "Remove on_truncate, or the transform", lambda fed: fed.empties),
    Rule(_OPERATIONS, "t", _not("t"), _NO_TRUNCATES, "Set {setting} to none", lambda fed: fed.empties),
    Note(_OPERATIONS, "t", _not("t"), _NO_TRUNCATES, "Set {setting} to none if the source truncates",
         lambda fed: not fed.empties),
    Note("decimal.handling.mode", "precise", ("precise", "string"), "digits are lost"),
    Note("time.precision.mode", "adaptive", ("adaptive", "adaptive_time_microseconds"), "times lose digits or meaning"),
    Rule("unavailable.value.placeholder", "__debezium_unavailable_value", lambda fed, value: value
         in (fed.envelope.unavailable_value.lower(), f"hex:{fed.envelope.unavailable_value.encode().hex()}"),
         "Debezium(unavailable_value=…) is another one, so this one would land", "Declare the same unavailable_value"),
    Note("binary.handling.mode", "bytes", ("bytes",), "bytes are text, in which Frazil finds no omitted value",
         when=lambda fed: fed.is_postgres and fed.identity != "FULL"),
    Note("event.processing.failure.handling.mode", "fail", ("fail",), _FAILURES),
    Note("errors.tolerance", "none", ("none",), _FAILURES),
    *(Rule(f"{{{name}}}.type", "", (), why, "Remove the transform") for name, why in _TRANSFORMS.items()),
    Note("{Filter}.type", "", (), "a change that it omits is missing in the table", "Check that it omits none"),
    Note("{?}.predicate", "", (), "the transform applies to some topics only, and is not checked",
         "Check that the topic is not among them, or that the transform may be there"),
    Note("message.key.columns", "", ("",), "without REPLICA IDENTITY FULL, a change of these columns leaves a row of the old key",
         "Set the REPLICA IDENTITY to FULL, or remove {setting}", lambda fed: fed.is_postgres and fed.identity != "FULL"),
    Rule(_IDENTITY, "", lambda fed, _: fed.identity in ("", "FULL"), 'Debezium(replica_identity="full") is declared',
         "Set FULL there, or remove replica_identity", lambda fed: fed.envelope.has_before and fed.is_postgres),
    Note(_IDENTITY, "", lambda fed, _: bool(fed.identity),
         'it does not name {fed.table}, and Debezium(replica_identity="full") is declared',
         "Run ALTER TABLE {fed.table} REPLICA IDENTITY FULL", lambda fed: fed.envelope.has_before and fed.is_postgres),
    Rule(_MODE, "initial", _not("initial_only"), _NO_CHANGES, _INITIAL),
    Note(_MODE, "initial", _not("always", "when_needed"), "rows that are deleted while no log is read stay", _INITIAL),
    Note(_MODE, "initial", _not(*_NOT_READ), "the connector reads no rows, so rows that do not change are missing in the table",
         f"{_INITIAL}, or have an incremental snapshot read the rows"),
    Note(_MODE, "initial", ("initial", "initial_only", "always", "when_needed", *_NOT_READ), "Frazil does not know its rows",
         "Check the mode by docs/change-data.md"),
    Rule(_STREAM, "false", ("true",), _NO_CHANGES, when=lambda fed: fed.connector.value(_MODE) == "configuration_based"),
    Note("heartbeat.interval.ms", "0", _not("0"), "while captured tables do not change, the source keeps its log",
         "Set it to a minute, 60000, if other tables change", lambda fed: fed.is_postgres),
)  # fmt: skip


def broken(sides: Mapping[str, Fed], rules: Iterable[Rule] = RULES) -> Iterator[tuple[Problem, bool]]:
    """Yield the settings whose values Frazil does not take, in the order of the rules."""
    connector = sides["value"].connector
    for rule in rules:
        for side, setting in _settings(rule.setting, connector):
            fed, value = sides[side], connector.value(setting, rule.default).lower()
            if not rule.when(fed) or (rule.takes(fed, value) if callable(rule.takes) else value in rule.takes):
                continue
            what = f"{connector.stated(setting, rule.default)}: {rule.what.format(fed=fed)}"
            do = rule.do.format(fed=fed, setting=setting, value="" if callable(rule.takes) else " or ".join(rule.takes))
            if connector.is_filled_in(setting):
                what, do = f"the worker fills in {setting}, which is not checked", "Check it by docs/change-data.md"
            yield Problem(setting, what, do), rule.is_note or connector.is_filled_in(setting)


def _settings(setting: str, connector: Connector) -> list[tuple[str, str]]:
    """Return the settings that a rule is about, each with its side."""
    kind, brace, rest = setting.removeprefix("{").partition("}")
    if kind == "side":
        return [(side, side + rest) for side in ("key", "value")]
    known = [FLATTENING, "Filter", *_TRANSFORMS] if kind == "?" else [kind]
    prefixes = connector.transforms(known, conditional=kind == "?")
    return [("value", prefix + rest) for prefix in prefixes] if brace else [("value", setting)]


def checked(connectors: Sequence[Connector], pipelines: Sequence[Pipeline]) -> tuple[list[Problem], list[Problem]]:
    """Return the problems of these connectors with the pipelines of change data that they feed, and notes.

    If it is not known for certain which topics a connector writes, it is checked with all pipelines, and all findings are notes.
    """
    problems, notes = list[Problem](), list[Problem]()
    writers: dict[str, str] = {}
    for each in connectors:
        found: dict[tuple[Problem, bool], list[str]] = {one: [] for one in _of_topics(each, pipelines)}
        for pipeline in each.fed(pipelines):
            if not each.doubt and (other := writers.setdefault(pipeline.topic.name, each.file)) != each.file:
                what = f"the connector of {other} writes {pipeline.topic.name}, too: changes of two connectors have no order"
                found.setdefault((Problem("topic.prefix", what, "Give each connector a prefix of its own"), False), [])
            if isinstance(envelope := pipeline.envelope, Debezium):
                for item in broken({side: Fed.of(each, pipeline, envelope, side) for side in ("key", "value")}):
                    found.setdefault(item, []).append(pipeline.name)
        for (one, is_note), names in found.items():
            of = f" (pipeline{'s' if len(names) > 1 else ''} {', '.join(names)})" if names else ""
            text = Problem(f"{each.file}: {one.path}", f"{one.what}{of}", one.do)
            (notes if is_note or each.doubt else problems).append(text)
    return problems, notes


def _of_topics(connector: Connector, pipelines: Sequence[Pipeline]) -> Iterator[tuple[Problem, bool]]:
    """Yield the problems of a connector's class, and of the topics that it writes."""
    if not connector.database:
        what = f"{connector.stated('connector.class')}: settings of other connectors than Debezium's are not checked"
        yield Problem("connector.class", what, "Check them by docs/change-data.md"), True
    elif name := connector.doubt:
        what = f"{connector.stated(name)}: it is not known for certain which topics the connector writes"
        yield Problem(name, what, "Check that it writes the declared topics"), True
    elif not connector.fed(pipelines):
        what = f"{connector.stated('topic.prefix')}: the connector writes no declared topic"
        yield Problem("topic.prefix", what, "Check topic.prefix and the lists of tables, or remove the file"), False
    else:
        for each in pipelines:
            table = connector.table_of(each.topic.name)
            if table and each.is_change_data and each not in connector.fed([each]):
                what = f"the connector does not capture {table}, whose topic {each.topic.name} is declared"
                yield (
                    Problem(
                        next(filter(connector.value, LISTS), LISTS[0]), what, "Add the table, or remove the pipeline"
                    ),
                    False,
                )
