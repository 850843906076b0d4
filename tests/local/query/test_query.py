"""`frazil query` reads the tables of declared pipelines from each kind of catalog, and nothing else."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from frazil.cli.main import app
from frazil.clients.secrets import Secrets
from frazil.declaration import Environment, Pipeline, Table, Topic, Upsert
from frazil.declaration.documents.document import environment_document
from frazil.errors import CatalogUnavailable
from frazil.lake.read.stored_tables import Lake, StoredTable
from frazil.local.query import table_views
from frazil.local.query.answer import answer
from frazil.local.query.table_views import needed, views
from frazil.local.seaweedfs import BUCKET
from frazil.local.services import LocalServices
from tests.standin.aws.launch import glue_environment
from tests.support import oracle
from tests.support.documents import environment_in

ROWS = pa.table({"id": pa.array([1, 2, 3]), "who": ["Ada", None, "\x1b[31mEve"], "seen": [0, 1, 2]})
ROWS = ROWS.set_column(2, "seen", ROWS["seen"].cast(pa.timestamp("us", tz="UTC")))
DECLARED = """
from frazil import Pipeline, Table, Topic
pipelines = [
    Pipeline(name="orders", topic=Topic("orders", value="json"), table=Table("shop.order")),
    Pipeline(name="later", topic=Topic("later", value="json"), table=Table("shop.later")),
]
"""


def write(environment: Environment, identifier: str, rows: pa.Table = ROWS, **properties: str) -> None:
    catalog = oracle.catalog(environment)
    catalog.create_namespace_if_not_exists(identifier.partition(".")[0])
    table = catalog.create_table(identifier, rows.schema, properties=properties)
    table.append(rows)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with declarations, and an environment whose tables are `shop.order` and its dead letters."""
    folder = tmp_path_factory.mktemp("it's a project")
    environment = environment_in(folder)
    write(environment, "shop.order")
    write(environment, "shop.order__dead_letters", pa.table({"reason": ["undecodable"]}))
    (folder / "pipelines.py").write_text(DECLARED)
    (folder / "dev.json").write_text(json.dumps(environment_document(environment)))
    return folder


@pytest.fixture
def query(project: Path) -> Callable[..., Result]:
    def run(*arguments: str, code: int = 0, columns: str = "200") -> Result:
        options = ("--pipelines", str(project / "pipelines.py"), "--env", str(project / "dev.json"))
        ended = CliRunner(env={"COLUMNS": columns}).invoke(app, ["query", *arguments, *options])
        assert ended.exit_code == code, ended.output
        return ended

    return run


Query = Callable[..., Result]


@pytest.mark.long
def test_a_table_has_its_identifier_and_its_pipelines_name(query: Query) -> None:
    for name in ("shop.order", 'shop."order"', "orders", "Orders"):
        told = json.loads(query(f"select id, who, seen from {name} order by id", "--json").stdout)
        assert told == {
            "columns": [
                {"name": "id", "type": "BIGINT"},
                {"name": "who", "type": "VARCHAR"},
                {"name": "seen", "type": "TIMESTAMP WITH TIME ZONE"},
            ],
            "rows": [
                [1, "Ada", "1970-01-01 00:00:00+00:00"],
                [2, None, "1970-01-01 00:00:00.000001+00:00"],
                [3, "\x1b[31mEve", "1970-01-01 00:00:00.000002+00:00"],
            ],
            "has_more": False,
        }
    assert "undecodable" in query("select * from orders__dead_letters").stdout
    assert "order__dead_letters" in query("select table_schema, table_name from information_schema.tables").stdout


def test_people_see_nulls_and_no_control_characters_and_numbers_are_on_the_right(query: Query) -> None:
    lines = query("select who, id * 100 as n from orders order by id").stdout.splitlines()
    assert [line.rstrip() for line in lines] == [
        "who            n",
        "Ada          100",
        "NULL         200",
        "\\x1b[31mEve  300",
    ]


def test_a_name_alone_shows_its_first_rows(query: Query) -> None:
    shown = query("orders", "--limit", "2").stdout.splitlines()
    assert [line.split()[0] for line in shown] == ["id", "1", "2", "…"]
    assert shown[-1] == "… more rows: --limit prints more than 2"
    assert len(json.loads(query("shop.order", "--json").stdout)["rows"]) == 3


