"""The lake without a JVM: catalogs, tables, ledgers, files."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from frazil.clients.secrets import Secrets
from frazil.declaration.catalogs import LocalCatalog, ObjectStore, RestAuth, RestCatalog
from frazil.declaration.environment import Environment, Kafka
from frazil.declaration.secret import Secret
from frazil.errors import CatalogUnavailable
from frazil.lake.catalogs import pyiceberg_properties
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.read.catalog_errors import translated_errors
from frazil.lake.read.data_files import contents, each, manifests, missing
from frazil.lake.read.scan import Where, batches, rows
from frazil.lake.read.stored_tables import Lake, StoredTable
from frazil.local.services import LocalServices, Part, world
from tests.audit.audited_table import Landed, path
from tests.standin.aws.launch import glue_environment, with_aws
from tests.support import oracle
from tests.support.documents import environment_in

KAFKA = Kafka(bootstrap="127.0.0.1:9")
KEYS = ObjectStore(access_key_id=Secret(env="ID"), secret_access_key=Secret(env="KEY"), region="eu-central-1")
SCHEMA = pa.schema([("order_id", pa.int64())])


def resolve(secret: Secret) -> str:
    return f"<{secret.env}>"


def stored(landed: Landed) -> StoredTable:
    found = landed.lake.table(landed.pipeline.table.identifier)
    assert found is not None
    return found


@pytest.fixture
def landed(tmp_path: Path) -> Landed:
    lake = Landed(tmp_path)
    lake.land({0: 100, 1: 50})
    lake.land({0: 200, 1: 60})
    return lake


# ── Catalogs ────────────────────────────────────────────────────────────────────────────────────
def test_a_rest_catalog_signs_with_the_stores_keys() -> None:
    catalog = RestCatalog(
        uri="http://127.0.0.1:1", warehouse="w", auth=RestAuth.SIGV4, signing_name="s3tables", region="eu-central-1"
    )
    store = replace(KEYS, endpoint="http://127.0.0.1:2", path_style=True)
    assert pyiceberg_properties(Environment(name="e", kafka=KAFKA, catalog=catalog, object_store=store), resolve) == {
        "type": "rest",
        "uri": "http://127.0.0.1:1",
        "warehouse": "w",
        "rest.sigv4-enabled": "true",
        "rest.signing-name": "s3tables",
        "rest.signing-region": "eu-central-1",
        "client.access-key-id": "<ID>",
        "client.secret-access-key": "<KEY>",
        "s3.endpoint": "http://127.0.0.1:2",
        "s3.region": "eu-central-1",
        "s3.force-virtual-addressing": "false",
        "s3.access-key-id": "<ID>",
        "s3.secret-access-key": "<KEY>",
    }


@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        ({"auth": RestAuth.NONE}, {}),
        (
            {
                "auth": RestAuth.OAUTH2,
                "credential": Secret(env="C"),
                "token_uri": "https://t.example/x",
                "scope": "all",
            },
            {"credential": "<C>", "oauth2-server-uri": "https://t.example/x", "scope": "all"},
        ),
        ({"auth": RestAuth.TOKEN, "token": Secret(env="T")}, {"token": "<T>"}),
    ],
)
def test_a_rest_catalog_knows_us_as_declared(auth: dict[str, object], expected: dict[str, str]) -> None:
    catalog = RestCatalog(uri="https://c.example", warehouse="w", **auth)  # type: ignore[arg-type]
    found = pyiceberg_properties(Environment(name="e", kafka=KAFKA, catalog=catalog), resolve)
    assert found == {"type": "rest", "uri": "https://c.example", "warehouse": "w", **expected}


def test_a_catalog_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert Lake(environment_in(tmp_path), resolve).table("shop.orders") is None
    assert not (tmp_path / "catalog.db").exists()


def test_a_catalog_that_does_not_answer_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_text("no database, but long enough to be looked at as one" * 20)
    with pytest.raises(CatalogUnavailable, match="DatabaseError"):
        Lake(environment_in(tmp_path), resolve).table("shop.orders")
    nobody = RestCatalog(uri="http://127.0.0.1:9", warehouse="w")
    with pytest.raises(CatalogUnavailable, match="table shop.orders"):
        Lake(Environment(name="e", kafka=KAFKA, catalog=nobody), resolve).table("shop.orders")


# ── The same of each catalog ────────────────────────────────────────────────────────────────────
@pytest.fixture(scope="module")
def lakes_up() -> Iterator[LocalServices]:
    """An object store with a REST catalog, and Glue with an S3 of its own."""
    with world(parts=(Part.KAFKA, Part.OBJECT_STORE)) as running:
        yield with_aws(running)


@pytest.fixture(
    params=["local", pytest.param("rest", marks=pytest.mark.e2e), pytest.param("glue", marks=pytest.mark.e2e)]
)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Written:
    """A table of two commits on each catalog, written by PyIceberg's own writer."""
    match request.param:
        case "local":
            return Written(environment_in(tmp_path))
        case "rest":
            return Written(request.getfixturevalue("lakes_up").rest_environment)
        case _:
            return Written(glue_environment(request.getfixturevalue("lakes_up")))


