import pytest

from frazil.declaration import KeyFormat, Topic, ValueFormat
from frazil.errors import FrazilError
from frazil.ingest.writers import Writers


@pytest.mark.parametrize(
    "declared",
    [{"value_format": ValueFormat.PROTOBUF}, {"value_format": ValueFormat.AVRO, "key_format": KeyFormat.TEXT}],
    ids=["protobuf values", "text keys"],
)
def test_a_format_that_cannot_be_landed_is_refused_before_anything_is_read(declared: dict[str, object]) -> None:
    with pytest.raises(FrazilError, match="cannot be landed yet"):
        Writers(Topic("orders", **declared), None)  # type: ignore[arg-type]


@pytest.mark.parametrize("value_format", [ValueFormat.TEXT, ValueFormat.BYTES, ValueFormat.JSON])
def test_a_format_without_a_registry_has_one_column(value_format: ValueFormat) -> None:
    ((_, row),) = Writers(Topic("orders", value_format=value_format), None).versions
    assert [field.name for field in row.fields] == ["value"]
