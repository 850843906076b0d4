"""The facts of a page are those of tables, topics, dead letters and proofs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frazil.clients import daemon_threads
from frazil.clients.secrets import Redactor, Secrets
from frazil.dead_letters.rejected_rows import COLUMNS as DEAD_LETTER_COLUMNS
from frazil.declaration import Pipeline, Redact, Shape, Table, Topic
from frazil.declaration.catalogs import GlueCatalog
from frazil.errors import CatalogUnavailable
from frazil.lake.ledger.key_totals import KeyAccount
from frazil.lake.read.stored_tables import Lake
from frazil.page import dead_letter_views
from frazil.page import facts as module
from frazil.page.dead_letter_views import CircuitBreaker, letter, rejected
from frazil.page.drawing import tall, wide
from frazil.page.engine_queries import engine_queries
from frazil.page.facts import Detail, growth_of, way_of
from frazil.page.plots import plot
from frazil.page.rendering import Rendering
from frazil.status import all_pipelines
from frazil.status.pipeline_status import State, status_of
from frazil.status.shown_values import number
from tests.audit.audited_table import Landed
from tests.page.page_facts import facts_of, landed_orders, other_pipelines, proven
from tests.support.fake_registry import FakeRegistry


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Landed:
    return landed_orders(tmp_path_factory.mktemp("lake"))


def detail_of(landed: Landed, folder: Path) -> Detail:
    facts = facts_of(landed, proofs=folder, ends=1500)
    facts.overview()
    return facts.detail("orders")


def test_the_overview_has_a_row_for_each_pipeline_and_its_notes(landed: Landed, tmp_path: Path) -> None:
    facts = facts_of(landed, *other_pipelines(), proofs=tmp_path)
    assert not facts.knows("orders")
    found = facts.overview()
    assert [row.pipeline for row in found.rows] == ["orders", "clicks", "payments"]
    assert found.rows[0].why == "The local broker 127.0.0.1:9 does not run"
    assert facts.knows("clicks")
    assert facts.detail("clicks").status.state in (State.NO_TABLE, State.WAITING)


def test_the_rate_is_that_of_the_commits_of_five_minutes(landed: Landed, tmp_path: Path) -> None:
    status = detail_of(landed, tmp_path).status
    assert status.read_per_second == pytest.approx(90 / 300, abs=0.001)
    assert (status.state, status.lag) == (State.BEHIND, 3000 - 1147 - 693)


def test_growth_and_schema_versions_are_those_of_the_snapshots(landed: Landed, tmp_path: Path) -> None:
    found = detail_of(landed, tmp_path)
    assert (len(found.growth), found.growth[0].rows, found.growth[-1].rows) == (19, 0, 1832)
    assert (found.schemas[0].id, found.schemas[0].changes) == (1, ("+ discount_code string", "+ items long"))
    assert found.schemas[1].changes[0] == "+ order_id long"
    assert "+ _kafka_headers list" in found.schemas[1].changes  # without its parts
    assert found.status.commits[0].counts is not None


def test_dead_letters_are_counted_by_reason_and_one_of_each_is_decoded(landed: Landed, tmp_path: Path) -> None:
    found = detail_of(landed, tmp_path).rejected
    assert (found.counts, found.total) == ({"too_short": 4, "undecodable": 2, "unknown_schema": 2}, 8)
    value = found.examples["undecodable"].value
    assert value.attempt is not None
    assert (value.attempt.what, value.attempt.path) == ("the text is not a value of type long", "order_id")
    assert (value.attempt.decoded or "").startswith('{"order_id": "no number"')


def test_a_registry_that_fails_is_asked_once_in_a_look(tmp_path: Path) -> None:
    landed, down = Landed(tmp_path), FakeRegistry()
    for batch, reason in enumerate(("too_short", "undecodable", "unknown_schema"), start=1):
        landed.land({0: 10 * batch}, rejected={(0, 10 * batch - 1): b"\0\0\0\0\7bad"}, reason=reason)
    down.down = True
    registry = CircuitBreaker(down)
    for _ in range(2):  # as for a file of several pipelines
        found = rejected(landed.pipeline, landed.lake, registry)
        assert (len(found.examples), found.undecoded) == (3, "fake registry: it is down")
    assert down.asked == ["schema"]
    page = Rendering("test", Redactor()).pipeline(replace(detail_of(landed, tmp_path / "proofs"), rejected=found), 1.0)
    assert page.count("fake registry: it is down") == 1


def test_a_file_does_not_ask_a_catalog_without_an_answer_for_each_pipeline(
    landed: Landed, tmp_path: Path, hanging: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts, asked = facts_of(landed, *other_pipelines(), proofs=tmp_path), list[str]()
    monkeypatch.setattr(Lake, "table", hanging)
    overview, detail = facts.overview(), facts.detail

    def counted(name: str, registry: Any) -> Any:
        asked.append(name)
        return detail(name, registry)

    monkeypatch.setattr(facts, "detail", counted)
    found = [*facts.details(overview, ["clicks", "orders", "payments"])]
    assert [one.status.pipeline for one in found] == ["clicks", "orders", "payments"]
    assert {one.status.why for one in found} == {"no answer within 0.3 s"}
    assert asked == ["clicks"]


def test_a_masked_pipeline_shows_neither_bytes_nor_keys_nor_headers(landed: Landed) -> None:
    shape = Shape(mask={"order_id": Redact()})
    masked = replace(landed.pipeline, shape=shape)
    found = rejected(masked, landed.lake, None)
    assert {one.key for one in found.newest} == {None}
    assert found.newest
    one = letter(masked, landed.lake, None, (0, 145))
    assert one is not None
    for view in (one, *found.examples.values()):
        assert (view.is_masked, view.headers, view.letter.key) == (True, (), None)
        assert (view.key.data, view.value.data, view.value.attempt) == (None, None, None)
    plain = letter(landed.pipeline, landed.lake, None, (0, 145))
    assert plain is not None
    assert plain.value.data


def test_a_proof_has_its_time_and_snapshot_and_the_snapshots_since(tmp_path: Path) -> None:
    landed = Landed(tmp_path)
    landed.land({0: 100, 1: 50}, rejected=[(0, 7)])
    assert detail_of(landed, tmp_path / "proofs").proof is None
    proven(landed, tmp_path / "proofs")
    proof = detail_of(landed, tmp_path / "proofs").proof
    assert proof is not None
    head = landed.table.current_snapshot()
    assert head is not None
    assert (proof.result.outcome, proof.result.snapshot, proof.newer) == ("proven", head.snapshot_id, 0)
    landed.land({0: 120, 1: 50})
    proof = detail_of(landed, tmp_path / "proofs").proof
    assert proof is not None
    assert (proof.result.snapshot, proof.newer) == (head.snapshot_id, 1)
    landed.table.append(landed.table.scan(limit=1).to_arrow())  # by another engine
    found = detail_of(landed, tmp_path / "proofs")
    assert found.proof is not None
    assert found.proof.newer == 2
    assert "2 snapshots before the newest one" in Rendering("test", Redactor()).pipeline(found, 1.0)


def test_a_dead_letter_table_that_does_not_exist_is_a_problem_if_records_were_rejected(tmp_path: Path) -> None:
    landed = Landed(tmp_path)
    landed.catalog.drop_table(landed.pipeline.table.dead_letters)
    found = detail_of(landed, tmp_path)
    assert (found.rejected.total, found.rejected.problem) == (0, "")
    landed._create(landed.pipeline.table.dead_letters, DEAD_LETTER_COLUMNS, ("topic", "partition", "offset"))
    landed.land({0: 100, 1: 50}, rejected=[(0, 7)])
    landed.catalog.drop_table(landed.pipeline.table.dead_letters)
    found = detail_of(landed, tmp_path)
    assert found.status.rejected_24h == 1
    assert found.rejected.problem == "the dead-letter table shop.orders__dead_letters does not exist"
    assert found.aside is not None
    assert found.aside.title == "not known"


def test_a_catalog_that_cannot_be_read_is_a_reason(tmp_path: Path) -> None:
    landed = Landed(tmp_path)
    (tmp_path / "catalog.db").write_bytes(b"no database" * 100)
    found = detail_of(landed, tmp_path)
    assert (found.status.state, found.status.rows, found.growth) == (State.UNKNOWN, None, ())
    assert found.status.why


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a call that takes longer than a look may."""
    answering = threading.Event()
    for looked in (module, all_pipelines):
        monkeypatch.setattr(looked, "LONGEST_SECONDS", 0.3)
    yield lambda *_: answering.wait(30)
    answering.set()


