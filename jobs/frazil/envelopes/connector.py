"""A connector as its file states it, in the JSON that Kafka Connect's REST API takes, and the topics that it writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from frazil.declaration.checks.constraints import shown
from frazil.declaration.checks.problems import InvalidDeclaration, Problem
from frazil.declaration.documents.from_json import parsed
from frazil.envelopes.name_patterns import UNREADABLE, is_readable, literal, matches
from frazil.envelopes.plugins import CONNECTORS, FLATTENING, REGEX_ROUTER, TABLE_ROUTER, TRANSFORMS, plugin

_FILTERS = ("table", "schema", "database")
_LISTS = tuple(f"{kind}.{how}.list" for kind in _FILTERS for how in ("include", "exclude"))


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a connector's topics are not known for certain: the setting, and what it does."""

    setting: str
    why: str
    is_filled_in: bool = False


@dataclass(frozen=True, slots=True)
class Transform:
    """A transform of each record: its alias in `transforms`, its class, and whether a predicate chooses the records."""

    alias: str
    type: str
    is_conditional: bool = False

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
        return re.search(r"\$\{[^:}]+:", self.settings.get(name, "")) is not None

    @property
    def kind(self) -> str:
        """The database, as the connector's class names it: `postgresql`, `mysql`; empty for a class of other connectors."""
        class_ = plugin(self.value("connector.class"), CONNECTORS, "Connector")
        found = re.fullmatch(r"io\.debezium\.connector\.(\w+)\.\w+", class_)
        return found[1] if found else ""

    @property
    def is_managed(self) -> bool:
        """Whether Confluent Cloud runs the connector, such as `PostgresCdcSourceV2`: some of its settings have other names."""
        return re.fullmatch(r"\w+CdcSource(V\d+)?", self.value("connector.class")) is not None

    @property
    def transforms(self) -> tuple[Transform, ...]:
        """The transforms in their order."""
        return tuple(
            Transform(
                name,
                plugin(self.value(f"transforms.{name}.type"), TRANSFORMS),
                is_conditional=bool(self.value(f"transforms.{name}.predicate")),
            )
            for name in self.names("transforms")
        )

    @property
    def flattening(self) -> Transform | None:
        """The transform that flattens all events, if there is one."""
        return next((each for each in self.transforms if each.type == FLATTENING and not each.is_conditional), None)

    @property
    def flattens_some(self) -> bool:
        """Whether a transform flattens the events of some topics only."""
        return any(each.type == FLATTENING and each.is_conditional for each in self.transforms)

    @property
    def _routers(self) -> tuple[Transform, ...]:
        return tuple(each for each in self.transforms if each.type in (REGEX_ROUTER, TABLE_ROUTER))

    @property
    def doubt(self) -> Doubt | None:
        """Why the topics are not known for certain; None if they are."""
        patterns = [_settings_of(router)[0] for router in self._routers]
        of_routers = [name for router in self._routers for name in _settings_of(router)]
        for name in filter(self.is_filled_in, ("topic.prefix", "topic.delimiter", *_LISTS, *of_routers)):
            return Doubt(name, f"the worker fills in {name}", is_filled_in=True)
        if self.value("topic.naming.strategy"):
            return Doubt("topic.naming.strategy", "a class names the topics")
        tables = self.names("table.include.list")
        if self._is_word and not (tables and all(map(literal, tables))):
            return Doubt("topic.delimiter", "names of tables may have the delimiter in them")
        for router in self._routers:
            if router.is_conditional:
                return Doubt(router.setting("predicate"), "the router applies to some topics only")
        for name, given in (*((n, self.names(n)) for n in _LISTS), *((n, (self.value(n),)) for n in patterns)):
            if not all(map(is_readable, given)):
                return Doubt(name, "a pattern is not one of Python's")
            if name in _LISTS and any(re.search(r"\\\$|[ #]|[^ -~]", each) for each in given if not literal(each)):
                return Doubt(name, "Debezium writes some characters of its patterns as _")
        return None

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

        Where a topic does not name its table, behind a router or as the delimiter may be in a name, only tables are known that the
        connector names without a pattern.
        """
        named = (table for table in self._literal_tables() if topic in self._topics(table) and self.captures(table))
        if (table := next(named, None)) or self._is_word:
            return table
        table = self.named_by(topic)
        return table if table and self.captures(table) else None

    def named_by(self, topic: str) -> str:
        """Return the table that a topic of this prefix is named after, captured or not; empty for another topic."""
        if not self.value("topic.prefix") or not all(router.is_conditional for router in self._routers):
            return ""
        is_own = topic.startswith(prefix := self._topic("")) and topic not in self.other_topics
        return topic.removeprefix(prefix).replace(self._delimiter, ".") if is_own else ""

    def captures(self, table: str) -> bool:
        """Return whether the lists of the connector include a table; one that the worker fills in may.

        Lists may name a table with or without its database.
        """
        *outer, _ = parts = table.split(".")
        names = {
            "table": {table, ".".join(parts[1:])} - {""},
            "schema": set(outer[-1:]),
            "database": set(outer[:1]),
        }
        for kind in _FILTERS:
            included, excluded = f"{kind}.include.list", f"{kind}.exclude.list"
            is_open = not self.value(included) or self.is_filled_in(included)
            if not is_open and not any(matches(self.names(included), name) for name in names[kind]):
                return False
            if any(matches(self.names(excluded), name) for name in names[kind]):
                return False
        return True

    @property
    def _delimiter(self) -> str:
        return self.value("topic.delimiter") or "."

    @property
    def _is_word(self) -> bool:
        """Whether names of tables may have the delimiter in them."""
        return re.search(r"\w", self._delimiter) is not None

    def _topic(self, table: str) -> str:
        """Return the topic of a table; Debezium writes characters as _ that no topic's name has."""
        name = self._delimiter.join((self.value("topic.prefix"), *(table.split(".") if table else ("",))))
        return re.sub(r"[^A-Za-z0-9._-]", "_", name)

    def _literal_tables(self) -> Iterator[str]:
        databases = [*self.names("database.names"), *self.names("database.dbname")]
        for table in filter(None, map(literal, self.names("table.include.list"))):
            yield from (table, *(f"{database}.{table}" for database in databases))

    def _topics(self, table: str) -> set[str]:
        """Return the topic of a table behind the routers; several if a predicate chooses the records of one."""
        topics = {self._topic(table)}
        for router in self._routers:
            routed = {self._behind(router, topic) for topic in topics}
            topics = topics | routed if router.is_conditional else routed
        return topics

    def _behind(self, router: Transform, topic: str) -> str:
        """Return the topic behind a router, whose replacement is Java's; empty if Python cannot say it."""
        pattern, replacement = map(self.value, _settings_of(router))
        try:
            found = re.fullmatch(pattern, topic)
            return found.expand(re.sub(r"\$\{?(\w+)\}?", r"\\g<\1>", replacement)) if found else topic
        except (*UNREADABLE, IndexError):
            return ""


def _settings_of(router: Transform) -> tuple[str, str]:
    """Return the settings of a router's pattern and replacement."""
    below = "topic." if router.type == TABLE_ROUTER else ""
    return router.setting(f"{below}regex"), router.setting(f"{below}replacement")


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
