from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.errors import UnreadableSchema
from frazil.schemas.json import json_schema
from frazil.schemas.json.json_schema import VALUE_COLUMN, is_single_value, omitted, parse, row_type
from frazil.schemas.types import Field, Struct

JSON = "json"


def read(schema: Any, **references: Any) -> Struct:
    texts = {name: json.dumps(text) for name, text in references.items()}
    return row_type(json_schema.parse(json.dumps(schema), texts))


def shown(row: Struct) -> dict[str, str]:
    """Column name -> its type, `json` for JSON text; a struct's fields are shown one by one, as `a.b`."""
    out = {}
    for field in row.fields:
        if isinstance(field.type, Struct):
            out |= {f"{field.name}.{name}": of for name, of in shown(field.type).items()}
        else:
            out[field.name] = JSON if field.as_json else str(field.type)
    return out


def of(schema: Any, **more: Any) -> str:
    """The type of a property with this schema."""
    (field,) = read({"type": "object", "properties": {"x": schema}, **more}).fields
    return JSON if field.as_json else str(field.type)


def decimal(parameters: dict[str, str]) -> dict[str, Any]:
    title = "org.apache.kafka.connect.data.Decimal"
    return {"type": "number", "title": title, "connect.type": "bytes", "connect.parameters": parameters}


