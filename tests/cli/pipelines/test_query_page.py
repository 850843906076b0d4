"""The code of docs/query.md: run on upsert tables as each engine's users run it, or parsed by the engine's grammar."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from pyiceberg.utils.config import Config
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.declaration import ErrorMode, Pipeline, Upsert
from frazil.declaration.catalogs import Catalog, GlueCatalog, LocalCatalog, RestAuth, RestCatalog
from frazil.declaration.documents.document import document, environment_document
from frazil.declaration.documents.to_json import canonical
from frazil.declaration.environment import Environment, Kafka
from frazil.lake.catalogs import pyiceberg_properties, spark_options
from frazil.local.services import LocalServices
from frazil.local.toolchain.jars import jars
from tests.support import oracle, run_snippets, trino_server
from tests.support.shop import Shop, avro, frame

PAGE = Path(__file__).parents[3] / "docs" / "query.md"
SNAPSHOT, TIME = "949530903748831860", "2026-03-01 00:00:00"
METADATA = ".frazil/lake/warehouse/shop/orders/metadata/00002.metadata.json"
"""What the page has in place of a snapshot, a time and a file of the reader's own table."""
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "order_id", "type": "long"}, {"name": "status", "type": "string"}],
}
FIRST = dict.fromkeys(range(6), "open")
CHANGES = {1: "paid", 2: "paid", 3: "sent", 5: None}
BY_STATUS = [("open", 2), ("paid", 2), ("sent", 1)]
TABLES = {2: "orders", 3: "orders_v3"}
"""The table of each format version."""
GLUE = GlueCatalog(warehouse="s3://my-lake/warehouse", region="eu-central-1")
REST = RestCatalog(
    uri="https://glue.eu-central-1.amazonaws.com/iceberg",
    warehouse="123456789012",
    auth=RestAuth.SIGV4,
    signing_name="glue",
    region="eu-central-1",
)
LOCAL = LocalCatalog(path="/project/.frazil/lake/catalog.db", warehouse="file:///project/.frazil/lake/warehouse")
Test = Callable[..., None]


def run_here(test: Test) -> Test:
    """Mark a test that reads the landed tables, which take long to land."""
    return pytest.mark.long(pytest.mark.spark(pytest.mark.e2e(test)))


def needs_trino(test: Test) -> Test:
    """Mark a test that runs where Trino was fetched."""
    why = f"Trino is not there: {trino_server.COMMAND} fetches it"
    skips = pytest.mark.skipif(not trino_server.is_installed(), reason=why)
    return run_here(pytest.mark.timeout(900)(skips(test)))


def environment_of(catalog: Catalog) -> Environment:
    return Environment(name="local", kafka=Kafka(bootstrap="127.0.0.1:9"), catalog=catalog)


def no_secret(_: object) -> str:
    raise AssertionError("the page's environments have no secrets")


# ── The code of the page ────────────────────────────────────────────────────────────────────────
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(heading: str, language: str) -> list[str]:
    """Return the blocks of a language below a heading, in their order. Fails if there are none."""
    section = PAGE.read_text().split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    found = [text for named, text in FENCE.findall(section) if named == language]
    assert found, f"no block of {language or 'plain text'} below {heading}"
    return found


def statements(block: str) -> list[str]:
    """Return the statements of SQL text, each of which ends with its line."""
    return [statement.strip() for statement in re.split(r";\n", block) if statement.strip()]


def properties(block: str) -> dict[str, str]:
    """Return the settings of a properties file, whose lines are `name=value` or `name  value`."""
    return dict(re.split(r"\s*[=\s]\s*", line, maxsplit=1) for line in block.splitlines())