def test_a_catalog_that_hangs_is_a_reason_on_the_page_of_a_pipeline(
    landed: Landed, tmp_path: Path, hanging: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lake, "table", hanging)
    facts = facts_of(landed, proofs=tmp_path)
    facts.overview()
    found = facts.detail("orders")
    assert (found.status.state, found.status.why, found.problem) == (State.UNKNOWN, "no answer within 0.3 s", "")
    assert found.verify
    with pytest.raises(CatalogUnavailable, match=r"no answer within 0\.3 s"):
        facts.letter("orders", (0, 145))


def test_after_a_catalog_that_hung_the_next_look_reads(
    landed: Landed, tmp_path: Path, hanging: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each connection of the outage stays without an answer, as of a VPN that dropped."""
    monkeypatch.setattr(daemon_threads, "HANGING_SECONDS", 0.0)
    facts, table = facts_of(landed, *other_pipelines(), proofs=tmp_path, ends=1500), Lake.table
    monkeypatch.setattr(Lake, "table", hanging)
    for _ in range(4):
        assert {row.state for row in facts.overview().rows} == {State.UNKNOWN}
        facts.detail("orders")
    monkeypatch.setattr(Lake, "table", table)
    for looked in (module, all_pipelines):
        monkeypatch.setattr(looked, "LONGEST_SECONDS", 10.0)
    for threads in (facts._threads, facts._looking._threads):
        monkeypatch.setattr(threads, "_last", float("-inf"))  # as some seconds later
    assert State.UNKNOWN not in {row.state for row in facts.overview().rows}
    found = facts.detail("orders")
    assert (found.status.state, len(found.growth), found.problem) == (State.BEHIND, 19, "")


def test_topics_of_patterns_that_are_not_listed_are_a_note_until_they_are(
    landed: Landed, tmp_path: Path, hanging: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_threads, "HANGING_SECONDS", 0.0)
    monkeypatch.setattr(module, "LISTING_SECONDS", 0.1)
    facts = facts_of(landed, proofs=tmp_path, ends=1500)
    listed = facts._declared
    monkeypatch.setattr(facts, "_declared", hanging)
    found = facts.overview()
    assert (found.rows, found.notes) == ((), ("the pipelines are those of an earlier look: no answer within 0.1 s",))
    monkeypatch.setattr(facts, "_declared", listed)
    monkeypatch.setattr(module, "LISTING_SECONDS", 10.0)
    assert (len(facts.overview().rows), facts.overview().notes) == (1, ())


def test_growth_of_an_upsert_table_begins_with_a_snapshot_whose_rows_are_known(tmp_path: Path) -> None:
    """The oldest snapshot that is kept may be a compaction, which has no account of keys."""
    landed = Landed(tmp_path)
    for at in range(1, 6):
        landed.land({0: 100 * at, 1: 0})
    assert len([*growth_of(landed.lake.table("shop.orders"))]) == 6

    def compacted(document: dict[str, Any]) -> None:
        for at, one in enumerate(document["snapshots"]):
            kept = {name: text for name, text in one["summary"].items() if not name.startswith("frazil.")}
            is_compaction = at == 3
            one["summary"] = kept if is_compaction else {**one["summary"], "frazil.keys": str(KeyAccount(rows=40 + at))}

    def expired(document: dict[str, Any]) -> None:
        gone = {one["snapshot-id"] for one in document["snapshots"][:-3]}
        document["snapshots"] = document["snapshots"][-3:]
        document["snapshot-log"] = [one for one in document["snapshot-log"] if one["snapshot-id"] not in gone]
        document["snapshots"][0].pop("parent-snapshot-id", None)

    landed.edit_metadata(compacted)
    assert [one.rows for one in growth_of(landed.lake.table("shop.orders"))] == [40, 41, 42, 42, 44, 45]
    landed.edit_metadata(expired)
    assert [one.rows for one in growth_of(landed.lake.table("shop.orders"))] == [44, 45]


def test_parts_that_take_long_are_missing_and_the_others_are_there(
    landed: Landed, tmp_path: Path, hanging: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for looked in (module, all_pipelines):
        monkeypatch.setattr(looked, "LONGEST_SECONDS", 5.0)
    monkeypatch.setattr(dead_letter_views, "rejected", hanging)
    found = detail_of(landed, tmp_path)
    assert (found.status.state, len(found.growth)) == (State.BEHIND, 19)
    assert found.problem == found.rejected.problem == "not all facts were read within 5 s"
    assert found.aside is not None
    assert found.aside.title == "not known"


def test_secrets_are_masked_in_reasons_and_notes(
    landed: Landed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = Secrets({})
    secrets.redactor.add("hunter2secret")
    facts = facts_of(landed, proofs=tmp_path, secrets=secrets)

    def refused(report: Callable[[str, str], None]) -> tuple[Pipeline, ...]:
        report("login hunter2secret refused", "")
        return (landed.pipeline,)

    monkeypatch.setattr(facts, "_declared", refused)
    assert facts.overview().notes == ("login [redacted] refused",)


def test_the_way_names_route_shape_and_readers() -> None:
    pipeline = Pipeline(
        topic=Topic("orders", value="avro"),
        table=Table("shop.orders"),
        shape=Shape(where="amount > 3", mask={"card": Redact()}),
    )
    status = replace(status_of(pipeline, None), read_per_second=12.0, rows=5, bytes=10, data_files=1)
    way, aside = way_of(pipeline, status, ["Spark SQL", "Trino", "DuckDB", "Athena"])
    assert [one.kind for one in way] == ["topic", "transform", "table", "readers"]
    assert way[1].lines == ("where amount > 3", "masks card")
    assert way[1].arrives == "12.0/s"
    assert way[-1].lines[-1] == "and 1 more"
    assert aside.title == "not known"
    for drawn in (wide(way, aside), tall(way, aside)):
        assert (len(drawn.boxes), len(drawn.lines)) == (5, 4)
        for box in drawn.boxes:
            assert 0 <= box.x <= drawn.width - 196
            assert 0 <= box.y <= drawn.height - box.height


def test_a_plot_has_steps_and_short_labels() -> None:
    made = plot("Rows", [(0, 0), (3600, 1500), (7200, 1832)], lambda count: number(count))
    assert made is not None
    assert [text for _, text in made.values] == ["0", "1,000", "2,000"]
    assert [text for _, _, text in made.times] == ["00:00", "02:00"]
    assert len(made.dots) == 3
    assert plot("Rows", [(5, 1)], number) is None
    flat = plot("Files", [(0, 0), (100_000, 0)], number)
    assert flat is not None
    assert [text for _, _, text in flat.times] == ["Jan 01", "Jan 02"]


def test_each_engine_of_the_catalog_has_a_query_without_a_login(landed: Landed) -> None:
    local = engine_queries(landed.pipeline, landed.environment, "test", "file:/a/it's.json")
    assert [one.engine for one in local] == ["frazil query", "Spark SQL", "PyIceberg", "DuckDB", "Trino"]
    assert "iceberg_scan('/a/it''s.json')" in local[3].text
    assert local[0].text == "frazil query orders --env test"
    glue = replace(landed.environment, catalog=GlueCatalog(warehouse="s3://lake/w", region="eu-central-1"))
    engines = {one.engine for one in engine_queries(landed.pipeline, glue, "prod", "s3://m.json")}
    assert {"Athena", "Snowflake", "Databricks", "ClickHouse"} <= engines