# Rows beside those of docs/schemas.md.
MAPPING: list[tuple[str, Any, str]] = [
    ("connect int64", {"type": "integer", "connect.type": "int64"}, "long"),
    ("connect decimal, precise", decimal({"scale": "2", "connect.decimal.precision": "9"}), "decimal(9, 2)"),
    ("other encoding", {"type": "string", "contentEncoding": "base32"}, "string"),
    ("enum of integers", {"enum": [1, 2]}, "long"),
    ("enum of numbers", {"enum": [1, 2.5]}, "double"),
    ("enum of a declared number", {"type": "number", "enum": [1, 2]}, "double"),
    ("enum with null", {"enum": ["a", None]}, "string"),
    ("mixed enum", {"enum": ["a", 1]}, JSON),
    ("const", {"const": "order"}, "string"),
    ("integer or number", {"type": ["integer", "number"]}, "double"),
    ("date or other string", {"oneOf": [{"type": "string", "format": "date"}, {"type": "string"}]}, "string"),
    ("int32 or int64", {"oneOf": [{"type": "integer", "connect.type": "int32"}, {"type": "integer"}]}, "long"),
    ("list, type left out", {"items": {"type": "integer"}}, "list<long>"),
    ("list of free-form objects", {"type": "array", "items": {"type": "object"}}, JSON),
    ("tuple, draft-07", {"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}, JSON),
    ("tuple, 2020-12", {"type": "array", "prefixItems": [{"type": "integer"}]}, JSON),
    ("list or other list", {"oneOf": [{"items": {"type": "integer"}}, {"items": {"type": "number"}}]}, "list<double>"),
    (
        "map or other map",
        {"oneOf": [{"additionalProperties": {"type": t}} for t in ("integer", "number")]},
        "map<string, double>",
    ),
    (
        "map by pattern",
        {"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False},
        "map<string, string>",
    ),
    ("map by any name", {"patternProperties": {"^.*$": {"type": "string"}}}, "map<string, string>"),
    ("pattern among others", {"patternProperties": {"^x-": {"type": "string"}}}, JSON),
    ("map of anything", {"type": "object", "additionalProperties": True}, JSON),
    ("map of free-form objects", {"type": "object", "additionalProperties": {"type": "object"}}, JSON),
    ("object without members", {"type": "object", "properties": {}, "additionalProperties": False}, JSON),
    ("every type", {"type": ["null", "boolean", "number", "string", "object", "array"]}, JSON),
    (
        "struct with additional properties",
        {"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}},
        "struct<a: string>",
    ),
    ("object or string", {"oneOf": [{"properties": {"a": {"type": "string"}}}, {"type": "string"}]}, JSON),
    ("allOf that narrows", {"allOf": [{"type": ["string", "null"]}, {"format": "date"}]}, "date"),
    ("allOf number and integer", {"allOf": [{"type": "number"}, {"type": "integer"}]}, "long"),
    (
        "if/then/else",
        {"properties": {"a": {"type": "string"}}, "if": {}, "then": {"properties": {"b": {"type": "integer"}}}},
        "struct<a: string, b: long>",
    ),
]


@pytest.mark.parametrize(("schema", "expected"), [row[1:] for row in MAPPING], ids=[row[0] for row in MAPPING])
def test_each_construct_has_its_type(schema: Any, expected: str) -> None:
    assert of(schema) == expected


def test_properties_are_columns_in_their_order() -> None:
    row = read({"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}})
    assert shown(row) == {"b": "string", "a": "long"}


def test_a_required_property_is_required_unless_it_may_be_null() -> None:
    properties = {"a": {"type": "string"}, "b": {"type": ["string", "null"]}, "c": {"type": "string"}}
    row = read({"type": "object", "required": ["a", "b"], "properties": properties})
    assert [field.required for field in row.fields] == [True, False, False]


def test_the_description_is_the_doc_and_the_place_goes_before_the_definition() -> None:
    schema = {
        "properties": {"a": {"description": " The buyer. ", "$ref": "#/$defs/id"}, "b": {"$ref": "#/$defs/id"}},
        "$defs": {"id": {"type": "string", "description": "An id."}},
    }
    assert [field.doc for field in read(schema).fields] == ["The buyer.", "An id."]


def test_odd_property_names_are_kept_as_they_are() -> None:
    names = ["Id", "id", "a.b", 'q"uote', "back`tick", "select", "😀", "$ref", "~/", "$"]
    row = read({"type": "object", "properties": {name: {"type": "string"} for name in names}})
    assert [(field.name, field.source) for field in row.fields] == [(name, name) for name in names]


def test_a_property_that_may_not_be_present_makes_no_column() -> None:
    assert shown(read({"properties": {"a": {"type": "string"}, "b": False, "c": {"type": "null"}}})) == {"a": "string"}


def test_elements_and_values_that_are_never_null_are_known_as_such() -> None:
    row = read({"properties": {"a": {"items": {"type": "integer"}}, "b": {"items": {"type": ["integer", "null"]}}}})
    assert [field.type.element_required for field in row.fields] == [True, False]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "array", "items": {"type": "integer"}}, "list<long>"),
        ({"type": "string", "format": "date"}, "date"),
        ({"additionalProperties": {"type": "number"}}, "map<string, double>"),
        ({"type": "object"}, JSON),
        (True, JSON),
    ],
)
def test_a_record_that_is_no_struct_is_one_column_value(schema: Any, expected: str) -> None:
    row = read(schema)
    assert shown(row) == {"value": expected}
    assert row.fields[0].source == VALUE_COLUMN
    assert is_single_value(parse(json.dumps(schema)))
    assert not is_single_value(parse('{"properties": {"value": {"type": "string"}}}'))


class TestReferences:
    def test_a_local_definition_is_followed_in_both_spellings(self) -> None:
        for keyword in ("definitions", "$defs"):
            schema = {"properties": {"x": {"$ref": f"#/{keyword}/a~1b%20c"}}, keyword: {"a/b c": {"type": "integer"}}}
            assert shown(read(schema)) == {"x": "long"}

    def test_a_reference_by_registry_name_is_followed(self) -> None:
        schema = {"properties": {"x": {"$ref": "address.json"}, "y": {"$ref": "address.json#/properties/city"}}}
        address = {"type": "object", "properties": {"city": {"type": "string"}}}
        assert shown(read(schema, **{"address.json": address})) == {"x.city": "string", "y": "string"}

    def test_a_reference_by_id_is_followed_relative_to_the_base(self) -> None:
        schema = {"$id": "https://example.com/shop/order", "properties": {"x": {"$ref": "address#/$defs/city"}}}
        address = {"$id": "https://example.com/shop/address", "$defs": {"city": {"type": "string"}}}
        assert shown(read(schema, subject=address)) == {"x": "string"}

    def test_a_referenced_document_refers_within_itself(self) -> None:
        address = {"properties": {"city": {"$ref": "#/definitions/name"}}, "definitions": {"name": {"type": "string"}}}
        schema = {"properties": {"x": {"$ref": "a.json"}}, "definitions": {"name": {"type": "integer"}}}
        assert shown(read(schema, **{"a.json": address})) == {"x.city": "string"}

    def test_an_anchor_is_followed(self) -> None:
        schema = {"properties": {"x": {"$ref": "#name"}}, "$defs": {"n": {"$anchor": "name", "type": "string"}}}
        assert shown(read(schema)) == {"x": "string"}
        schema = {"properties": {"x": {"$ref": "#name"}}, "definitions": {"n": {"$id": "#name", "type": "string"}}}
        assert shown(read(schema)) == {"x": "string"}

    def test_an_embedded_document_is_found_by_its_id(self) -> None:
        embedded = {"$id": "city", "$ref": "#/$defs/n", "$defs": {"n": {"type": "string"}}}
        schema = {"$id": "http://e.com/a", "properties": {"x": {"$ref": "city"}}, "$defs": {"c": embedded}}
        assert shown(read(schema)) == {"x": "string"}

    def test_ids_that_only_repeat_the_place_do_no_harm(self) -> None:
        properties = {"x": {"$id": "#/properties/x", "$ref": "#/definitions/n"}}
        assert shown(
            read({"$id": "http://e.com/a.json", "properties": properties, "definitions": {"n": {"type": "string"}}})
        ) == {"x": "string"}

    def test_what_stands_beside_a_reference_holds_too(self) -> None:
        schema = {"properties": {"x": {"$ref": "#/$defs/s", "format": "date"}}, "$defs": {"s": {"type": "string"}}}
        assert shown(read(schema)) == {"x": "date"}

    @pytest.mark.parametrize(
        ("schema", "place"),
        [
            ({"properties": {"x": {"$ref": "other.json"}}}, "#/properties/x"),
            ({"properties": {"x": {"$ref": "#/$defs/none"}}}, "#/properties/x"),
            ({"properties": {"x": {"$ref": 5}}}, "#/properties/x"),
            ({"$ref": "#"}, "#"),
            ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, "#/$defs/b"),
        ],
    )
    def test_a_reference_that_leads_nowhere_is_refused_with_its_place(self, schema: Any, place: str) -> None:
        with pytest.raises(UnreadableSchema) as refusal:
            read(schema)
        assert refusal.value.where == place


class TestAlternatives:
    def test_alternatives_that_only_require_keep_the_object(self) -> None:
        schema = {
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        }
        row = read(schema)
        assert shown(row) == {"a": "string", "b": "string"}
        assert [field.required for field in row.fields] == [False, False]

    def test_a_property_that_alternatives_type_differently_is_json(self) -> None:
        schema = {
            "oneOf": [{"properties": {"id": {"type": t}, "n": {"type": "integer"}}} for t in ("string", "integer")]
        }
        assert shown(read(schema)) == {"id": JSON, "n": "long"}

    def test_an_alternative_that_excludes_the_schema_around_it_is_left_out(self) -> None:
        assert of({"type": "string", "anyOf": [{"type": "integer"}, {"format": "date"}]}) == "date"

    def test_all_of_that_nothing_satisfies_makes_no_column(self) -> None:
        impossible = {"allOf": [{"type": "string"}, {"type": "integer"}]}
        assert shown(read({"properties": {"a": {"type": "string"}, "b": impossible}})) == {"a": "string"}
        with pytest.raises(UnreadableSchema, match="no record can be valid"):
            read(impossible)

    def test_a_definition_that_is_an_alternative_of_itself_ends(self) -> None:
        schema = {
            "properties": {"x": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"oneOf": [{"$ref": "#/$defs/a"}, {"type": "string"}]}},
        }
        assert shown(read(schema)) == {"x": JSON}


