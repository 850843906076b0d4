"""Several tables of one connector, declared at once."""

from dataclasses import fields
from typing import Any

from frazil.declaration import Debezium, Keep, Pipeline, Table, Topic, Upsert, canonical, parse
from frazil.declaration.documents.document import document
from frazil.declaration.several.captured_tables import SHARED
from frazil.project.declaration_file import found
from tests.declaration.problems_of import problems_of

AVRO: Any = {"namespace": "shop", "value": "avro", "key": "avro", "write": "upsert"}


def tables(*names: Any, prefix: Any = "shop", **more: Any) -> tuple[Pipeline, ...]:
    return Debezium().tables(prefix, *names, **{**AVRO, **more})


def test_each_table_gets_the_pipeline_that_a_person_would_write():
    own = {"partition_by": ("bucket(8, id)",), "start": "latest"}
    made = tables("public.orders", "Sales.Order-Items", overrides={"Sales.Order-Items": own}, snapshots=Keep(7))
    shared: Any = {"write": Upsert(), "envelope": Debezium()}
    assert made == (
        Pipeline(
            topic=Topic("shop.public.orders", value="avro", key="avro"),
            table=Table("shop.orders", snapshots=Keep(7)),
            **shared,
        ),
        Pipeline(
            topic=Topic("shop.Sales.Order-Items", value="avro", key="avro"),
            table=Table("shop.order_items", snapshots=Keep(7), partition_by=("bucket(8, id)",)),
            start="latest",
            **shared,
        ),
    )
    assert [one.name for one in made] == ["orders", "order_items"]
    assert parse(canonical(document(list(made)))) == made


def test_overrides_name_pipeline_and_table():
    own = {"audit.orders": {"identifier": "audit.orders", "name": "audits"}}
    made = tables("public.orders", "audit.orders", overrides=own)
    assert [(one.name, one.table.identifier) for one in made] == [("orders", "shop.orders"), ("audits", "audit.orders")]


def test_misspelt_names_are_problems_of_the_call():
    found = problems_of(lambda: tables("a.two", heders=False, overrides={"a.two": {"partitoin_by": ()}, "a.twoo": {}}))
    assert "Did you mean headers?" in found["debezium.tables.heders"]
    assert "Did you mean a.two?" in found["debezium.tables.overrides['a.twoo']"]
    assert "Did you mean partition_by?" in found["debezium.tables.overrides['a.two'].partitoin_by"]


def test_the_problems_of_the_first_invalid_table_name_it():
    own = {"a.two": {"value": "protobuf"}}
    assert list(problems_of(lambda: tables("a.one", "a.two", overrides=own))) == [
        "debezium.tables['a.two'].topic.value"
    ]
    assert list(problems_of(lambda: tables("a.*"))) == ["debezium.tables['a.*'].topic.name"]
    assert list(problems_of(lambda: tables("a.b", namespace="Shop"))) == ["debezium.tables['a.b'].table.identifier"]


def test_every_field_can_be_shared():
    named = [name.name for cls in (Topic, Table, Pipeline) for name in fields(cls)]
    derived = {"name", "identifier", "topic", "table", "envelope"}
    assert sorted(SHARED) == sorted(name for name in named if name not in derived)


FILE = """from frazil import Debezium, Upsert

shop = Debezium().tables(
    "shop", "public.orders", "public.items", namespace="shop", value="avro", key="avro", write=Upsert()
)
"""


def test_a_file_declares_them_with_and_without_a_list(tmp_path):
    file = tmp_path / "pipelines.py"
    for text in (FILE, f"{FILE}pipelines = shop\n", f"{FILE}pipelines = [*shop]\n"):
        file.write_text(text, "utf-8")
        assert [one.pipeline.name for one in found(file).listed] == ["orders", "items"]


def test_a_file_reports_the_line_of_the_call(tmp_path):
    file = tmp_path / "pipelines.py"
    file.write_text(FILE.replace('"public.items"', '"it ems"'), "utf-8")
    assert list(problems_of(lambda: found(file))) == [f"{file}:3: debezium.tables['it ems'].topic.name"]
