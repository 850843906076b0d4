"""What each check makes of the facts that it was given."""

from __future__ import annotations

import json
import socket
import threading
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from frazil.clients.secrets import Secrets
from frazil.declaration import (
    Encrypted,
    Environment,
    Hmac,
    Kafka,
    Pipeline,
    Secret,
    Shape,
    Table,
    Topic,
    Upsert,
    parse_environment,
)
from frazil.decode.writers.topic_writers import topic_rows
from frazil.doctor import lake_access, machine
from frazil.doctor.brokers import Broker, of_handshake, of_rights
from frazil.doctor.check_result import Result, examined
from frazil.doctor.machine import of_skew, secret_steps
from frazil.doctor.schema_registry import of_columns
from frazil.errors import ObjectStoreUnavailable, SecretUnavailable
from frazil.local.toolchain import jars
from frazil.schemas.types import Field, Kind, Primitive, Struct
from tests.support.fake_registry import FakeRegistry
from tests.support.fake_store import FakeStore
from tests.support.shop import ORDER
from tests.support.topics import topic_of

NOW = 1_800_000_000.0


# ── this machine ────────────────────────────────────────────────────────────────────────────────
def test_the_packages_of_this_wheel_are_understood_and_installed() -> None:
    requirements = metadata.requires("frazil") or []
    assert len(requirements) > 20
    assert machine.unmet(requirements, metadata.version) == []
    assert machine.python().result is Result.OK


def test_a_package_of_another_version_is_named() -> None:
    wanted = ["a==1.2.0", "b[x]>=2.10", "e~=1.0; python_version < '3'", "c>=1; extra == 'cli'", "d>=1; extra == 'dev'"]
    installed = {"a": "1.2.1", "b": "2.9.9"}
    assert machine.unmet(wanted, installed.get) == [
        "a is 1.2.1, not ==1.2.0",
        "b is 2.9.9, not >=2.10",
        "c is not installed",
    ]


def test_a_given_folder_without_a_jar_fails_and_with_another_one_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(jars.FOLDER, str(tmp_path))
    missing = machine.jars_check(with_s3=False)
    assert (missing.result, missing.exit) == (Result.FAILED, 3)
    assert "frazil local jars --out FOLDER" in missing.remedy
    for artifact in jars.locked(jars.lock_file()):
        (tmp_path / artifact.file_name).write_bytes(b"other")
    other = machine.jars_check(with_s3=False)
    assert (other.result, other.exit) == (Result.FAILED, 1)


