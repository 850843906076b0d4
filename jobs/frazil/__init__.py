"""Kafka topics as Apache Iceberg tables, as code.

    from frazil import Pipeline, Table, Topic

    orders = Pipeline(
        topic=Topic("orders", value_format="avro"),
        table=Table("shop.orders", partition_by=("days(event_time)", "bucket(8, user_id)")),
    )

These are the names that people write. What tools call (`check`, `parse`, `document`) is in `frazil.declaration`.
"""

from frazil.declaration import (
    Append,
    At,
    Changelog,
    Debezium,
    Earliest,
    ErrorMode,
    Keep,
    KeyFormat,
    Latest,
    Limits,
    Offsets,
    Order,
    Pipeline,
    Reading,
    Spark,
    SubjectStrategy,
    Table,
    Tableflow,
    Tombstones,
    Topic,
    Upsert,
    ValueFormat,
)

__all__ = [
    "Append",
    "At",
    "Changelog",
    "Debezium",
    "Earliest",
    "ErrorMode",
    "Keep",
    "KeyFormat",
    "Latest",
    "Limits",
    "Offsets",
    "Order",
    "Pipeline",
    "Reading",
    "Spark",
    "SubjectStrategy",
    "Table",
    "Tableflow",
    "Tombstones",
    "Topic",
    "Upsert",
    "ValueFormat",
]
