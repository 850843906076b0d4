"""The plugins of Kafka Connect that rules know, and the names that Connect takes for them."""

from __future__ import annotations

from collections.abc import Iterable

_OF_KAFKA, _OF_DEBEZIUM = "org.apache.kafka.connect.transforms.", "io.debezium.transforms."
FLATTENING = f"{_OF_DEBEZIUM}ExtractNewRecordState"
REGEX_ROUTER = f"{_OF_KAFKA}RegexRouter"
TABLE_ROUTER = f"{_OF_DEBEZIUM}ByLogicalTableRouter"
REFUSED = {
    f"{_OF_KAFKA}ValueToKey": "a delete has no value to take the key from",
    f"{_OF_DEBEZIUM}outbox.EventRouter": "its records are messages, and no changes of a row",
    f"{_OF_DEBEZIUM}partitions.PartitionRouting": "a key goes to another partition when the fields change that decide on it",
}
ADVISED = {
    f"{_OF_KAFKA}Filter": "a change that it leaves out is missing in the table",
    f"{_OF_DEBEZIUM}Filter": "a change that it leaves out is missing in the table",
    f"{_OF_KAFKA}TimestampRouter": "the topic of a change is not known from the connector",
    f"{_OF_DEBEZIUM}ContentBasedRouter": "the topic of a change is not known from the connector",
}
TRANSFORMS = (FLATTENING, REGEX_ROUTER, TABLE_ROUTER, *REFUSED, *ADVISED)
_SOURCES = ("MySql", "MariaDb", "SqlServer", "Oracle", "Db2", "MongoDb", "Informix", "Vitess", "Spanner")
CONNECTORS = (
    "io.debezium.connector.postgresql.PostgresConnector",
    *(f"io.debezium.connector.{name.lower()}.{name}Connector" for name in _SOURCES),
)


def plugin(name: str, known: Iterable[str], kind: str = "") -> str:
    """Return the class of these that Kafka Connect takes a name for: a class, its last part, and that without its kind.

    A name of another class is itself.
    """
    for each in known:
        last = each.rpartition(".")[2]
        if name in (each, last, last.removesuffix(kind)):
            return each
    return name
