import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given

from frazil.declaration import (
    At,
    Pipeline,
    Table,
    Topic,
    canonical,
    environment_schema,
    json_schema,
    parse,
)
from frazil.declaration.documents.document import document
from tests.declaration.problems_of import problems_of
from tests.declaration.strategies import pipelines
from tests.support.project_schema import project_schema

ORDERS = Pipeline(
    topic=Topic("orders", value="avro"),
    table=Table("shop.orders", partition_by=("days(event_time)", "bucket(8, user_id)")),
    start=At(datetime(2026, 1, 31, tzinfo=UTC)),
)


def test_the_document_of_a_pipeline_is_this():
    """A change here changes the name of every document in the field: it needs a new version, or a very good reason."""
    assert document([ORDERS]) == {
        "version": 2,
        "pipelines": [
            {
                "topic": {
                    "name": "orders",
                    "value": {"type": "avro", "subject_strategy": "topic"},
                    "key": {"type": "bytes"},
                    "transactional": False,
                },
                "table": {
                    "identifier": "shop.orders",
                    "partition_by": ["days(event_time)", "bucket(8, user_id)"],
                    "sort_by": [],
                    "format_version": 2,
                    "target_file_size_bytes": 268435456,
                    "metadata_columns": "flat",
                    "properties": {},
                    "schema_evolution": "widen",
                    "snapshots": {"newest": 100},
                },
                "name": "orders",
                "write": {"type": "append", "on_tombstone": "dead_letter"},
                "engine": {
                    "type": "spark",
                    "limits": {"target_seconds": 10, "first_rows": 20000, "max_rows": 1000000, "max_bytes": 1073741824},
                },
                "start": {"type": "timestamp", "timestamp": "2026-01-31T00:00:00.000Z"},
                "on_error": "dead_letter",
                "shape": {},
                "headers": True,
                "kafka": {"isolation": "read_committed", "options": {}},
            }
        ],
    }


@given(pipelines)
def test_a_pipeline_goes_there_and_back_without_a_change(pipeline):
    written = canonical(document([pipeline]))
    assert parse(written) == parse(document([pipeline])) == (pipeline,)
    assert canonical(document(parse(written))) == written


def test_pipelines_that_clash_make_no_document_and_come_from_none():
    assert set(problems_of(lambda: document([ORDERS, ORDERS]))) == {
        "pipelines[1].name",
        "pipelines[1].table.identifier",
    }
    twice = document([ORDERS])
    twice["pipelines"] *= 2
    assert set(problems_of(lambda: parse(twice))) == {"pipelines[1].name", "pipelines[1].table.identifier"}


@pytest.mark.parametrize(
    ("source", "path"),
    [
        (b"not json", "document"),
        ({"pipelines": []}, "version"),
        ({"version": 2}, "pipelines"),
        ({"version": 2, "pipelines": {}}, "pipelines"),
        ({"version": 2, "pipelines": [1]}, "pipelines[0]"),
        ({"version": 2, "pipelines": [], "pipeline": []}, "pipeline"),
        ({"version": 2, "pipelines": [], 1: 2}, "1"),
    ],
)
def test_a_document_that_is_none_is_refused_with_its_path(source, path):
    assert list(problems_of(lambda: parse(source))) == [path]


@pytest.mark.parametrize("version", [0, 1, 3, "2", 2.0, True, None, 10**30])
def test_a_job_refuses_a_version_that_it_does_not_know_and_says_what_to_use(version):
    told = problems_of(lambda: parse({"version": version, "pipelines": []}))["version"]
    assert "is not a version that this release reads (2)" in told
    assert told.endswith("or use the release that wrote the document or a newer one")


DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(
    ("name", "made"),
    [("document", json_schema()), ("environment", environment_schema()), ("project", project_schema())],
)
def test_the_copy_in_docs_is_what_the_declarations_make(name, made):
    text = json.dumps(made, indent=2, ensure_ascii=False) + "\n"
    copy = DOCS / f"{name}.schema.json"
    assert copy.read_text("utf-8") == text, f"write json.dumps({name}'s schema, indent=2, ensure_ascii=False) to {copy}"
