import pytest

from frazil.declaration.table_properties import property_problems


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.parquet.row-group-size-bytes", "1048576"),
        ("write.parquet.compression-codec", "zstd"),
        ("write.parquet.bloom-filter-enabled.column.user_id", "true"),
        ("write.metadata.metrics.default", "counts"),
        ("write.metadata.metrics.column.comment", "none"),
        ("write.object-storage.enabled", "true"),
        ("write.format.default", "parquet"),
        ("read.split.target-size", "134217728"),
        ("comment", ""),
        ("team", "checkout"),
    ],
)
def test_properties_that_are_the_users_are_taken(name, value):
    assert list(property_problems({name: value})) == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("format-version", "Use Table.format_version"),
        ("write.target-file-size-bytes", "Use Table.target_file_size_bytes"),
        ("history.expire.max-snapshot-age-ms", "Use Table.keep_snapshots"),
        ("frazil.format", "Frazil keeps its own facts"),
        ("commit.manifest-merge.enabled", "commits are Frazil's"),
        ("write.metadata.delete-after-commit.enabled", "metadata files are Frazil's"),
        ("write.metadata.path", "metadata files are Frazil's"),
        ("write.metadata.metrics.column._kafka_offset", "verify reads"),
        ("write.format.default", "Parquet only"),
        ("write.delete.format.default", "Parquet only"),
        ("write.distribution-mode", "Frazil's"),
        ("write.merge.distribution-mode", "Frazil's"),
        ("write.data.path", "under the warehouse"),
        ("write.location-provider.impl", "under the warehouse"),
        ("write.wap.enabled", "publishes itself"),
        ("write.spark.accept-any-schema", "publishes itself"),
        ("schema.name-mapping.default", "columns are Frazil's"),
        ("gc.enabled", "rest on it"),
        ("encryption.key-id", "Encrypt the bucket"),
        ("uuid", "their own facts"),
        ("current-snapshot-id", "their own facts"),
        ("", "not a property's name"),
        ("a b", "not a property's name"),
    ],
)
def test_properties_that_frazil_rests_on_are_refused_with_whose_they_are(name, told):
    (problem,) = property_problems({name: "hunter2"})
    assert problem.path == f"properties[{name!r}]"
    assert told in f"{problem.what}. {problem.do}"
    assert "hunter2" not in str(problem)
