import pytest

from frazil.declaration.checks.allowed_options import CONSUMER_OPTIONS, option_problems, property_problems


def told(name: str, value: str) -> str:
    (problem,) = option_problems({name: value})
    assert problem.path == f"options[{name!r}]"
    return f"{problem.what}. {problem.do}"


@pytest.mark.parametrize("name", sorted(CONSUMER_OPTIONS))
def test_every_allowed_option_has_a_value_that_is_taken_and_one_that_is_not(name):
    assert any(not list(option_problems({name: value})) for value in ("1", "true", "use_all_dns_ips"))
    assert list(option_problems({name: " "}))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("sasl.jaas.config", "security settings live in the environment"),
        ("security.protocol", "security settings live in the environment"),
        ("kafka.ssl.keystore.key", "security settings live in the environment"),
        ("bootstrap.servers", "endpoints live in the environment"),
        ("isolation.level", "Use Reading.isolation"),
        ("auto.offset.reset", "Use Pipeline.start"),
        ("group.id", "no consumer group of yours"),
        ("kafka.group.id", "no consumer group of yours"),
        ("enable.auto.commit", "no consumer group of yours"),
        ("value.deserializer", "Use the formats of the topic"),
        ("interceptor.classes", "Use the formats of the topic"),
        ("startingOffsets", "it is Spark's"),
        ("maxOffsetsPerTrigger", "it is Spark's"),
        ("kafka.fetch.max.bytes", "Write fetch.max.bytes"),
        ("fetch.max.byte", "Did you mean fetch.max.bytes?"),
        ("zzz", "The options are check.crcs, client.dns.lookup"),
        ("", "not an option that a topic may set"),
    ],
)
def test_an_option_that_is_not_the_topics_is_refused_with_whose_it_is(name, why):
    assert why in told(name, "hunter2")
    assert "hunter2" not in told(name, "hunter2")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fetch.max.bytes", "1 MB"),
        ("fetch.max.bytes", "-1"),
        ("fetch.max.bytes", "2147483648"),
        ("fetch.max.bytes", "9" * 5_000),
        ("max.poll.records", "0"),
        ("check.crcs", "yes"),
        ("client.dns.lookup", "default"),
    ],
)
def test_a_value_that_kafka_would_refuse_is_refused_here(name, value):
    assert "is not one of its values" in told(name, value)


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
        ("history.expire.max-snapshot-age-ms", "Use Table.snapshots"),
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
