from dataclasses import replace

import pytest

from frazil.declaration import (
    Avro,
    Changelog,
    Environment,
    GlueCatalog,
    Kafka,
    LocalCatalog,
    MetadataColumns,
    Pipeline,
    Registry,
    RestAuth,
    RestCatalog,
    SchemaFile,
    Table,
    Topic,
    Upsert,
    check,
)
from tests.support.topics import varied

REGISTRY = Registry(url="https://registry")
LOCAL = LocalCatalog(path="/lake.db", warehouse="/lake")
GLUE = GlueCatalog(warehouse="s3://lake", region="eu-west-1")
GLUE_REST = RestCatalog(uri="https://g", warehouse="1", auth=RestAuth.SIGV4, signing_name="glue", region="eu-west-1")


def pipeline(topic: str, table: str, name: str = "", **fields) -> Pipeline:
    return Pipeline(topic=Topic(topic, value="avro"), table=Table(table, **fields), name=name)


def environment(catalog=LOCAL, registry=REGISTRY) -> Environment:
    return Environment(name="dev", kafka=Kafka(bootstrap="b:1"), catalog=catalog, registry=registry)


def test_pipelines_that_do_not_meet_have_no_problems():
    assert check([pipeline("a", "x.a"), pipeline("b", "x.b"), pipeline("b", "y.b", "b_again")], environment()) == ()


@pytest.mark.parametrize(
    ("pipelines", "path", "told"),
    [
        ([pipeline("a", "x.t"), pipeline("b", "x.t", "b")], "pipelines[1].table.identifier", "a table has one writer"),
        ([pipeline("a", "x.t"), pipeline("b", "x.t__dead_letters")], "pipelines[1].table.identifier", "dead letters"),
        ([pipeline("a", "x.t__dead_letters"), pipeline("b", "x.t")], "pipelines[0].table.identifier", "dead letters"),
        ([pipeline("a", "x.t"), pipeline("b", "y.t")], "pipelines[1].name", "has the name t too"),
        ([pipeline("a", "x.s", "p"), pipeline("b", "x.t", "p")], "pipelines[1].name", "has the name p too"),
    ],
)
def test_pipelines_that_would_meet_are_told_apart_before_they_do(pipelines, path, told):
    (problem,) = check(pipelines)
    assert problem.path == path
    assert told in problem.what


def test_every_clash_is_told_at_once():
    three = [pipeline("a", "x.t"), pipeline("a", "x.t"), pipeline("A", "x.t__dead_letters", "t")]
    assert {problem.path for problem in check(three)} == {
        "pipelines[1].name",
        "pipelines[1].table.identifier",
        "pipelines[2].name",
        "pipelines[2].table.identifier",
    }


@pytest.mark.parametrize("catalog", [GLUE, GLUE_REST])
def test_a_nested_partition_source_is_refused_where_glue_keeps_the_table(catalog):
    nested = pipeline("a", "x.t", partition_by=("days(t)", "bucket(8, user.id)"))
    struct = pipeline("b", "x.u", partition_by=("days(_kafka.timestamp)",), metadata_columns=MetadataColumns.STRUCT)
    paths = [problem.path for problem in check([nested, struct], environment(catalog))]
    assert paths == ["pipelines[0].table.partition_by[1]", "pipelines[1].table.partition_by[0]"]
    assert check([nested, struct], environment(LOCAL)) == check([nested, struct]) == ()


def test_a_format_with_a_schema_needs_a_registry():
    text = Topic("text", value="text")
    keyed = Topic("keyed", value="text", key="protobuf")
    three = [pipeline("a", "x.a"), *(Pipeline(topic=topic, table=Table(f"x.{topic.name}")) for topic in (text, keyed))]
    paths = [problem.path for problem in check(three, environment(registry=None))]
    assert paths == ["pipelines[0].topic.value", "pipelines[2].topic.key"]
    assert check(three, environment()) == ()


def test_a_declared_schema_needs_no_registry():
    file = SchemaFile(file="o.avsc", content='"long"')
    topic = Topic("a", value=Avro(schema=(file,)), key="avro")
    (problem,) = check([Pipeline(topic=topic, table=Table("x.a"))], environment(registry=None))
    assert (problem.path, "or declare the schema" in problem.do) == ("pipelines[0].topic.key", True)
    both = varied(topic, key_schema=(file,))
    assert check([Pipeline(topic=both, table=Table("x.a"))], environment(registry=None)) == ()


def test_a_state_and_a_changelog_share_a_topic():
    topic = Topic("orders", value="avro", key="text")
    state = Pipeline(topic=topic, table=Table("x.orders"), write=Upsert())
    log = Pipeline(topic=topic, table=Table("x.order_changes"), write=Changelog(), name="order_changes")
    assert check([state, log]) == ()
    assert check([state, replace(log, name="")]) == ()
