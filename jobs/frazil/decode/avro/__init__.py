"""Avro bodies to rows."""
