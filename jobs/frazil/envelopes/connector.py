"""A connector as its file states it, in the JSON that Kafka Connect's REST API takes, and the topics that it writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from frazil.declaration.constraints import shown
from frazil.declaration.problems import InvalidDeclaration, Problem
from frazil.declaration.strict_json import parsed

FLATTENING = "io.debezium.transforms.ExtractNewRecordState"
REGEX_ROUTER = "org.apache.kafka.connect.transforms.RegexRouter"
TABLE_ROUTER = "io.debezium.transforms.ByLogicalTableRouter"
_FILTERS = ("table", "schema", "database")


@dataclass(frozen=True, slots=True)
class Transform:
    """A transform of each record: its alias in `transforms`, and its class."""

    alias: str
    type: str

    def setting(self, name: str) -> str:
        """Return the full name of a setting of the transform."""
        return f"transforms.{self.alias}.{name}"


@dataclass(frozen=True, slots=True)
class Connector:
    """The settings of one connector. Only those that a rule asks for are ever printed: others may be secrets."""

    file: str
    settings: Mapping[str, str]

    def value(self, name: str, default: str = "") -> str:
        """Return the value of a setting, or its default."""
        return self.settings.get(name, default).strip()

    def is_true(self, name: str, *, default: bool = False) -> bool:
        """Return whether a setting of true and false is true."""
        return self.value(name, str(default)).lower() == "true"

    def names(self, name: str) -> tuple[str, ...]:
        """Return the parts of a list; a comma in one is escaped."""
        return tuple(part.strip() for part in re.split(r"(?<!\\),", self.value(name)) if part.strip())

    def stated(self, name: str, default: str) -> str:
        """Return what a setting is, for a message."""
        if name in self.settings:
            return f"{name} is {shown(self.settings[name])}"
        return f"{name} is not set, and {default} by default"

    def is_filled_in(self, name: str) -> bool:
        """Return whether only the worker knows the value, from a provider that the setting names."""
        return "${" in self.settings.get(name, "")

    @property
    def kind(self) -> str:
        """The database, as the connector's class names it: `postgresql`, `mysql`; empty for a class of other connectors."""
        found = re.fullmatch(r"io\.debezium\.connector\.(\w+)\.\w+", self.value("connector.class"))
        return found[1] if found else ""

    @property
    def is_managed(self) -> bool:
        """Whether Confluent Cloud runs the connector, such as `PostgresCdcSourceV2`: some of its settings have other names."""
        return re.fullmatch(r"\w+CdcSource(V\d+)?", self.value("connector.class")) is not None

    @property
    def transforms(self) -> tuple[Transform, ...]:
        """The transforms in their order."""
        return tuple(Transform(name, self.value(f"transforms.{name}.type")) for name in self.names("transforms"))

    @property
    def flattening(self) -> Transform | None:
        """The transform that flattens events, if there is one."""
        return next((each for each in self.transforms if each.type == FLATTENING), None)

    @property
    def _routers(self) -> tuple[Transform, ...]:
        return tuple(each for each in self.transforms if each.type in (REGEX_ROUTER, TABLE_ROUTER))

    @property
    def other_topics(self) -> Mapping[str, str]:
        """The topics that are not those of tables, each with what it has."""
        prefix, heartbeats = self.value("topic.prefix"), self.value("topic.heartbeat.prefix", "__debezium-heartbeat")
        return {
            prefix: "schema changes",
            f"{prefix}.{self.value('topic.transaction', 'transaction')}": "transactions",
            f"{heartbeats}.{prefix}": "heartbeats",
        }

    def table_of(self, topic: str) -> str | None:
        """Return the table whose changes go to a topic, as its name follows the prefix; None if none that is known does.

        Behind a router only tables that the connector names without a pattern are known.
        """
        if not self._routers:
            table = self.named_by(topic)
            return table if table and self.captures(table) else None
        return next((table for table in self._literal_tables() if self._routed(self._topic(table)) == topic), None)

    def named_by(self, topic: str) -> str:
        """Return the table that a topic of this prefix is named after, captured or not; empty for another topic."""
        prefix = self._topic("")
        is_own = self.value("topic.prefix") and topic.startswith(prefix) and topic not in self.other_topics
        return topic.removeprefix(prefix).replace(self._delimiter, ".") if is_own and not self._routers else ""

    def captures(self, table: str) -> bool:
        """Return whether the lists of the connector include a table. Lists may name it with or without its database."""
        *outer, _ = parts = table.split(".")
        names = {
            "table": {table, ".".join(parts[1:])} - {""},
            "schema": set(outer[-1:]),
            "database": set(outer[:1]),
        }
        for kind in _FILTERS:
            included, excluded = f"{kind}.include.list", f"{kind}.exclude.list"
            if self.value(included) and not any(matches(self.names(included), name) for name in names[kind]):
                return False
            if any(matches(self.names(excluded), name) for name in names[kind]):
                return False
        return True

    @property
    def _delimiter(self) -> str:
        return self.value("topic.delimiter", ".")

    def _topic(self, table: str) -> str:
        return self._delimiter.join((self.value("topic.prefix"), *(table.split(".") if table else ("",))))

    def _literal_tables(self) -> Iterator[str]:
        databases = [*self.names("database.names"), *self.names("database.dbname")]
        for pattern in self.names("table.include.list"):
            table = pattern.replace("\\.", ".")
            if re.fullmatch(r"[\w$.\- ]+", table):
                yield from (table, *(f"{database}.{table}" for database in databases))

    def _routed(self, topic: str) -> str:
        """Return the topic behind the routers, whose replacements are Java's."""
        for router in self._routers:
            below = "topic." if router.type == TABLE_ROUTER else ""
            pattern = self.value(router.setting(f"{below}regex"))
            replacement = re.sub(r"\$\{?(\w+)\}?", r"\\g<\1>", self.value(router.setting(f"{below}replacement")))
            try:
                if found := re.fullmatch(pattern, topic):
                    topic = found.expand(replacement)
            except (re.error, IndexError):
                return ""
        return topic


def matches(patterns: Iterable[str], name: str) -> bool:
    """Return whether one of these patterns is one of a name, in any case; one that Python cannot read may be."""
    for pattern in patterns:
        try:
            if re.fullmatch(pattern, name, re.IGNORECASE):
                return True
        except re.error:
            return True
    return False


def connector(text: bytes, file: str) -> Connector:
    """Return the connector of a file: `{"name": …, "config": {…}}`, or the settings alone.

    Raises `InvalidDeclaration` if it is something else. No value is in a message.
    """
    content = parsed(text, file)
    config = content.get("config", content) if isinstance(content, dict) else None
    if not isinstance(config, dict) or not config:
        what = "this is not the configuration of a connector"
        raise InvalidDeclaration([Problem(file, what, 'Write {"name": …, "config": {…}}, or the settings alone')])
    nested = [name for name, value in config.items() if not isinstance(value, str | bool | int | float | None)]
    if nested:
        raise InvalidDeclaration(
            Problem(f"{file}: {name}", "the setting is not a text", "Write it as text") for name in nested
        )
    return Connector(file, {name: _text(value) for name, value in config.items() if value is not None})


def _text(value: str | float | bool) -> str:  # a value of JSON
    return str(value).lower() if isinstance(value, bool) else str(value)