class Written:
    """A table with rows 1, 2 and then 3, as its writer and as the reader see it."""

    def __init__(self, environment: Environment) -> None:
        self.lake, self.identifier = Lake(environment, Secrets({}).read), f"shop.t{uuid.uuid4().hex}"
        self.catalog = oracle.catalog(environment)
        self.catalog.create_namespace_if_not_exists("shop")
        self.table = self.catalog.create_table(self.identifier, SCHEMA)
        self.append([1, 2])
        self.append([3])

    def append(self, ids: list[int]) -> None:
        self.table.append(pa.table({"order_id": ids}, SCHEMA))

    def read(self) -> StoredTable:
        found = self.lake.table(self.identifier)
        assert found is not None
        return found


def test_a_table_that_is_not_there_is_none(written: Written) -> None:
    assert written.lake.table("shop.nothing") is None
    assert written.lake.table("nowhere.nothing") is None


def test_a_table_is_what_its_writer_made(written: Written) -> None:
    found, table = written.read(), written.table
    assert (found.uuid, found.location, found.version) == (
        str(table.metadata.table_uuid),
        table.location(),
        table.metadata_location,
    )
    assert [field.name for field in found.columns.fields] == ["order_id"]
    assert [(s.operation, s.summary["added-records"]) for s in found.snapshots.values()] == [
        ("append", "2"),
        ("append", "1"),
    ]
    assert found.head is not None
    assert found.head.parent_id == next(iter(found.snapshots))


def test_a_loaded_table_stays_as_it_was(written: Written) -> None:
    before = written.read()
    written.append([4])
    assert (len(before.snapshots), len(written.read().snapshots)) == (2, 3)
    assert before.version != written.read().version


def test_files_have_their_rows_and_bounds(written: Written) -> None:
    table = written.read()
    found = contents(table, table.head, ["order_id"])
    assert sorted((f.rows, f.bounds["order_id"].low, f.bounds["order_id"].high) for f in found.files) == [
        (1, 3, 3),
        (2, 1, 2),
    ]
    assert found.lost == ()
    read = [batch.to_pydict()["order_id"] for file in found.files for batch in batches(table, file, ["order_id"])]
    assert sorted(read) == [[1, 2], [3]]


def test_a_file_that_is_gone_is_missing(written: Written) -> None:
    table = written.read()
    first, second = contents(table, table.head, []).files
    assert missing(table, [first.path, second.path]) == ()
    table.iceberg.io.delete(first.path)
    assert missing(table, [first.path, second.path]) == (first.path,)
    with pytest.raises(FileNotFoundError):
        list(batches(table, first, ["order_id"]))


def test_a_manifest_that_is_gone_is_lost(written: Written) -> None:
    table = written.read()
    assert table.head is not None
    paths = [one.manifest_path for one in manifests(table, table.head) or ()]
    table.iceberg.io.delete(paths[0])
    found = contents(written.read(), table.head, [])
    assert (found.lost, len(found.files)) == ((paths[0],), 1)


def test_a_small_file_beside_the_tables_own_is_read(written: Written) -> None:
    table = written.read()
    location = f"{table.location}/metadata/frazil-side-{uuid.uuid4()}.stats"
    with pytest.raises(FileNotFoundError):
        table.read_text(location)
    with table.iceberg.io.new_output(location).create() as stream:
        stream.write("grüße".encode())
    assert table.read_text(location) == "grüße"


@pytest.mark.e2e
@pytest.mark.parametrize("kind", ["rest", "glue"])
def test_a_catalog_that_is_away_is_unavailable_and_no_key_is_told(lakes_up: LocalServices, kind: str) -> None:
    environment = lakes_up.rest_environment if kind == "rest" else glue_environment(lakes_up)
    gone = replace(environment.catalog, **{"uri" if kind == "rest" else "endpoint": "http://127.0.0.1:9"})
    lake = Lake(replace(environment, catalog=gone), lambda secret: "planted-secret")
    with pytest.raises(CatalogUnavailable) as refused:
        lake.table("shop.orders")
    assert "planted" not in str(refused.value)
    assert refused.value.__cause__ is None


