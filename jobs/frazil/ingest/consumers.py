"""Consumers: the groups in which executors keep Kafka consumers from one batch to the next."""

from __future__ import annotations

from collections.abc import Mapping


class Consumers:
    """The consumer groups of one driver's pipelines.

    An executor keeps a consumer for each group and partition, and refuses, as long as it runs, to read the partition in the same
    group with other options. Options change while a driver runs: fetches become smaller if there are more partitions to read,
    and secrets are replaced.
    """

    def __init__(self) -> None:
        self._known: dict[str, list[Mapping[str, str]]] = {}

    def group(self, pipeline: str, options: Mapping[str, str]) -> str:
        """Return the group of a pipeline: `frazil-PIPELINE`, and for the second options `frazil-PIPELINE.2`, and so on."""
        known = self._known.setdefault(pipeline, [])
        if options not in known:
            known.append(dict(options))
        number = known.index(options) + 1
        return f"frazil-{pipeline}" if number == 1 else f"frazil-{pipeline}.{number}"
