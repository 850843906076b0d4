"""Engines: who lands a pipeline, and what a declaration can ask of whom. A document tags an engine by `type`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar

from frazil.declaration.checks.constraints import at_least, between, matching
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import Problem
from frazil.errors import InvalidInput

if TYPE_CHECKING:
    from frazil.declaration.pipeline import Pipeline


@declared
class Limits:
    """The size of one batch. Batches start small and grow, as far as they learn to keep to `target_seconds`."""

    target_seconds: Annotated[int, "The target duration of a batch, from read to commit.", between(1, 3600)] = 10
    first_rows: Annotated[
        int, "The maximum of records of the first batch. Slowness alone makes no later batch smaller.", at_least(1)
    ] = 20_000
    max_rows: Annotated[int, "The maximum of records of a batch.", at_least(1)] = 1_000_000
    max_bytes: Annotated[
        int, "The maximum of bytes of values and keys of a batch, estimated before it is read.", at_least(1)
    ] = 1024**3

    def _contradictions(self) -> Iterator[Problem]:
        if self.first_rows > self.max_rows:
            yield Problem("first_rows", f"it is more than max_rows, {self.max_rows}", "Lower it, or raise max_rows")


GROUP_NAME = "[a-z]([a-z0-9-]{0,18}[a-z0-9])?"
GROUP = matching(
    GROUP_NAME,
    "a group's name",
    "Write a lower-case letter, then up to 19 of a-z, 0-9 and -, and no - at the end",
)
"""Names of groups: short, because names of roles and jobs contain them."""


@declared
class Spark:
    """The jobs of this project."""

    kind: ClassVar[str] = "spark"

    limits: Annotated[Limits, "The limits of one batch."] = Limits()
    group: Annotated[
        str | None, "The group whose deployed jobs land the topic. Default: none, the jobs without a group.", GROUP
    ] = None


@declared
class Tableflow:
    """Confluent's own service, in a bucket and the Glue catalog of your account.

    It decides on columns, partitions and files itself and has no ledger. No `frazil` command lands or maintains its tables. With
    `write=Upsert()`, the topic must be compacted: that is by what Tableflow chooses its write mode.
    """

    kind: ClassVar[str] = "tableflow"


LandingEngine = Spark | Tableflow
"""The union of the engines. Code that depends on the engine matches on it."""


GLUE_NAME, GLUE_NAME_WORDS = "[a-z0-9_]+", "a-z, 0-9 and _ only"
"""The topics whose names Glue and Athena take as they are. Glue folds capitals. Confluent's pages say that a table is named after
its topic, and nothing of `.`, `-` and capitals:
https://docs.confluent.io/cloud/current/topics/tableflow/how-to-guides/catalog-integration/integrate-with-aws-glue-catalog.html"""


def refuse_foreign(pipelines: Iterable[Pipeline]) -> None:
    """Raise `InvalidInput` if another engine lands one of the pipelines: Frazil may not write or maintain its table."""
    foreign = [pipeline for pipeline in pipelines if not isinstance(pipeline.engine, Spark)]
    if foreign:
        names = ", ".join(pipeline.name for pipeline in foreign)
        raise InvalidInput(
            f"{names}: landed by {foreign[0].engine.kind}, not by a job", where="engine", do="Leave it out of the run"
        )
