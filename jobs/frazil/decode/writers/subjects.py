"""The subjects of the registry that are a topic's values', or its keys', by its subject strategy."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from frazil.clients.registry.client import Registry
from frazil.declaration.options import SubjectStrategy
from frazil.declaration.topic import Topic


class Ownership:
    """The subjects of a topic's values; with `keys`, of its keys, whose strategy is the topic's name."""

    def __init__(self, topic: Topic, *, keys: bool = False) -> None:
        self._topic, self.is_key = topic.name, keys
        self.strategy = SubjectStrategy.TOPIC if keys else topic.subject_strategy
        self.record_name = topic.key_record_name if keys else topic.record_name

    @property
    def may_begin_without(self) -> bool:
        """Return whether no subject is known before a record names one."""
        return self.strategy is SubjectStrategy.RECORD and self.record_name is None

    @property
    def has_one_subject(self) -> bool:
        """Return whether the topic has one subject, so that no schema without a version there is the topic's."""
        return self.strategy is SubjectStrategy.TOPIC or self.record_name is not None

    def subjects(self, registry: Registry) -> Sequence[str]:
        """Return the subjects that can be known before a record is met. Raises `RegistryUnavailable`."""
        if self.strategy is SubjectStrategy.TOPIC:
            return (f"{self._topic}-{'key' if self.is_key else 'value'}",)
        if self.record_name is not None:
            return (f"{self._prefix}{self.record_name}",)
        return [s for s in registry.subjects() if s.startswith(self._prefix)] if self._prefix else ()

    def owns(self, name: str, subjects: Collection[str]) -> bool:
        """Return whether a record of this name, whose schema is in these subjects, is one that the declaration means."""
        if self.strategy is SubjectStrategy.TOPIC:
            return True
        if self.record_name is not None and name and name != self.record_name:
            return False
        wanted = self.record_name or name
        return f"{self._prefix}{wanted}" in subjects if wanted else any(s.startswith(self._prefix) for s in subjects)

    @property
    def _prefix(self) -> str:
        """Return the part of a subject before a record's name."""
        return f"{self._topic}-" if self.strategy is SubjectStrategy.TOPIC_RECORD else ""
