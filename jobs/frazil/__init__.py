"""Kafka topics as Apache Iceberg tables, as code.

    from frazil import Pipeline, Table, Topic

    orders = Pipeline(
        topic=Topic("orders", value="avro"),
        table=Table("shop.orders", partition_by=("days(event_time)", "bucket(8, user_id)")),
    )

These are the names that people write. What tools call (`check`, `parse`, `document`) is in `frazil.declaration`.
"""

from frazil.declaration import (
    Append,
    At,
    Avro,
    Bytes,
    Changelog,
    ConnectJson,
    Debezium,
    Earliest,
    ErrorMode,
    EventTime,
    Json,
    JsonSchema,
    Keep,
    Latest,
    Limits,
    Offsets,
    Order,
    Pipeline,
    Protobuf,
    Reading,
    Shape,
    Spark,
    Table,
    Tableflow,
    Text,
    Topic,
    Upsert,
)

__all__ = [
    "Append",
    "At",
    "Avro",
    "Bytes",
    "Changelog",
    "ConnectJson",
    "Debezium",
    "Earliest",
    "ErrorMode",
    "EventTime",
    "Json",
    "JsonSchema",
    "Keep",
    "Latest",
    "Limits",
    "Offsets",
    "Order",
    "Pipeline",
    "Protobuf",
    "Reading",
    "Shape",
    "Spark",
    "Table",
    "Tableflow",
    "Text",
    "Topic",
    "Upsert",
]
