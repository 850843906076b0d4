"""Topics by a pattern of their names: which match, the table of each, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from frazil.declaration import (
    Avro,
    Debezium,
    InvalidDeclaration,
    Latest,
    Pipeline,
    Table,
    Tableflow,
    Topic,
    TopicPattern,
    Upsert,
    canonical,
    each_topic,
    parse_document,
)
from frazil.declaration.documents.document import document
from frazil.errors import CatalogUnavailable
from frazil.job.matched_topics import Matched, Owners, Source
from frazil.job.matched_topics import matched as matched_sources


def matched(
    patterns: Sequence[TopicPattern], names: Iterable[str], declared: Sequence[Pipeline], owners: Mapping[str, Any]
) -> Matched:
    """Return the pipelines of topics of these names, where `owners` has topics, or errors."""
    stored: Owners = {table: Source(one) if isinstance(one, str) else one for table, one in owners.items()}
    return matched_sources(patterns, {Source(name) for name in names}, declared, stored)


def topics(found: Matched) -> list[str]:
    return [pipeline.topic.name for pipeline in found.pipelines]


def problems(**options: Any) -> dict[str, str]:
    with pytest.raises(InvalidDeclaration) as raised:
        each_topic(**{"match": r"shop\..*", "table": "shop.{topic}", "value": "avro", **options})
    return {problem.path: f"{problem.what}. {problem.do}" for problem in raised.value.problems}


def test_a_pipeline_of_a_matching_topic_has_its_name_and_all_that_is_shared() -> None:
    pattern = each_topic(
        r"shop\.(?P<what>.*)",
        table="lake.{what}",
        value=Avro(),
        key="avro",
        write=Upsert(),
        partition_by=("bucket(8, id)",),
        on_error="dead_letter",
    )
    assert pattern.pipeline_of("shop.Order-Items") == Pipeline(
        topic=Topic("shop.Order-Items", value=Avro(), key="avro"),
        table=Table("lake.order_items", partition_by=("bucket(8, id)",)),
        write=Upsert(),
        on_error="dead_letter",
    )


@pytest.mark.parametrize(
    ("topic", "table"),
    [("shop.orders", "lake.shop_orders"), ("2024", "lake.t_2024"), ("-x", "lake.t__x"), ("Ä", "lake.t__")],
)
def test_a_table_is_named_after_its_topic(topic: str, table: str) -> None:
    assert each_topic(".*", table="lake.{topic}", value="text").identifier(topic) == table


def test_the_complete_name_matches_and_internal_topics_never() -> None:
    pattern = each_topic(r"shop\..*|a|_.*", table="lake.{topic}", value="text", exclude=r".*\.internal")
    names = ["shop.a", "a", "xshop.a", "ab", "_schemas", "__consumer_offsets", "shop.a.internal", "shop.internal.a"]
    assert [name for name in names if pattern.matches(name)] == ["shop.a", "a", "shop.internal.a"]


@pytest.mark.parametrize(
    ("pattern", "prefix"),
    [
        (r"shop\..*", "shop."),
        (r"shop-(a|b)", "shop-"),
        (r"shop_eu|shop_us", ""),
        (r"shop.*", "shop"),
        (r"shops?\.x", "shop"),
        (r"shop\.[ab]|x", ""),
        (r"shop\.(a(b|c))", "shop."),
        (r"(?i)shop", ""),
        (r"shop\d+", "shop"),
        (r"orders", "orders"),
        (r"sho(?:p)", "sho"),
        (r"a{2}b", ""),
    ],
)
def test_the_literal_prefix_begins_each_match(pattern: str, prefix: str) -> None:
    assert each_topic(pattern, table="lake.{topic}", value="text").prefix == prefix


@pytest.mark.parametrize(
    ("options", "path", "said"),
    [
        ({"match": "("}, "each_topic.match", "is not a regular expression"),
        ({"exclude": "["}, "each_topic.exclude", "is not a regular expression"),
        ({"table": "{topic}"}, "each_topic.table", "does not begin with a namespace"),
        ({"table": "{topic}.x"}, "each_topic.table", "does not begin with a namespace"),
        ({"table": "shop.{other}"}, "each_topic.table", "placeholder"),
        ({"table": "shop.{topic}__dead_letters"}, "each_topic.table", "keeps its dead letters"),
        ({"match": r"(?P<topic>.*)"}, "each_topic.match", "Give the group another name"),
        ({"table": "shop.{topic}-x"}, "each_topic.table", "is not the identifier of a table"),
        ({"start": Latest()}, "each_topic.start", "would be lost. Choose earliest or a timestamp"),
        ({"most": 0}, "each_topic.most", "1 to 1000"),
        ({"name": "x"}, "each_topic.name", "there is no such field"),
        ({"identifier": "x.y"}, "each_topic.identifier", "there is no such field"),
        ({"value": "arvo"}, "each_topic.value", "arvo"),
        ({"partition_by": ("days(",)}, "each_topic.partition_by[0]", "days("),
    ],
)
def test_what_is_wrong_is_said_with_its_place(options: dict[str, Any], path: str, said: str) -> None:
    assert said in problems(**options)[path]


def test_tableflow_names_topics_one_by_one() -> None:
    assert "Choose spark" in problems(engine=Tableflow())["each_topic.engine"]


def test_many_topics_into_one_table_are_refused_with_a_view() -> None:
    view = "create view shop.all as select * from shop.a union all select * from shop.b"
    assert view in problems(table="shop.all")["each_topic.table"]
    both = [Pipeline(topic=Topic(name, value="text"), table=Table("shop.all"), name=name) for name in ("a", "b")]
    with pytest.raises(InvalidDeclaration, match=r"create view shop\.all as select \* from shop\.all_1 union all"):
        document(both)


def test_a_document_has_its_patterns_and_one_without_has_the_digest_that_it_had() -> None:
    pattern = each_topic(
        r"a\..*", table="lake.{topic}", value="avro", key="avro", envelope=Debezium(), write=Upsert(), most=7
    )
    one = Pipeline(topic=Topic("orders", value="text"), table=Table("lake.orders"))
    found = parse_document(canonical(document([one], [pattern])))
    assert (found.pipelines, found.patterns) == ((one,), (pattern,))
    assert "patterns" not in document([one])


def test_a_declared_topic_and_an_earlier_pattern_come_first() -> None:
    patterns = [each_topic(m, table=t, value="text") for m, t in (("a.*", "one.{topic}"), (".*", "two.{topic}"))]
    declared = Pipeline(topic=Topic("ab", value="avro"), table=Table("own.table"))
    found = matched(patterns, ["ab", "ac", "bc"], [declared], {})
    assert [pipeline.table.identifier for pipeline in found.pipelines] == ["one.ac", "two.bc"]


def test_a_topic_whose_table_is_anothers_is_refused_alone_with_both_names() -> None:
    pattern = each_topic(".*", table="lake.{topic}", value="text")
    found = matched([pattern], ["a-b", "a.b", "c"], [], {})
    assert topics(found) == ["a-b", "c"]
    assert "the topics a.b and a-b would both have the table lake.a_b" in str(found.refused["a.b"])
    kept = matched([pattern], ["a-b", "a.b", "c"], [], {"lake.a_b": "a.b"})
    assert topics(kept) == ["a.b", "c"]
    assert "the topics a-b and a.b would both" in str(kept.refused["a-b"])
    gone = matched([pattern], ["a-b"], [], {"lake.a_b": "a.b"})
    assert (topics(gone), [one.topic.name for one in gone.gone], [*gone.refused]) == ([], ["a.b"], ["a-b"])


def test_a_topic_with_a_table_keeps_its_name_before_a_new_one_of_an_earlier_pattern() -> None:
    patterns = [each_topic(rf"{region}-(?P<x>.*)", table=f"{region}.{{x}}", value="text") for region in ("eu", "us")]
    assert topics(matched(patterns, ["us-orders"], [], {})) == ["us-orders"]
    found = matched(patterns, ["us-orders", "eu-orders"], [], {"us.orders": "us-orders"})
    assert topics(found) == ["us-orders"]
    assert "the topics eu-orders and us-orders would both have the name orders" in str(found.refused["eu-orders"])
    assert topics(matched(patterns, ["us-orders", "eu-orders"], [], {})) == ["eu-orders"]


def test_a_table_of_dead_letters_is_no_topics_table() -> None:
    found = matched([each_topic(".*", table="lake.{topic}", value="text")], ["a", "a__dead_letters"], [], {})
    assert (topics(found), [*found.refused]) == (["a"], ["a__dead_letters"])


def test_a_table_that_cannot_be_read_is_given_to_no_other_topic() -> None:
    pattern, error = each_topic(".*", table="lake.{topic}", value="text"), CatalogUnavailable("it does not answer")
    found = matched([pattern], ["a-b", "a.b", "c", "d"], [], {"lake.a_b": error, "lake.c": error, "lake.e": error})
    assert topics(found) == ["c", "d"]
    assert found.refused == {"a-b": error, "a.b": error}
    assert [one.table.identifier for one in found.unread] == ["lake.a_b", "lake.e"]
    assert [one.table.identifier for one in matched([pattern], [], [], {"lake.a_b": error}).with_tables] == ["lake.a_b"]


def test_topics_that_are_gone_take_no_place_below_the_bound() -> None:
    pattern = each_topic(".*", table="lake.{topic}", value="text", most=1)
    found = matched([pattern], ["c"], [], {"lake.a": "a", "lake.b": "b"})
    assert (topics(found), [one.topic.name for one in found.gone], found.refused) == (["c"], ["a", "b"], {})


def test_the_bound_keeps_those_that_have_a_table() -> None:
    pattern = each_topic(".*", table="lake.{topic}", value="text", most=2)
    found = matched([pattern], ["a", "b", "c", "d"], [], {"lake.d": "d", "lake.c": "c"})
    assert topics(found) == ["c", "d"]
    assert [*found.refused] == ["a", "b"]
    assert "matches 4 topics, and most is 2" in str(found.refused["a"])


def test_for_any_names_each_topic_is_one_pipeline_or_refused_and_no_two_share_a_table() -> None:
    random_ = random.Random(51)
    letters = "ab.-_A1"
    for _ in range(300):
        names = {"".join(random_.choices(letters, k=random_.randint(1, 4))) for _ in range(random_.randint(0, 12))}
        stored_names = {"".join(random_.choices(letters, k=random_.randint(1, 4))) for _ in range(4)}
        patterns = [
            each_topic(
                random_.choice([".*", "a.*", ".*[.].*"]), table="one.{topic}", value="text", most=random_.randint(1, 9)
            ),
            each_topic(".*", table=random_.choice(["one.{topic}", "two.{topic}"]), value="text"),
        ]
        stored = {patterns[0].identifier(name): name for name in stored_names if patterns[0].matches(name)}
        found = matched(patterns, names, [], stored)
        wanted = {name for name in names if not name.startswith("_")}
        assert sorted([*topics(found), *(n for n in found.refused if n in names)]) == sorted(wanted)
        every = [table for pipeline in (*found.pipelines, *found.gone) for table in pipeline.tables]
        assert len(every) == len({*every})
        for identifier, topic in stored.items():
            holders = [p.topic.name for p in (*found.pipelines, *found.gone) if p.table.identifier == identifier]
            assert holders in ([topic], []), (identifier, topic, holders)
