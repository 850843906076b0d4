"""Kafka Connect's JSON to rows."""
