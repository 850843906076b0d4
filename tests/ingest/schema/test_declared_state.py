"""Declared columns show before a run what it would refuse of a table with a key, in the same words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.cli.pipelines.check import rows_of
from frazil.declaration import (
    Append,
    Changelog,
    Debezium,
    Environment,
    Json,
    Keep,
    Order,
    Pipeline,
    Table,
    Topic,
    Upsert,
    canonical,
)
from frazil.declaration.catalogs import RestCatalog
from frazil.declaration.checks.cross_checks import Listed
from frazil.declaration.checks.problems import InvalidDeclaration
from frazil.declaration.documents.document import document, environment_document
from frazil.declaration.environment import Kafka
from frazil.declaration.write_modes import WriteMode
from tests.audit.audited_table import Landed
from tests.support.declared_schemas import avsc
from tests.support.topics import topic_of

COLUMNS = ("id long", "price double", "done boolean", "version int", "extra json")
FIELDS = [{"name": "id", "type": "long"}, {"name": "price", "type": "double"}, {"name": "_deleted_at", "type": "long"}]


def pipeline(write: WriteMode, *more: str, **topic: Any) -> Pipeline:
    topic = {"value_format": "json", "columns": (*COLUMNS, *more), "key_format": "text", **topic}
    return Pipeline(topic=topic_of("orders", **topic), table=Table("shop.orders"), write=write)


def problems(of: Pipeline) -> list[str]:
    try:
        rows_of([Listed(0, of)])
    except InvalidDeclaration as invalid:
        return [f"{problem.path}: {problem.what}" for problem in invalid.problems]
    return []


AT, COLUMN = "pipelines[0].write", "pipelines[0].topic.value.columns: the column"


@pytest.mark.parametrize(
    ("write", "more", "said"),
    [
        (Upsert(), "_order int", f"{COLUMN} _order is Frazil's own in upsert tables"),
        (Upsert(), "_deleted_at timestamp", f"{COLUMN} _deleted_at is Frazil's own in upsert tables"),
        (Changelog(), "_op string", f"{COLUMN} _op is Frazil's own in changelogs"),
        (Upsert(key="idd"), "", f"{AT}.key: no version of the value has idd; its columns are done, extra, id, price"),
        (Upsert(order_by="updated"), "", f"{AT}.order_by[0]: updated is not a column of the row; there are done"),
        (
            Upsert(order_by=Order(("version", "price"))),
            "",
            f"{AT}.order_by[1]: price is of type double, which orders no",
        ),
        (Upsert(order_by="done"), "", f"{AT}.order_by[0]: done is of type boolean, which orders no records"),
        (Changelog(order_by="extra"), "", f"{AT}.order_by[0]: extra is JSON text, which orders no records"),
    ],
)
def test_a_check_refuses_what_a_run_would(write: WriteMode, more: str, said: str) -> None:
    (problem,) = problems(pipeline(write, *filter(None, [more])))
    assert problem.startswith(said)


@pytest.mark.parametrize(
    "write",
    [
        Append(),
        Upsert(),
        Upsert(key="id"),
        Upsert(order_by=Order(("version", "_kafka_timestamp", "id"))),
        Changelog(key="id"),
    ],
)
def test_what_a_run_takes_is_no_problem(write: WriteMode) -> None:
    assert problems(pipeline(write)) == []


def test_all_problems_of_a_pipeline_are_listed() -> None:
    found = problems(pipeline(Upsert(key="idd", order_by=Order(("price", "updated"))), "_order int"))
    assert [problem.partition(":")[0].removeprefix("pipelines[0].") for problem in found] == [
        "write.key",
        "topic.value.columns",
        "write.order_by[0]",
        "write.order_by[1]",
    ]


def test_a_field_of_the_records_key_orders_records_if_it_is_declared_or_may_be_there() -> None:
    write = Upsert(order_by="line")
    declared = {"key_format": "json", "key_columns": ("line int",)}
    assert problems(pipeline(write, **declared)) == []
    assert problems(pipeline(write, key_format="avro")) == []
    (problem,) = problems(pipeline(Upsert(order_by=Order(("line", "price"))), key_format="avro"))
    assert "price is of type double" in problem
    assert "line is not a column" in problems(pipeline(Upsert(key="id", order_by="line"), **declared))[0]


def test_a_time_in_the_records_key_is_that_of_the_value() -> None:
    times = ("id long", "day io.debezium.time.Date")
    topic = {"columns": (*times, "version long"), "key_format": "json", "key_columns": times}
    assert problems(pipeline(Upsert(order_by="version"), **topic)) == []


def test_no_column_is_missed_where_the_key_does_not_fit_the_value() -> None:
    topic = {"columns": ("id string", "version long"), "key_format": "json", "key_columns": ("id long",)}
    what = "topic.key.columns: id has another type than in the value: long cannot become string"
    assert problems(pipeline(Upsert(order_by="version"), **topic)) == [f"pipelines[0].{what}"]


def test_a_schema_file_has_columns_too() -> None:
    topic = {
        "value_format": "avro",
        "columns": None,
        "schema": (avsc({"type": "record", "name": "V", "fields": FIELDS}),),
    }
    of_key, of_name = problems(pipeline(Upsert(key="price", order_by="id"), **topic))
    assert of_key.startswith(f"{AT}.key: price is of type double, which cannot be a key")
    assert of_name.startswith("pipelines[0].topic.value.schema: the column _deleted_at is Frazil's own")


def test_the_command_prints_the_problems_and_ends_with_2(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_bytes(canonical(document([pipeline(Upsert(key="idd"))])))
    ended = CliRunner().invoke(app, ["check", str(file)])
    assert ended.exit_code == 2
    assert "mine.json: pipelines[0].write.key: no version of the value has idd" in ended.stderr
    assert "Did you mean id?" in ended.stderr


# ── Partitions and sorting ──────────────────────────────────────────────────────────────────────
def of_table(of: Pipeline, **table: Any) -> Pipeline:
    return replace(of, table=replace(of.table, **table))


@pytest.mark.parametrize("write", [Append(), Upsert(), Upsert(key="id"), Changelog()])
def test_a_check_finds_unknown_columns_of_partitions_and_sorting(write: WriteMode) -> None:
    found = problems(of_table(pipeline(write), partition_by=("bucket(8, idd)",), sort_by=("_kafka_offset", "prize")))
    of_partition, of_order = found
    assert of_partition.startswith("pipelines[0].table.partition_by[0]: idd is not a column; there are done, extra, id")
    assert of_order.startswith("pipelines[0].table.sort_by[1]: prize is not a column")


def test_fields_of_the_records_key_are_columns_of_a_keyed_table() -> None:
    keys = {"key_format": "json", "key_columns": ("line int",)}
    by_line = {"partition_by": ("bucket(8, line)",)}
    assert problems(of_table(pipeline(Upsert(), **keys), **by_line)) == []
    (found,) = problems(of_table(pipeline(Append(), **keys), **by_line))
    assert "line is not a column" in found
    assert problems(of_table(pipeline(Upsert(), key_format="avro"), **by_line)) == []  # a registry knows


def test_a_schema_file_and_a_folded_name_are_known() -> None:
    schema = {"value_format": "avro", "columns": None}
    file = avsc({"type": "record", "name": "V", "fields": [{"name": "userId", "type": "long"}]})
    of = of_table(pipeline(Append(), **schema, schema=(file,)), sort_by=("userid",), partition_by=("user_id",))
    (found,) = problems(of)
    assert "partition_by[0]: user_id is not a column; there are userid" in found


def test_a_check_compares_with_the_tables_of_a_local_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    landed = Landed(tmp_path)
    landed.land({0: 3})
    (tmp_path / "env.json").write_text(json.dumps(environment_document(landed.environment)))
    monkeypatch.chdir(tmp_path)

    def check(of: Pipeline, *more: str) -> Result:
        (tmp_path / "mine.json").write_bytes(canonical(document([of])))
        ended = CliRunner().invoke(app, ["check", "mine.json", *more])
        assert ended.exit_code == 0, ended.output
        return ended

    text = Topic(landed.pipeline.topic.name, value="text")  # without a registry
    same = replace(landed.pipeline, topic=text)
    other = of_table(same, snapshots=Keep(7), partition_by=("_kafka_partition",))
    assert "table.partition_by" not in check(same, "--env", "env.json").stdout
    shown = check(other, "--env", "env.json").stdout
    assert f"{other.name}: table.partition_by: the table is partitioned by nothing" in shown
    assert (
        "table.snapshots.newest: the table's property history.expire.min-snapshots-to-keep has another value" in shown
    )
    (facts,) = json.loads(check(other, "--env", "env.json", "--json").stdout)["pipelines"]
    assert [text.partition(":")[0] for text in facts["differences"]] == [
        "table.partition_by",
        "topic.value.columns",
        "table.snapshots.newest",
    ]
    assert "table.partition_by" not in check(other).stdout, "there is no local environment"


def test_a_check_says_that_it_asks_no_service_for_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Environment(
        name="prod",
        kafka=Kafka(bootstrap="k:9092"),
        catalog=RestCatalog(name="lake", uri="http://127.0.0.1:9", warehouse="w"),
    )
    (tmp_path / "prod.json").write_text(json.dumps(environment_document(place)))
    (tmp_path / "mine.json").write_bytes(canonical(document([pipeline(Append())])))
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(app, ["check", "mine.json", "--env", "prod.json"])
    assert ended.exit_code == 0, ended.output
    assert "tables of prod are not compared; `frazil status --env prod.json` compares them" in ended.stdout


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"write": Append(on_tombstone="null_row")}, "pipeline.topic.value.columns[0]"),
        ({"write": Upsert(), "envelope": Debezium()}, "pipeline.topic.value.columns[0]"),
    ],
)
def test_no_column_is_required_where_a_record_may_have_no_row(more: dict[str, Any], path: str) -> None:
    topic = Topic("t", value=Json(columns=("id long required",)), key=Json(columns=("id long",)))
    with pytest.raises(InvalidDeclaration) as refused:
        Pipeline(topic=topic, table=Table("s.t"), **more)
    assert [problem.path for problem in refused.value.problems] == [path]
    with pytest.raises(InvalidDeclaration, match="only columns of values are required"):
        Topic("t", value="bytes", key=Json(columns=("id long required",)))
