"""The rules about a connector's settings: each has a case that it finds."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from frazil.declaration import Append, Changelog, Debezium, InvalidDeclaration, Pipeline, Table, Upsert
from frazil.declaration.checks.problems import Problem
from frazil.envelopes.connector import RULES, Connector, Fed, Rule, broken, checked, connector
from tests.support.connectors import Converter, connector_settings
from tests.support.guides import block
from tests.support.topics import topic_of

ON_PAGE = json.loads(block("database-tables.md", "connector.json"))
CONFLUENT = "io.confluent.connect.avro.AvroConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
UNWRAP = {"transforms": "unwrap", "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState"}
PLAIN_JSON = {"key.converter": JSON, "value.converter": JSON, "value.converter.schemas.enable": "false"}
PLAIN_JSON |= {"key.converter.schemas.enable": "false"}
AVRO = {"value_format": "avro", "key_format": "avro"}
DECLARED = {"value_format": "json", "key_format": "json", "key_columns": ("id long",)}


def of(
    topic: str = "shop.public.orders", *, envelope: Any = "debezium", write: Any = None, **declared: Any
) -> Pipeline:
    name = topic.rpartition(".")[2].replace("-", "_")
    formats = {**AVRO, **declared}
    return Pipeline(
        name=name,
        topic=topic_of(topic, **formats),
        table=Table(f"shop.{name}"),
        write=write or Upsert(),
        envelope=envelope,
    )


def of_settings(**settings: str | None) -> Connector:
    """Return the connector of the guide, with other settings; None removes one."""
    return Connector("shop.json", {name: v for name, v in {**ON_PAGE, **settings}.items() if v is not None})


Checked = tuple[list[Problem], list[Problem]]


def found(pipeline: Pipeline, **settings: str | None) -> Checked:
    return checked([of_settings(**settings)], [pipeline])


DELETE_ALL = Upsert(on_truncate="delete_all")
FULL = {"envelope": Debezium(replica_identity="full"), "write": Changelog()}
OUTBOX = {"transforms": "o", "transforms.o.type": "io.debezium.transforms.outbox.EventRouter"}
COLUMNS = {**DECLARED, "columns": ("id long", "price decimal(10, 2)")}
FLAT = {**DECLARED, "columns": ("id long", "__deleted string")}
MODE, FIELDS = "transforms.unwrap.delete.tombstone.handling.mode", "transforms.unwrap.add.fields"
BASED = "snapshot.mode.configuration.based"
STREAMS = {"snapshot.mode": "configuration_based", f"{BASED}.start.stream": "True"}
CASES: dict[str, tuple[dict[str, Any], dict[str, str | None], str]] = {
    "the worker's converter": ({}, {"value.converter": None}, "note value.converter: .*worker's"),
    "Protobuf": ({}, {"value.converter": "io.confluent.connect.protobuf.ProtobufConverter"}, "value.converter: .*no format"),
    "another format": ({}, {"value.converter": JSON}, "value.converter: .*connect_json, but .*format of values is avro"),
    "keys of another format": ({}, {"key.converter": JSON}, "key.converter: .*format of keys is avro"),
    "JSON with schemas": (COLUMNS, {**PLAIN_JSON, "value.converter.schemas.enable": None, "decimal.handling.mode": "string"}, "value.converter.schemas.enable: .*not set, and true"),
    "nulls of JSON": ({"value_format": "connect_json"}, {"value.converter": JSON}, "note value.converter.replace.null.with.default: "),
    "nulls of Confluent's": ({}, {"value.converter": CONFLUENT}, "note value.converter.ignore.default.for.nullables: "),
    "ids of eight bytes": ({}, {"value.converter.apicurio.registry.as-confluent": None}, "value.converter.apicurio.registry.as-confluent: .*not set, and false"),
    "ids in headers": ({}, {"key.converter.apicurio.registry.headers.enabled": None}, "key.converter.apicurio.registry.headers.enabled: .*not set, and true"),
    "global ids": ({}, {"value.converter.apicurio.registry.use-id": "globalId"}, "value.converter.apicurio.registry.use-id: .*globalId"),
    "a scale that is not said": (COLUMNS, PLAIN_JSON, "value.converter.decimal.format: .*scale"),
    "MongoDB": ({}, {"connector.class": "io.debezium.connector.mongodb.MongoDbConnector"}, "connector.class: .*rows as text"),
    "no deletes": ({}, {**UNWRAP, MODE: "drop"}, f"{MODE}: .*no delete is written"),
    "no tombstones": ({}, {**UNWRAP, "tombstones.on.delete": "false"}, f"{MODE}: .*tombstones.on.delete is false"),
    "no operation": ({"envelope": Debezium(operation_column=True)}, UNWRAP, f"{FIELDS}: .*column of the operation"),
    "another prefix": ({}, {**UNWRAP, "transforms.unwrap.add.fields.prefix": "_"}, "transforms.unwrap.add.fields.prefix: "),
    "flattened without what is declared": ({"envelope": Debezium(source_column=True)}, UNWRAP, "transforms.unwrap.type: .*source_column"),
    "no mark of deletes": (FLAT, {**PLAIN_JSON, **UNWRAP}, f"{MODE}: .*__deleted"),
    "no declared mark": ({**DECLARED, "columns": ("id long",)}, {**PLAIN_JSON, **UNWRAP}, "transforms.unwrap.type: .*all are rejected"),
    "a mark of plain events": (FLAT, PLAIN_JSON, "transforms: .*not flattened"),
    "truncates": ({"write": DELETE_ALL}, {"skipped.operations": None}, "skipped.operations: .*not set, and t by default"),
    "truncates that may be": ({}, {"skipped.operations": "t"}, "note skipped.operations: .*if the source truncates"),
    "truncates of flattened events": ({"write": DELETE_ALL}, UNWRAP, "transforms.unwrap.type: .*writes no truncates"),
    "no deletes at all": ({}, {"skipped.operations": "t, d"}, "skipped.operations: .*changes are not written"),
    "decimals": ({}, {"decimal.handling.mode": "double"}, "note decimal.handling.mode: "),
    "times": ({}, {"time.precision.mode": "connect"}, "note time.precision.mode: "),
    "another placeholder": ({}, {"unavailable.value.placeholder": "?"}, "unavailable.value.placeholder: "),
    "a placeholder of bytes": ({}, {"unavailable.value.placeholder": "hex:3f"}, "unavailable.value.placeholder: "),
    "bytes": ({}, {"binary.handling.mode": "base64"}, "note binary.handling.mode: "),
    "failed events": ({}, {"event.processing.failure.handling.mode": "skip"}, "note event.processing.failure.handling.mode: "),
    "failed records": ({}, {"errors.tolerance": "all"}, "note errors.tolerance: "),
    "other partitions": ({}, {"transforms": "p", "transforms.p.type": "io.debezium.transforms.partitions.PartitionRouting"}, "transforms.p.type: .*another partition"),
    "a converter by its name": ({}, {"value.converter": "JsonConverter"}, "value.converter: .*connect_json, but .*format of values is avro"),
    "a transform by its name": ({}, {**UNWRAP, "transforms.unwrap.type": "ExtractNewRecordState", MODE: "drop"}, f"{MODE}: .*no delete is written"),
    "keys of values": ({}, {"transforms": "k", "transforms.k.type": "org.apache.kafka.connect.transforms.ValueToKey"}, "transforms.k.type: "),
    "an outbox": ({}, {"transforms": "o", "transforms.o.type": "EventRouter"}, "transforms.o.type: .*Remove the transform"),
    "an outbox beside tables": ({}, {**OUTBOX, "transforms.o.predicate": "isOutbox"}, "note transforms.o.predicate: .*applies to some topics only"),
    "some flattened events": (FLAT, {**PLAIN_JSON, **UNWRAP, "transforms.unwrap.predicate": "isFlat", MODE: "drop"}, "note transforms.unwrap.predicate: "),
    "a filter": ({}, {"transforms": "f", "transforms.f.type": "io.debezium.transforms.Filter"}, "note transforms.f.type: "),
    "other key columns": ({}, {"message.key.columns": "public.orders:email;public.items:id"}, "note message.key.columns: .*REPLICA IDENTITY"),
    "another identity": (FULL, {"replica.identity.autoset.values": "public.orders:DEFAULT"}, "replica.identity.autoset.values: .*DEFAULT"),
    "an identity that is not set": (FULL, {"replica.identity.autoset.values": "public.items:FULL"}, "note replica.identity.autoset.values: .*does not name"),
    "no snapshot": ({}, {"snapshot.mode": "no_data"}, "note snapshot.mode: .*reads no rows.*incremental snapshot"),
    "nothing but the snapshot": ({}, {"snapshot.mode": "initial_only"}, "snapshot.mode: .*writes no change after it"),
    "a recovery": ({}, {"snapshot.mode": "recovery"}, "note snapshot.mode: .*reads no rows"),
    "a snapshot at each start": ({}, {"snapshot.mode": "always"}, "note snapshot.mode: .*deleted while no log is read stay"),
    "a snapshot of a class": ({}, {"snapshot.mode": "custom"}, "note snapshot.mode: .*does not know its rows"),
    "a snapshot of the worker": ({}, {"snapshot.mode": "${env:MODE}"}, "note snapshot.mode: the worker fills in"),
    "settings of the snapshot alone": ({}, {"snapshot.mode": "configuration_based"}, f"{BASED}.start.stream: .*not set, and false by default: .*writes no change"),
    "settings of the worker": ({}, {**STREAMS, f"{BASED}.start.stream": "${env:STREAM}"}, f"note {BASED}.start.stream: the worker fills in"),
    "no heartbeat": ({}, {}, "note heartbeat.interval.ms: "),
    "a value of the worker": ({}, {"unavailable.value.placeholder": "${env:GONE}"}, "note unavailable.value.placeholder: the worker fills in"),
}  # fmt: skip
GOOD: dict[str, tuple[dict[str, Any], dict[str, str | None]]] = {
    "the page's": ({}, {}),
    "JSON": (COLUMNS, {**PLAIN_JSON, "value.converter.decimal.format": "numeric"}),
    "flattened": (FLAT, {**PLAIN_JSON, **UNWRAP, MODE: "rewrite", "tombstones.on.delete": "false"}),
    "flattened, in capitals": (FLAT, {**PLAIN_JSON, **UNWRAP, MODE: "REWRITE"}),
    "short names": ({}, {"connector.class": "Postgres", "value.converter": "AvroConverter"}),
    "an operation": ({"envelope": Debezium(operation_column=True)}, {**UNWRAP, FIELDS: "op, source.lsn"}),
    "the row before": (FULL, {"replica.identity.autoset.values": "public.*:full"}),
    "a placeholder": ({"envelope": Debezium(unavailable_value="?")}, {"unavailable.value.placeholder": "hex:3f"}),
    "truncates": ({"write": DELETE_ALL}, {}),
    "a snapshot": ({}, {"snapshot.mode": " Initial"}),
    "other snapshots": ({}, STREAMS),
}


@pytest.mark.parametrize("converter", Converter)
def test_the_connectors_of_the_tests_have_no_problem(converter: Converter) -> None:
    """The rules refuse nothing that is landed end to end."""
    database, registry = "postgresql://frazil@127.0.0.1:5432/frazil", "http://127.0.0.1:8081/apis/ccompat/v7"
    settings = connector_settings(
        database, prefix="shop", tables=["public.orders"], converter=converter, registry_url=registry
    )
    format_of = {Converter.AVRO: "avro", Converter.JSON: "json", Converter.JSON_WITH_SCHEMA: "connect_json"}[converter]
    columns = {"columns": ("id long",), "key_columns": ("id long",)} if converter is Converter.JSON else {}
    declared = of(value_format=format_of, key_format=format_of, **columns)
    assert checked([Connector("shop.json", settings)], [declared])[0] == []


def texts(result: Checked) -> list[str]:
    """Return what was found, notes marked, without the file in front."""
    all_of = [(mark, each) for mark, listed in zip(("", "note "), result, strict=True) for each in listed]
    assert all(each.path.startswith("shop.json: ") and each.do for _, each in all_of)
    return [f"{mark}{str(each).removeprefix('shop.json: ')}" for mark, each in all_of]


@pytest.mark.parametrize("case", CASES)
def test_each_setting_is_found(case: str) -> None:
    declared, settings, expected = CASES[case]
    result = found(of(**declared), **settings)
    assert any(re.match(expected, text) for text in texts(result)), texts(result)
    if expected.startswith("note "):
        assert result[0] == []
    assert "(pipeline orders)" in "".join(texts(result))


@pytest.mark.parametrize("case", GOOD)
def test_a_connector_that_fits_has_no_problem(case: str) -> None:
    declared, settings = GOOD[case]
    assert found(of(**declared), **settings)[0] == []


def findings(rule: Rule, settings: dict[str, str | None], pipeline: Pipeline) -> list[Any]:
    each, envelope = of_settings(**settings), pipeline.envelope
    assert isinstance(envelope, Debezium)
    sides = {side: Fed.of(each, pipeline, envelope, side) for side in ("key", "value")}
    return list(broken(sides, [rule]))


def test_each_rule_is_seen_in_a_case() -> None:
    seen = [
        rule for rule in RULES for declared, settings, _ in CASES.values() if findings(rule, settings, of(**declared))
    ]
    assert {rule.setting + rule.what for rule in RULES} == {rule.setting + rule.what for rule in seen}


def test_notes_of_several_pipelines_are_one() -> None:
    result = checked([of_settings(**{"heartbeat.interval.ms": None})], [of(), of("shop.public.items")])
    (note,) = (text for text in texts(result) if "heartbeat" in text)
    assert "(pipelines orders, items)" in note


TABLES = {
    "all": ({"table.include.list": None}, True),
    "a pattern": ({"table.include.list": r"public\.o.*"}, True),
    "in any case": ({"table.include.list": "PUBLIC.ORDERS"}, True),
    "another table": ({"table.include.list": "public.items"}, False),
    "a pattern of Java": ({"table.include.list": r"public\.\p{Alpha}+"}, True),
    "a set of Java": ({"table.include.list": r"public\.[a-z&&[^x]]+"}, True),
    "repeats in a repeat": ({"table.include.list": r"public\.(o+)+$"}, True),
    "another table by a pattern of Java": (
        {"table.include.list": None, "table.exclude.list": r"public\.tmp_\p{Digit}+"},
        True,
    ),
    "an excluded one": ({"table.include.list": None, "table.exclude.list": "public.orders"}, False),
    "another schema": ({"table.include.list": None, "schema.include.list": "audit"}, False),
    "an excluded database": ({"table.include.list": None, "database.exclude.list": "public"}, False),
    "a literal name of another database": (
        {
            "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
            "table.include.list": "dbo.orders",
            "database.names": "shop",
        },
        False,
    ),
}


ROUTER = {
    "transforms": "r",
    "transforms.r.type": "RegexRouter",
    "transforms.r.regex": "(.*)",
    "transforms.r.replacement": "$1",
}
LIST = "table.include.list"
UNCERTAIN: dict[str, tuple[dict[str, str | None], str]] = {
    "a list of the worker": ({LIST: "${file:/etc/shop:tables}"}, LIST),
    "a strategy": ({"topic.naming.strategy": "com.example.Names"}, "topic.naming.strategy"),
    "another delimiter": ({"topic.delimiter": "_"}, "topic.delimiter"),
    "a router": (ROUTER, "transforms.r.type"),
    "a router of some topics": ({**ROUTER, "transforms.r.predicate": "p"}, "transforms.r.type"),
    "a pattern of other characters": ({LIST: "public[.]order .*"}, LIST),
}


@pytest.mark.parametrize("case", UNCERTAIN)
def test_if_the_topics_are_not_known_for_certain_all_pipelines_are_checked_and_all_is_a_note(case: str) -> None:
    settings, name = UNCERTAIN[case]
    result = found(of("elsewhere"), **settings, **{"skipped.operations": "d"})
    assert result[0] == []
    assert [text for text in texts(result) if re.match(f"note {name}: .*not known for certain", text)] != []
    assert [text for text in texts(result) if text.startswith("note skipped.operations")] != []


def test_a_pattern_that_only_java_reads_may_be_one_of_a_table() -> None:
    for pattern in ("a{99999999999}", "(" * 5000 + ")" * 5000):
        assert texts(found(of(), **{LIST: pattern})) == texts(found(of(), **{LIST: "public.orders"}))


@pytest.mark.parametrize("case", TABLES)
def test_the_topics_of_a_connector_are_known(case: str) -> None:
    settings, is_fed = TABLES[case]
    each = of_settings(**settings)
    assert (each.fed([of()]) != []) is is_fed
    assert bool([text for text in texts(checked([each], [of()])) if "no declared topic" in text]) is not is_fed


def test_a_database_may_be_a_part_of_the_topic() -> None:
    server = {"connector.class": "io.debezium.connector.sqlserver.SqlServerConnector"}
    assert of_settings(**server, **{LIST: "dbo.orders"}).fed([of("shop.sales.dbo.orders")]) != []


def test_a_declared_table_that_is_not_captured_is_a_problem() -> None:
    result = checked([of_settings()], [of(), of("shop.public.customers")])
    assert [text for text in texts(result) if not text.startswith("note")] == [
        "table.include.list: the connector does not capture public.customers, whose topic shop.public.customers is declared. "
        "Add the table, or remove the pipeline"
    ]


def test_a_topic_has_one_connector() -> None:
    other = Connector("other.json", dict(ON_PAGE))
    problems, _ = checked([of_settings(), other], [of()])
    assert [str(each) for each in problems if "two connectors" in str(each)] != []
    assert problems[0].path == "other.json: topic.prefix"


def test_events_that_land_as_they_are_need_nothing() -> None:
    assert found(of(envelope=None, write=Append()), **{"value.converter": JSON}) == ([], [])


@pytest.mark.parametrize("class_", ["io.confluent.connect.jdbc.JdbcSourceConnector", "PostgresCdcSourceV2"])
def test_another_connector_is_not_checked_and_a_note_says_so(class_: str) -> None:
    problems, notes = found(of(), **{"connector.class": class_})
    assert [each.path for each in notes] == ["shop.json: connector.class"]
    assert not problems


def test_a_file_is_read_in_both_forms() -> None:
    whole = json.dumps({"name": "shop", "config": {"a": "b", "on": True, "number": 1, "unset": None}}).encode()
    assert connector(whole, "f").settings == {"a": "b", "on": "true", "number": "1"}
    assert connector(b'{"a": "b"}', "f").settings == {"a": "b"}


@pytest.mark.parametrize(
    "text", [b"{", b"[]", b"{}", b'{"config": []}', b'{"a": {"password": "hunter2"}}', b'{"a": ["hunter2"]}', b"\xff"]
)
def test_what_is_no_connector_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidDeclaration) as refused:
        connector(text, "shop.json")
    assert "shop.json" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_no_secret_is_printed() -> None:
    """Whatever is wrong, only the values of settings that have a rule are named."""
    known = {"connector.class", "topic.prefix", "table.include.list", "transforms", "transforms.unwrap.type"}
    secrets = {name: "hunter2" for name in (*ON_PAGE, "database.sasl.jaas.config") if name not in known}
    secrets |= {name: ON_PAGE[name] for name in ON_PAGE if "converter" in name and not name.endswith("url")}
    secrets |= {"skipped.operations": "t"}
    result = found(of(), **secrets, **UNWRAP)
    assert texts(result) != []
    assert "hunter2" not in "".join(texts(result))
