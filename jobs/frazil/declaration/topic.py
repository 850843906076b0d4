"""A Kafka topic, as a pipeline reads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Annotated

from frazil.declaration.checks.column_notation import is_required
from frazil.declaration.checks.constraints import matching
from frazil.declaration.checks.declared import Chosen, declared, default, required
from frazil.declaration.checks.problems import Problem
from frazil.declaration.formats import Bytes, Format, Protobuf
from frazil.declaration.options import SubjectStrategy

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

    def side(self, *, is_key: bool) -> Format:
        """Return the format of keys, or of values."""
        return self.key if is_key else self.value

    def _contradictions(self) -> Iterator[Problem]:
        value, key = self.value, self.key
        is_chosen = value.schema is not None or isinstance(value, Protobuf)  # a file of Protobuf has several messages
        if value.record_name and value.subject_strategy is SubjectStrategy.TOPIC and not is_chosen:
            what = "the subject strategy topic does not look at record names"
            yield Problem("value.record_name", what, "Remove it, or choose record or topic_record, or declare schema")
        for index, text in enumerate(key.columns or ()):
            if is_required(text):
                yield Problem(f"key.columns[{index}]", "only columns of values are required", "Remove required")
        if key.unknown_fields is not None:
            yield Problem("key.unknown_fields", "only unknown fields of values are kept", "Remove it")
        if key.subject_strategy is not SubjectStrategy.TOPIC:
            yield Problem("key.subject_strategy", "keys are of the subject of the topic's name", "Remove it")
        if key.record_name is not None and not isinstance(key, Protobuf):
            what = f"keys of format {key.kind} name no message"
            yield Problem("key.record_name", what, "Remove it, or choose the format protobuf")
