"""Several tables of one topic, declared at once by a route."""

from collections.abc import Callable
from typing import Any

import pytest

from frazil.declaration import (
    Avro,
    Debezium,
    Field,
    Header,
    InvalidDeclaration,
    Json,
    Pipeline,
    RecordName,
    Redact,
    Rest,
    Route,
    Shape,
    Table,
    Tableflow,
    Target,
    Topic,
    Upsert,
    parse,
    routes,
)
from frazil.declaration.documents.document import document

EVENTS = Topic("events", value=Json(columns=("type string", "id long", "ref struct<kind: string>")), key="text")
NAMED = Topic("events", value=Avro(subject_strategy="topic_record"))
T, U = Table("shop.a"), Table("shop.b")


def test_each_table_knows_the_types_of_the_others_and_one_takes_the_rest() -> None:
    made = routes(EVENTS, by=Field("type"), to={"a": T, ("b", "c"): U}, otherwise=Table("shop.rest"), headers=False)
    assert [one.name for one in made] == ["a", "b", "rest"]
    assert [one.shape.route and one.shape.route.types for one in made] == [("a",), ("b", "c"), ()]
    assert [one.shape.route and one.shape.route.others for one in made] == [("b", "c"), ("a",), ("a", "b", "c")]
    assert [one.shape.route and one.shape.route.rest for one in made] == [Rest.FILTER, Rest.FILTER, Rest.LAND]
    assert [one.shape.route and one.shape.route.undecodable for one in made] == [False, False, True]
    assert not any(one.headers for one in made)
    assert tuple(parse(document(made))) == made


def test_records_without_a_value_are_those_of_the_tables_with_a_key_or_of_the_owner() -> None:
    def takes(**more: Any) -> list[bool]:
        made = routes(EVENTS, by=Field("type"), to={"a": T, "b": U, "c": Target(Table("shop.c"), **more)})
        return [one.shape.route.tombstones for one in made if one.shape.route is not None]

    assert takes() == [True, False, False]
    assert takes(write=Upsert()) == [False, False, True]
    assert takes(write=Upsert(order_by="id")) == [True, False, False]
    assert takes(write=Upsert(order_by="_kafka_timestamp")) == [False, False, True]
    assert takes(write=Upsert(key="id")) == [True, False, False]


def test_by_names_each_table_has_the_schemas_of_its_type() -> None:
    made = routes(NAMED, by=RecordName(), to={"shop.A": T}, otherwise=U)
    assert [one.topic.value.record_name for one in made] == ["shop.A", None]


