"""Records of several types in one topic: each is in one table, whatever says of which type it is."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Barrier, get_ident
from typing import Any

import pytest

from frazil.audit.topic_tables import TopicVerification, families, verify_topic
from frazil.clients.registry.schemas import SchemaType
from frazil.clients.secrets import Secrets
from frazil.declaration import (
    Append,
    Avro,
    Field,
    Header,
    Json,
    JsonSchema,
    Pipeline,
    Protobuf,
    RecordName,
    Redact,
    Route,
    Shape,
    Table,
    Target,
    Text,
    Topic,
    Upsert,
    WriteMode,
    routes,
)
from frazil.errors import InvalidInput, KeysMissing, OffsetsLost, RolledBack, TooManyRejected, TopicRecreated
from frazil.ingest.batch import routed_read, staging
from frazil.ingest.batch.routed_read import RoutedRead
from frazil.ingest.preview.preview import preview
from frazil.job import shared_reads
from frazil.lake import prepared_plan
from frazil.lake.read.stored_tables import Lake
from frazil.recovery.decisions import Accepted
from tests.scenarios.test_one_read import kept
from tests.support import oracle
from tests.support.jobs import Crash, crash_at
from tests.support.keyed_topic import record
from tests.support.proto import framed, protobuf
from tests.support.shop import Shop, ShopOf, avro, frame
from tests.support.variants import first_short

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
COLUMNS = ("type string", "id long", "amount double", "ref struct<kind: string>")


def table(shop: Shop, of: str) -> Table:
    return Table(f"shop.{shop.topic}_{of}")


def by_field(shop: Shop, **options: Any) -> tuple[Pipeline, ...]:
    """Return pipelines of a topic in JSON: `placed` and `paid`, and those of `options`."""
    topic = Topic(shop.topic, value=Json(columns=COLUMNS), key=Text())
    to = {"placed": table(shop, "placed"), ("paid", "refunded"): table(shop, "paid"), **options.pop("to", {})}
    return routes(topic, **{"by": Field("type"), "to": to, **options})


def row(type_: str | None, number: int, **more: Any) -> bytes:
    return json.dumps({"type": type_, "id": number, **more}).encode()


def ids(shop: Shop, pipeline: Pipeline) -> list[int]:
    return sorted(row["id"] for row in oracle.rows(shop.lake, pipeline.table.identifier))


def dead(shop: Shop, pipeline: Pipeline) -> dict[str, int]:
    return dict(Counter(letter["reason"] for letter in oracle.rows(shop.lake, pipeline.table.dead_letters)))


def drained(shop: Shop, pipelines: Sequence[Pipeline], *, deep: bool = False) -> list[Mapping[str, int]]:
    """Land all records by one run; return what each pipeline filtered. All are proven."""
    found = shop.drained(*pipelines)
    for pipeline in pipelines:
        assert found[pipeline.name].error is None, found[pipeline.name].error
        shop.assert_proven(pipeline, deep=deep)
    return [dict(found[pipeline.name].total.filtered) for pipeline in pipelines]


def together(shop: Shop, pipelines: Sequence[Pipeline]) -> TopicVerification:
    return verify_topic(pipelines, Lake(shop.lake, Secrets({}).read))


def once(shop: Shop, pipelines: Sequence[Pipeline]) -> list[tuple[int, int]]:
    """Return the places of all rows and dead letters of these pipelines, none of which is there twice."""
    names = [name for pipeline in pipelines for name in pipeline.tables]
    found = [place for name in names for place in oracle.places(shop.lake, name)]
    assert len(found) == len({*found}), Counter(found).most_common(3)
    return sorted(found)


def test_records_land_in_the_table_of_their_type_and_others_in_the_last(shop_of: ShopOf) -> None:
    shop = shop_of()
    pipelines = by_field(shop, otherwise=table(shop, "other"))
    types = ["placed", "paid", "refunded", "unknown", None, "placed", "Paid"]
    shop.produce([row(type_, number) for number, type_ in enumerate(types)])
    shop.produce([b"{", b"\xff", None])
    assert drained(shop, pipelines, deep=True) == [{"route": 8}, {"route": 8}, {"route": 4}]
    assert [ids(shop, one) for one in pipelines] == [[0, 5], [1, 2], [3, 4, 6]]
    assert [dead(shop, one) for one in pipelines] == [{}, {}, {"undecodable": 2, "tombstone": 1}]
    assert once(shop, pipelines) == sorted(shop.journal)


@pytest.mark.parametrize("otherwise", ["dead_letter", "filter"])
def test_records_of_no_declared_type_are_dead_letters_of_the_first_table_or_filtered(
    shop_of: ShopOf, otherwise: str
) -> None:
    shop = shop_of()
    pipelines = by_field(shop, otherwise=otherwise)
    shop.produce([row(type_, number) for number, type_ in enumerate(["placed", "paid", "x", None])])
    shop.produce([b"{", None])
    is_filter = otherwise == "filter"
    assert drained(shop, pipelines) == [{"route": 3 if is_filter else 1}, {"route": 5}]
    rejected = {"undecodable": 1, "tombstone": 1}
    assert dead(shop, pipelines[0]) == (rejected if is_filter else {**rejected, "unrouted": 2})
    assert dead(shop, pipelines[1]) == {}
    assert len(once(shop, pipelines)) == (4 if is_filter else 6)


def test_a_header_decides_before_a_value_is_decoded(shop_of: ShopOf) -> None:
    shop = shop_of()
    pipelines = by_field(shop, by=Header("ce_type"), otherwise=table(shop, "other"))
    for number, headers in enumerate(
        [
            [("ce_type", b"placed")],
            [("ce_type", b"paid")],
            [("ce_type", b"placed"), ("ce_type", b"refunded")],
            [("ce_type", None)],
            [("ce_type", b"\xff\xfe")],
            [("other", b"placed")],
        ]
    ):
        shop.produce([row("ignored", number)], headers=headers)
    shop.produce([b"{"], headers=[("ce_type", b"paid")])
    assert drained(shop, pipelines) == [{"route": 6}, {"route": 4}, {"route": 4}]
    assert [ids(shop, one) for one in pipelines] == [[0], [1, 2], [3, 4, 5]]
    assert [dead(shop, one) for one in pipelines] == [{}, {"undecodable": 1}, {}]
    assert once(shop, pipelines) == sorted(shop.journal)


def test_a_record_without_a_value_is_a_delete_of_each_table_with_a_key(shop_of: ShopOf) -> None:
    shop = shop_of()
    to = {
        "user": Target(table(shop, "users"), write=Upsert()),
        "device": Target(table(shop, "devices"), write=Upsert()),
    }
    placed, _, users, devices = pipelines = by_field(shop, to=to)
    for number, type_ in enumerate(["user", "device", "user", "placed"]):
        shop.produce([row(type_, number)], key=b"k%d" % number, partition=0)
    shop.produce([row("device", 20)], key=b"k2", partition=0)  # the key's type changes: its row stays where it is, too
    drained(shop, pipelines)
    assert [ids(shop, one) for one in (users, devices)] == [[0, 2], [1, 20]]
    for key in (b"k0", b"k2", b"k3"):
        shop.produce([None], key=key, partition=0)
    drained(shop, pipelines, deep=True)
    assert [ids(shop, one) for one in (users, devices)] == [[], [1]]
    assert [dead(shop, one) for one in pipelines] == [{}, {}, {}, {}]
    assert ids(shop, placed) == [3]


EVENTS = {
    name: record(f"shop.{name}", id="long", name=["null", "string"]) for name in ("Placed", "Paid", "Other", "Third")
}


def by_name(shop: Shop, **options: Any) -> tuple[Pipeline, ...]:
    topic = Topic(shop.topic, value=Avro(subject_strategy="topic_record"))
    to = {f"shop.{name}": table(shop, name.lower()) for name in ("Placed", "Paid")}
    return routes(topic, **{"by": RecordName(), "to": to, **options})


def registered(shop: Shop, name: str, subject: str = "") -> int:
    return shop.registry_admin.register(subject or f"{shop.topic}-shop.{name}", json.dumps(EVENTS[name]))


def event(schema_id: int, name: str, number: int) -> bytes:
    return frame(schema_id, avro(EVENTS[name], {"id": number, "name": name}))


@pytest.mark.parametrize("rest", first_short(["land", "dead_letter", "filter"]))
def test_the_name_in_its_schema_decides_before_a_record_is_decoded(shop_of: ShopOf, rest: str) -> None:
    shop = shop_of()
    pipelines = by_name(shop, otherwise=table(shop, "other") if rest == "land" else rest)
    schema_ids = {name: registered(shop, name) for name in ("Placed", "Paid", "Other")}
    names = ["Placed", "Paid", "Other", "Paid", "Placed", "Placed"]
    shop.produce([event(schema_ids[name], name, number) for number, name in enumerate(names)])
    shop.produce([b"no frame"])
    filtered = drained(shop, pipelines, deep=True)
    assert [ids(shop, one) for one in pipelines[:2]] == [[0, 4, 5], [1, 3]]
    assert shop.seen("schema_looked_up") == []
    if rest == "land":
        assert filtered == [{"route": 4}, {"route": 5}, {"route": 5}]
        assert ids(shop, pipelines[2]) == [2]
    else:
        assert filtered == [{"route": 3 if rest == "filter" else 2}, {"route": 5}]
    of_first = {"wrong_magic": 1} if rest != "dead_letter" else {"wrong_magic": 1, "foreign_schema": 1}
    owner = pipelines[-1] if rest == "land" else pipelines[0]
    assert [dead(shop, one) for one in pipelines] == [of_first if one is owner else {} for one in pipelines]


def test_an_id_that_the_registry_does_not_know_may_be_any_tables(shop_of: ShopOf) -> None:
    shop = shop_of()
    pipelines = by_name(shop)
    registered(shop, "Placed"), registered(shop, "Paid")
    shop.produce([event(999_999, "Placed", 1)])
    drained(shop, pipelines)
    assert [dead(shop, one) for one in pipelines] == [{"unknown_schema": 1}, {"unknown_schema": 1}]


def test_a_schema_that_is_registered_for_a_table_later_was_never_anothers(shop_of: ShopOf) -> None:
    """A type's records are its table's even while only a subject of another topic has their schema."""
    shop = shop_of()
    placed, paid = pipelines = by_name(shop)
    registered(shop, "Placed")
    foreign = registered(shop, "Paid", f"another-{shop.topic}-value")
    shop.produce([event(foreign, "Paid", 1)])
    registered(shop, "Paid", f"{shop.topic}-shop.Paid2")
    found = shop.drained(placed)
    assert (found[placed.name].error, found[placed.name].total.filtered) == (None, {"route": 1})
    assert registered(shop, "Paid") == foreign
    drained(shop, pipelines)
    assert ids(shop, paid) == [1]


def test_a_schema_that_is_registered_for_another_table_while_a_run_goes_on(shop_of: ShopOf) -> None:
    """The run learns of it with the first record that has it, which is no dead letter of the table of the others."""
    shop = shop_of()
    _, paid, other = pipelines = by_name(shop, otherwise=table(shop, "other"))
    schema_ids = {name: registered(shop, name) for name in ("Placed", "Other")}
    shop.produce([event(schema_ids["Other"], "Other", 1)])
    run = shop.ingestion(other)
    run.drain()
    shop.produce([event(registered(shop, "Paid"), "Paid", 2)])
    run.drain()
    assert run.total.filtered == {"route": 1}
    drained(shop, pipelines)
    assert [dead(shop, one) for one in pipelines] == [{}, {}, {}]
    assert (ids(shop, paid), ids(shop, other)) == ([2], [1])


def test_preview_says_which_records_are_another_tables(shop_of: ShopOf) -> None:
    shop = shop_of()
    placed, _ = by_field(shop)
    shop.produce([row("placed", 1), row("paid", 2), row("x", 3)], partition=0)
    found = preview(placed, shop.job(), shop.registry(), count=10)
    assert [one.values["id"] for one in found.rows] == [1]
    assert [(one.reason, one.is_skipped) for one in found.rejected] == [("unrouted", False), ("route", True)]


def test_where_is_asked_of_the_tables_own_records_only(shop_of: ShopOf) -> None:
    shop = shop_of()
    shaped = Target(
        table(shop, "large"),
        write=Upsert(),
        shape=Shape(where="amount > 10", select="* except (ref)", mask={"type": Redact()}),
    )
    *_, large = pipelines = by_field(shop, to={"order": shaped})
    for number, type_ in enumerate(["order", "order", "placed", "paid", "order"]):
        shop.produce([row(type_, number, amount=20.0 if number else 1.0)], key=b"k%d" % number, partition=0)
    assert drained(shop, pipelines)[2] == {"route": 2}  # one that does not match is a delete of no row
    assert ids(shop, large) == [1, 4]
    assert {one["type"] for one in oracle.rows(shop.lake, large.table.identifier)} == {"***"}
    shop.produce([row("order", 4, amount=1.0)], key=b"k4", partition=0)  # it matches no more: a delete
    shop.produce([row("placed", 1, amount=1.0)], key=b"k1", partition=0)  # of another type: no delete
    drained(shop, pipelines, deep=True)
    assert ids(shop, large) == [1]


def test_a_nested_field_is_a_type_and_one_that_no_record_has_stops(shop_of: ShopOf) -> None:
    shop = shop_of()
    pipelines = by_field(shop, by=Field("REF.kind"))
    shop.produce([row(None, 1, ref={"kind": "placed"}), row(None, 2, ref={"kind": "paid"}), row(None, 3)])
    drained(shop, pipelines)
    assert [ids(shop, one) for one in pipelines] == [[1], [2]]
    for path, what in (("ref.none", "the rows have no field ref.none"), ("ref", "the field ref is not one value")):
        other = by_field(shop, by=Field(path), to={"z": table(shop, path[:3] + str(len(path)))})[-1]
        with pytest.raises(InvalidInput, match=f"shape.route: {what}"):
            shop.drain(other)
        assert not shop.job().iceberg.exists(other.table.identifier)


def test_a_record_of_two_tables_or_of_none_is_found(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    placed, paid, other = pipelines = by_field(shop, otherwise=table(shop, "other"))
    shop.produce([row("placed", 1), row("paid", 2), row("paid", 3), row("x", 4)])
    drained(shop, pipelines)
    proof = together(shop, pipelines)
    assert (proof.outcome, proof.offsets, proof.landed, proof.is_complete) == ("proven", 4, 4, True)
    # Each table by itself is right, as its declaration says: one takes types of another, then none takes them.
    assert isinstance(paid.shape.route, Route)
    both = replace(placed, table=table(shop, "both"), name=f"{shop.topic}_both", shape=paid.shape)
    shape = Shape(route=replace(paid.shape.route, types=("refunded",)))
    none = replace(paid, table=table(shop, "none"), name=f"{shop.topic}_none", shape=shape)
    drained(shop, (both, none))
    (finding,) = together(shop, (placed, paid, both, other)).findings
    assert (finding.flaw, finding.count, [str(one) for one in finding.ranges]) == ("doubled", 2, ["1 to 2"])
    (finding,) = together(shop, (placed, none, other)).findings
    assert (finding.flaw, finding.count, [str(one) for one in finding.ranges]) == ("missing", 2, ["1 to 2"])
    shop.produce([row("placed", 5)])
    drained(shop, (placed,))
    proof = together(shop, pipelines)  # the others are behind
    assert (proof.outcome, proof.offsets, proof.is_complete) == ("proven", 4, False)


def test_after_a_changed_route_or_another_topic_coordinates_prove_nothing(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    placed, paid, _ = pipelines = by_field(shop, otherwise=table(shop, "other"))
    shop.produce([row("placed", 1), row("x", 2)])
    drained(shop, pipelines)
    more = by_field(shop, to={"x": table(shop, "x")}, otherwise=table(shop, "other"))
    shop.produce([row("x", 3)])
    assert together(shop, more).waits == (f"{shop.topic}_x",)
    drained(shop, more)
    assert [ids(shop, one) for one in more] == [[1], [], [2, 3], [2]]
    (finding,) = together(shop, more).findings
    assert (finding.flaw, together(shop, more).exit_code) == ("not_compared", 5)
    assert "1 rows are of records that another table has, too: offsets 1" in finding.what
    shop.new_topic(1)
    for one in (placed, paid):
        assert isinstance(shop.drained(one)[one.name].error, TopicRecreated)
        shop.accept(Accepted.TOPIC_RECREATED, one)
    shop.produce([row("placed", 7)])
    drained(shop, (placed, paid))
    assert [one.flaw for one in together(shop, (placed, paid)).findings] == ["not_compared", "not_compared"]


def test_a_shared_write_mode_is_that_of_all_targets_without_one(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    to = {"log": Target(table(shop, "log"), write=Append())}
    placed, paid, log = pipelines = by_field(shop, to=to, write="upsert", on_error="dead_letter")
    assert (placed.write, paid.write, log.write) == (Upsert(), Upsert(), Append())
    shop.produce([row("placed", 1)], key=b"a")
    shop.produce([row("paid", 2)], key=b"b")
    shop.produce([row("log", 3)], key=b"b")
    for key, value in ((b"a", None), (b"b", b" null ")):
        shop.produce([value], key=key)
    drained(shop, pipelines, deep=True)
    assert [ids(shop, one) for one in pipelines] == [[], [], [3]]
    assert [dead(shop, one) for one in pipelines] == [{}, {}, {}]


def test_jsons_null_deletes_in_each_table_whatever_its_header(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    pipelines = by_field(shop, by=Header("type"), write=Upsert())
    for type_ in ("placed", "paid"):
        shop.produce([row(None, 1)], key=b"a", headers=[("type", type_.encode())])
    drained(shop, pipelines)
    assert [ids(shop, one) for one in pipelines] == [[1], [1]]
    shop.produce([b"null"], key=b"a", headers=[("type", b"paid")])
    drained(shop, pipelines, deep=True)
    assert [ids(shop, one) for one in pipelines] == [[], []]


def test_deletes_go_to_no_table_in_which_they_name_no_row(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    to = {
        "value": Target(table(shop, "value"), write=Upsert(key="id")),
        "order": Target(table(shop, "order"), write=Upsert(order_by="id")),
        "user": Target(table(shop, "user"), write=Upsert()),
    }
    *_, value, order, user = pipelines = by_field(shop, to=to)
    for number, type_ in enumerate(["value", "order", "user"]):
        shop.produce([row(type_, number)], key=b"k%d" % number)
        shop.produce([None], key=b"k%d" % number)
    drained(shop, pipelines, deep=True)
    assert [ids(shop, one) for one in (value, order, user)] == [[0], [1], []]


def test_the_limits_of_a_table_are_of_its_own_records(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    to = {"bad": Target(table(shop, "bad"), shape=Shape(select="cast(customer as int) as id"))}
    topic = Topic(shop.topic, value=Json(columns=("type string", "id long", "customer string")), key=Text())
    placed, bad = routes(topic, by=Field("type"), to={"placed": table(shop, "placed"), **to})
    shop.produce([row("bad", number, customer="x") for number in range(120)])
    shop.produce([row("placed", number) for number in range(900)])
    assert isinstance(shop.drained(bad)[bad.name].error, TooManyRejected)
    assert shop.drained(placed)[placed.name].error is None
    keyed = routes(
        topic, by=Field("type"), to={"bad": Target(table(shop, "keyed"), write=Upsert()), "placed": placed.table}
    )[0]
    shop.produce([row("placed", 1)])
    shop.new_topic(1)
    shop.produce([row("bad", 1), row("bad", 2)], key=None)
    shop.produce([row("placed", 3)], key=b"k")
    assert isinstance(shop.drained(keyed)[keyed.name].error, KeysMissing)


def test_no_table_of_a_route_keeps_bytes_that_another_one_masks(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    to = {"user": Target(table(shop, "users"), shape=Shape(mask={"ref.kind": Redact()}))}
    pipelines = by_field(shop, to=to)
    shop.produce([b'{"type": "user", "ref": {"kind": "ada"}', row("user", 1, ref={"kind": "ada"}), row("x", 2)])
    drained(shop, pipelines)
    letters = oracle.rows(shop.lake, pipelines[0].table.dead_letters)
    assert sorted(letter["reason"] for letter in letters) == ["undecodable", "unrouted"]
    assert [letter[part] for letter in letters for part in ("key", "value", "masked") if letter[part]] == []
    assert "ada" not in str(letters)


SEEDS = range(8)


@pytest.mark.parametrize("seed", first_short(SEEDS))
def test_each_record_is_in_one_table_or_a_dead_letter_or_filtered_everywhere(shop_of: ShopOf, seed: int) -> None:
    draw = random.Random(seed)
    shop = shop_of()
    by: Any = draw.choice([Field("type"), Header("type")])
    otherwise = draw.choice(["dead_letter", "filter", table(shop, "other")])
    many = draw.randint(1, 4)
    topic = Topic(shop.topic, value=Json(columns=COLUMNS), key=Text())
    to = {f"t{number}": table(shop, f"t{number}") for number in range(many)}
    pipelines = routes(topic, by=by, to=to, otherwise=otherwise)
    nowhere = 0
    for _ in range(draw.randint(1, 3)):
        for number in range(draw.randint(1, 60)):
            type_ = draw.choice([*to, "x", None])
            value = draw.choices([row(type_, number), b"{", None], [8, 1, 1])[0]
            headers = [("type", type_.encode())] if type_ is not None else None
            shop.produce([value], headers=headers)
            is_known = type_ in to and (value == row(type_, number) or (isinstance(by, Header) and value is not None))
            is_typed = isinstance(by, Header) or value == row(type_, number)
            nowhere += otherwise == "filter" and not is_known and is_typed and value is not None
        drained(shop, draw.sample(pipelines, len(pipelines)))
        if draw.random() < 0.5:
            shop.drained(pipelines[0])
    found = once(shop, pipelines)
    assert {*found} <= {*shop.journal}
    assert len(shop.journal) - len(found) == nowhere
    filtered = sum(shop.verified(one).sum_of("filtered") for one in pipelines)
    assert filtered + len(found) == len(pipelines) * len(shop.journal)
    proof = together(shop, pipelines)
    assert (proof.outcome, proof.findings) == ("proven", ())
    assert (proof.offsets, proof.landed + proof.dead_lettered, proof.nowhere) == (
        len(shop.journal),
        len(found),
        nowhere,
    )


TWO = """syntax = "proto3";
package shop;
message Placed { int64 id = 1; string user = 2; }
message Paid { int64 id = 1; message Part { int64 id = 1; } }
message Other { int64 id = 1; }
"""


@pytest.mark.parametrize("rest", first_short(["land", "filter"]))
def test_messages_of_one_file_are_routed_by_their_names(shop_of: ShopOf, rest: str) -> None:
    shop = shop_of()
    to: dict[str | tuple[str, ...], Table] = {
        name: table(shop, name.rpartition(".")[2].lower()) for name in ("shop.Placed", "shop.Paid", "shop.Paid.Part")
    }
    pipelines = routes(
        Topic(shop.topic, value=Protobuf()),
        by=RecordName(),
        to=to,
        otherwise=table(shop, "other") if rest == "land" else rest,
    )
    schema_id = shop.registry_admin.register(f"{shop.topic}-value", TWO, SchemaType.PROTOBUF)
    paths = {"shop.Placed": (0,), "shop.Paid": (1,), "shop.Paid.Part": (1, 0), "shop.Other": (2,)}
    for number, (name, path) in enumerate([*paths.items(), *paths.items()]):
        shop.produce([framed(schema_id, protobuf(TWO, {"id": str(number)}, message=name), *path)])
    shop.produce([framed(schema_id, b"", 9)])
    drained(shop, pipelines, deep=True)
    assert [ids(shop, one) for one in pipelines[:3]] == [[0, 4], [1, 5], [2, 6]]
    owner = pipelines[-1] if rest == "land" else pipelines[0]
    assert [dead(shop, one) for one in pipelines] == [
        {"bad_message_index": 1} if one is owner else {} for one in pipelines
    ]
    if rest == "land":
        assert ids(shop, owner) == [3, 7]
    assert "user" not in oracle.table(shop.lake, pipelines[1].table.identifier).schema().column_names


@pytest.mark.long
def test_files_of_a_subject_each_are_routed_by_the_names_of_their_messages(shop_of: ShopOf) -> None:
    shop = shop_of()
    to = {f"shop.{name}": table(shop, name.lower()) for name in ("Placed", "Paid")}
    topic = Topic(shop.topic, value=Protobuf(subject_strategy="topic_record"))
    pipelines = routes(topic, by=RecordName(), to=to, otherwise=table(shop, "other"))
    for number, name in enumerate(["Placed", "Paid", "Other", "Placed"]):
        text = f'syntax = "proto3";\npackage shop;\nmessage {name} {{ int64 id = 1; }}\n'
        schema_id = shop.registry_admin.register(f"{shop.topic}-shop.{name}", text, SchemaType.PROTOBUF)
        shop.produce([framed(schema_id, protobuf(text, {"id": str(number)}))])
    drained(shop, pipelines, deep=True)
    assert [ids(shop, one) for one in pipelines] == [[0, 3], [1], [2]]
    assert once(shop, pipelines) == sorted(shop.journal)


@pytest.mark.long
def test_json_schemas_are_routed_by_their_titles(shop_of: ShopOf) -> None:
    shop = shop_of()
    to = {name: table(shop, name.lower()) for name in (f"Placed{shop.topic}", f"Paid{shop.topic}")}
    topic = Topic(shop.topic, value=JsonSchema(subject_strategy="record"))
    pipelines = routes(topic, by=RecordName(), to=to)
    for number, name in enumerate([*to, "Else"]):
        schema = {"title": name, "type": "object", "properties": {"id": {"type": "integer"}}}
        schema_id = shop.registry_admin.register(f"{name}", json.dumps(schema), SchemaType.JSON)
        shop.produce([frame(schema_id, b'{"id": %d}' % number)])
    drained(shop, pipelines)
    assert [ids(shop, one) for one in pipelines] == [[0], [1]]
    assert [dead(shop, one) for one in pipelines] == [{"foreign_schema": 1}, {}]


@pytest.mark.parametrize("write", [Append(), Upsert()])
def test_a_framed_null_of_json_is_a_record_of_its_type(shop_of: ShopOf, write: WriteMode) -> None:
    shop = shop_of(partitions=1)
    names = [f"{name}{shop.topic}" for name in ("Placed", "Paid")]
    topic = Topic(shop.topic, value=JsonSchema(subject_strategy="record"), key=Text())
    to: dict[str | tuple[str, ...], Table] = {name: table(shop, str(number)) for number, name in enumerate(names)}
    pipelines = routes(topic, by=RecordName(), to=to, write=write)
    schema = {"type": ["object", "null"], "properties": {"id": {"type": "integer"}}}
    schema_ids = [
        shop.registry_admin.register(name, json.dumps({"title": name, **schema}), SchemaType.JSON) for name in names
    ]
    for schema_id in schema_ids:
        shop.produce([frame(schema_id, b'{"id": 1}')], key=b"a")
    drained(shop, pipelines)
    shop.produce([frame(schema_ids[1], b"null")], key=b"a")
    drained(shop, pipelines, deep=True)
    is_append = write == Append()
    assert [ids(shop, one) for one in pipelines] == [[1], [1] if is_append else []]
    assert [dead(shop, one) for one in pipelines] == [{}, {"tombstone": 1} if is_append else {}]


def test_an_avro_field_is_a_type_and_a_version_that_lost_it_stops(shop_of: ShopOf) -> None:
    shop = shop_of()
    kind = {"type": "enum", "name": "Kind", "symbols": ["placed", "paid"]}
    schema = record("Event", id="long", kind=kind)
    to = {name: table(shop, name) for name in ("placed", "paid")}
    pipelines = routes(Topic(shop.topic, value=Avro()), by=Field("kind"), to=to, otherwise="filter")
    schema_id = shop.register(schema)
    shop.produce([frame(schema_id, avro(schema, {"id": n, "kind": kind})) for n, kind in enumerate(["placed", "paid"])])
    drained(shop, pipelines)
    assert [ids(shop, one) for one in pipelines] == [[0], [1]]
    shop.registry_admin.set_compatibility("NONE", f"{shop.topic}-value")
    shorter = record("Event", id="long")
    shop.produce([frame(shop.register(shorter), avro(shorter, {"id": 3}))])
    for pipeline in pipelines:
        with pytest.raises(InvalidInput, match=r"shape.route: the newest version of the schema has no field kind"):
            shop.drain(pipeline)


@pytest.mark.parametrize(
    "step", first_short(["publish.committed", "stage.done", "stage.rejected", "publish.filled", "finish.started"])
)
def test_a_driver_that_dies_between_the_commits_of_two_tables(shop_of: ShopOf, step: str) -> None:
    shop = shop_of(partitions=1)
    to = {"user": Target(table(shop, "users"), write=Upsert(), on_error="dead_letter")}
    pipelines = by_field(shop, to=to, otherwise="dead_letter")
    placed, paid, users = pipelines
    kinds = ["placed", "paid", "user", "x", None]
    for number in range(20):
        shop.produce([row(kinds[number % 5], number)], key=b"k%d" % (number % 3))
    shop.produce([b"{", None], key=b"k0")
    assert shop.drained(paid)[paid.name].error is None
    with pytest.raises(Crash):
        shop.drain(placed, failpoint=crash_at(step))
    twin = shop.ingestion(placed)
    shop.produce([row("placed", 21), row("paid", 22)], key=b"k1")
    twin.drain()
    drained(shop, (users, placed, paid), deep=True)
    assert (ids(shop, placed), ids(shop, paid)) == ([0, 5, 10, 15, 21], [1, 6, 11, 16, 22])
    assert dead(shop, placed) == {"unrouted": 8, "undecodable": 1}
    assert (dead(shop, paid), dead(shop, users)) == ({}, {})
    proof = together(shop, pipelines)
    assert (proof.outcome, proof.offsets, proof.landed, proof.dead_lettered) == ("proven", 24, 10, 9)
    assert proof.states == 1


def test_a_table_that_is_dropped_or_rolled_back_gets_its_records_again_and_no_others(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    pipelines = by_field(shop, otherwise=table(shop, "other"))
    placed, paid, _ = pipelines
    kinds = ["placed", "paid", "x"]
    for first in (0, 30):
        shop.produce([row(kinds[number % 3], number) for number in range(first, first + 30)])
        drained(shop, pipelines)
    before = [ids(shop, one) for one in pipelines]
    shop.spark.sql(f"DROP TABLE {shop.lake.catalog.name}.{placed.table.identifier} PURGE")
    shop.spark.sql(f"DROP TABLE {shop.lake.catalog.name}.{placed.table.dead_letters} PURGE")
    shop.pipeline = paid
    shop.roll_back()
    assert [one.flaw for one in together(shop, pipelines).findings] == ["rolled_back"]
    assert isinstance(shop.ended().error, RolledBack)
    shop.accept(Accepted.ROLLED_BACK_REPLAY)
    drained(shop, pipelines, deep=True)
    assert [ids(shop, one) for one in pipelines] == before
    assert together(shop, pipelines).outcome == "proven"


def all_begin(many: int) -> Callable[[str], None]:
    """Return a failpoint at which so many pipelines wait for each other before the first batch of each is planned."""
    begin, begun = Barrier(many), set[int]()

    def reached(step: str) -> None:
        if step == "begin.resolved" and get_ident() not in begun:
            begun.add(get_ident())
            begin.wait(60)

    return reached


@pytest.mark.parametrize("by", first_short(["header", "name"]))
def test_a_large_batch_is_read_once_and_divided(shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    divided: list[RoutedRead] = []

    def counted(*given: Any, **more: Any) -> RoutedRead:
        divided.append(routed_read.routed_read(*given, **more))
        return divided[-1]

    monkeypatch.setattr(shared_reads, "LEAST_ROWS", 50)
    monkeypatch.setattr(prepared_plan, "SMALL_ROWS", 0)
    monkeypatch.setattr(staging, "routed_read", counted)
    shop = shop_of()
    if by == "name":
        pipelines = by_name(shop, otherwise=table(shop, "other"))
        schema_ids = {name: registered(shop, name) for name in ("Placed", "Paid", "Other")}
        names = ["Placed", "Paid", "Other", "Placed"]
        values = [event(schema_ids[names[n % 4]], names[n % 4], n) for n in range(300)]
    else:
        to = {"user": Target(table(shop, "users"), write=Upsert(), on_error="dead_letter"), "none": table(shop, "none")}
        pipelines = by_field(shop, by=Header("type"), to=to)
        names = ["placed", "paid", "user", "else"]
        values = [row(None, n) if n % 20 else b"{" for n in range(300)]
    for first in (0, 4, 150):
        for number, value in list(enumerate(values))[first : {0: 4, 4: 150, 150: 300}[first]]:
            shop.produce([value], key=b"k%d" % number, headers=[("type", names[number % 4].encode())])
        if first == 150:
            shop.produce([None, b"no frame"], key=b"k2")
            later = registered(shop, "Third") if by == "name" else 0
            if later:  # the first reader knows its schema, the others may not
                shop.produce([event(later, "Third", 1)])
        found = shop.drained(*pipelines, failpoint=all_begin(len(pipelines)))
        assert [one.error for one in found.values()] == [None] * len(pipelines)
    assert divided
    for one in pipelines:
        shop.assert_proven(one, deep=True)
    proof = together(shop, pipelines)
    assert (proof.outcome, proof.offsets) == ("proven", len(shop.journal))
    if by == "name":
        assert once(shop, pipelines) == sorted(shop.journal)
        assert ids(shop, pipelines[0]) == sorted(n for n in range(300) if n % 4 in (0, 3))
    else:
        assert ids(shop, pipelines[0]) == [n for n in range(0, 300, 4) if n % 20]
        assert ids(shop, pipelines[2]) == [n for n in range(2, 300, 4) if n not in (2,)]
    assert kept(shop) == []


def test_tables_whose_gaps_are_others_are_compared_with_the_sum_of_them(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    placed, paid, other = pipelines = by_field(shop, otherwise=table(shop, "other"))
    shop.produce([row("placed", 0), row("paid", 0), row("x", 0)])
    drained(shop, pipelines)
    for owner, type_, others in ((placed, "placed", (paid, other)), (paid, "paid", (placed, other))):
        last = shop.produce([row(type_, number) for number in range(10)])[-1][1]
        drained(shop, others)
        shop.delete_records(last + 1)
        shop.produce([row("x", 99)])
        assert isinstance(shop.drained(owner)[owner.name].error, OffsetsLost)
        shop.accept(Accepted.OFFSETS_LOST, owner)
        drained(shop, pipelines)
    found = together(shop, pipelines)
    assert (found.outcome, found.is_complete, found.nowhere) == ("proven", True, 20), found.findings


def test_a_topic_that_is_routed_twice_by_the_same_types_is_compared_route_by_route(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    raw = by_field(shop)
    masked = routes(
        raw[0].topic,
        by=Field("type"),
        to={
            "placed": Target(table(shop, "masked"), shape=Shape(mask={"ref.kind": Redact()})),
            ("paid", "refunded"): table(shop, "more"),
        },
    )
    shop.produce([row("placed", 1), row("paid", 2), row("x", 3)])
    drained(shop, (*raw, *masked))
    assert families((*raw, *masked)) == [[*raw], [*masked]]
    assert families((raw[0], masked[1], raw[1], masked[0])) == [[raw[0], masked[1]], [raw[1], masked[0]]]
    assert [together(shop, one).outcome for one in families((*raw, *masked))] == ["proven", "proven"]
