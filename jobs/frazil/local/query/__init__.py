"""Queries of a project's tables with DuckDB: their views, one statement that only reads, and its rows."""
