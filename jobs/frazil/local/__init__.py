"""Kafka, the schema registry and the lake as local processes, for the demo and the tests."""
