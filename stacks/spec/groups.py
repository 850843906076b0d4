"""The groups of pipelines, each of which has jobs of its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from frazil.declaration import Pipeline, Spark


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The pipelines that one pair of jobs lands. `name` is None for the pipelines without a group.

    In the namespaces of `shared`, other groups have tables too.
    """

    name: str | None
    pipelines: Sequence[Pipeline]
    shared: Collection[str] = ()


def groups_of(pipelines: Sequence[Pipeline]) -> tuple[Group, ...]:
    """Return the groups of the pipelines that jobs land: that without a name first, then by name."""
    landed = [pipeline for pipeline in pipelines if isinstance(pipeline.engine, Spark)]
    names: dict[str, set[str | None]] = {}
    for pipeline in landed:
        names.setdefault(pipeline.table.namespace, set()).add(pipeline.group)
    shared = {namespace for namespace, groups in names.items() if len(groups) > 1}
    found = sorted({pipeline.group for pipeline in landed}, key=lambda name: name or "")
    return tuple(
        Group(name=name, pipelines=[one for one in landed if one.group == name], shared=shared) for name in found
    )
