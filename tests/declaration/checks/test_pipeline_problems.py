"""Declared columns that cannot be a key."""

from dataclasses import replace

import pytest

from frazil.declaration import Changelog, Upsert
from frazil.declaration.checks.column_notation import NAMED, PLAIN
from tests.declaration.checks.test_column_notation import pipeline
from tests.declaration.problems_of import problems_of


@pytest.mark.parametrize(
    "of",
    ["float", "double", "list<int>", "map<string, int>", "struct<a: int>", "json", "io.debezium.data.VariableScaleDecimal"],
)  # fmt: skip
@pytest.mark.parametrize("write", [Upsert(), Changelog()])
def test_a_key_of_a_type_that_is_none_is_refused_with_the_declaration(of, write):
    keyed = {"key_format": "json", "key_columns": ("id long", f"`Other Id` {of}")}
    (path, what), *more = problems_of(lambda: pipeline(topic=keyed, write=write)).items()
    assert (path, more) == ("pipeline.topic.key.columns[1]", [])
    assert "which cannot be a key" in what
    assert pipeline(topic=keyed).topic.key.columns
    columns = {"columns": ("id long", f"`Other Id` {of}")}
    found = problems_of(lambda: pipeline(topic=columns, write=replace(write, key=("id", "other_id"))))
    assert list(found) == ["pipeline.write.key[1]"]
    both = {**keyed, "columns": ("id long", "other_id string")}
    assert pipeline(topic=both, write=replace(write, key="id"))
    found = problems_of(lambda: pipeline(topic=both, write=replace(write, key="other_id")))
    assert list(found) == ["pipeline.topic.key.columns[1]"]


def test_columns_of_all_other_types_are_a_key():
    kinds = (*PLAIN, "decimal(38, 10)", *NAMED)
    fit = [kind for kind in kinds if kind not in ("float", "double", "io.debezium.data.VariableScaleDecimal")]
    keyed = {"key_format": "json", "key_columns": tuple(f"c{n} {kind}" for n, kind in enumerate(fit))}
    assert pipeline(topic=keyed, write=Upsert())
