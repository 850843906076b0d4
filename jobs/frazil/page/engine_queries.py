"""SQL and code with which each engine reads a pipeline's table (docs/query.md), without a login."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from frazil.declaration import Environment, Pipeline
from frazil.declaration.catalogs import GlueCatalog, LocalCatalog, RestCatalog
from frazil.status.looking import command_in

LIMIT = "LIMIT 20"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A text to copy that reads a table in one engine."""

    engine: str
    text: str


def engine_queries(pipeline: Pipeline, place: Environment, env: str, metadata: str) -> tuple[Query, ...]:
    """Return a query for each engine that reads the environment's catalog. `metadata` is the table's metadata file."""
    found = _queries(pipeline, place, env, metadata)
    return tuple(Query(engine=engine, text=text) for engine, text in found)


def _queries(pipeline: Pipeline, place: Environment, env: str, metadata: str) -> Iterator[tuple[str, str]]:
    table, catalog = pipeline.table, place.catalog
    name, named = table.identifier, f"{catalog.name}.{table.identifier}"
    yield "frazil query", command_in(f"frazil query {pipeline.name}", env)
    spark = f"SELECT * FROM {named} {LIMIT};\nSELECT * FROM {named}.snapshots;"
    yield "Spark SQL", spark
    if not table.has_variants:
        load = f'table = load_catalog("{catalog.name}").load_table("{name}")'
        yield "PyIceberg", f"from pyiceberg.catalog import load_catalog\n\n{load}\ntable.scan(limit=20).to_arrow()"
    begin = "SET enable_external_file_cache = false;\n"
    match catalog:
        case LocalCatalog():
            path = metadata.removeprefix("file://").removeprefix("file:").replace("'", "''")
            yield "DuckDB", f"INSTALL iceberg;\nLOAD iceberg;\n{begin}SELECT * FROM iceberg_scan('{path}') {LIMIT};"
        case GlueCatalog(account_id=account):
            attach = f"ATTACH '{account or 'ACCOUNT_ID'}' AS {catalog.name} (TYPE iceberg, ENDPOINT_TYPE 'glue');"
            key = "INSTALL aws;\nCREATE SECRET (TYPE s3, PROVIDER credential_chain);\n"
            yield "DuckDB", f"{begin}{key}{attach}\nSELECT * FROM {named} {LIMIT};"
        case RestCatalog(uri=uri, warehouse=warehouse):
            at = f"ENDPOINT '{_quoted(uri)}'"
            attach = f"ATTACH '{_quoted(warehouse)}' AS {catalog.name} (TYPE iceberg, SECRET YOUR_SECRET, {at});"
            yield "DuckDB", f"{begin}{attach}\nSELECT * FROM {named} {LIMIT};"
    if table.format_version == 2:
        trino = (
            f'SELECT * FROM {named} {LIMIT};\nSELECT * FROM {catalog.name}.{table.namespace}."{table.name}$snapshots";'
        )
        yield "Trino", trino
    if isinstance(catalog, LocalCatalog):
        return
    if isinstance(catalog, GlueCatalog):
        if table.format_version == 2:
            yield "Athena", f'SELECT * FROM "{table.namespace}"."{table.name}" {LIMIT};'
        of = f"CATALOG = 'YOUR_INTEGRATION' CATALOG_NAMESPACE = '{table.namespace}' CATALOG_TABLE_NAME = '{table.name}'"
        create = f"CREATE ICEBERG TABLE {table.name} EXTERNAL_VOLUME = 'YOUR_VOLUME' {of} AUTO_REFRESH = TRUE;"
        yield "Snowflake", f"{create}\nSELECT * FROM {table.name} {LIMIT};"
        yield "Databricks", f"SELECT * FROM {named} {LIMIT};"
    yield "ClickHouse", f"SELECT * FROM {catalog.name}.`{name}` {LIMIT};"


def _quoted(text: str) -> str:
    return text.replace("'", "''")
