from enum import StrEnum

import pytest

from frazil.declaration import FLAT_COLUMNS, MetadataColumns, options

CLOSED_SETS = [
    each
    for each in vars(options).values()
    if isinstance(each, type) and issubclass(each, StrEnum) and each is not StrEnum
]


@pytest.mark.parametrize("closed_set", CLOSED_SETS, ids=lambda each: each.__name__)
def test_the_docstring_of_a_closed_set_tells_its_members_apart(closed_set):
    assert [member for member in closed_set if f"`{member}`" not in closed_set.__doc__] == []


def test_both_layouts_keep_the_same_facts():
    assert MetadataColumns.FLAT.columns == (
        "_kafka_topic",
        "_kafka_partition",
        "_kafka_offset",
        "_kafka_timestamp",
        "_kafka_key",
        "_kafka_headers",
        "_kafka_schema_id",
        "_ingested_at",
    )
    assert MetadataColumns.STRUCT.columns == ("_kafka", "_ingested_at")
    assert [f"_kafka_{field}" for field in options.STRUCT_FIELDS] == list(FLAT_COLUMNS[:-1])