def test_csv_keeps_null_and_an_empty_text_apart(query: Query) -> None:
    ended = query("""select 1 a, null b, '' c, 'x,"y"' d, [1, null] e, true f""", "--csv")
    assert ended.stdout_bytes == b'a,b,c,d,e,f\n1,,"","x,""y""","[1, null]",true\n'


def test_the_guides_text_of_a_dead_letter_is_null_if_its_bytes_are_no_text(query: Query) -> None:
    ended = query("select try(decode(value)) as record from (values ('\\xFF'::blob), ('{}'::blob)) of(value)", "--csv")
    assert ended.stdout_bytes == b"record\n\n{}\n"
    assert "try(decode(value)) as record" in Path("docs/guides/dead-letters.md").read_text()


def test_values_that_json_does_not_have_are_texts(query: Query) -> None:
    of = (
        "select sum(id) a, 1.10::decimal(5, 2) b, 'nan'::double c, '\\xff\\x41'::blob d, interval 90 minute e, "
        "timestamp_ns '2020-01-01 00:00:00.123456789' f, {'x': [date '2020-01-01']} g, map {'k': 1} h from orders"
    )
    (row,) = json.loads(query(of, "--json").stdout)["rows"]
    assert row == [
        6,
        "1.10",
        "nan",
        "\\xFFA",
        "0 months 0 days 1:30:00",
        "2020-01-01 00:00:00.123456789",
        {"x": ["2020-01-01"]},
        [{"key": "k", "value": 1}],
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("select * from later", "shop.later does not exist yet: `frazil run later --once` creates it"),
        ("select * from ordres", "Tables are shop.order, shop.order__dead_letters"),
        ("select nope from orders", 'Referenced column "nope" not found'),
        ("ordres", "there is no pipeline or table ordres. Name one of later, "),
        ("select * from read_text('/etc/hostname')", "Cannot access file"),
        ("select * from '{}/dev.json'", "Cannot access file"),
        ("select * from read_json('{}/warehouse/../dev.json')", "Cannot access file"),
        ("select * from glob('{}/*')", "Cannot access file"),
        ("select cast('x' as int)", "Conversion Error"),
    ],
)
def test_wrong_sql_is_one_line_and_no_other_file_is_read(query: Query, project: Path, text: str, why: str) -> None:
    path = str(project).replace("'", "''")
    ended = query(text.replace("{}", path), code=2)
    assert why in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_catalog_is_asked_only_for_tables_that_a_statement_names() -> None:
    many = [
        Pipeline(name=f"t{n}", topic=Topic(f"t{n}", value="json"), table=Table(f"shop.orders_{n}")) for n in range(50)
    ]
    asked: list[str] = []

    class Counting(Lake):
        def table(self, identifier: str) -> StoredTable | None:
            asked.append(identifier)
            return None

    lake = Counting(environment_in(Path("/x")), Secrets({}).read)
    with pytest.raises(Exception, match=r"shop\.orders_7 does not exist yet"):
        answer("select * from shop.orders_7 join t8 using (x)", many, lake)
    assert sorted(asked) == ["shop.orders_7", "shop.orders_8"]


def test_dead_letters_have_names_too_and_an_identifier_counts_first() -> None:
    state = Pipeline(
        topic=Topic("a", value="avro", key="avro"),
        table=Table("shop.a"),
        write=Upsert(),
    )
    other = Pipeline(name="x", topic=Topic("x", value="json"), table=Table("main.a"))
    found = {(view.schema, view.name): view.table for view in views([state, other])}
    assert found == {
        **{("shop", name): f"shop.{name}" for name in ("a", "a__dead_letters")},
        **{("main", name): f"main.{name}" for name in ("a", "a__dead_letters")},
        ("main", "x"): "main.a",
        ("main", "x__dead_letters"): "main.a__dead_letters",
    }
    named = needed(views([state, other]), 'SELECT "A__DEAD_LETTERS".y')
    assert [view.table for view in named] == ["shop.a__dead_letters", "main.a__dead_letters"]


