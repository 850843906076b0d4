"""The types of resources that hold data: their loss loses records, tables, identities or readers.

Constructs protect them (`prevent_destroy`), rules refuse a plan that destroys or replaces one, and a review lists such
changes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

HOLDS_DATA: Mapping[str, str] = MappingProxyType(
    {
        "aws_s3_bucket": "its objects: tables, releases or desired state",
        "aws_kms_key": "everything that it encrypted",
        "aws_glue_catalog_database": "the catalog entries of all its tables",
        "aws_glue_catalog_table": "the table's catalog entry",
        "aws_secretsmanager_secret": "the credentials that jobs read",
        "confluent_environment": "everything in it",
        "confluent_kafka_cluster": "all topics and their records",
        "confluent_kafka_topic": "all its records that are not landed yet",
        "confluent_schema": "versions of the subject that records refer to",
        "confluent_provider_integration": "its external id: the role's trust breaks until it knows the new one",
        "confluent_tableflow_topic": "the table that Tableflow keeps",
    }
)
"""The data that are lost with a resource, by its type in Terraform."""
