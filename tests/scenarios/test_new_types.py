"""New types of a routed topic: each becomes a table of its own, from its first record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from frazil.audit.topic_tables import TopicVerification, verify_topic
from frazil.clients.registry.client import Registry
from frazil.clients.registry.schemas import SchemaType
from frazil.clients.secrets import Secrets
from frazil.declaration import (
    Append,
    Avro,
    Format,
    JsonSchema,
    Pipeline,
    Protobuf,
    RecordName,
    Table,
    Target,
    Text,
    Topic,
    TypePattern,
    Upsert,
    WriteMode,
    routes,
)
from frazil.errors import DeadLetterTableMismatch, InvalidInput, OtherPipeline, RegistryUnavailable, RejectedRecords
from frazil.exit_codes import Exit, exit_of
from frazil.ingest import runner
from frazil.ingest.guard import Outcome
from frazil.job.matched_topics import Matched, MatchedTopics
from frazil.lake.read.stored_tables import Lake
from frazil.recovery.decisions import Accepted
from tests.scenarios.test_follow import Following
from tests.support import oracle
from tests.support.jobs import Crash, crash_at
from tests.support.keyed_topic import record
from tests.support.proto import framed, protobuf
from tests.support.shop import Shop, ShopOf, avro, frame
from tests.support.variants import first_short

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


class Events:
    """A topic with records of several types, and a route that makes a table of each type `shop.events.*`."""

    def __init__(
        self, shop: Shop, *, form: Format | None = None, rest: str = "land", is_new: bool = True, **shared: Any
    ) -> None:
        self.shop, self.form = shop, form or Avro(subject_strategy="topic_record")
        self.topic = Topic(shop.topic, value=self.form, key=Text())
        to: dict[str | tuple[str, ...], Target | Table | str] = {"shop.events.Placed": self.table("fixed_placed")}
        if is_new:
            to["shop.events.*"] = f"shop.{shop.topic}_{{name}}"
        otherwise = self.table("fixed_other") if rest == "land" else rest
        every = routes(self.topic, by=RecordName(), to=to, otherwise=otherwise, **{"on_error": "dead_letter", **shared})
        self.declared = [one for one in every if isinstance(one, Pipeline)]
        self.patterns = [one for one in every if isinstance(one, TypePattern)]
        self.ids: dict[str, int] = {}
        self._text: dict[str, str] = {}
        self.register("shop.events.Placed")

    def table(self, of: str) -> Table:
        return Table(f"shop.{self.shop.topic}_{of}")

    def register(self, name: str, subject: str = "") -> int:
        """Register the schema of a type; its fields are `id` and one of its own name."""
        own, kind = f"only_{name.rpartition('.')[2].lower()}", SchemaType.AVRO
        if isinstance(self.form, Avro):
            text = json.dumps(record(name, id="long", **{own: ["null", "string"]}))
        elif isinstance(self.form, JsonSchema):
            fields = {"id": {"type": "integer"}, own: {"type": "string"}}
            text, kind = json.dumps({"title": name, "type": "object", "properties": fields}), SchemaType.JSON
        else:
            package, _, message = name.rpartition(".")
            fields_text = f"int64 id = 1; string {own} = 2;"
            text, kind = (
                f'syntax = "proto3"; package {package}; message {message} {{ {fields_text} }}',
                SchemaType.PROTOBUF,
            )
        schema_id = self.shop.registry_admin.register(subject or f"{self.shop.topic}-{name}", text, kind)
        self.ids[name] = schema_id
        self._text[name] = text
        return schema_id

    def produce(self, name: str, numbers: Sequence[int], *, key: bytes | None = None) -> None:
        """Produce records of a type, which is registered if it is not."""
        schema_id = self.ids.get(name) or self.register(name)
        for number in numbers:
            row: dict[str, Any] = {"id": number, f"only_{name.rpartition('.')[2].lower()}": name}
            if isinstance(self.form, Avro):
                value = frame(schema_id, avro(json.loads(self._text[name]), row))
            elif isinstance(self.form, JsonSchema):
                value = frame(schema_id, json.dumps(row).encode())
            else:
                value = framed(schema_id, protobuf(self._text[name], {**row, "id": str(number)}))
            self.shop.produce([value], key=key or b"k%d" % number)

    def matched(self) -> MatchedTopics:
        """Return the types that the registry has."""
        lake, registry = Lake(self.shop.lake, Secrets({}).read), self.shop.registry()
        return MatchedTopics(self.patterns, self.declared, lake, tuple, subjects=registry.subjects)

    def drain(self, **overrides: Any) -> dict[str, Outcome]:
        """Land all records by one run."""
        shop = self.shop
        return runner.drain(
            self.declared,
            shop.job(**overrides),
            shop.registry(),
            shop.events.append,
            topics=self.matched(),
            probe=False,
        )

    def pipeline(self, name: str) -> Pipeline:
        return self.patterns[0].pipeline_of(self.shop.topic, name)

    def found(self, pipeline: Pipeline | str, *, deep: bool = True) -> list[int]:
        """Return the ids in the table of a type, or of a pipeline, which is proven."""
        chosen = self.pipeline(pipeline) if isinstance(pipeline, str) else pipeline
        self.shop.assert_proven(chosen, deep=deep)
        return sorted(row["id"] for row in oracle.rows(self.shop.lake, chosen.table.identifier))

    def proof(self) -> TopicVerification:
        """Compare all tables of the route, as `frazil verify --topic` does."""
        lake, live = Lake(self.shop.lake, Secrets({}).read), self.matched().look()
        return verify_topic([*self.declared, *live.pipelines], lake)

    def assert_complete(self) -> None:
        """Assert that each record is in one table, or one dead letter."""
        proof = self.proof()
        assert (proof.outcome, proof.is_complete, proof.offsets) == ("proven", True, len(self.shop.journal)), proof
        assert proof.landed + proof.dead_lettered + proof.nowhere == proof.offsets


def fine(ended: dict[str, Outcome]) -> dict[str, Outcome]:
    assert not (errors := {name: str(one.error) for name, one in ended.items() if one.error}), errors
    return ended


def test_each_new_type_is_a_table_and_no_record_lands_in_two(shop_of: ShopOf) -> None:
    events = Events(shop_of(partitions=2))
    placed, other = events.declared
    for name, numbers in (("Placed", [1, 2]), ("Paid", [3, 4, 5]), ("Sent", [6])):
        events.produce(f"shop.events.{name}", numbers)
    events.produce("else.Where", [7, 8])
    events.shop.produce([b"no frame"], key=b"k9")
    ended = fine(events.drain())
    topic = events.shop.topic
    assert sorted(ended) == sorted(f"{topic}_{of}" for of in ("fixed_placed", "fixed_other", "paid", "sent"))
    assert (events.found(placed), events.found(other)) == ([1, 2], [7, 8])
    assert (events.found("shop.events.Paid"), events.found("shop.events.Sent")) == ([3, 4, 5], [6])
    assert ended[f"{topic}_fixed_other"].total.filtered == {"route": 6}
    assert events.shop.seen("types_matched")[0]["types"] == 2
    assert set(oracle.rows(events.shop.lake, f"shop.{topic}_sent")[0]) & {"only_paid", "only_sent"} == {"only_sent"}
    events.assert_complete()
    events.produce("shop.events.Back", [9, 10])
    events.produce("shop.events.Paid", [11])
    fine(events.drain())
    assert (events.found("shop.events.Back"), events.found("shop.events.Paid")) == ([9, 10], [3, 4, 5, 11])
    events.assert_complete()


def test_a_type_that_is_registered_while_the_run_goes_on_joins_from_its_first_record(shop_of: ShopOf) -> None:
    events = Events(shop_of())
    events.produce("shop.events.Placed", [1])
    with Following(events.shop, topics=events.matched(), declared=events.declared) as run:
        run.until("batch_committed", pipeline=events.declared[0].name)
        for number, name in enumerate(("First", "Second")):
            events.produce(f"shop.events.{name}", [10 * number, 10 * number + 1])
            run.until("batch_committed", pipeline=events.pipeline(f"shop.events.{name}").name)
        events.produce("shop.events.First", [5])
        run.until("batch_committed", 2, pipeline=events.pipeline("shop.events.First").name)
    fine(events.drain())
    assert (events.found("shop.events.First"), events.found("shop.events.Second")) == ([0, 1, 5], [10, 11])
    assert events.found(events.declared[1]) == []
    events.assert_complete()


@pytest.mark.parametrize("write", first_short([Upsert(), Append()]))
@pytest.mark.parametrize("form", first_short([JsonSchema, Protobuf, Avro]))
def test_types_of_each_format_and_write_mode(shop_of: ShopOf, form: Any, write: WriteMode) -> None:
    events = Events(shop_of(partitions=1), form=form(subject_strategy="topic_record"), write=write)
    events.produce("shop.events.Paid", [1, 2])
    events.produce("shop.events.Sent", [1], key=b"k2")
    events.produce("else.Where", [4])
    fine(events.drain())
    events.shop.produce([None], key=b"k2")
    events.produce("shop.events.Paid", [1, 3])
    fine(events.drain())
    is_state = write == Upsert()
    assert events.found("shop.events.Paid") == ([1, 3] if is_state else [1, 1, 2, 3])
    assert events.found("shop.events.Sent") == ([] if is_state else [1])
    assert events.found(events.declared[1]) == [4]
    if not is_state:
        events.assert_complete()
    assert events.proof().outcome == "proven"


def test_types_of_one_table_and_more_than_the_bound_stop_alone(shop_of: ShopOf) -> None:
    events = Events(shop_of(), most=2)
    events.produce("shop.events.a.Paid", [1])
    events.produce("shop.events.Sent", [2])
    fine(events.drain())
    events.produce("shop.events.b.Paid", [3])
    events.produce("shop.events.Back", [4])
    events.produce("shop.events.Sent", [5])
    topic = events.shop.topic
    for _ in range(2):
        ended = events.drain()
        errors = {name: str(one.error) for name, one in ended.items() if one.error}
        assert sorted(errors) == [f"topic {topic}, type shop.events.{name}" for name in ("Back", "b.Paid")]
        assert (
            "the pattern shop.events.* matches 4 types, and most is 2"
            in errors[f"topic {topic}, type shop.events.Back"]
        )
    (pattern,) = Events(events.shop, most=9).patterns
    events.patterns = [pattern]
    ended = events.drain()
    (error,) = (one.error for one in ended.values() if one.error)
    assert isinstance(error, InvalidInput)
    assert f"the types shop.events.b.Paid and shop.events.a.Paid would both have the table shop.{topic}_paid" in str(
        error
    )
    assert "Name shop.events.b.Paid in `to`, with another table" in str(error)
    assert (events.found("shop.events.Back"), events.found("shop.events.Sent")) == ([4], [2, 5])
    assert events.found("shop.events.a.Paid") == [1]
    proof = events.proof()
    assert (proof.outcome, [one.flaw for one in proof.findings]) == ("not_proven", ["missing"])


def test_a_type_with_a_table_stays_one_though_its_subject_is_deleted(shop_of: ShopOf) -> None:
    events = Events(shop_of())
    events.produce("shop.events.Paid", [1])
    fine(events.drain())
    paid, subject = events.pipeline("shop.events.Paid"), f"{events.shop.topic}-shop.events.Paid"
    events.produce("shop.events.Paid", [2])
    events.shop.registry_admin.delete_subject(subject)
    assert fine(events.drain())[paid.name].total.waiting == f"waiting for a schema in subject {subject}"
    events.register("shop.events.Paid")
    fine(events.drain())
    assert (events.found(paid), events.found(events.declared[1])) == ([1, 2], [])
    events.shop.registry_admin.delete_subject(subject)
    events.shop.registry_admin.delete_subject(subject, permanent=True)
    assert [one.name for one in events.matched().look().pipelines] == [paid.name]


def test_a_type_that_comes_after_retention_is_compared_from_where_its_table_begins(shop_of: ShopOf) -> None:
    events = Events(shop_of(partitions=1))
    events.produce("shop.events.Placed", [1, 2, 3])
    fine(events.drain())
    events.shop.delete_records(2)
    events.produce("shop.events.Paid", [4, 5])
    fine(events.drain())
    assert (events.found(events.declared[0]), events.found("shop.events.Paid")) == ([1, 2, 3], [4, 5])
    proof = events.proof()
    assert (proof.outcome, proof.is_complete, proof.offsets, proof.landed) == ("proven", True, 3, 3)


def test_a_partition_without_records_is_the_same_in_all_tables(shop_of: ShopOf) -> None:
    events = Events(shop_of(partitions=1))
    events.produce("shop.events.Placed", range(4))
    fine(events.drain())
    events.shop.add_partitions(2)
    events.register("shop.events.Later")
    fine(events.drain())
    events.assert_complete()


def test_a_record_whose_schema_is_registered_later_is_a_row_and_a_dead_letter_of_others(shop_of: ShopOf) -> None:
    events = Events(shop_of(partitions=1))
    own = {f"of_{events.shop.topic}": ["null", "string"]}  # the registry gives the same schema the same id
    probe, foreign = (record(f"shop.events.{name}", id="long", **own) for name in ("Probe", "Later"))
    events.register("shop.events.Paid")
    schema_id = events.shop.registry_admin.register(f"{events.shop.topic}-shop.events.Probe", json.dumps(probe)) + 1
    events.shop.produce([frame(schema_id, avro(foreign, {"id": 5}))])
    fine(events.drain())
    subject = f"{events.shop.topic}-shop.events.Later"
    assert events.shop.registry_admin.register(subject, json.dumps(foreign)) == schema_id
    fine(events.drain())
    assert events.found("shop.events.Later") == [5]
    proof = events.proof()
    assert (proof.outcome, proof.offsets, proof.landed, proof.also_landed) == ("proven", 1, 1, 1)
    assert proof.dead_lettered - proof.repeated - proof.also_landed == 0


def test_a_type_of_another_topics_subject_lands_once_its_own_is_registered(shop_of: ShopOf) -> None:
    events = Events(shop_of())
    foreign = events.register("shop.events.Paid", f"another-{events.shop.topic}-value")
    events.produce("shop.events.Paid", [1])
    fine(events.drain())
    assert events.found(events.declared[1]) == []
    assert events.proof().findings[0].flaw == "missing"
    assert events.register("shop.events.Paid") == foreign
    fine(events.drain())
    assert events.found("shop.events.Paid") == [1]
    events.assert_complete()


@pytest.mark.parametrize("step", first_short(["publish.committed", "stage.done", "plan.done", "stage.written"]))
def test_a_driver_that_dies_at_a_new_type(shop_of: ShopOf, step: str) -> None:
    events = Events(shop_of(partitions=1), on_error="dead_letter")
    events.produce("shop.events.Placed", [1])
    fine(events.drain())
    events.produce("shop.events.Paid", range(2, 6))
    events.shop.produce([b"no frame"], key=b"k9")
    with pytest.raises(Crash):
        events.shop.drain(events.pipeline("shop.events.Paid"), failpoint=crash_at(step))
    twin = events.shop.ingestion(events.pipeline("shop.events.Paid"))
    events.produce("shop.events.Paid", [7])
    twin.drain()
    with pytest.raises(Crash):
        events.shop.drain(events.declared[1], failpoint=crash_at(step))
    fine(events.drain())
    assert events.found("shop.events.Paid") == [2, 3, 4, 5, 7]
    events.assert_complete()


def test_a_table_that_is_dropped_or_rolled_back_gets_its_records_again(shop_of: ShopOf) -> None:
    events = Events(shop_of(partitions=1))
    shop = events.shop
    for numbers in ([1, 2], [3, 4]):
        events.produce("shop.events.Paid", numbers)
        events.produce("shop.events.Sent", numbers)
        fine(events.drain())
    for identifier in events.pipeline("shop.events.Paid").tables:
        shop.spark.sql(f"DROP TABLE {shop.lake.catalog.name}.{identifier} PURGE")
    shop.pipeline = events.pipeline("shop.events.Sent")
    shop.roll_back()
    ended = events.drain()
    assert [name for name, one in ended.items() if one.error] == [shop.pipeline.name]
    shop.accept(Accepted.ROLLED_BACK_REPLAY)
    fine(events.drain())
    assert (events.found("shop.events.Paid"), events.found("shop.events.Sent")) == ([1, 2, 3, 4], [1, 2, 3, 4])
    events.assert_complete()


def test_a_pattern_that_is_added_begins_at_the_beginning_and_the_proof_says_so(shop_of: ShopOf) -> None:
    shop = shop_of()
    before = Events(shop, is_new=False)
    before.produce("shop.events.Paid", [1, 2])
    fine(before.drain())
    assert before.found(before.declared[1]) == [1, 2]
    events = Events(shop)
    events._text, events.ids = before._text, before.ids
    events.produce("shop.events.Paid", [3])
    fine(events.drain())
    assert events.found(events.declared[1], deep=False) == [1, 2]
    assert events.found("shop.events.Paid") == [1, 2, 3]
    proof = events.proof()
    assert [one.flaw for one in proof.findings] == ["not_compared"]
    assert "was changed" in proof.findings[0].what


def test_a_run_waits_for_a_registry_that_does_not_answer(shop_of: ShopOf) -> None:
    events = Events(shop_of())
    events.produce("shop.events.Paid", [1])
    matched = events.matched()
    answers, ask = iter([RegistryUnavailable("it does not answer", where="registry", do="Start it")]), matched._subjects

    def subjects(*, deleted: bool) -> Sequence[str]:
        if error := next(answers, None):
            raise error
        assert ask is not None
        return [*ask(deleted=deleted)]

    matched._subjects = subjects
    with Following(events.shop, topics=matched, declared=events.declared) as run:
        run.until("service_unavailable", pipeline="patterns[0]")
        run.until("batch_committed", pipeline=events.pipeline("shop.events.Paid").name)
    assert events.found("shop.events.Paid") == [1]


def test_without_a_registry_the_types_with_tables_are_known(shop_of: ShopOf) -> None:
    events = Events(shop_of())
    events.produce("shop.events.Paid", [1])
    fine(events.drain())
    events.register("shop.events.Sent")
    lake = Lake(events.shop.lake, Secrets({}).read)
    found: Matched = MatchedTopics(events.patterns, events.declared, lake, tuple).look()
    assert found.pipelines == ()
    assert found.gone == (events.pipeline("shop.events.Paid"),)


def test_a_drain_without_the_registry_ends_as_a_service_that_is_away(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(self: Registry, *, deleted: bool = False) -> Sequence[str]:
        raise RegistryUnavailable("it does not answer", where="registry", do="Start it")

    events = Events(shop_of())
    monkeypatch.setattr(Registry, "subjects", away)
    with pytest.raises(RegistryUnavailable) as raised:
        events.drain()
    assert exit_of(raised.value) is Exit.SERVICE_UNAVAILABLE


@pytest.mark.parametrize("on_error", ["dead_letter", "suspend"])
def test_a_record_of_an_unknown_id_is_one_of_each_new_type(shop_of: ShopOf, on_error: str) -> None:
    events = Events(shop_of(partitions=1), on_error=on_error, max_rejected_percent=100)
    events.shop.produce([frame(999_999, b"")])
    events.produce("shop.events.Paid", [1])
    ended = events.drain()
    names = [one.name for one in (*events.declared, events.pipeline("shop.events.Paid"))]
    if on_error == "suspend":
        assert {name for name, one in ended.items() if isinstance(one.error, RejectedRecords)} == {*names}
    else:
        assert [dict(fine(ended)[name].total.rejected) for name in names] == [{"unknown_schema": 1}] * 3
        assert events.found("shop.events.Paid") == [1]


def test_a_schema_of_keys_makes_no_column_and_its_records_are_dead_letters(shop_of: ShopOf) -> None:
    events = Events(shop_of(partitions=1), max_rejected_percent=100)
    shop, (_, other) = events.shop, events.declared
    schema_id = shop.registry_admin.register(f"{shop.topic}-key", '"string"')
    shop.produce([frame(schema_id, b"\x02x")])
    events.produce("else.Where", [1])
    late = record("else.Late", id="long", value="long")
    late_id = shop.registry_admin.register(f"{shop.topic}-else.Late", json.dumps(late))
    shop.produce([frame(late_id, avro(late, {"id": 2, "value": 3}))])
    ended = fine(events.drain())
    assert [dict(ended[one.name].total.rejected) for one in events.declared] == [{}, {"foreign_schema": 1}]
    assert events.found(other) == [1, 2]
    assert [row["value"] for row in oracle.rows(shop.lake, other.table.identifier)] == [None, 3]
    events.assert_complete()


def test_a_table_of_other_types_waits_while_the_topic_has_keys_alone(shop_of: ShopOf) -> None:
    events = Events(shop_of(partitions=1), write=Upsert(key="id"))
    events.shop.registry_admin.register(f"{events.shop.topic}-key", '"string"')
    waits = fine(events.drain())[events.declared[1].name].total.waiting
    assert waits == f"waiting for a schema in subject {events.shop.topic}-<record name>"


def test_a_pipeline_goes_on_in_no_table_of_another_type(shop_of: ShopOf) -> None:
    events = Events(shop_of(partitions=1))
    events.produce("shop.events.b.Paid", [1])
    waits = events.pipeline("shop.events.a.Paid")
    fine(events.drain())
    events.produce("shop.events.a.Paid", [2])
    error = events.shop.ended(waits).error
    assert isinstance(error, OtherPipeline)
    assert "the table is that of type shop.events.b.Paid, and not of shop.events.a.Paid" in str(error)
    assert "Name shop.events.a.Paid in `to`, with another table" in str(error)
    assert events.found("shop.events.b.Paid") == [1]


def test_a_type_that_takes_a_dropped_table_keeps_the_dead_letters_of_the_other(shop_of: ShopOf) -> None:
    events = Events(shop_of(partitions=1), max_rejected_percent=100)
    events.produce("shop.events.b.Paid", [1])
    events.shop.produce([frame(events.ids["shop.events.b.Paid"], b"")])
    fine(events.drain())
    events.produce("shop.events.a.Paid", [11, 12])
    events.drain()
    table = events.pipeline("shop.events.b.Paid").table
    events.shop.spark.sql(f"DROP TABLE {events.shop.lake.catalog.name}.{table.identifier} PURGE")
    errors = [one.error for one in events.drain().values() if one.error is not None]
    assert {type(one) for one in errors} == {DeadLetterTableMismatch, InvalidInput}
    assert len(oracle.rows(events.shop.lake, table.dead_letters)) == 1


def test_a_type_whose_table_another_one_waits_for_is_named_until_the_next_run(shop_of: ShopOf) -> None:
    events = Events(shop_of())
    events.register("shop.events.zz.Paid")
    events.shop.registry_admin.delete_subject(f"{events.shop.topic}-shop.events.zz.Paid")
    with Following(events.shop, topics=events.matched(), declared=events.declared) as run:
        run.until("idle", pipeline=events.pipeline("shop.events.zz.Paid").name)
        events.produce("shop.events.a.Paid", [1])
        run.until("pipeline_failed", pipeline=f"topic {events.shop.topic}, type shop.events.a.Paid")
    fine({name: one for name, one in events.drain().items() if "zz" not in name})
    assert events.found("shop.events.a.Paid") == [1]
