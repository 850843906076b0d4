"""A JSON document compared with its columns: the field that does not fit, its value, and what was wanted."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from frazil.dead_letters.diagnosis import attempt
from frazil.dead_letters.json_body import fitting_json, json_of
from frazil.dead_letters.show import part
from frazil.declaration import Append, Order, Pipeline, Table, Topic, Upsert
from tests.support.topics import topic_of

COLUMNS = (
    "id long", "n int", "price decimal(5,2)", "ratio double", "day date", "at timestamptz", "ok boolean", "name string",
    "tags list<string>", "sizes map<string, long>", "place struct<zip: int, city: string>", "free json", "raw binary",
)  # fmt: skip


def pipeline(**topic: object) -> Pipeline:
    declared = {"value_format": "json", "columns": COLUMNS, **topic}
    return Pipeline(topic=topic_of("clicks", **declared), table=Table("shop.clicks"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("member", "path", "value"),
    [
        ('"id": "two"', "id", '"two"'),
        ('"id": 9223372036854775808', "id", "9223372036854775808"),
        ('"id": 1.5', "id", "1.5"),
        ('"n": true', "n", "true"),
        ('"price": 1.005', "price", "1.005"),
        ('"price": 1000', "price", "1000"),
        ('"price": 1234567890123456789012345678.999', "price", "1234567890123456789012345678.999"),
        ('"price": 1e99999999', "price", "1E+99999999"),
        ('"ratio": 1e400', "ratio", "1E+400"),
        ('"id": 1e999999999', "id", "1E+999999999"),
        ('"id": 1e-999999999', "id", "1E-999999999"),
        ('"id": -1e9999999999999999999999', "id", "-1E+999999999999999999"),
        ('"ratio": 1e9999999999999999999999', "ratio", "1E+999999999999999999"),
        ('"day": "2026-02-30"', "day", '"2026-02-30"'),
        ('"at": "2026-02-01 10:00"', "at", '"2026-02-01 10:00"'),
        ('"ok": "yes"', "ok", '"yes"'),
        ('"name": "\\ud800"', "name", '"\\ud800"'),
        ('"tags": "a"', "tags", '"a"'),
        ('"sizes": {"l": "x"}', "sizes{l}", '"x"'),
        ('"place": {"zip": "x"}', "place.zip", '"x"'),
        ('"id": "' + "x" * 99 + '\\u001b[31m"', "id", '"' + "x" * 59 + "…"),
    ],
)
def test_the_field_that_does_not_fit_is_named_with_its_value(member: str, path: str, value: str) -> None:
    found = part(pipeline(), f'{{"id": 1, {member}}}'.encode(), (), None).attempt
    assert found is not None
    assert (found.path, found.value) == (path, value)
    assert " is not a " in found.what or " is not an " in found.what
    assert "two" not in found.what  # the log of a run has this text, and no value of a record


@pytest.mark.parametrize("text", ["!!", "a", "YQ", "YWI", "Y-==", "YQ==YQ"])
def test_bytes_that_are_no_base64_are_named(text: str) -> None:
    found = part(pipeline(), json.dumps({"id": 1, "raw": text}).encode(), (), None).attempt
    assert found is not None
    if text == "YQ==YQ":  # what follows the padding is no fault
        assert found.succeeded
        return
    assert (found.path, found.what) == ("raw", "the text is not bytes in base64")


def test_a_decimal_of_connect_that_is_no_base64_is_named() -> None:
    decimal = {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "version": 1,
        "parameters": {"scale": "2"},
    }
    schema = {"type": "struct", "optional": False, "fields": [{**decimal, "optional": True, "field": "d"}]}
    declared = Pipeline(topic=Topic("clicks", value="connect_json"), table=Table("shop.clicks"))
    for value, path in (("!!", "d"), ("1g==", ""), (1.5, "")):
        found = part(declared, json.dumps({"schema": schema, "payload": {"d": value}}).encode(), (), None).attempt
        assert found is not None
        assert (found.path, found.succeeded) == (path, not path)


def test_a_null_is_no_value() -> None:
    found = part(pipeline(), b" null", (), None).attempt
    assert found is not None
    assert (found.succeeded, found.what) == (False, "JSON's null is not a value")


@pytest.mark.parametrize(
    ("member", "path"),
    [
        ('"at": "2026-02-01T10:00:00.1234567Z"', "at"),
        ('"nanos": 1234', "nanos"),
        ('"zoned": "2026-02-01T10:00:00.0000001+01:00"', "zoned"),
        ('"name": 9', "name"),
    ],
)
def test_a_value_of_the_key_or_order_that_its_column_would_change_is_named(member: str, path: str) -> None:
    columns = (*COLUMNS, "nanos io.debezium.time.NanoTimestamp", "zoned io.debezium.time.ZonedTimestamp")
    exact = Upsert(key="name", order_by=Order(("at", "nanos", "zoned")))
    for write, wanted in ((exact, path), (Append(), "")):
        declared = replace(pipeline(columns=columns), write=write)
        found = part(declared, f'{{"id": 1, {member}}}'.encode(), (), None).attempt
        assert found is not None
        assert found.path == wanted


@pytest.mark.parametrize(
    "document",
    [
        {},
        dict.fromkeys((text.split()[0] for text in COLUMNS), None),
        {"id": 1.0, "n": -(2**31), "price": 999.99, "ratio": "NaN", "name": 3, "free": {"a": [1]}, "unknown": 1},
        {"day": "2026-02-28", "at": "2026-02-01T10:00:00Z", "tags": [None, "a"], "sizes": {"a": None}, "place": None},
    ],
)
def test_what_a_run_lands_fits(document: object) -> None:
    found = part(pipeline(), json.dumps(document).encode(), (), None).attempt
    assert found is not None
    assert found.succeeded, found


@pytest.mark.parametrize("document", [{"hello": 1}, {"id": None}, {"ID": 1}])
def test_a_required_column_that_is_missing_is_named(document: object) -> None:
    found = part(pipeline(columns=("id long required", "n int")), json.dumps(document).encode(), (), None).attempt
    assert found is not None
    assert (found.path, found.what) == ("id", "the required column is null, or the record does not have it")


def test_what_a_schema_requires_is_not_required_of_a_row() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    registered = Pipeline(topic=Topic("t", value="json_schema"), table=Table("s.t"))
    of = json_of(registered, b"", (json.dumps(schema), {}), is_key=False)
    assert of is not None
    assert attempt(b"{}", lambda body: fitting_json(body, of)).succeeded


def test_keys_and_documents_that_are_no_objects_are_compared_too() -> None:
    keyed = pipeline(key_format="json", key_columns=("id long",))
    key = part(keyed, b'{"id": "x"}', (), None, is_key=True).attempt
    value = part(keyed, b"[1]", (), None).attempt
    assert key is not None
    assert value is not None
    assert (key.path, key.what) == ("id", "the text is not a value of type long")
    assert (value.path, value.what) == ("", "a list is not an object")


def test_a_registered_schema_and_one_in_the_record_say_the_types_too() -> None:
    schema = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}}), {}
    registered = Pipeline(topic=Topic("t", value="json_schema"), table=Table("s.t"))
    of = json_of(registered, b"", schema, is_key=False)
    assert of is not None
    assert attempt(b'{"n": "x"}', lambda body: fitting_json(body, of)).path == "n"
    fields = [{"type": "int32", "optional": True, "field": "n"}]
    record = {"schema": {"type": "struct", "optional": False, "fields": fields}, "payload": {"n": 1.5}}
    embedded = Pipeline(topic=Topic("t", value="connect_json"), table=Table("s.t"))
    found = part(embedded, json.dumps(record).encode(), (), None).attempt
    assert found is not None
    assert (found.path, found.value) == ("n", "1.5")
