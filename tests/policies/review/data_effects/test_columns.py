"""What a new version of a schema does to columns."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from frazil.declaration import Pipeline, Redact, SchemaEvolution, Shape, SubjectStrategy, Upsert
from frazil.declaration.checks.change_effects import Outcome
from policies.resource_changes import changes_of
from policies.review.data_effects.columns import column_effects
from policies.review.data_effects.effects import Effect
from policies.review.plan.masking import cleaned
from tests.policies.review.cases import ID, avro, with_table, with_topic
from tests.policies.review.planning import FLIGHTS, change, plan

NOTE = {"name": "note", "type": ["null", "string"], "default": None}


def told(before: dict[str, Any], after: dict[str, Any], *pipelines: Pipeline, **more: Any) -> list[Effect]:
    made = plan(change("confluent_schema.s", "update", before, after, **more))
    return list(column_effects(changes_of(cleaned(made)), pipelines or (FLIGHTS,)))


def test_a_field_that_is_new_is_a_column_that_is_added() -> None:
    [effect] = told(avro(ID), avro(ID, NOTE))
    assert (effect.what, effect.is_dangerous, effect.table) == ("column note added, string", False, "nyc.flights")


@pytest.mark.parametrize(
    ("evolution", "after"),
    [
        (SchemaEvolution.FREEZE, avro(ID, NOTE)),
        (SchemaEvolution.ADD_COLUMNS, avro({**ID, "type": "long"})),
        (SchemaEvolution.WIDEN, avro({**ID, "type": "string"})),
    ],
)
def test_what_the_policy_does_not_allow_is_refused_and_dangerous(
    evolution: SchemaEvolution, after: dict[str, Any]
) -> None:
    [effect] = told(avro(ID), after, with_table(FLIGHTS, schema_evolution=evolution))
    assert effect.is_dangerous
    assert f"schema_evolution={evolution}" in effect.what


def test_a_field_that_is_gone_leaves_its_column() -> None:
    [effect] = told(avro(ID, NOTE), avro(ID))
    assert "column note stays" in effect.what


def test_a_key_column_that_is_gone_rejects_the_new_records() -> None:
    state = replace(FLIGHTS, write=Upsert(key=("id", "note")))
    [effect] = told(avro(ID, NOTE), avro(ID), state)
    assert effect.is_dangerous
    assert "key column note no more: records of the new version are rejected (key_null)" in effect.what


def test_an_order_column_that_is_gone_rejects_the_new_records() -> None:
    state = replace(FLIGHTS, write=Upsert(key="id", order_by="note"))
    [effect] = told(avro(ID, NOTE), avro(ID), state)
    assert effect.is_dangerous
    assert "order column note no more: records of the new version are rejected (order_missing)" in effect.what


def test_json_schema_is_understood() -> None:
    before, after = (
        {
            "subject_name": "flights-value",
            "schema": json.dumps({"type": "object", "properties": {key: {"type": "string"} for key in names}}),
        }
        for names in (["a"], ["a", "b"])
    )
    [effect] = told(before, after, with_topic(FLIGHTS, value_format="json_schema"))
    assert effect.what == "column b added, string"


def test_a_schema_that_cannot_be_read_here_is_told_and_not_guessed_at() -> None:
    protobuf = with_topic(FLIGHTS, value_format="protobuf")
    for pipeline, text in ((protobuf, 'syntax = "proto3";'), (FLIGHTS, "{")):
        [effect] = told(avro(ID), {**avro(ID), "schema": text}, pipeline)
        assert "is unknown here" in effect.what


def test_a_schema_that_is_known_later_is_told() -> None:
    after = {key: value for key, value in avro(ID).items() if key != "schema"}
    [effect] = told(avro(ID), after, unknown={"schema": True})
    assert "is unknown here" in effect.what


@pytest.mark.parametrize(
    "other", [with_topic(FLIGHTS, subject_strategy=SubjectStrategy.RECORD), with_topic(FLIGHTS, name="others")]
)
def test_pipelines_of_other_subjects_are_not_concerned(other: Pipeline) -> None:
    assert told(avro(ID), avro(ID, NOTE), other) == []


def test_another_spelling_of_a_schema_changes_no_column() -> None:
    spelled = {**avro(ID), "schema": json.dumps(json.loads(avro(ID)["schema"]), indent=2)}
    [effect] = told(avro(ID), spelled)
    assert "no column does" in effect.what


def test_a_new_field_without_a_shape_is_a_variant_where_the_table_has_them() -> None:
    nothing = {"name": "more", "type": {"type": "record", "name": "Nothing", "fields": []}}
    variants = with_table(FLIGHTS, format_version=3, json_columns="variant")
    assert [effect.what for effect in told(avro(ID), avro(ID, nothing), variants)] == ["column more added, variant"]
    assert [effect.what for effect in told(avro(ID), avro(ID, nothing))] == ["column more added, string"]


SHAPED = Shape(where="note <> 'test'", select="*, id + 1 as next")


def test_what_a_shape_reads_and_a_version_renames_or_retypes_is_said() -> None:
    shaped = replace(FLIGHTS, shape=SHAPED)
    renamed = {"name": "remark", "type": ["null", "string"], "default": None, "aliases": ["note"]}
    [lost] = told(avro(ID, NOTE), avro(ID, renamed), shaped)
    assert (lost.outcome, lost.is_dangerous) == (Outcome.STOPS, True)
    assert lost.what == "no version has note any more, which shape.where reads: the pipeline stops before a commit"
    more = {"name": "more", "type": ["null", "string"], "default": None}
    [added] = told(avro(ID, NOTE), avro(ID, NOTE, more), shaped)
    assert added.what == "the topic gets the field more, string: a star selects it"
    [unfit] = told(avro(ID, NOTE), avro(ID, {**NOTE, "type": ["null", "bytes"]}), shaped)
    assert (unfit.is_dangerous, "Records of it are rejected" in unfit.what) == (True, True)
    [wider] = told(avro(ID, NOTE), avro({**ID, "type": "long"}, NOTE), shaped)
    assert wider.what.startswith("id, which shape.select reads, is long instead of int")
    assert told(avro(ID, NOTE), avro(ID), shaped) == []
    [plain] = told(avro(ID), avro(ID, NOTE), replace(FLIGHTS, shape=Shape(select="id")))
    assert (
        plain.what == "the topic gets the field note, string: shape.select does not name it, so it lands in no column"
    )
    followed = told(avro(ID, NOTE), avro(ID, renamed), replace(FLIGHTS, shape=Shape(mask={"note": Redact()})))
    assert [one.what for one in followed] == ["column note renamed to remark"]
