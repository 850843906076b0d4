import json
from pathlib import Path

import pytest

from frazil.declaration import environment_schema, json_schema, project_schema

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("name", "made"),
    [("document", json_schema()), ("environment", environment_schema()), ("project", project_schema())],
)
def test_the_copy_in_docs_is_what_the_declarations_make(name, made):
    text = json.dumps(made, indent=2, ensure_ascii=False) + "\n"
    copy = DOCS / f"{name}.schema.json"
    assert copy.read_text("utf-8") == text, f"write json.dumps({name}'s schema, indent=2, ensure_ascii=False) to {copy}"


@pytest.mark.parametrize("schema", [json_schema(), environment_schema(), project_schema()])
def test_an_editor_knows_every_field_and_no_other(schema):
    for definition in (schema, *schema["$defs"].values()):
        assert definition["additionalProperties"] is False
        assert set(definition["required"]) <= set(definition["properties"])


def test_an_editor_shows_meaning_bounds_choices_and_defaults():
    definitions = json_schema()["$defs"]
    assert definitions["table"]["properties"]["keep_snapshots"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 100_000,
        "description": "The number of newest snapshots that expiry keeps.",
        "default": 100,
    }
    assert definitions["topic"]["properties"]["value_format"]["enum"][0] == "avro"
    assert definitions["topic"]["required"] == ["name", "value_format"]
    assert definitions["pipeline"]["properties"]["start"]["default"] == {"type": "earliest"}
    assert {"$ref": "#/$defs/offsets"} in definitions["pipeline"]["properties"]["start"]["oneOf"]
    assert definitions["offsets"]["properties"]["type"] == {"const": "offsets"}
    assert "default" not in definitions["pipeline"]["properties"]["name"]
    assert json_schema()["properties"]["version"] == {"const": 2}
    assert definitions["pipeline"]["properties"]["write"]["oneOf"] == [
        {"$ref": "#/$defs/append"},
        {"$ref": "#/$defs/upsert"},
        {"$ref": "#/$defs/changelog"},
    ]
    assert definitions["append"]["required"] == ["type"]
    envelopes = [{"oneOf": [{"$ref": "#/$defs/debezium"}]}, {"type": "null"}]
    assert definitions["pipeline"]["properties"]["envelope"]["anyOf"] == envelopes


def test_a_secret_is_an_object_in_every_place_that_takes_one():
    definitions = environment_schema()["$defs"]
    password = definitions["kafka"]["properties"]["password"]
    assert password["anyOf"] == [{"$ref": "#/$defs/secret"}, {"type": "null"}]
