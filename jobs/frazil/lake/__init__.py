"""Iceberg tables: the session, the ledger, delete files, commits and reading."""