# ── One folder, one table of each format version ────────────────────────────────────────────────
@dataclass(frozen=True)
class Project:
    """A project's folder as `frazil local up` and two runs of each pipeline leave it."""

    folder: Path
    variables: dict[str, str]
    environment: Environment

    def own(self, text: str, version: int = 2) -> str:
        """Return text of the page with the project's own snapshot, time, file and table in place of the page's."""
        table = oracle.table(self.environment, f"shop.{TABLES[version]}")
        before = table.history()[-2]
        # Spark and Trino need a time between the commits. Both have milliseconds, and the page's time has none.
        between = datetime.fromtimestamp(before.timestamp_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        for written, here in (
            (SNAPSHOT, str(before.snapshot_id)),
            (TIME, between),
            (METADATA, table.metadata_location.removeprefix("file://")),
        ):
            text = text.replace(written, here)
        for name in ("shop.orders", 'shop."orders'):
            text = text.replace(name, name.replace("orders", TABLES[version]))
        return text

    def snippets(self, wanted: list[tuple[str, str, int]]) -> list[Any]:
        """Run Python code of the page in the folder, each for the table of a version; return the value of a name of each."""
        ended = subprocess.run(
            [sys.executable, "-W", "ignore", run_snippets.__file__],
            input=json.dumps([(self.own(code, version), name) for code, name, version in wanted]),
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return list(json.loads(ended.stdout))


@pytest.fixture(scope="module")
def project(
    local_world: LocalServices,
    spark: SparkSession,
    lake_environment: Environment,
    tmp_path_factory: pytest.TempPathFactory,
) -> Project:
    pipelines = [landed(local_world, spark, lake_environment, version) for version in TABLES]
    assert isinstance(lake_environment.catalog, LocalCatalog)
    folder = tmp_path_factory.mktemp("project")
    (folder / ".frazil" / "environments").mkdir(parents=True)
    (folder / ".frazil" / "lake").symlink_to(Path(lake_environment.catalog.path).parent)
    environment = environment_of(lake_environment.catalog)
    (folder / ".frazil" / "environments" / "local.json").write_bytes(canonical(environment_document(environment)))
    (folder / "pipelines.json").write_bytes(canonical(document(pipelines)))
    (folder / "frazil.toml").write_text('pipelines = "pipelines.json"\n')
    (folder / ".pyiceberg.yaml").write_text(*blocks("PyIceberg", "yaml"))
    install_extensions(folder / ".duckdb" / "extensions")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FRAZIL_", "PYICEBERG_"))}
    return Project(folder, {**kept, "HOME": str(folder)}, environment)


def landed(world: LocalServices, spark: SparkSession, lake: Environment, version: int) -> Pipeline:
    """Land a topic in two batches: the second one changes and deletes rows of the first, and has a record that is none."""
    shop = Shop(
        world,
        spark,
        lake,
        f"query_page_{version}",
        write=Upsert(),
        on_error=ErrorMode.DEAD_LETTER,
        key_format="text",
        table={"identifier": f"shop.{TABLES[version]}", "format_version": version},
    )
    schema_id = shop.register(SCHEMA)
    for batch in (FIRST, CHANGES):
        for number, status in batch.items():
            value = frame(schema_id, avro(SCHEMA, {"order_id": number, "status": status})) if status else None
            shop.produce([value], key=f"k{number}".encode(), partition=0)
        if batch is CHANGES:
            shop.produce([b"no frame"], key=b"k9", partition=0)
        shop.drain()
    return Pipeline(
        topic=shop.pipeline.topic,
        table=shop.pipeline.table,
        name=TABLES[version],
        write=Upsert(),
        on_error=ErrorMode.DEAD_LETTER,
    )


def install_extensions(folder: Path) -> None:
    """Put DuckDB's extensions where INSTALL puts them; they are wheels of this environment."""
    ((platform,),) = duckdb.sql("PRAGMA platform").fetchall()
    target = folder / f"v{duckdb.__version__}" / platform
    target.mkdir(parents=True)
    for file in Path(duckdb.__file__).parents[1].glob("duckdb_extension_*/extensions/*/*.duckdb_extension"):
        (target / file.name).symlink_to(file)


# ── Run here ────────────────────────────────────────────────────────────────────────────────────
@run_here
def test_frazil_query_runs_the_commands(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.folder)
    (block,) = blocks("`frazil query`", "")
    printed = []
    for line in block.splitlines():
        ended = CliRunner().invoke(app, [*shlex.split(line)[1:], "--json"])
        assert ended.exit_code == 0, ended.output
        printed.append(json.loads(ended.stdout)["rows"])
    assert sorted(map(tuple, printed[0])) == BY_STATUS
    assert len(printed[1]) == 5


@run_here
def test_the_tables_have_deletes_of_their_version(project: Project) -> None:
    for version, form in {2: "PARQUET", 3: "PUFFIN"}.items():
        deletes = oracle.table(project.environment, f"shop.{TABLES[version]}").inspect.delete_files().to_pylist()
        assert {file["file_format"] for file in deletes} == {form}


@run_here
def test_python_libraries_run_the_code(project: Project) -> None:
    (iceberg,) = blocks("PyIceberg", "python")
    pandas, polars = blocks("pandas and Polars", "python")
    (ducks,) = blocks("DuckDB", "python")
    names = [(iceberg, "paid"), (iceberg, "earlier"), (iceberg, "rejected"), (pandas, "paid")]
    names += [(polars, "by_status"), (ducks, "by_status")]
    ran = iter(project.snippets([(*each, version) for version in TABLES for each in names]))
    for _ in TABLES:
        paid, earlier, rejected, of_pandas, of_polars, of_ducks = islice(ran, len(names))
        assert sorted(row["order_id"] for row in paid) == [1, 2]
        assert all(set(row) == {"order_id", "_kafka_offset"} for row in paid)
        assert {row["order_id"]: row["status"] for row in earlier} == FIRST
        assert [row["reason"] for row in rejected] == ["wrong_magic"]
        assert sorted(row["order_id"] for row in of_pandas) == [1, 2]
        assert [tuple(row.values()) for row in of_polars] == BY_STATUS
        assert [tuple(row) for row in of_ducks] == BY_STATUS


@pytest.mark.parametrize("version", TABLES)
@run_here
def test_the_shell_of_duckdb_runs_the_sql(project: Project, version: int) -> None:
    block, *_ = blocks("DuckDB", "sql")
    folder = str(project.folder / ".duckdb" / "extensions")
    with duckdb.connect(config={"extension_directory": folder}) as connection:
        ran = [connection.execute(each).to_arrow_table() for each in statements(project.own(block, version))]
    snapshots, by_status, earlier = (table.to_pylist() for table in ran[-3:])
    assert len(snapshots) == len(oracle.table(project.environment, f"shop.{TABLES[version]}").snapshots())
    assert sorted(tuple(row.values()) for row in by_status) == BY_STATUS
    assert len(earlier) == len(FIRST)


@pytest.mark.parametrize("version", TABLES)
@run_here
def test_spark_runs_the_sql(project: Project, spark: SparkSession, version: int) -> None:
    (block,) = blocks("Spark SQL", "sql")
    ran = [spark.sql(each).collect() for each in statements(project.own(block, version))]
    check_sql([[tuple(row) for row in rows] for rows in ran])


@run_here
def test_a_spark_session_of_ones_own_runs_the_code(project: Project) -> None:
    (code,) = blocks("Spark SQL", "python")
    (by_status,) = project.snippets([(code, "by_status", 2)])
    assert [tuple(row) for row in by_status] == BY_STATUS


def check_sql(ran: list[list[tuple[Any, ...]]]) -> None:
    """Check the answers to the statements that the page has for Spark and for Trino."""
    by_status, places, rejected, snapshots, by_id, by_time = ran
    assert sorted(by_status) == BY_STATUS
    assert [(number, partition) for number, partition, _ in places] == [(number, 0) for number in range(5)]
    assert rejected == [("wrong_magic", 1)]
    assert len(snapshots) >= 2
    assert len(by_id) == len(by_time) == len(FIRST)


@pytest.fixture(scope="module")
def trino(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[trino_server.Trino]:
    """A Trino that has read all properties of the page: it does not start with one that it does not know."""
    assert isinstance(project.environment.catalog, LocalCatalog)
    _, glue, rest = blocks("Trino", "properties")
    more = {"glue": properties(glue), "rest": properties(re.sub(r"\$\{ENV:\w+\}", "a key", rest))}
    with trino_server.trino(tmp_path_factory.mktemp("trino"), project.environment.catalog, more) as running:
        yield running


@needs_trino
def test_trino_runs_the_sql(project: Project, trino: trino_server.Trino) -> None:
    (block,) = blocks("Trino", "sql")
    check_sql([trino.ask(each) for each in statements(project.own(block))])


@needs_trino
def test_trino_does_not_read_deletion_vectors(trino: trino_server.Trino) -> None:
    with pytest.raises(AssertionError, match="(?i)version|puffin|delet"):
        trino.ask("SELECT count(*) FROM lake.shop.orders_v3")


# ── Compared with what Frazil itself uses ───────────────────────────────────────────────────────
@pytest.mark.parametrize(("name", "catalog"), [("lake", LOCAL), ("lake_glue", GLUE), ("lake_rest", REST)])
def test_the_file_of_pyiceberg_has_the_properties_of_an_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, catalog: Catalog
) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text(*blocks("PyIceberg", "yaml"))
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    written = Config().get_catalog_config(name)
    wanted = pyiceberg_properties(environment_of(catalog), no_secret)
    if catalog is LOCAL:
        del wanted["warehouse"]  # only writers need it
        wanted["uri"] = wanted["uri"].replace("/project/", "")
    assert written == wanted


def test_sparks_options_are_those_of_frazils_own_sessions() -> None:
    (code,) = blocks("Spark SQL", "python")
    values: dict[str, Any] = {}
    exec(code.split("builder =")[0], values)
    local = {name: value for name, value in values["options"].items() if name.startswith("spark.sql.catalog")}
    wanted = spark_options(environment_of(LOCAL), no_secret)
    assert local == {
        name: value.replace("file:///project/", "").replace("/project/", "")
        for name, value in wanted.items()
        if name.startswith("spark.sql.catalog.lake")
    }
    glue, rest = blocks("Spark SQL", "properties")
    for block, catalog, left_out in ((glue, GLUE, {"glue.skip-archive"}), (rest, REST, set())):
        left_out |= {"cache-enabled"}  # of long sessions
        assert properties(block) == {
            name: value
            for name, value in spark_options(environment_of(catalog), no_secret).items()
            if name.startswith("spark.sql.catalog.lake")
            and name.removeprefix("spark.sql.catalog.lake.") not in left_out
        }


def test_the_packages_for_spark_are_the_locked_jars() -> None:
    section = PAGE.read_text().split("\n## Spark SQL\n")[1].split("\n## ")[0]
    named = [word.strip("`.,") for word in section.split() if word.count(":") == 2 and word.startswith("`")]
    assert len(named) == 3
    of_spark = {jar.name for jar in jars("spark")}
    assert {"{1}-{2}.jar".format(*name.split(":")) for name in named} <= of_spark


def test_trinos_properties_of_the_local_catalog_are_those_that_the_tests_use() -> None:
    local, *_ = blocks("Trino", "properties")
    assert properties(local) == {name: str(value) for name, value in trino_server.catalog_properties(LOCAL).items()}


# ── Parsed ──────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("heading", "dialect"),
    [
        ("Athena", "athena"),
        ("Snowflake", "snowflake"),
        ("Databricks", "databricks"),
        ("ClickHouse", "clickhouse"),
        ("Spark SQL", "spark"),
        ("Trino", "trino"),
    ],
)
def test_sql_of_other_engines_is_of_their_grammar(heading: str, dialect: str) -> None:
    for block in blocks(heading, "sql"):
        for statement in statements(block):
            (parsed,) = sqlglot.parse(statement, read=dialect)
            assert parsed is not None
            assert not isinstance(parsed, sqlglot.exp.Command), statement
            for value in (SNAPSHOT, TIME, "snapshots"):
                assert (value in statement) == (value in parsed.sql(dialect)), statement


DUCKDB_READS = re.compile(r"iceberg_\w+\(|^ATTACH\b", re.MULTILINE)
WITHOUT_CACHE = re.compile(r"\benable_external_file_cache = false\b")


def test_the_pages_turn_duckdbs_cache_of_files_off_before_it_reads_a_table() -> None:
    """With the cache it counts wrong on some tables of version 3."""
    pages = [*PAGE.parents[1].glob("*.md"), *PAGE.parent.rglob("*.md")]
    code = [(page, text) for page in pages for _, text in FENCE.findall(page.read_text()) if DUCKDB_READS.search(text)]
    assert {page for page, _ in code} == {PAGE}
    assert len(code) == 4
    for _, text in code:
        assert WITHOUT_CACHE.search(DUCKDB_READS.split(text)[0]), text
    for page in (PAGE, PAGE.parent / "catalogs.md"):
        assert WITHOUT_CACHE.search(FENCE.sub("", page.read_text())), f"{page.name} does not say so"
