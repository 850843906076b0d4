"""An error that no action expects is one table's outcome; the other tables are kept."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from frazil.declaration import Pipeline, Table, Topic
from frazil.exit_codes import Exit
from frazil.maintain.run import maintain, shuffle_partitions
from frazil.maintain.target import MaintenanceRun, Policy, exit_code

PIPELINES = [Pipeline(topic=Topic(name, value="text"), table=Table(f"shop.{name}")) for name in ("a", "b")]


class Catalog:
    """A catalog with a defect that shows at one table; the others do not exist."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.asked: list[str] = []

    def exists(self, table: str) -> bool:
        self.asked.append(table)
        if table == "shop.a":
            raise self._error
        return False


def spark(*, answers: bool) -> Any:
    lang = SimpleNamespace(System=SimpleNamespace(nanoTime=lambda: 1))
    return SimpleNamespace(_jvm=SimpleNamespace(java=SimpleNamespace(lang=lang)) if answers else None)


@pytest.mark.parametrize(
    ("answers", "said"), [(True, "ValueError: a defect. This is a defect of Frazil"), (False, "Spark's JVM ended")]
)
def test_an_error_that_no_action_expects_is_the_outcome_of_its_table(answers: bool, said: str) -> None:
    catalog = Catalog(ValueError("a defect"))
    job: Any = SimpleNamespace(
        iceberg=catalog, spark=spark(answers=answers), run="r", clock=lambda: 0.0, stopping=lambda: False
    )
    told: list[Any] = []
    outcomes = maintain(PIPELINES, MaintenanceRun(job, Policy()), told.append, orphans=False)
    assert catalog.asked == ["shop.a", "shop.a__dead_letters", "shop.b", "shop.b__dead_letters"]
    assert [(one["table"], one["ended"]) for one in told] == [("shop.a", "failed")]
    assert said in told[0]["why"]
    assert exit_code(one for done in outcomes.values() for one in done) is Exit.FAILED


@pytest.mark.parametrize(("cores", "partitions"), [(1, 16), (8, 32), (100, 400)])
def test_work_is_divided_by_the_cores(cores: int, partitions: int) -> None:
    assert shuffle_partitions(cores) == partitions
