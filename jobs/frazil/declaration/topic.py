"""A Kafka topic, as a pipeline reads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Annotated, Any

from frazil.declaration.checks.column_notation import is_required
from frazil.declaration.checks.constraints import matching
from frazil.declaration.checks.declared import Chosen, declared, default, required
from frazil.declaration.checks.problems import Problem
from frazil.declaration.formats import Bytes, Format, SchemaFile
from frazil.declaration.options import Framing, KeyFormat, SubjectStrategy, UnknownFields, ValueFormat

_TOPIC_NAME = matching(
    r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}",
    "a name that Kafka allows for a topic",
    "Use 1 to 249 of a-z, A-Z, 0-9, . _ and -, and not . or .. alone",
)


@declared
class Topic:
    """A topic and how its records are to be understood: facts about it, which its producers decided."""

    name: Annotated[str, "The topic's name in Kafka.", _TOPIC_NAME] = field(kw_only=False)
    value: Annotated[Chosen[Format], "The format of values."] = required()
    key: Annotated[Chosen[Format], "The format of keys."] = default(Bytes())
    transactional: Annotated[
        bool, "Producers use transactions. Their markers and aborted records leave gaps between the offsets."
    ] = False

    @property
    def value_format(self) -> ValueFormat:
        """The format of values, without its options."""
        return ValueFormat(self.value.kind)

    @property
    def key_format(self) -> KeyFormat:
        """The format of keys, without its options."""
        return KeyFormat(self.key.kind)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The declared columns of values."""
        found: tuple[str, ...] | None = _option(self.value, "columns")
        return found

    @property
    def key_columns(self) -> tuple[str, ...] | None:
        """The declared columns of keys."""
        found: tuple[str, ...] | None = _option(self.key, "columns")
        return found

    @property
    def schema(self) -> tuple[SchemaFile, ...] | None:
        """The declared schemas of values."""
        found: tuple[SchemaFile, ...] | None = _option(self.value, "schema")
        return found

    @property
    def key_schema(self) -> tuple[SchemaFile, ...] | None:
        """The declared schemas of keys."""
        found: tuple[SchemaFile, ...] | None = _option(self.key, "schema")
        return found

    @property
    def framing(self) -> Framing | None:
        """How a value without a registry names its schema."""
        found: Framing | None = _option(self.value, "framing")
        return found

    @property
    def key_framing(self) -> Framing | None:
        """How a key without a registry names its schema."""
        found: Framing | None = _option(self.key, "framing")
        return found

    @property
    def subject_strategy(self) -> SubjectStrategy:
        """The naming strategy of the producers' subjects."""
        return _option(self.value, "subject_strategy") or SubjectStrategy.TOPIC

    @property
    def record_name(self) -> str | None:
        """The full name of the records that land, or of the values' message."""
        found: str | None = _option(self.value, "record_name")
        return found

    @property
    def key_record_name(self) -> str | None:
        """The full name of the keys' message."""
        found: str | None = _option(self.key, "record_name")
        return found

    @property
    def needs_registry(self) -> bool:
        """Whether a registry describes the values."""
        return self.value_format.has_schema and self.schema is None

    @property
    def needs_key_registry(self) -> bool:
        """Whether a registry describes the keys."""
        return self.key_format.has_schema and self.key_schema is None

    @property
    def has_columns(self) -> bool:
        """Whether values have columns without a registry: declared ones, or those that the schema in each record says."""
        return self.columns is not None or self.value_format is ValueFormat.CONNECT_JSON

    @property
    def has_key_columns(self) -> bool:
        """Whether keys have columns without a registry, as values may."""
        return self.key_columns is not None or self.key_format is KeyFormat.CONNECT_JSON

    @property
    def has_schemas_inside(self) -> bool:
        """Whether the schema of values is in each record, and not declared."""
        return self.value_format is ValueFormat.CONNECT_JSON and self.columns is None

    @property
    def has_key_schemas_inside(self) -> bool:
        """Whether the schema of keys is in each record, and not declared."""
        return self.key_format is KeyFormat.CONNECT_JSON and self.key_columns is None

    @property
    def keeps_unknown(self) -> bool:
        """Whether the fields of values that are no column are kept."""
        return _option(self.value, "unknown_fields") is UnknownFields.KEEP

    def _contradictions(self) -> Iterator[Problem]:
        if self.record_name and self.subject_strategy is SubjectStrategy.TOPIC and self.schema is None:
            what = "the subject strategy topic does not look at record names"
            yield Problem("value.record_name", what, "Remove it, or choose record or topic_record, or declare schema")
        for index, text in enumerate(self.key_columns or ()):
            if is_required(text):
                yield Problem(f"key.columns[{index}]", "only columns of values are required", "Remove required")
        if _option(self.key, "unknown_fields") is not None:
            yield Problem("key.unknown_fields", "only unknown fields of values are kept", "Remove it")
        if _option(self.key, "subject_strategy") not in (None, SubjectStrategy.TOPIC):
            yield Problem("key.subject_strategy", "keys are of the subject of the topic's name", "Remove it")
        if self.key_record_name is not None and self.key_format is not KeyFormat.PROTOBUF:
            what = f"keys of format {self.key_format} name no message"
            yield Problem("key.record_name", what, "Remove it, or choose the format protobuf")


def _option(of: Format, name: str) -> Any:
    """Return an option of a format; None if the format does not have it."""
    return getattr(of, name, None)