class TestRecursion:
    def test_the_root_counts_like_a_definition(self) -> None:
        assert shown(read({"properties": {"n": {"type": "integer"}, "next": {"$ref": "#"}}})) == {
            "n": "long",
            "next.n": "long",
            "next.next": JSON,
        }

    def test_a_list_of_itself_is_cut_as_a_whole(self) -> None:
        row = read({"properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}})
        assert row == Struct((Field("kids", row.fields[0].type, required=False),))
        assert str(row.fields[0].type) == "list<struct<kids: string>>"

    def test_deep_nesting_is_cut_to_json(self) -> None:
        schema: Any = {"type": "integer"}
        for _ in range(150):
            schema = {"type": "object", "properties": {"a": schema}}
        assert shown(read(schema)) == {".".join(["a"] * json_schema.NESTING): JSON}

    def test_a_schema_nested_beyond_reason_is_refused(self) -> None:
        chain = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(2000)}
        nested = ['{"allOf":[' * levels + "{}" + "]}" * levels for levels in (201, 5000)]
        for text in (*nested, json.dumps({"$ref": "#/$defs/d0", "$defs": {**chain, "d2000": {}}})):
            with pytest.raises(UnreadableSchema, match="nested too deeply"):
                row_type(json_schema.parse(text, {}))
        assert row_type(json_schema.parse('{"allOf":[' * 199 + "{}" + "]}" * 199, {}))

    def test_a_schema_that_multiplies_without_end_is_refused(self) -> None:
        levels = {f"l{i}": {"properties": {c: {"$ref": f"#/$defs/l{i + 1}"} for c in "abcdefghij"}} for i in range(9)}
        with pytest.raises(UnreadableSchema, match="types"):
            read({"$ref": "#/$defs/l0", "$defs": {**levels, "l9": {"type": "string"}}})
        with pytest.raises(UnreadableSchema, match="types"):
            read({"allOf": [{"anyOf": [{"minimum": i}, {"maximum": i}]} for i in range(40)]})


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("", "#", "not JSON"),
        ("{", "#", "not JSON"),
        ("[]", "#", "an object or a boolean"),
        ('{"type": "strnig"}', "#", "unknown type 'strnig'"),
        ('{"type": 5}', "#", "unknown type"),
        ('{"type": [["a"]]}', "#", "unknown type"),
        ('{"properties": {"a": {"properties": []}}}', "#/properties/a", "properties is not an object"),
        ('{"properties": {"a/b": {"oneOf": {}}}}', "#/properties/a~1b", "oneOf is not a list"),
        ('{"properties": {"a": "string"}}', "#/properties/a", "a schema is an object"),
        ("false", "#", "no record can be valid"),
        ('{"type": "null"}', "#", "no record can be valid"),
    ],
)
def test_a_malformed_schema_is_refused_with_its_json_pointer(text: str, place: str, what: str) -> None:
    with pytest.raises(UnreadableSchema, match=what) as refusal:
        row_type(json_schema.parse(text, {}))
    assert refusal.value.where == place