WRONG: Any = routes  # given what its types exclude
MASKED = Target(U, shape=Shape(mask={"id": Redact()}))
ROUTED = Shape(route=Route(by=Field("type"), types=("a",)))
INVALID: dict[str, tuple[Callable[[], Any], str]] = {
    "no topic": (lambda: WRONG("t", by=Field("type"), to={"a": T}), "routes.topic: 't' is not a Topic"),
    "no mapping": (lambda: WRONG(EVENTS, by=Field("type"), to=[T]), "routes.to: no table"),
    "by text": (lambda: WRONG(EVENTS, by="type", to={"a": T}), "routes.by: 'type' says of no record"),
    "no type": (lambda: routes(EVENTS, by=Field("type"), to={(): T}), r"routes.to\[\(\)\]: this is not a type"),
    "a number": (lambda: WRONG(EVENTS, by=Field("type"), to={1: T}), r"routes.to\[1\]: this is not a type"),
    "empty": (
        lambda: routes(EVENTS, by=Field("type"), to={"": T}),
        r"routes.to\[''\].shape.route.types\[0\]: '' is not a type",
    ),
    "twice": (
        lambda: routes(EVENTS, by=Field("type"), to={("a", "b"): T, "b": U}),
        r"routes.to\['b'\]: the type 'b' is named twice",
    ),
    "text": (
        lambda: WRONG(EVENTS, by=Field("type"), to={"a": "shop.a"}),
        r"routes.to\['a'\]: 'shop.a' is not a Target",
    ),
    "rest": (
        lambda: routes(EVENTS, by=Field("type"), to={"a": T}, otherwise="drop"),
        "routes.otherwise: 'drop' is not a Target",
    ),
    "unknown": (lambda: routes(EVENTS, by=Field("type"), to={"a": T}, wher=1), "routes.wher: there is no such field"),
    "routed": (lambda: Target(T, shape=ROUTED), "target.shape.route: routes"),
    "column": (lambda: routes(EVENTS, by=Field("kind"), to={"a": T}), "shape.route.by: the topic has no column kind"),
    "bytes": (
        lambda: routes(Topic("t", value="bytes"), by=Field("a"), to={"a": T}),
        "shape.route.by: values of format bytes",
    ),
    "no columns": (
        lambda: routes(Topic("t", value="json"), by=Field("a"), to={"a": T}),
        "shape.route.by: values of format json",
    ),
    "one subject": (
        lambda: routes(Topic("t", value="avro"), by=RecordName(), to={"a": T}),
        "routes.by: with subject_strategy topic",
    ),
    "no registry": (
        lambda: routes(EVENTS, by=RecordName(), to={"a": T}),
        "routes.by: only the schemas of a registry name records",
    ),
    "several names": (
        lambda: routes(NAMED, by=RecordName(), to={("a", "b"): T}),
        "records of several names are not of one schema",
    ),
    "by hand": (
        lambda: Pipeline(topic=NAMED, table=T, shape=Shape(route=Route(by=RecordName(), types=("a",)))),
        "value.record_name",
    ),
    "nothing": (lambda: Route(by=Field("type")), "route.types: no record lands"),
    "both": (lambda: Route(by=Field("type"), types=("a",), others=("a",)), "route.others: a is one of types, too"),
    "mask": (
        lambda: routes(EVENTS, by=Header("x"), to={"a": Target(T, shape=Shape(mask={"_kafka_headers.x": Redact()}))}),
        "shape.mask: the header x says",
    ),
    "envelope": (
        lambda: Pipeline(topic=EVENTS, table=T, write=Upsert(), envelope=Debezium(), shape=ROUTED),
        "shape.route: a delete in an envelope",
    ),
    "tableflow": (lambda: routes(EVENTS, by=Field("type"), to={"a": T}, engine=Tableflow()), "Tableflow"),
}


@pytest.mark.parametrize("case", INVALID)
def test_what_is_no_route_is_refused_with_its_place(case: str) -> None:
    made, what = INVALID[case]
    with pytest.raises(InvalidDeclaration, match=what):
        made()


def test_masks_of_one_table_hide_the_bytes_of_all() -> None:
    made = routes(EVENTS, by=Field("type"), to={"a": T, "b": MASKED})
    assert [one.shape.is_masked for one in made] == [True, True]
    assert [one.shape.is_masked for one in routes(EVENTS, by=Field("type"), to={"a": T})] == [False]


def test_a_field_of_the_records_key_is_no_type_where_the_key_fills_its_column() -> None:
    topic = Topic("t", value=Json(columns=("type string", "id long")), key=Json(columns=("type string", "id long")))
    to = {"a": Target(Table("s.a"), write=Upsert(key=("type", "id"))), "b": Target(Table("s.b"), write=Upsert())}
    with pytest.raises(InvalidDeclaration) as raised:
        routes(topic, by=Field("type"), to=to, otherwise="filter")
    found = {problem.path: str(problem) for problem in raised.value.problems}
    assert found == {
        "routes.to['b'].write": "routes.to['b'].write: the record's key has the field type, and fills its column. "
        "Declare key=… of the value, or route by Header(…)"
    }
    assert len(routes(topic, by=Header("type"), to=to, otherwise="filter")) == 2
