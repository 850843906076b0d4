"""New types of a routed topic: which they are, the table of each, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.declaration import (
    Avro,
    Field,
    Header,
    InvalidDeclaration,
    Json,
    JsonSchema,
    Latest,
    Pipeline,
    Protobuf,
    RecordName,
    Redact,
    Rest,
    Shape,
    Table,
    Target,
    Topic,
    TypePattern,
    Upsert,
    canonical,
    parse_document,
    routes,
)
from frazil.declaration.documents.document import document
from frazil.job.matched_topics import Source, matched

EVENTS = Topic("events", value=Avro(subject_strategy="topic_record"))
FIXED = Table("shop.placed")


def declared(**options: Any) -> tuple[list[Pipeline], TypePattern]:
    to = {"shop.Placed": FIXED, "shop.*": "lake.e_{name}"}
    *pipelines, pattern = routes(EVENTS, **{"by": RecordName(), "to": to, "otherwise": Table("shop.other"), **options})
    assert isinstance(pattern, TypePattern)
    return [one for one in pipelines if isinstance(one, Pipeline)], pattern


def problems(topic: Topic = EVENTS, **options: Any) -> dict[str, str]:
    to: dict[Any, Any] = {"shop.*": "lake.{name}"}
    with pytest.raises(InvalidDeclaration) as raised:
        routes(topic, **{"by": RecordName(), "to": to, "otherwise": FIXED, **options})
    return {problem.path: f"{problem.what}. {problem.do}" for problem in raised.value.problems}


def test_the_pipeline_of_a_new_type_is_that_of_a_named_one() -> None:
    pipelines, pattern = declared(write=Upsert(), on_error="dead_letter")
    made = pattern.pipeline_of("events", "shop.Order_Paid")
    to = {"shop.Placed": FIXED, "shop.Order_Paid": Table("lake.e_order_paid")}
    named = routes(
        EVENTS, by=RecordName(), to=to, otherwise=Table("shop.other"), write=Upsert(), on_error="dead_letter"
    )
    assert made.shape.route is not None
    assert named[1].shape.route is not None
    assert (made.table, made.topic, made.write, made.name) == (named[1].table, named[1].topic, Upsert(), "e_order_paid")
    assert made.shape.of_rows == named[1].shape.of_rows
    assert [one.name for one in pipelines] == ["placed", "other"]


def test_each_type_is_one_tables() -> None:
    (placed, other), pattern = declared()
    paid, sent = (pattern.pipeline_of("events", name) for name in ("shop.Paid", "shop.Sent"))
    of = {one.name: one.shape.route for one in (placed, other, paid, sent)}
    for name, owner in (("shop.Placed", placed), ("shop.Paid", paid), ("shop.Sent", sent), ("else", other)):
        assert [known for known, route in of.items() if route and not route.is_elsewhere(name)] == [owner.name]
    assert len({route.of_topic for route in of.values() if route}) == 1


def test_types_are_those_of_the_topics_subjects() -> None:
    _, pattern = declared()
    subjects = ["events-shop.Paid", "events-shop.Placed", "events-shop.a-value", "events-value", "events-eu-shop.X"]
    assert [*pattern.types_of([*subjects, "shop.Sent", "events-other.Paid"])] == ["shop.Paid"]
    *_, of_all = routes(EVENTS, by=RecordName(), to={"*": "lake.{name}"}, otherwise=FIXED)
    assert isinstance(of_all, TypePattern)
    assert [*of_all.types_of(["events-key", "events-value", "events-Paid", "events-eu-Paid"])] == ["Paid"]
    assert [of_all.route.is_new(name) for name in ("key", "value", "eu-Paid", "Paid")] == [False, False, False, True]
    titles = Topic("events", value=JsonSchema(subject_strategy="topic_record"))
    *_, of_titles = routes(titles, by=RecordName(), to={"* paid": "lake.{type}"}, otherwise=FIXED)
    assert isinstance(of_titles, TypePattern)
    subjects = ["events-Order paid", "events-Order sent", "events-eu-Order paid"]
    assert [*of_titles.types_of(subjects)] == ["Order paid"]
    assert of_titles.identifier("events", "Order paid") == "lake.order_paid"


@pytest.mark.parametrize("name", ["shop.Placed", "shopXPaid", "a.shop.Paid", "shop.eu-shop.Paid", ""])
def test_what_does_not_match(name: str) -> None:
    _, pattern = declared()
    assert not pattern.matches("events", name)
    assert not pattern.matches("other", "shop.Paid")


@pytest.mark.parametrize(
    ("options", "path", "said"),
    [
        ({"to": {"shop.*": "lake.all"}}, "routes.to['shop.*']", "is one table for all types"),
        ({"to": {"shop.*": "{type}"}}, "routes.to['shop.*']", "Write it like 'shop.{type}'"),
        ({"to": {"shop.*": "lake.{topic}"}}, "routes.to['shop.*'].table", "the placeholders are type, name"),
        ({"to": {"a.*": "lake.{name}", "b.*": "lake.{type}"}}, "routes.to['b.*']", "several entries are new types"),
        ({"to": {"shop.*": Table("lake.x")}}, "routes.to['shop.*']", "Write 'lake.{name}' for a table of each"),
        ({"otherwise": "filter"}, "routes.otherwise", "no table has the dead letters"),
        ({"by": Header("type")}, "routes.otherwise.shape.route.new_types", "Name each type, or route by RecordName()"),
        ({"start": Latest()}, "routes.to['shop.*'].start", "Choose earliest or a timestamp"),
        ({"most": 0}, "routes.to['shop.*'].most", "1 to 1000"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(options: dict[str, Any], path: str, said: str) -> None:
    found = problems(**options)
    assert said in found[path], found


def test_types_of_no_subject_are_named_one_by_one() -> None:
    by_field = problems(Topic("events", value=Json(columns=("type string",))), by=Field("type"))
    assert "Name each type" in by_field["routes.otherwise.shape.route.new_types"]
    for value in (Avro(subject_strategy="record"), Protobuf()):
        found = problems(Topic("events", value=value))
        assert "Choose topic_record, or name each type" in found["routes.to['shop.*'].topic.value"]


def test_a_mask_of_one_table_hides_the_bytes_of_all() -> None:
    masked = Target(Table("shop.card"), shape=Shape(mask={"number": Redact()}))
    *_, pattern = routes(EVENTS, by=RecordName(), to={"shop.Card": masked, "shop.*": "lake.{name}"}, otherwise=FIXED)
    assert isinstance(pattern, TypePattern)
    assert pattern.pipeline_of("events", "shop.Paid").shape.is_masked


def test_without_a_table_of_other_types_the_first_named_one_has_their_dead_letters() -> None:
    (placed, *_), pattern = declared(otherwise="dead_letter")
    assert placed.shape.route is not None
    assert (placed.shape.route.rest, placed.shape.route.undecodable) == (Rest.DEAD_LETTER, True)
    assert placed.shape.route.is_elsewhere("shop.Paid")
    assert not pattern.route.undecodable


def test_a_document_has_its_types_and_one_without_has_the_digest_that_it_had() -> None:
    pipelines, pattern = declared(most=7)
    found = parse_document(canonical(document(pipelines, (), [pattern])))
    assert (found.pipelines, found.types) == (tuple(pipelines), (pattern,))
    assert "types" not in document(pipelines)
    named = routes(EVENTS, by=RecordName(), to={"shop.Placed": FIXED})
    assert b"new_types" not in canonical(document(named))


def test_a_type_whose_table_is_anothers_is_refused_alone_and_one_with_a_table_keeps_it() -> None:
    pipelines, pattern = declared(most=3)
    sources = {Source("events", name) for name in ("shop.a.Paid", "shop.b.Paid", "shop.Sent")}
    found = matched([pattern], sources, pipelines, {})
    assert [one.table.identifier for one in found.pipelines] == ["lake.e_sent", "lake.e_paid"]
    error = str(found.refused["events, type shop.b.Paid"])
    assert "the types shop.b.Paid and shop.a.Paid would both have the table lake.e_paid" in error
    assert "Name shop.b.Paid in `to`, with another table. If the type is wrong, delete its subject" in error
    assert "(`?permanent=true`)" in error
    kept = matched([pattern], sources, pipelines, {"lake.e_paid": Source("events", "shop.b.Paid")})
    assert [*kept.refused] == ["events, type shop.a.Paid"]
    other = matched([pattern], sources, pipelines, {"lake.e_sent": Source("elsewhere")})
    assert "lake.e_sent is the table of the topic elsewhere" in str(other.refused["events, type shop.Sent"])


def test_types_whose_subjects_are_deleted_take_their_places_last() -> None:
    pipelines, pattern = declared(most=1)
    sources = [Source("events", name) for name in ("shop.Gone", "shop.Sent")]
    found = matched([pattern], sources, pipelines, {}, sources[:1])
    assert ([one.name for one in found.pipelines], [*found.refused]) == (["e_sent"], ["events, type shop.Gone"])
