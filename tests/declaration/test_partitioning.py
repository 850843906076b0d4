import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.declaration import InvalidDeclaration, PartitionField, SortField, Transform
from frazil.declaration.partitioning import partition_field, sort_field
from tests.declaration.problems_of import problems_of
from tests.declaration.strategies import partition_fields, sort_fields


@pytest.mark.parametrize(
    ("text", "field", "name"),
    [
        ("country", PartitionField(Transform.IDENTITY, "country"), "country"),
        (" years( x ) ", PartitionField(Transform.YEARS, "x"), "x_year"),
        ("months(x)", PartitionField(Transform.MONTHS, "x"), "x_month"),
        ("days(event_time)", PartitionField(Transform.DAYS, "event_time"), "event_time_day"),
        ("hours (_kafka_timestamp)", PartitionField(Transform.HOURS, "_kafka_timestamp"), "_kafka_timestamp_hour"),
        ("bucket(8,y)", PartitionField(Transform.BUCKET, "y", 8), "y_bucket"),
        ("truncate(4, zip)", PartitionField(Transform.TRUNCATE, "zip", 4), "zip_trunc"),
        ("days(a.b)", PartitionField(Transform.DAYS, "a.b"), "a.b_day"),
        ("`event time`", PartitionField(Transform.IDENTITY, "event time"), "event time"),
        ("bucket(8, `a(b), ``c`.`d e`)", PartitionField(Transform.BUCKET, "a(b), `c.d e", 8), "a(b), `c.d e_bucket"),
        ("days(größe)", PartitionField(Transform.DAYS, "größe"), "größe_day"),
    ],
)
def test_icebergs_notation_is_read(text, field, name):
    assert partition_field(text) == field
    assert field.name == name


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("day(x)", "Write days(x)"),
        ("date(x)", "Write days(x)"),
        ("HOUR(x)", "Write hours(x)"),
        ("Days(x)", "is not a transform. Use years(column)"),
        ("identity(x)", "Write x"),
        ("void(x)", "Remove it"),
        ("bucket(y, 8)", "Write bucket(8, y)"),
        ("truncate(zip,4)", "Write truncate(4, zip)"),
        ("bucket(y)", "Write bucket(8, column)"),
        ("bucket(8)", "Write bucket(8, column)"),
        ("bucket(0, y)", "Write a whole number from 1"),
        ("truncate(2147483648, y)", "Write a whole number from 1 to 2147483647"),
        ("bucket(" + "9" * 5_000 + ", y)", "Write a whole number from 1 to 2147483647"),
        ("bucket(8, x, y)", "is not a column"),
        ("days()", "the column is missing"),
        ("", "the column is missing"),
        ("days(X)", "Write x"),
        ("Country", "Write country"),
        ("`Odd One`", "Write `odd one`"),
        ("a b", "is not a column"),
        ("a..b", "is not a column"),
        ("9", "is not a column"),
        ("`a", "is not a column"),
        ("``", "no column's name"),
        ("` a`", "no column's name"),
        ("`a.b`", "without dots"),
        ("days(days(x))", "is not a column"),
    ],
)
def test_what_iceberg_does_not_write_so_is_refused_with_how_it_does(text, remedy):
    assert remedy in problems_of(lambda: partition_field(text))["notation"]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("user_id", SortField("user_id", ascending=True, nulls_first=True)),
        ("event_time desc", SortField("event_time", ascending=False, nulls_first=False)),
        ("x asc nulls last", SortField("x", ascending=True, nulls_first=False)),
        ("x DESC  NULLS First", SortField("x", ascending=False, nulls_first=True)),
        ("x nulls last", SortField("x", ascending=True, nulls_first=False)),
        ("`order by` desc", SortField("order by", ascending=False, nulls_first=False)),
        ("a.b", SortField("a.b")),
        ("desc", SortField("desc")),
    ],
)
def test_sqls_sort_order_is_read(text, field):
    assert sort_field(text) == field


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x up", "not a sort field"),
        ("x desc asc", "not a sort field"),
        ("x nulls", "not a sort field"),
        ("x, y", "not a sort field"),
        ("days(x)", "not by transforms"),
        ("X desc", "Write x"),
        ("9", "is not a column"),
    ],
)
def test_what_is_no_sort_order_is_refused(text, told):
    assert told in problems_of(lambda: sort_field(text))["notation"]


@given(partition_fields)
def test_a_partition_field_is_read_back_from_its_own_text(field):
    assert partition_field(str(field)) == field


@given(sort_fields)
def test_a_sort_field_is_read_back_from_its_own_text(field):
    assert sort_field(str(field)) == field


@given(st.text(), st.text("abx(),`. 89\n", max_size=30))
def test_any_text_is_a_field_or_refused(anything, nearly):
    for text in (anything, nearly):
        for parse in (partition_field, sort_field):
            try:
                assert parse(str(parse(text))) == parse(text)
            except InvalidDeclaration:
                continue
