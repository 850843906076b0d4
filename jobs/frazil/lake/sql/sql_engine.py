"""The SQL of each engine, as far as it differs: names, texts, and what other values are written as. Pure."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum

Value = str | int | bytes | date | datetime | Decimal
"""A value that SQL is to hold: a `datetime` with a time zone is an instant, one without is none."""
_SIMPLE = re.compile(r"[a-z_][a-z0-9_]*")


class SqlEngine(StrEnum):
    """Whose SQL a text is."""

    SPARK = "spark"
    TRINO = "trino"
    ATHENA = "athena"
    DUCKDB = "duckdb"
    SNOWFLAKE = "snowflake"

    def quoted(self, name: str) -> str:
        """Return a name as an identifier. Snowflake has simple names in upper case; quoted, a reserved word is one too."""
        if self is SqlEngine.SPARK:
            return "`" + name.replace("`", "``") + "`"
        if self is SqlEngine.SNOWFLAKE and _SIMPLE.fullmatch(name):
            name = name.upper()
        return '"' + name.replace('"', '""') + '"'

    def named(self, *parts: str) -> str:
        """Return the name of a table or view."""
        return ".".join(map(self.quoted, parts))

    def has(self, names: str, name: str) -> str:
        """Return whether a list of strings has one."""
        text = self.literal(name)
        match self:
            case SqlEngine.TRINO | SqlEngine.ATHENA:
                return f"contains({names}, {text})"
            case SqlEngine.SNOWFLAKE:
                return f"ARRAY_CONTAINS({text}, {names})"
            case _:
                return f"array_contains({names}, {text})"

    def literal(self, value: Value) -> str:
        """Return a value as the engine's SQL writes it. What a text has in it never ends it."""
        match value:
            case str():
                return f"'{self._text(value)}'"
            case bytes():
                return _OCTETS.get(self, "X'{}'").format(value.hex().upper())
            case datetime():
                instant, local = _TIMES.get(self, ("TIMESTAMP '{} UTC'", "TIMESTAMP '{}'"))
                text = value.replace(tzinfo=None).isoformat(" ", "microseconds")  # an instant is in UTC already
                return (local if value.tzinfo is None else instant).format(text)
            case date():
                return f"DATE '{value.isoformat()}'"
            case Decimal():
                _, digits, exponent = value.as_tuple()
                scale = max(0, -int(exponent))
                return f"CAST('{value:f}' AS DECIMAL({max(len(digits) + max(0, int(exponent)), scale)}, {scale}))"
            case _:
                return f"{value:d}"

    def _text(self, value: str) -> str:
        if self in (SqlEngine.SPARK, SqlEngine.SNOWFLAKE):  # a backslash escapes the next character
            value = value.replace("\\", "\\\\")
        if self is SqlEngine.SPARK:  # which replaces ${…} by a setting wherever it is
            return value.replace("'", "\\'").replace("${", "$\\{")
        return value.replace("'", "''")

    def last_known(self, value: str, over: str) -> str:
        """Return the last value that is not null, in a window."""
        if self is SqlEngine.DUCKDB:
            return f"LAST_VALUE({value} IGNORE NULLS) OVER ({over})"
        return f"LAST_VALUE({value}) IGNORE NULLS OVER ({over})"

    def field(self, column: str, name: str) -> str:
        """Return a field of a struct. Snowflake's have their case."""
        if self is SqlEngine.SNOWFLAKE:
            return f"{self.quoted(column)}:" + '"' + name.replace('"', '""') + '"'
        return f"{self.quoted(column)}.{self.quoted(name)}"


_OCTETS = {SqlEngine.DUCKDB: "from_hex('{}')", SqlEngine.SNOWFLAKE: "TO_BINARY('{}', 'HEX')"}
_TIMES = {
    SqlEngine.SPARK: ("TIMESTAMP_LTZ '{}Z'", "TIMESTAMP_NTZ '{}'"),
    SqlEngine.DUCKDB: ("TIMESTAMPTZ '{}+00'", "TIMESTAMP '{}'"),
    SqlEngine.SNOWFLAKE: ("TO_TIMESTAMP_TZ('{} +00:00')", "TO_TIMESTAMP_NTZ('{}')"),
}
"""An instant and a time without time zone, where they are not written as in Trino."""