def test_a_malformed_reference_is_refused_with_its_name() -> None:
    with pytest.raises(UnreadableSchema, match="not JSON") as refusal:
        json_schema.parse("{}", {"address.json": "<html>"})
    assert refusal.value.where == "address.json#"


A, B, C = ({"properties": {name: {"type": of}}} for name, of in (("a", "string"), ("b", "integer"), ("c", "boolean")))
LANDING: list[tuple[str, Any, dict[str, str]]] = [
    ("then and else", {**A, "if": {}, "then": B, "else": C}, {"a": "string", "b": "long", "c": "boolean"}),
    ("if alone", {**A, "if": B}, {"a": "string", "b": "long"}),
    ("dependentSchemas", {**A, "dependentSchemas": {"a": B}}, {"a": "string", "b": "long"}),
    ("dependencies of draft 7", {**A, "dependencies": {"a": B, "b": ["a"]}}, {"a": "string", "b": "long"}),
    ("conditions in conditions", {**A, "then": {"if": {}, "then": B, "else": C}}, {"a": "string", "b": "long", "c": "boolean"}),
    ("alternatives in a condition", {**A, "then": {"oneOf": [B, {"anyOf": [C]}]}}, {"a": "string", "b": "long", "c": "boolean"}),
    ("allOf in a condition", {**A, "else": {"allOf": [B, C]}}, {"a": "string", "b": "long", "c": "boolean"}),
    ("a condition in allOf", {**A, "allOf": [{"if": {}, "then": B}, {"if": {}, "then": C}]}, {"a": "string", "b": "long", "c": "boolean"}),
    ("a condition in an alternative", {**A, "anyOf": [{"if": {}, "then": B}, C]}, {"a": "string", "b": "long", "c": "boolean"}),
    ("a condition by reference", {**A, "then": {"$ref": "#/$defs/b"}, "$defs": {"b": B}}, {"a": "string", "b": "long"}),
    ("a condition that is the schema", {**A, "then": {"$ref": "#"}}, {"a": "string"}),
    (
        "a condition inside itself",
        {**A, "then": {"$ref": "#/$defs/e"}, "$defs": {"e": {"properties": {"kid": {"type": "object", "then": {"$ref": "#/$defs/e"}}}}}},
        {"a": "string", "kid.kid": JSON},
    ),
    ("one name in both branches", {**A, "then": B, "else": {"properties": {"b": {"type": "number"}}}}, {"a": "string", "b": "double"}),
    ("one name of two kinds", {**A, "then": B, "else": {"properties": {"b": {"type": "string"}}}}, {"a": "string", "b": JSON}),
    ("a name that a branch excludes", {**A, "then": B, "else": {"properties": {"b": False}}}, {"a": "string", "b": "long"}),
    ("a narrower type of a property", {**A, "then": {"properties": {"a": {"const": "x"}}}}, {"a": "string"}),
    ("conditions alone", {"type": "object", "then": B, "unevaluatedProperties": False}, {"b": "long"}),
    ("inside a property", {"properties": {"in": A}, "then": {"properties": {"in": B}}}, {"in.a": "string", "in.b": "long"}),
    (
        "inside a list",
        {"properties": {"l": {"items": A}}, "then": {"properties": {"l": {"items": B}}}},
        {"l": "list<struct<a: string, b: long>>"},
    ),
    (
        "some elements of a list",
        {"properties": {"l": {"items": A, "contains": B}}, "then": {"properties": {"l": {"prefixItems": [C]}}}},
        {"l": "list<struct<a: string, b: long, c: boolean>>"},
    ),
    (
        "inside a map",
        {"properties": {"m": {"additionalProperties": A}}, "then": {"properties": {"m": {"additionalProperties": B}}}},
        {"m": "map<string, struct<a: string, b: long>>"},
    ),
    (
        "a map of what patterns and conditions describe",
        {"properties": {"m": {"patternProperties": {"^n_": {"type": "integer"}}, "then": A, "unevaluatedProperties": False}}},
        {"m": JSON},
    ),
    ("a tuple", {"properties": {"l": {"prefixItems": [{"type": "integer"}], "items": A, "contains": B}}}, {"l": JSON}),
    ("alternatives", {"oneOf": [A, {"allOf": [B, {"$ref": "#/$defs/c"}]}], "$defs": {"c": C}, "type": "object"}, {"a": "string", "b": "long", "c": "boolean"}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "columns"), [row[1:] for row in LANDING], ids=[row[0] for row in LANDING])
