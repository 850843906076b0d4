"""Several tables of one connector, declared at once."""

from dataclasses import fields
from typing import Any, get_type_hints

from frazil.declaration import Debezium, Pipeline, Table, Topic, Upsert, canonical, parse
from frazil.declaration.captured_tables import SHARED, Choices
from frazil.declaration.documents.document import document
from frazil.project.declaration_file import found
from tests.declaration.problems_of import problems_of

AVRO: Any = {"namespace": "shop", "value_format": "avro", "key_format": "avro", "write": "upsert"}


def tables(*names: Any, prefix: Any = "shop", **more: Any) -> tuple[Pipeline, ...]:
    return Debezium().tables(prefix, *names, **{**AVRO, **more})


def test_each_table_gets_the_pipeline_that_a_person_would_write():
    own = {"partition_by": ("bucket(8, id)",), "start": "latest"}
    made = tables("public.orders", "Sales.Order-Items", overrides={"Sales.Order-Items": own}, keep_snapshots=7)
    shared: Any = {"write": Upsert(), "envelope": Debezium()}
    assert made == (
        Pipeline(
            topic=Topic("shop.public.orders", value_format="avro", key_format="avro"),
            table=Table("shop.orders", keep_snapshots=7),
            **shared,
        ),
        Pipeline(
            topic=Topic("shop.Sales.Order-Items", value_format="avro", key_format="avro"),
            table=Table("shop.order_items", keep_snapshots=7, partition_by=("bucket(8, id)",)),
            start="latest",
            **shared,
        ),
    )
    assert [one.name for one in made] == ["shop_public_orders", "shop_sales_order_items"]
    assert parse(canonical(document(list(made)))) == made


def test_names_that_become_the_same_are_one_problem_and_an_override_solves_it():
    [(path, text)] = problems_of(lambda: tables("a.b_c", "a_b.c")).items()
    assert path == "debezium.tables['a_b.c']"
    assert "the pipeline's name shop_a_b_c of a.b_c" in text
    [(path, text)] = problems_of(lambda: tables("public.orders", "audit.orders")).items()
    assert "the table shop.orders of public.orders" in text
    assert 'overrides={"audit.orders": {"identifier": …}}' in text
    assert len(problems_of(lambda: tables("public.orders", "public.Orders"))) == 1
    made = tables("public.orders", "audit.orders", overrides={"audit.orders": {"identifier": "audit.orders"}})
    assert [one.table.identifier for one in made] == ["shop.orders", "audit.orders"]
    assert tables("a.b_c", "a_b.c", overrides={"a_b.c": {"name": "other"}})[1].name == "other"


def test_the_problems_of_all_tables_come_together_and_a_shared_one_comes_once():
    overrides = {
        "a.one": {"partition_by": ("dys(x)",)},
        "a.two": {"value_format": "protobuf", "partitoin_by": ()},
        "a.twoo": {},
    }
    found = problems_of(
        lambda: tables("a.one", "a.two", "a.*", "orders", keep_snapshots=0, heders=False, overrides=overrides)
    )
    assert set(found) == {
        "debezium.tables[2]",
        "debezium.tables[3]",
        "debezium.tables.heders",
        "debezium.tables.keep_snapshots",
        "debezium.tables.overrides['a.twoo']",
        "debezium.tables.overrides['a.two'].partitoin_by",
        "debezium.tables['a.one'].partition_by[0]",
    }
    assert "Did you mean headers?" in found["debezium.tables.heders"]
    assert "Did you mean a.two?" in found["debezium.tables.overrides['a.twoo']"]
    assert "Did you mean partition_by?" in found["debezium.tables.overrides['a.two'].partitoin_by"]
    own = {"a.two": {"value_format": "protobuf"}}
    assert list(problems_of(lambda: tables("a.one", "a.two", overrides=own))) == [
        "debezium.tables['a.two'].value_format"
    ]


def test_what_the_call_itself_lacks_is_a_problem():
    assert list(problems_of(lambda: tables())) == ["debezium.tables"]
    assert list(problems_of(lambda: tables(["a.b"]))) == ["debezium.tables[0]"]
    assert list(problems_of(lambda: tables("a.b", "a.b"))) == ["debezium.tables[1]"]
    assert list(problems_of(lambda: tables("a.b", prefix="s hop"))) == ["debezium.tables.prefix"]
    assert list(problems_of(lambda: tables("a.b", namespace="Shop"))) == ["debezium.tables.namespace"]
    assert list(problems_of(lambda: tables("a.b", overrides=[]))) == ["debezium.tables.overrides"]
    left_out = {name: value for name, value in AVRO.items() if name not in {"namespace", "value_format"}}
    assert list(problems_of(lambda: Debezium().tables("shop", "a.b", **left_out))) == [
        "debezium.tables.namespace",
        "debezium.tables.value_format",
    ]


def test_every_field_can_be_shared_and_type_checkers_know_it():
    named = [name.name for cls in (Topic, Table, Pipeline) for name in fields(cls)]
    derived = {"name", "identifier", "topic", "table", "envelope"}
    assert sorted(SHARED) == sorted(name for name in named if name not in derived)
    assert set(get_type_hints(Choices)) == set(SHARED)


FILE = """from frazil import Debezium, Upsert

shop = Debezium().tables(
    "shop", "public.orders", "public.items", namespace="shop", value_format="avro", key_format="avro", write=Upsert()
)
"""


def test_a_file_declares_them_with_and_without_a_list(tmp_path):
    file = tmp_path / "pipelines.py"
    for text in (FILE, f"{FILE}pipelines = shop\n", f"{FILE}pipelines = [*shop]\n"):
        file.write_text(text, "utf-8")
        assert [one.pipeline.name for one in found(file)] == ["shop_public_orders", "shop_public_items"]


def test_a_file_reports_the_line_of_the_call(tmp_path):
    file = tmp_path / "pipelines.py"
    file.write_text(FILE.replace('"public.items"', '"items"'), "utf-8")
    assert list(problems_of(lambda: found(file))) == [f"{file}:3: debezium.tables[1]"]
