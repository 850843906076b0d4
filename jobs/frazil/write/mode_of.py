"""The choice of a pipeline's write mode: the only place that asks which one is declared."""

from __future__ import annotations

from frazil.declaration import Append, Changelog, Pipeline, Upsert
from frazil.write.append import AppendMode
from frazil.write.changelog import ChangelogMode
from frazil.write.mode import WriteMode
from frazil.write.upsert import UpsertMode


def mode_of(pipeline: Pipeline) -> WriteMode:
    """Return the write mode of a pipeline, for one run."""
    match pipeline.write:
        case Append():
            return AppendMode()
        case Upsert() as write:
            return UpsertMode(pipeline, write)
        case Changelog():
            return ChangelogMode(pipeline)
