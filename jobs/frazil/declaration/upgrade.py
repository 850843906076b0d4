"""Upgrade: a document of version 1 as version 2. The pipelines are the same; some of their members have other places.

Values are moved and never judged here, so that one reader finds the problems of both versions. What version 1 alone can say
wrongly is a problem of the upgrade.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from frazil.declaration.constraints import shown
from frazil.declaration.limits import Limits
from frazil.declaration.pipeline import Pipeline
from frazil.declaration.problems import Problem
from frazil.declaration.topic import CHOICES, Topic
from frazil.declaration.validation import hints

_ENGINES = ("spark", "tableflow")
_ONLY_IN_2 = {
    **{name: f"topic.{name}" for name in CHOICES},
    "write": "topic.tombstones",
    "envelope": "",
    "group": "",
}
"""Members of a pipeline that version 1 does not have, and where it has the same; empty if it has nothing like it."""
_TOPIC_ONLY_IN_2 = (
    *("columns", "key_columns", "schema", "key_schema", "framing", "key_framing", "unknown_fields"),
    "key_record_name",
)
FIELDS: Mapping[Any, tuple[str, ...]] = {
    Pipeline: (*(name for name in hints(Pipeline) if name not in _ONLY_IN_2), "limits"),
    Topic: (*(name for name in hints(Topic) if name not in _TOPIC_ONLY_IN_2), *CHOICES, "tombstones"),
}
"""The fields that version 1 has in the objects of these classes."""


class Change(NamedTuple):
    """One member that has another place in version 2; `after` is empty if version 2 has no use for it."""

    before: str
    after: str


@dataclass(slots=True)
class Upgrade:
    """The members of a document in version 2, what was changed for it, and what could not be."""

    members: Mapping[str, Any]
    changes: list[Change] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def former(self, path: str) -> str:
        """Return the path in version 1 of a place in version 2."""
        for before, after in self.changes:
            if after and (path == after or path.startswith((f"{after}.", f"{after}["))):
                return before + path.removeprefix(after)
        # What holds a moved member has no place of its own in version 1, but that of the member.
        within = [before for before, after in self.changes if after.startswith(f"{path}.")]
        return within[0] if re.search(r"\.(write|engine)$", path) and within else path


def upgraded(members: Mapping[str, Any]) -> Upgrade:
    """Return the members of a version 1 document, without its version, as version 2 has them. The source is not changed."""
    upgrade = Upgrade({})
    listed = members.get("pipelines")
    if isinstance(listed, list | tuple):
        moved = [_pipeline(each, f"pipelines[{index}]", upgrade) for index, each in enumerate(listed)]
        members = {**members, "pipelines": moved}
    upgrade.members = members
    return upgrade


def _pipeline(pipeline: Any, path: str, upgrade: Upgrade) -> Any:
    """Return one pipeline in version 2; what is no object stays what it is."""
    if not isinstance(pipeline, Mapping):
        return pipeline
    moved: dict[Any, Any] = {}
    for name, value in pipeline.items():
        if name in _ONLY_IN_2:
            place = _ONLY_IN_2[name]
            do = f"Write {place}, or make it a document of version 2" if place else "Remove it, or write version 2"
            upgrade.problems.append(Problem(f"{path}.{name}", "version 1 has no such field here", do))
        elif name == "topic" and isinstance(value, Mapping):
            others = {*CHOICES, "tombstones", *_TOPIC_ONLY_IN_2}
            moved["topic"] = {key: part for key, part in value.items() if key not in others}
            for key in (key for key in _TOPIC_ONLY_IN_2 if key in value):
                what = "version 1 has no such field here"
                upgrade.problems.append(Problem(f"{path}.topic.{key}", what, "Remove it, or write version 2"))
        elif name not in {"engine", "limits"}:
            moved[name] = value
    topic = pipeline.get("topic")
    if isinstance(topic, Mapping):
        for name in (name for name in CHOICES if name in topic):
            moved[name] = topic[name]
            upgrade.changes.append(Change(f"{path}.topic.{name}", f"{path}.{name}"))
        if "tombstones" in topic:
            moved["write"] = {"type": "append", "on_tombstone": topic["tombstones"]}
            upgrade.changes.append(Change(f"{path}.topic.tombstones", f"{path}.write.on_tombstone"))
    _engine(pipeline, moved, path, upgrade)
    return moved


def _engine(pipeline: Mapping[str, Any], moved: dict[Any, Any], path: str, upgrade: Upgrade) -> None:
    """Add the engine of version 2: an object, with the limits in it."""
    if not {"engine", "limits"} & pipeline.keys():
        return
    kind = pipeline.get("engine", "spark")
    if not isinstance(kind, str) or kind not in _ENGINES:
        what = f"{shown(kind)} is not one of its values"
        upgrade.problems.append(Problem(f"{path}.engine", what, f"Write one of {', '.join(_ENGINES)}"))
        kind = "spark"
    engine: dict[str, Any] = {"type": kind}
    if "engine" in pipeline:
        upgrade.changes.append(Change(f"{path}.engine", f"{path}.engine.type"))
    if "limits" in pipeline:
        limits = pipeline["limits"]
        if kind == "tableflow" and _are_defaults(limits):
            upgrade.changes.append(Change(f"{path}.limits", ""))
        elif kind == "tableflow":
            do = "Remove it, or choose engine spark"
            upgrade.problems.append(Problem(f"{path}.limits", "Tableflow decides this itself", do))
        else:
            engine["limits"] = limits
            upgrade.changes.append(Change(f"{path}.limits", f"{path}.engine.limits"))
    moved["engine"] = engine


def _are_defaults(limits: Any) -> bool:
    defaults = {each.name: each.default for each in fields(Limits)}
    return isinstance(limits, Mapping) and all(
        name in defaults and type(value) is int and value == defaults[name] for name, value in limits.items()
    )
