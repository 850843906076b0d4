"""The views of a changelog: their names in each engine, and their creation with Spark in catalogs that have views."""

from __future__ import annotations

from collections.abc import Mapping

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from frazil.declaration.catalogs import GlueCatalog
from frazil.declaration.environment import Environment
from frazil.errors import InvalidInput
from frazil.lake.iceberg_java import message, thrown
from frazil.lake.sql.changelog_sql import HISTORY, STATE, ChangelogTable
from frazil.lake.sql.sql_engine import SqlEngine


def table_name(engine: SqlEngine, catalog: str, identifier: str) -> str:
    """Return the table's name in an engine, as it usually is there: Athena and Snowflake have no catalog of that name."""
    return engine.named(*_place(engine, catalog, identifier), identifier.rpartition(".")[2])


def statements(
    changelog: ChangelogTable, engine: SqlEngine, catalog: str, identifier: str, *, table: str = ""
) -> Mapping[str, str]:
    """Return the statements that create the views, by the name of each; `table` is SQL that names the table another way.

    Of Athena they are queries: its views take no column of type timestamp with time zone, and each changelog has some.
    """
    known, name = table or table_name(engine, catalog, identifier), identifier.rpartition(".")[2]
    # DuckDB creates no view in a catalog that is attached.
    place = () if engine is SqlEngine.DUCKDB else _place(engine, catalog, identifier)
    queries = {f"{name}{HISTORY}": changelog.history(engine, known), f"{name}{STATE}": changelog.state(engine, known)}
    if engine is SqlEngine.ATHENA:
        return {view: f"-- {view}\n{query}" for view, query in queries.items()}
    return {view: f"CREATE OR REPLACE VIEW {engine.named(*place, view)} AS\n{query}" for view, query in queries.items()}


def check_catalog(environment: Environment) -> None:
    """Raise `InvalidInput` if the environment's catalog has no views: Iceberg's of Glue has none."""
    if isinstance(environment.catalog, GlueCatalog):
        raise InvalidInput(
            "Iceberg's Glue catalog has no views",
            where=f"environment {environment.name}, catalog",
            do="Create the views in Trino (--engine trino), or run the queries in Athena (--engine athena)",
        )


def create(spark: SparkSession, views: Mapping[str, str]) -> None:
    """Create the views, or replace them. Raises `InvalidInput` if the catalog refuses one."""
    for view, statement in views.items():
        try:
            spark.sql(statement)
        except Py4JJavaError as error:
            raise _refused(view, f"{thrown(error)}: {message(error)}") from None
        except PySparkException as error:
            raise _refused(view, str(error).partition("\n")[0]) from None


def _refused(view: str, why: str) -> InvalidInput:
    do = "If the catalog's service has no views, run the command without --create, and its SQL in an engine that has them"
    return InvalidInput(f"the view cannot be created: {why}", where=f"view {view}", do=do)


def _place(engine: SqlEngine, catalog: str, identifier: str) -> tuple[str, ...]:
    namespace = identifier.rpartition(".")[0]
    return (namespace,) if engine in (SqlEngine.ATHENA, SqlEngine.SNOWFLAKE) else (catalog, namespace)