@pytest.mark.long
@pytest.mark.e2e
@pytest.mark.parametrize("kind", ["rest", "glue"])
def test_tables_in_an_object_store_are_read_with_its_keys(whole_world: LocalServices, kind: str) -> None:
    environment = whole_world.rest_environment if kind == "rest" else glue_environment(whole_world)
    name = f"q{uuid.uuid4().hex[:8]}"
    elsewhere = {"write.data.path": f"s3://{BUCKET}/data/{name}"} if kind == "rest" else {}
    write(environment, f"{name}.orders", **elsewhere)
    declared = [Pipeline(name="orders", topic=Topic("orders", value="json"), table=Table(f"{name}.orders"))]
    secrets = Secrets({})
    found = answer("select count(*), max(id) from orders", declared, Lake(environment, secrets.read))
    assert found.rows == ((3, 3),)
    for table in ("duckdb_secrets()", "duckdb_variables()"):
        rows = answer(f"select * from {table}, orders", declared, Lake(environment, secrets.read)).rows
        key = secrets.read(environment.object_store.secret_access_key)  # type: ignore[union-attr, arg-type]
        assert key not in str(rows)


@pytest.mark.long
@pytest.mark.e2e
def test_without_keys_awss_default_chain_is_used(whole_world: LocalServices, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = glue_environment(whole_world)
    store = environment.object_store
    assert store is not None
    key_id, key = (Secrets({}).read(one) for one in (store.access_key_id, store.secret_access_key) if one is not None)
    name = f"q{uuid.uuid4().hex[:8]}"
    write(environment, f"{name}.orders")
    keyless = replace(environment, object_store=replace(store, access_key_id=None, secret_access_key=None))
    declared = [Pipeline(name="orders", topic=Topic("orders", value="json"), table=Table(f"{name}.orders"))]
    for variable, value in {"AWS_ACCESS_KEY_ID": key_id, "AWS_SECRET_ACCESS_KEY": key}.items():
        monkeypatch.setenv(variable, value)
    assert answer("select count(*) from orders", declared, Lake(keyless, Secrets({}).read)).rows == ((3,),)


def test_a_file_that_is_gone_is_an_outage(tmp_path: Path) -> None:
    environment = environment_in(tmp_path)
    write(environment, "shop.orders")
    for file in (tmp_path / "warehouse").rglob("*.parquet"):
        file.unlink()
    declared = [Pipeline(name="orders", topic=Topic("orders", value="json"), table=Table("shop.orders"))]

    def ask() -> Any:
        return answer("select * from orders", declared, Lake(environment, Secrets({}).read))

    with pytest.raises(CatalogUnavailable, match="parquet"):
        ask()


def test_dates_beyond_python_are_texts(query: Query) -> None:
    sql = "select date '290000-01-01' d, timestamp '290000-01-01 00:00:00' t, timestamptz '20000-01-01 00:00:00+00' z, date 'infinity' i"
    found = json.loads(query(sql, "--json").stdout)
    (row,) = found["rows"]
    assert row[2] == "20000-01-01 00:00:00.000000Z"
    assert [text.partition(":")[0] for text in (row[0], row[1], row[3])] == ["<value out of range"] * 3


@pytest.mark.parametrize(
    ("value", "printable"),
    [
        ("1::variant", "JSON"),
        ("340282366920938463463374607431768211455::uhugeint", "VARCHAR"),
        ("'101'::bit", "VARCHAR"),
    ],
)
def test_a_type_that_arrow_lacks_is_refused(query: Query, value: str, printable: str) -> None:
    ended = query(f"select {value} x", code=2)
    assert "cannot be printed" in ended.stderr
    assert f"Cast it to {printable}" in ended.stderr


def test_a_catalog_that_hangs_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging:
        def table(self, identifier: str) -> StoredTable | None:
            threading.Event().wait()
            return None

    monkeypatch.setattr(table_views, "LONGEST_SECONDS", 0.1)
    lake: Any = Hanging()
    with pytest.raises(CatalogUnavailable, match="no answer within"):
        table_views.load(lake, views([Pipeline(name="a", topic=Topic("a", value="json"), table=Table("s.a"))]))