def test_jars_that_the_first_run_fetches_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(jars.FOLDER, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    check = machine.jars_check(with_s3=True)
    assert check.result is Result.WARNING
    assert "The first run fetches them from Maven Central" in check.remedy
    assert list(tmp_path.iterdir()) == []  # nothing was fetched


# ── secrets ─────────────────────────────────────────────────────────────────────────────────────
def secured(**kafka: Any) -> Environment:
    named = {"username": {"env": "U"}, "password": {"env": "P"}, "mechanism": "PLAIN", "security": "SASL_SSL"}
    document = {
        "version": 1,
        "name": "x",
        "kafka": {"bootstrap": "127.0.0.1:9", **named, **kafka},
        "catalog": {"type": "local", "path": "/x/c.db", "warehouse": "file:///x"},
    }
    return parse_environment(document)


def test_the_secrets_of_shapes_have_checks() -> None:
    shape = Shape(mask={"a": Hmac(Secret(env="MASK"))}, dead_letters=Encrypted(Secret(env="LETTERS")))
    pipeline = Pipeline(topic=Topic("t", value="avro"), table=Table("s.t"), shape=shape)
    *_, mask, letters = secret_steps(secured(), (pipeline, pipeline), Secrets({"MASK": "a secret of a mask"}))
    assert (mask.name, letters.name) == ("secret env MASK", "secret env LETTERS")
    assert mask.work().result == "ok"
    with pytest.raises(SecretUnavailable, match="LETTERS"):
        letters.work()


def test_each_secret_has_a_check_that_never_shows_it() -> None:
    secrets = Secrets({"U": "hunter2-user-name"})
    steps = secret_steps(secured(), (), secrets)
    checks = list(examined(steps, seconds=5, total_seconds=5))
    assert [(check.name, check.result) for check in checks] == [("secret env U", "ok"), ("secret env P", "failed")]
    assert checks[1].found == "it is not set"
    assert "hunter2" not in str(checks)


# ── the broker ──────────────────────────────────────────────────────────────────────────────────
def broker(bootstrap: str, **more: Any) -> Broker:
    def never() -> Any:
        raise AssertionError("nobody logs in here")

    return Broker(settings=Kafka(bootstrap=bootstrap, **more), kafka=never, now=NOW, seconds=1)


def test_a_port_without_a_process_is_refused_and_one_of_two_is_a_warning() -> None:
    with socket.socket() as listening, socket.socket() as free:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        free.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        running, refusing = (f"127.0.0.1:{one.getsockname()[1]}" for one in (listening, free))
        check = broker(refusing).address()
        assert (check.result, check.found) == (Result.FAILED, f"{refusing}: connection refused")
        assert check.remedy == "`frazil local up` starts a local broker"
        assert broker(f"{refusing},{running}").address().result is Result.WARNING
        assert broker(running).address().result is Result.OK


def test_a_port_that_speaks_no_tls_is_told_from_one_that_is_closed() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def answer() -> None:
            for _ in range(2):  # the probe of the address, then the handshake
                with listening.accept()[0] as client:
                    client.settimeout(0.2)
                    try:
                        if client.recv(10):
                            client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    except OSError:
                        pass

        answering = threading.Thread(target=answer)
        answering.start()
        check = broker(f"127.0.0.1:{listening.getsockname()[1]}", security="SSL").tls()
        answering.join()
    assert check.result is Result.FAILED
    assert check.remedy == "Check kafka.security: does this port speak TLS?"


def test_a_certificate_that_expires_soon_is_a_warning() -> None:
    at = datetime.fromtimestamp(NOW, UTC)
    assert of_handshake("TLSv1.3", at + timedelta(days=13), now=NOW).result is Result.WARNING
    assert of_handshake("TLSv1.3", at + timedelta(days=60), now=NOW).result is Result.OK


def test_rights_that_lack_read_are_named() -> None:
    assert of_rights("t", 3, frozenset({"DESCRIBE", "DESCRIBE_CONFIGS", "READ"})).result is Result.OK
    check = of_rights("t", 3, frozenset({"DESCRIBE", "DESCRIBE_CONFIGS"}))
    assert (check.result, check.found) == (Result.FAILED, "our user may not READ")
    assert check.remedy == "Allow READ on topic t to our user"
    assert of_rights("t", 1, frozenset()).result is Result.OK  # a broker that does not say: the fetch shows it


# ── columns ─────────────────────────────────────────────────────────────────────────────────────
def pipeline(**declared: Any) -> Pipeline:
    more = {name: declared.pop(name) for name in ("write", "envelope") if name in declared}
    return Pipeline(topic=topic_of("t", **{"value_format": "avro", **declared}), table=Table("s.t"), **more)


def test_a_topic_without_a_schema_waits() -> None:
    check = of_columns(pipeline(), topic_rows(pipeline(), FakeRegistry()), None)
    assert (check.result, check.found) == (Result.WARNING, "no schema in subject t-value")


def test_the_columns_of_all_versions_are_those_that_a_table_would_have() -> None:
    registry = FakeRegistry()
    registry.register("t-value", json.dumps(ORDER))
    wider = {**ORDER, "fields": [*ORDER["fields"], {"name": "couponCode", "type": ["null", "string"], "default": None}]}
    registry.register("t-value", json.dumps(wider))
    key = {"type": "record", "name": "Key", "fields": [{"name": "order_no", "type": "int"}]}
    registry.register("t-key", json.dumps(key))
    rows = topic_rows(pipeline(), registry)
    new = of_columns(pipeline(), rows, None)
    columns = (("order_id", "long"), ("user", "string"), ("amount", "double"), ("couponcode", "string"))
    assert (new.result, new.columns) == (Result.OK, columns)
    assert new.found == "4 columns from 2 versions of t-value"
    keyed = pipeline(write=Upsert(), key_format="avro")
    found = of_columns(keyed, topic_rows(keyed, registry), None)
    assert (found.found, found.columns[0]) == ("5 columns from 2 versions of t-value", ("order_no", "int"))
    key_fields = Struct(
        (Field("order_no", Primitive(Kind.INT), required=True),)
    )  # as the table of an upsert has its key
    of_json = {"value_format": "json", "columns": ("id long",), "key_format": "json", "key_columns": ("order_no int",)}
    declared = pipeline(write=Upsert(), **of_json)
    same = of_columns(
        declared, topic_rows(declared, None), Struct((*key_fields.fields, Field("id", Primitive(Kind.LONG))))
    )
    assert same.found == "2 columns, all in the table"
    table = Struct((Field("order_id", Primitive(Kind.INT)), Field("user", Primitive(Kind.STRING))))
    assert "column order_id widened from int to long" in of_columns(pipeline(), rows, table).found


def test_a_version_that_does_not_land_is_a_warning_and_an_unreadable_schema_a_failure() -> None:
    registry = FakeRegistry()
    registry.register("t-value", json.dumps(ORDER))
    fields = [{"name": "order_id", "type": "string"}]
    registry.register("t-value", json.dumps({**ORDER, "fields": fields}))
    check = of_columns(pipeline(), topic_rows(pipeline(), registry), None)
    assert check.result is Result.WARNING
    assert "a version does not land: order_id" in check.found
    other = FakeRegistry()
    other.register("t-value", '{"type": "object"}')
    check = of_columns(pipeline(), topic_rows(pipeline(), other), None)
    assert (check.result, check.exit) == (Result.FAILED, 6)


def test_declared_columns_need_no_registry() -> None:
    declared = pipeline(value_format="json", columns=("id long", "at timestamptz"))
    check = of_columns(declared, topic_rows(declared, None), None)
    assert check.columns == (("id", "long"), ("at", "timestamptz"))
    inside = pipeline(value_format="connect_json")
    assert "in each record" in of_columns(inside, topic_rows(inside, None), None).found


# ── the lake ────────────────────────────────────────────────────────────────────────────────────
class Failing(FakeStore):
    """A store whose answer to one kind of request is lost, after it did what was asked."""

    lost = ""

    def put_once(self, key: str, source: Path | bytes) -> bool:
        done = super().put_once(key, source)
        return done if self.lost != "put" else self._lose()

    def delete(self, key: str) -> None:
        if self.lost == "delete":
            self._lose()
        super().delete(key)

    def _lose(self) -> bool:
        raise ObjectStoreUnavailable("S3 did not answer (ReadTimeoutError)", where="s3://b/k", do="Try again")


def in_bucket(lost: str = "") -> tuple[Failing, Any]:
    store = Failing()
    store.lost, store.bucket = lost, "b"  # type: ignore[attr-defined]
    return store, lambda: lake_access.in_bucket(store, "lake/.frazil-doctor-1")  # type: ignore[arg-type]


def test_what_is_written_below_the_warehouse_is_deleted_also_when_the_answer_is_lost() -> None:
    store, check = in_bucket()
    assert check().found == "wrote and deleted an object in s3://b/lake"
    assert (store.writes, store.objects) == (1, {})
    store, check = in_bucket("put")
    with pytest.raises(ObjectStoreUnavailable):
        check()
    assert (store.writes, store.objects) == (1, {})


def test_an_object_that_cannot_be_deleted_is_named() -> None:
    _, check = in_bucket("delete")
    found = check()
    assert found.result is Result.FAILED
    assert "s3://b/lake/.frazil-doctor-1 was written, and not deleted" in found.found


# ── the clock ───────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("ahead", "result", "found"),
    [
        (0.4, "ok", "within 1 s of the registry"),
        (-60, "warning", "60 s behind the registry"),
        (4000, "failed", "4000 s ahead of the registry"),
    ],
)
def test_a_skew_is_told_with_its_source(ahead: float, result: str, found: str) -> None:
    check = of_skew("registry", ahead)
    assert (check.result, check.found) == (result, found)
