"""Patterns of topics in a deployment: rights by prefix and namespace, one group, and what cannot be deployed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from frazil.declaration import InvalidDeclaration, Pipeline, Spark, Table, Tableflow, Topic, TopicPattern, each_topic
from frazil.declaration.documents.document import Document, parse_document
from infra.confluent.managed_topic import ManagedTopic
from policies.table_resources import Scope
from stacks.spec.deployments import Access, AlarmsOf, Deployment, Existing, Monitoring
from stacks.stacks.reading_rights import subjects
from tests.stacks.spec.test_groups import KNOWN, WIDE, of, written
from tests.stacks.synthesised import EXAMPLE, EXAMPLE_TOPICS, named, resources, synthesised
from tests.stacks.terraform_text import policies_of
from tests.support.iam_evaluation import Request, evaluate

PEOPLE = ("arn:aws:iam::111111111111:role/o",)
DEPLOYMENT = named(WIDE, access=Access(readers=PEOPLE, reconcilers=PEOPLE))
PATTERN = each_topic(r"shop\..*", table="shop.{topic}", value="avro", engine=Spark(group="shop"))
REFUNDS = of("payments", "shop.refunds", "pay.refunds")
GLUE, BUCKET = "arn:aws:glue:eu-central-1:111111111111", f"arn:aws:s3:::{WIDE.names.bucket('tables')}"


def with_patterns(
    *patterns: TopicPattern, deployment: Deployment = DEPLOYMENT, pipelines: tuple[Pipeline, ...] = EXAMPLE
) -> dict[str, dict[str, Any]]:
    return synthesised(deployment, pipelines, EXAMPLE_TOPICS, patterns=patterns)


@pytest.fixture(scope="module")
def stacks() -> dict[str, dict[str, Any]]:
    return with_patterns(PATTERN, pipelines=(*EXAMPLE, REFUNDS))


def document_of(stack: dict[str, Any]) -> Document:
    return parse_document(written(stack, "pipelines_object"))


def test_a_groups_document_has_its_pattern_without_the_topics_that_other_groups_declare(
    stacks: dict[str, dict[str, Any]],
) -> None:
    found = document_of(stacks["ingestion-shop"])
    assert found.pipelines == ()
    assert found.patterns == (replace(PATTERN, exclude=r"shop\.refunds"),)
    assert not document_of(stacks["ingestion"]).patterns
    assert not document_of(stacks["ingestion-payments"]).patterns
    [database] = [each for each in resources(stacks["foundation"], "aws_glue_catalog_database") if "shop" in each]
    assert database


def test_an_exclusion_stays_and_pipelines_of_the_same_group_are_not_excluded() -> None:
    pattern = replace(PATTERN, match=r"shop[._].*", exclude=r".*\.internal")
    flow = Pipeline(topic=Topic("shop_flow", value="avro"), table=Table("flow.shop_flow"), engine=Tableflow())
    stacks = with_patterns(pattern, pipelines=(of("shop", "shop.own", "shop.own"), REFUNDS, flow))
    found = document_of(stacks["ingestion-shop"])
    assert [each.topic.name for each in found.pipelines] == ["shop.own"]
    assert found.patterns[0].exclude == r".*\.internal|shop\.refunds|shop_flow"
    names = ("shop.a", "shop.a.internal", "shop.refunds", "shop_flow", "shop.own")
    assert [name for name in names if found.patterns[0].matches(name)] == ["shop.a", "shop.own"]


def test_without_patterns_nothing_changes() -> None:
    assert with_patterns() == synthesised(DEPLOYMENT, EXAMPLE, EXAMPLE_TOPICS)


def glue(*names: str) -> list[str]:
    return [f"{GLUE}:table/{name}" for name in names]


def files(*keys: str) -> list[str]:
    return [f"{BUCKET}/lake/{key}" for key in keys]


WRITE = ("s3:GetObject", "s3:PutObject")
NEW = ("shop.db/new_topic/data/1.parquet", "shop.db/new_topic__dead_letters/metadata/1.json")
OTHER = ("nyc.db/flights/data/1.parquet", "shop2.db/new_topic/data/1", "sho.db/a/data/1", "pay.db/refunds/data/1")
INSIDE, OUTSIDE = glue("shop/new_topic", "shop/new_topic__dead_letters"), glue("nyc/flights", "shop2/a", "pay/refunds")
Rights = dict[tuple[str, ...], tuple[list[str], list[str]]]
JOBS: dict[str, Rights] = {
    "ingest-shop": {WRITE: (files(*NEW), files(*OTHER)), ("glue:CreateTable", "glue:UpdateTable"): (INSIDE, OUTSIDE)},
    "maintain-shop": {
        (*WRITE, "s3:DeleteObject"): (files(*NEW), files(*OTHER)),
        ("glue:UpdateTable",): (INSIDE, OUTSIDE),
        ("glue:GetDatabase",): ([f"{GLUE}:database/shop"], [f"{GLUE}:database/nyc"]),
    },
    "reader": {("s3:GetObject",): (files(*NEW), files(*OTHER[1:3])), ("glue:GetTables",): (INSIDE, OUTSIDE[1:2])},
}
for _rights in (JOBS["ingest-shop"], JOBS["maintain-shop"]):
    _rights[("glue:GetTable", "glue:GetTables")] = (INSIDE, OUTSIDE)


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize("role", JOBS)
def test_a_role_may_touch_new_tables_of_the_namespace_and_no_others(role: str, scope: Scope) -> None:
    deployment = named(DEPLOYMENT, access=replace(DEPLOYMENT.access, scope=scope))
    made = with_patterns(PATTERN, deployment=deployment, pipelines=(*EXAMPLE, REFUNDS))
    stack = made["ingestion" if role == "reader" else "ingestion-shop"]
    documents = policies_of(stack, f"frazil-dev-{role}", KNOWN)
    for actions, (inside, outside) in JOBS[role].items():
        for action in actions:
            for resource in (*inside, *outside):
                is_allowed = evaluate(Request(action=action, resource=resource), documents).is_allowed
                assert is_allowed is (resource in inside), (action, resource)


def test_the_ingest_job_deletes_no_data_file_and_drops_no_table_of_a_pattern(stacks: dict[str, dict[str, Any]]) -> None:
    documents = policies_of(stacks["ingestion-shop"], "frazil-dev-ingest-shop", KNOWN)
    for action, resource in (("s3:DeleteObject", files(NEW[0])[0]), ("glue:DeleteTable", INSIDE[0])):
        assert not evaluate(Request(action=action, resource=resource), documents).is_allowed


def test_other_groups_may_not_list_the_tables_of_a_pattern(stacks: dict[str, dict[str, Any]]) -> None:
    for what, role in (("ingestion", "ingest"), ("ingestion-payments", "maintain-payments")):
        documents = policies_of(stacks[what], f"frazil-dev-{role}", KNOWN)
        assert not evaluate(Request(action="glue:GetTables", resource=INSIDE[0]), documents).is_allowed


def acls(stack: dict[str, Any]) -> set[tuple[str, str, str, str]]:
    members = ("resource_type", "pattern_type", "resource_name", "operation")
    found = (tuple(each[name] for name in members) for each in resources(stack, "confluent_kafka_acl").values())
    return {(kind, pattern, name, operation) for kind, pattern, name, operation in found}


def bindings(stack: dict[str, Any]) -> set[str]:
    found = [each["crn_pattern"].rpartition("/")[2] for each in resources(stack, "confluent_role_binding").values()]
    return {each for each in found if "waited" not in each and each.startswith(("topic=", "subject="))}


def test_the_jobs_account_reads_topics_and_subjects_by_the_patterns_prefix(stacks: dict[str, dict[str, Any]]) -> None:
    assert acls(stacks["confluent"]) == {
        ("TOPIC", "LITERAL", "flights", "READ"),
        ("TOPIC", "LITERAL", "planes", "READ"),
        ("TOPIC", "LITERAL", "shop.refunds", "READ"),
        ("TOPIC", "PREFIXED", "shop.", "READ"),
        ("GROUP", "PREFIXED", "frazil-", "READ"),
    }
    assert "subject=shop.*" in bindings(stacks["confluent"])
    assert not [each for each in bindings(stacks["confluent"]) if "topic" in each]


@pytest.mark.parametrize(
    ("prefixes", "bound"), [((), "topic=shop.*"), (("sh-",), "topic=shop.*"), (("shop.",), "topic=shop.*")]
)
def test_on_a_cluster_of_others_it_has_a_role_by_prefix(prefixes: tuple[str, ...], bound: str) -> None:
    confluent = replace(DEPLOYMENT.confluent, environment_id="env-abc", cluster_id="lkc-abc", topic_prefixes=prefixes)
    stack = with_patterns(PATTERN, deployment=named(DEPLOYMENT, confluent=confluent))["confluent"]
    assert {each for each in bindings(stack) if "shop" in each} == {bound, "subject=shop.*"}
    assert not acls(stack)


def test_patterns_with_a_common_prefix_have_one_right() -> None:
    other = each_topic(r"shop\.eu\..*", table="shop.{topic}", value="text", engine=Spark(group="shop"))
    topics = {name for kind, _, name, _ in acls(with_patterns(other, PATTERN)["confluent"]) if kind == "TOPIC"}
    assert topics == {"flights", "planes", "shop."}


def test_subjects_of_a_pattern_follow_its_formats() -> None:
    text = each_topic(r"a\..*", table="a.{topic}", value="text")
    assert subjects([], [], [text]) == []
    assert subjects([], ["a"], [text, PATTERN]) == ["shop.*"]
    value: Any = PATTERN.pipeline.topic.value
    by_record = replace(value, subject_strategy="record")
    topic = replace(PATTERN.pipeline.topic, value=by_record)
    assert subjects([], [], [replace(PATTERN, pipeline=replace(PATTERN.pipeline, topic=topic))]) == ["*"]


def problems(*patterns: TopicPattern, **more: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidDeclaration) as refused:
        with_patterns(*patterns, **more)
    return [(problem.path, problem.what) for problem in refused.value.problems]


def test_a_pattern_without_a_literal_prefix_is_refused() -> None:
    [(path, what)] = problems(each_topic(".*", table="shop.{topic}", value="avro"))
    assert path == "patterns[0].match"
    assert "begins with no literal text, and rights on topics are granted by prefix" in what


@pytest.mark.parametrize("match", [r"shop\.eu\..*", r"sho.*", r"shop\..*"])
def test_patterns_of_two_groups_whose_prefixes_overlap_are_refused(match: str) -> None:
    other = each_topic(match, table="other.{topic}", value="avro")
    assert problems(PATTERN, other) == [
        ("patterns[1].match", "patterns[0] begins with shop., and another job lands its topics")
    ]
    assert with_patterns(PATTERN, each_topic(r"ship\..*", table="other.{topic}", value="avro"))


@pytest.mark.parametrize("table", ["nyc.{topic}", "pay.{topic}"])
def test_a_namespace_with_tables_of_another_job_is_refused(table: str) -> None:
    pattern = each_topic(r"shop\..*", table=table, value="avro", engine=Spark(group="shop"))
    [(path, what)] = problems(pattern, pipelines=(*EXAMPLE, REFUNDS))
    assert (path, what.partition(",")[0]) == ("patterns[0].table", f"another job has tables in {table[:3]}")


def test_an_existing_database_and_alarms_of_pipelines_are_refused() -> None:
    [(path, what)] = problems(PATTERN, deployment=named(DEPLOYMENT, existing=Existing(databases=("shop",))))
    assert (path, "the database shop exists already" in what) == ("patterns[0].table", True)
    alarms = Monitoring(alarms=AlarmsOf.PIPELINE)
    [(path, _)] = problems(PATTERN, PATTERN, deployment=named(DEPLOYMENT, monitoring=alarms))
    assert path == "deployment.monitoring.alarms"


def test_a_short_retention_of_a_topic_that_matches_is_refused() -> None:
    topics = (*EXAMPLE_TOPICS, ManagedTopic("shop.a", retention_hours=1))
    with pytest.raises(InvalidDeclaration, match=r"topics\[2\]\.retention_hours"):
        synthesised(DEPLOYMENT, EXAMPLE, topics, patterns=[PATTERN])


def test_an_alarm_may_not_watch_more_pipelines_than_cloudwatch_allows() -> None:
    [(_, what)] = problems(replace(PATTERN, most=501))
    assert "shop: an alarm would watch 501 pipelines" in what
    assert with_patterns(replace(PATTERN, most=500))


def test_alarms_of_a_group_watch_each_pipeline_that_joins(stacks: dict[str, dict[str, Any]]) -> None:
    alarms = resources(stacks["ingestion-shop"], "aws_cloudwatch_metric_alarm").values()
    watching = {each["alarm_name"] for each in alarms if "GROUP BY pipeline" in json.dumps(each)}
    assert {"frazil-dev-shop-late", "frazil-dev-shop-pipeline-failed"} <= watching
    assert "frazil-dev-shop-silent" not in {each["alarm_name"] for each in alarms}, "there may be no topic yet"
    own = with_patterns(PATTERN, pipelines=(*EXAMPLE, of("shop", "own", "shop.own")))["ingestion-shop"]
    named_alarms = {each["alarm_name"] for each in resources(own, "aws_cloudwatch_metric_alarm").values()}
    assert "frazil-dev-shop-silent" in named_alarms
