"""Statements and queries for the local PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def execute(uri: str, *statements: str) -> list[int]:
    """Run statements, each in a transaction of its own. Return how many rows each one changed."""
    import psycopg

    with psycopg.connect(uri, autocommit=True) as connection:
        return [connection.execute(statement.encode()).rowcount for statement in statements]


def query(uri: str, question: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run a query. Return columns and rows; times with an offset are in UTC."""
    import psycopg

    with psycopg.connect(uri, options="-c timezone=UTC") as connection:
        found = connection.execute(question.encode())
        names: Sequence[Any] = found.description or ()
        return [str(column.name) for column in names], found.fetchall()