def test_what_a_keyword_describes_for_some_records_is_a_column(schema: Any, columns: dict[str, str]) -> None:
    assert shown(read(schema)) == columns
    assert omitted(parse(json.dumps(schema), {})) == ()
    assert not any(field.required for field in read(schema).fields)


OMITTED: list[tuple[str, Any, list[str]]] = [
    ("additionalProperties", {**A, "additionalProperties": {"type": "string"}}, ["the record: other properties (additionalProperties)"]),
    ("unevaluatedProperties", {**A, "unevaluatedProperties": B}, ["the record: other properties (unevaluatedProperties)"]),
    ("patternProperties", {**A, "patternProperties": {"^x/_": {}, "^y": False}}, ["the record: other properties (patternProperties ^x/_)"]),
    ("in a struct", {"properties": {"l": {**A, "additionalProperties": B}}}, ["l: other properties (additionalProperties)"]),
    ("in a list of structs", {"properties": {"l": {"items": {**A, "patternProperties": {"^x": B}}}}}, ["l.*: other properties (patternProperties ^x)"]),
    ("in a condition", {**A, "then": {"additionalProperties": B}}, ["the record: other properties (additionalProperties)"]),
    ("in allOf", {"allOf": [A, {"patternProperties": {"^x": B}}]}, ["the record: other properties (patternProperties ^x)"]),
    ("in an alternative", {**A, "oneOf": [B, {"additionalProperties": B}]}, ["the record: other properties (additionalProperties)"]),
    ("a name in required", {**A, "required": ["a", "z"]}, ["the record: the property z (required)"]),
    ("a name in dependentRequired", {**A, "dependentRequired": {"a": ["z"]}}, ["the record: the property z (dependentRequired)"]),
    ("a name in dependencies", {**A, "dependencies": {"y": ["z"]}}, ["the record: the property y (dependencies)", "the record: the property z (dependencies)"]),
    ("a name in dependentSchemas", {**A, "dependentSchemas": {"z": True}}, ["the record: the property z (dependentSchemas)"]),
    ("a name in propertyNames", {**A, "propertyNames": {"enum": ["a", "z"]}}, ["the record: the property z (propertyNames)"]),
    ("a name in not", {**A, "not": {**B, "required": ["b", "z"]}}, ["the record: the property b (not)", "the record: the property z (not)"]),
    ("a name in enum and const", {**A, "enum": [{"a": "x", "y": 1}, 7], "allOf": [{"const": {"z": 1}}]}, ["the record: the property y (enum)", "the record: the property z (const)"]),
    ("anything at all", {**A, "additionalProperties": True, "unevaluatedProperties": {}}, []),
    ("nothing else", {**A, "additionalProperties": False, "patternProperties": {"^x": False}}, []),
    ("names that another branch describes", {"oneOf": [{**A, "required": ["b"]}, B]}, []),
    ("names of properties that hold no value", {"properties": {"a": {}, "n": {"type": "null"}, "f": False}, "required": ["n", "f"]}, []),
    ("a map", {"properties": {"m": {"additionalProperties": B, "required": ["z"]}}}, []),
    ("an object of anything", {"properties": {"o": {"type": "object", "patternProperties": {"^x": B}, "required": ["z"]}}}, []),
    ("what is JSON text", {"properties": {"o": {"oneOf": [{**A, "additionalProperties": B}, {"type": "string"}]}}}, []),
    ("a record that is a map", {"type": "object", "additionalProperties": B}, []),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "said"), [row[1:] for row in OMITTED], ids=[row[0] for row in OMITTED])
def test_what_a_keyword_describes_without_a_column_is_said(schema: Any, said: list[str]) -> None:
    assert list(omitted(parse(json.dumps(schema), {}))) == said


def test_unknown_fields_that_are_kept_are_not_omitted() -> None:
    inner = {**A, "additionalProperties": B}
    schema = parse(json.dumps({"properties": {"in": inner}, "additionalProperties": B}), {})
    assert list(omitted(schema, keeps_unknown=True)) == ["in: other properties (additionalProperties)"]


def test_half_a_surrogate_pair_is_no_name_and_no_comment() -> None:
    for properties in ({"a\ud800": {"type": "string"}}, {"a": {"type": "string", "description": "\udc00"}}):
        with pytest.raises(UnreadableSchema, match="half a surrogate pair"):
            json_schema.parse(json.dumps({"type": "object", "properties": properties}))
    assert json_schema.parse(json.dumps({"type": "object", "properties": {"a": {"pattern": "[^\ud800]"}}}))
