"""JSON Schemas and their row types."""
