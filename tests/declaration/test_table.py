from typing import Any

import pytest

from frazil.declaration import MetadataColumns, Table
from tests.declaration.problems_of import problems_of


def test_an_identifier_has_a_namespace_and_a_name():
    table = Table("shop.orders_2")
    assert (table.namespace, table.name, table.dead_letters) == ("shop", "orders_2", "shop.orders_2__dead_letters")


@pytest.mark.parametrize(
    "identifier",
    [
        "orders",
        "Shop.orders",
        "shop.orders.v1",
        ".orders",
        "shop.",
        "a-b.c",
        "shop.`x`",
        "a.b\n",
        "é.x",
        "a." + "x" * 242,
    ],
)
def test_an_identifier_that_some_catalog_would_fold_or_refuse_is_refused(identifier):
    assert list(problems_of(lambda: Table(identifier))) == ["table.identifier"]


def test_the_name_of_the_dead_letters_fits_into_glue():
    assert len(Table("shop." + "x" * 241).dead_letters.partition(".")[2]) == 255


def test_notation_is_kept_in_one_way_so_that_equal_tables_are_equal():
    table = Table("a.b", partition_by=("days( `x` )", "bucket(8,y)"), sort_by=("x ASC", "y DESC nulls last"))
    assert table.partition_by == ("days(x)", "bucket(8, y)")
    assert table.sort_by == ("x", "y desc")
    assert [str(field) for field in table.partition_fields] == list(table.partition_by)
    assert [str(field) for field in table.sort_fields] == list(table.sort_by)


@pytest.mark.parametrize(
    ("partition_by", "told"),
    [
        (("x", "x"), "x is given twice"),
        (("days(x)", "days( x )"), "days(x) is given twice"),
        (("days(x)", "hours(x)"), "already partitions by the time of x"),
        (("bucket(8, x)", "bucket(16, x)"), "already takes the name x_bucket"),
        (("truncate(4, x)", "truncate(8, x)"), "already takes the name x_trunc"),
        (("x_day", "days(x)"), "its name in the spec, x_day, is a column's"),
    ],
)
def test_partition_fields_that_iceberg_refuses_together_are_refused(partition_by, told):
    assert told in problems_of(lambda: Table("a.b", partition_by=partition_by))["table.partition_by[1]"]


def test_partition_fields_of_one_source_that_iceberg_takes_are_taken():
    assert Table(
        "a.b", partition_by=("x", "bucket(8, x)", "truncate(4, x)", "days(t)", "bucket(4, t)")
    ).partition_fields


def test_sorting_twice_by_one_column_is_refused():
    assert list(problems_of(lambda: Table("a.b", sort_by=("x", "y", "x desc")))) == ["table.sort_by[2]"]


def test_a_layout_decides_which_metadata_columns_there_are():
    assert Table("a.b", partition_by=("days(_kafka_timestamp)",), sort_by=("_kafka_offset",))
    with_struct = {"metadata_columns": MetadataColumns.STRUCT, "partition_by": ("days(_kafka_timestamp)",)}
    assert "Write _kafka.timestamp" in problems_of(lambda: Table("a.b", **with_struct))["table.partition_by[0]"]


@pytest.mark.parametrize(
    "fields",
    [
        {"format_version": 4},
        {"target_file_size_bytes": 0},
        {"target_file_size_bytes": 2**40},
    ],
)
def test_a_value_out_of_bounds_is_refused_where_it_stands(fields: dict[str, Any]):
    assert list(problems_of(lambda: Table("a.b", **fields))) == [f"table.{name}" for name in fields]


def test_variants_need_format_version_3():
    found = problems_of(lambda: Table("a.b", json_columns="variant"))
    assert list(found) == ["table.json_columns"]
    assert "Declare format_version=3" in found["table.json_columns"]
    assert list(problems_of(lambda: Table("a.b", json_columns="string", format_version=3))) == ["table.json_columns"]
    assert Table("a.b", json_columns="variant", format_version=3).has_variants
    assert not Table("a.b", format_version=3).has_variants
