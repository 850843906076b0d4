"""Kafka topics as Apache Iceberg tables, as code."""
