"""Valid declarations, drawn at random: what a document must carry there and back."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st

from frazil.declaration import (
    Append,
    At,
    Avro,
    Bytes,
    Earliest,
    ErrorMode,
    Isolation,
    Json,
    JsonSchema,
    Keep,
    Latest,
    Limits,
    MetadataColumns,
    Offsets,
    PartitionField,
    Pipeline,
    Protobuf,
    Reading,
    SchemaEvolution,
    SortField,
    Spark,
    SubjectStrategy,
    Table,
    Text,
    Tombstones,
    Topic,
    Transform,
)

_names = st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True)
_odd_names = st.text("abcz `'\"é🜁-(),", min_size=1, max_size=12).map(str.strip).filter(bool)
columns = st.lists(st.one_of(_names, _odd_names), min_size=1, max_size=3).map(".".join)

partition_fields = st.one_of(
    st.builds(PartitionField, st.sampled_from([t for t in Transform if not t.has_argument]), columns),
    st.builds(
        PartitionField, st.sampled_from([Transform.BUCKET, Transform.TRUNCATE]), columns, st.integers(1, 2**31 - 1)
    ),
)
sort_fields = st.builds(SortField, columns, st.booleans(), st.booleans())

_instants = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 30)).map(
    lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000, tzinfo=UTC)
)
starts = st.one_of(
    st.just(Earliest()),
    st.just(Latest()),
    _instants.map(At),
    st.dictionaries(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1), min_size=1, max_size=4).map(Offsets),
)
topics = st.builds(
    Topic,
    st.from_regex(r"[a-zA-Z][a-zA-Z0-9._-]{0,98}", fullmatch=True),
    value=st.builds(
        lambda kind, strategy, name: kind(subject_strategy=strategy, record_name=name),
        st.sampled_from([Avro, JsonSchema, Protobuf]),
        st.sampled_from([SubjectStrategy.RECORD, SubjectStrategy.TOPIC_RECORD]),
        st.none() | st.just("com.example.Order"),
    ),
    key=st.sampled_from([Avro(), JsonSchema(), Protobuf(), Json(), Text(), Bytes()]),
    transactional=st.booleans(),
)
tables = st.builds(
    Table,
    st.from_regex(r"[a-z0-9_]{1,9}\.[a-z][a-z0-9_]{0,8}", fullmatch=True),
    partition_by=partition_fields.map(lambda field: (str(field),)) | st.just(()),
    sort_by=sort_fields.map(lambda field: (str(field),)) | st.just(()),
    format_version=st.sampled_from([2, 3]),
    target_file_size_bytes=st.integers(2**20, 2**33),
    metadata_columns=st.sampled_from(MetadataColumns),
    properties=st.dictionaries(st.just("read.split.target-size"), st.text("0123é", max_size=5)),
    schema_evolution=st.sampled_from(SchemaEvolution),
    snapshots=st.builds(Keep, newest=st.integers(1, 100_000), days=st.none() | st.integers(1, 36_500)),
)
limits = st.builds(
    Limits, target_seconds=st.integers(1, 3600), first_rows=st.just(1), max_rows=st.integers(1, 2**63 - 1)
)
pipelines = st.builds(
    Pipeline,
    topic=topics,
    table=tables,
    write=st.builds(Append, on_tombstone=st.sampled_from(Tombstones)),
    engine=st.builds(Spark, limits=limits),
    start=starts,
    on_error=st.sampled_from(ErrorMode),
    max_rejected_percent=st.none() | st.integers(1, 100),
    headers=st.booleans(),
    kafka=st.builds(
        Reading,
        isolation=st.sampled_from(Isolation),
        options=st.dictionaries(st.just("client.rack"), st.text("aé🜁 \"\\'", min_size=1).filter(str.strip)),
    ),
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
