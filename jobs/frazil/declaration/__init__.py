"""The declarations that people write: topics, their tables, and where pipelines run. The standard library only.

    from frazil import Pipeline, Table, Topic

    orders = Pipeline(
        topic=Topic("orders", value="avro"),
        table=Table("shop.orders", partition_by=("days(event_time)", "bucket(8, user_id)")),
    )

An instance that exists is valid; a constructor raises `InvalidDeclaration` with every problem that it found.
"""

from frazil.declaration.catalogs import Catalog, GlueCatalog, LocalCatalog, ObjectStore, RestAuth, RestCatalog
from frazil.declaration.checks.cross_checks import check
from frazil.declaration.checks.problems import InvalidDeclaration, Problem
from frazil.declaration.documents.document import (
    environment_document,
    environment_schema,
    json_schema,
    parse,
    parse_document,
    parse_environment,
)
from frazil.declaration.documents.to_json import canonical, digest
from frazil.declaration.engines import LandingEngine, Limits, Spark, Tableflow
from frazil.declaration.envelopes import Debezium, Envelope
from frazil.declaration.environment import Environment, Kafka, Mechanism, Registry, Security
from frazil.declaration.formats import (
    Avro,
    Bytes,
    ConnectJson,
    Format,
    Json,
    JsonSchema,
    Protobuf,
    SchemaFile,
    Text,
)
from frazil.declaration.options import (
    FLAT_COLUMNS,
    STRUCT_COLUMNS,
    STRUCT_FIELDS,
    Deletion,
    ErrorMode,
    Framing,
    Isolation,
    JsonColumns,
    MetadataColumns,
    SchemaEvolution,
    SubjectStrategy,
    Tombstones,
    Truncation,
    UnknownFields,
)
from frazil.declaration.partitioning import PartitionField, SortField, Transform
from frazil.declaration.pipeline import Pipeline, Reading
from frazil.declaration.route import By, Field, Header, RecordName, Rest, Route
from frazil.declaration.secret import OAuth, Secret
from frazil.declaration.several.routed_topic import Target, routes
from frazil.declaration.several.topic_pattern import TopicPattern, each_topic
from frazil.declaration.several.type_pattern import TypePattern
from frazil.declaration.shape import Encrypted, EventTime, Hmac, Mask, Nullify, Redact, Shape, Truncate
from frazil.declaration.start import At, Earliest, Latest, Offsets, Start
from frazil.declaration.table import Keep, Table
from frazil.declaration.topic import Topic
from frazil.declaration.write_modes import Append, Changelog, Order, Upsert, WriteMode