# ── Start-up ────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.long
def test_the_reader_imports_pyiceberg_only_when_asked_and_spark_never(landed: Landed) -> None:
    catalog = landed.environment.catalog
    assert isinstance(catalog, LocalCatalog)
    program = f"""
import sys
from frazil.declaration.catalogs import LocalCatalog
from frazil.declaration.environment import Environment, Kafka
from frazil.lake.read.stored_tables import Lake
import frazil.dead_letters.listing, frazil.dead_letters.show
loaded = lambda *names: [name for name in names if name in sys.modules]
assert not loaded("pyiceberg", "pyarrow", "pyspark", "py4j", "numpy"), "before"
environment = Environment(
    name="e", kafka=Kafka(bootstrap="127.0.0.1:9"), catalog=LocalCatalog(path={catalog.path!r}, warehouse="/w")
)
table = Lake(environment, str).table("shop.orders")
assert table.commits("orders")[0].entry.end.at == {{0: 200, 1: 60}}
assert not loaded("pyspark", "py4j", "boto3", "botocore"), "after"
"""
    subprocess.run([sys.executable, "-c", program], check=True)


# ── Tables ──────────────────────────────────────────────────────────────────────────────────────
def test_commits_are_the_pipelines_own_newest_first(landed: Landed) -> None:
    landed.append(landed.pipeline.table.identifier, [], {}, tag=False)
    table = stored(landed)
    ends = [commit.entry.end for commit in table.commits("orders")]
    assert [end.at for end in ends if end] == [{0: 200, 1: 60}, {0: 100, 1: 50}, {0: 0, 1: 0}]
    assert table.commits("payments") == ()


def test_the_ledger_is_what_the_tag_marks(landed: Landed) -> None:
    tagged = stored(landed).tagged("orders")
    assert tagged is not None
    assert tagged.entry.end == Offsets("orders", "T1", {0: 200, 1: 60})
    assert stored(landed).tagged("payments") is None


def test_the_tagged_commit_is_told_although_what_follows_it_expired(landed: Landed) -> None:
    for _ in range(3):
        landed.append(landed.pipeline.table.identifier, [], {}, tag=False)
    tagged, *between = landed.table.metadata.snapshots[2:-1]
    landed.table.maintenance.expire_snapshots().by_ids([s.snapshot_id for s in between]).commit()
    table = stored(landed)
    assert table.follows_tag("orders")
    assert [commit.id for commit in table.commits("orders")][:1] == [tagged.snapshot_id]


def test_a_head_of_which_no_metadata_file_tells_the_descent_does_not_follow_the_tag(landed: Landed) -> None:
    for _ in range(2):
        landed.append(landed.pipeline.table.identifier, [], {}, tag=False)
    between = landed.table.metadata.snapshots[-2].snapshot_id
    landed.table.maintenance.expire_snapshots().by_ids([between]).commit()
    for log in landed.table.metadata.metadata_log:
        path(log.metadata_file).unlink()
    assert not stored(landed).follows_tag("orders")


def test_a_head_behind_the_tag_does_not_follow_it(landed: Landed) -> None:
    landed.table.manage_snapshots().rollback_to_snapshot(landed.table.metadata.snapshots[-2].snapshot_id).commit()
    assert not stored(landed).follows_tag("orders")


# ── Files ───────────────────────────────────────────────────────────────────────────────────────
def test_a_column_that_is_not_there_names_the_table(landed: Landed) -> None:
    table = stored(landed)
    with pytest.raises(CatalogUnavailable, match="no column _kafka.offset"):
        contents(table, table.head, ("_kafka.offset",))


def test_rows_meet_all_conditions(landed: Landed) -> None:
    conditions = [Where(column="_kafka_partition", equal=1), Where(column="_kafka_offset", at_least=48, below=52)]
    found = [row for batch in rows(stored(landed), ["_kafka_offset"], conditions) for row in batch.to_pylist()]
    assert sorted(row["_kafka_offset"] for row in found) == [48, 49, 50, 51]


def test_rows_of_a_file_that_is_gone_name_the_command_that_tells(landed: Landed) -> None:
    landed.paths()[0].unlink()
    with pytest.raises(CatalogUnavailable, match="frazil verify"):
        list(rows(stored(landed), ["_kafka_offset"]))


def test_work_is_done_a_few_at_a_time_and_told_in_order() -> None:
    begun: list[int] = []
    found = each(lambda n: begun.append(n) or n * 2, range(100), parallel=2)  # type: ignore[func-returns-value]
    assert [next(found) for _ in range(3)] == [0, 2, 4]
    assert len(begun) <= 8
    assert list(found) == [n * 2 for n in range(3, 100)]


def test_the_message_of_a_catalog_is_not_cut_before_secrets_are_masked() -> None:
    words = "x" * 295 + "hunter2hunter2"
    with pytest.raises(CatalogUnavailable, match="hunter2hunter2"), translated_errors("the test"):
        raise OSError(words)
