import json
import re
from pathlib import Path
from typing import Any

import pytest

from frazil.declaration import OAuth, Secret, parse_environment
from frazil.declaration.documents.from_json import from_json
from tests.declaration.problems_of import problems_of


@pytest.mark.parametrize(
    "values",
    [
        {"env": "API_KEY"},
        {"file": "/run/key"},
        {"secretsmanager": "frazil/dev/kafka"},
        {"secretsmanager": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:kafka-AbCdEf", "field": "secret"},
    ],
)
def test_a_secret_has_one_place(values):
    assert from_json(Secret, values, "p") == Secret(**values)


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({}, "env"),
        ({"env": "A", "file": "/a"}, "env"),
        ({"env": "not a name"}, "env"),
        ({"file": "relative"}, "file"),
        ({"secretsmanager": "two words"}, "secretsmanager"),
        ({"env": "A", "field": "x"}, "field"),
        ({"secretsmanager": "a", "field": ""}, "field"),
    ],
)
def test_any_other_number_of_places_is_refused(values, path):
    assert list(problems_of(lambda: Secret(**values))) == [f"secret.{path}"]


@pytest.mark.parametrize(
    "value",
    [
        "hunter2!",
        ["hunter2!"],
        {"value": "hunter2!"},
        {"env": "hunter2!"},
        {"file": "hunter2!"},
        {"secretsmanager": "hunter2! "},
        {"env": ["hunter2!"]},
        {"env": "A", "field": " hunter2!"},
        {"file": {"x": "hunter2!"}},
    ],
)
def test_a_value_written_where_a_name_belongs_is_never_repeated(value):
    assert "hunter2" not in str(problems_of(lambda: from_json(Secret, value, "p")))


PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
EXAMPLES = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
GIVEN = {
    "token_endpoint": "https://id.example/token",
    "client_id": Secret(env="CLIENT"),
    "client_secret": Secret(env="CLIENT_SECRET"),
}


@pytest.mark.parametrize(
    ("values", "paths"),
    [
        ({"token_endpoint": "id.example/token"}, ["token_endpoint"]),
        ({"token_endpoint": "http://id.example/token"}, ["token_endpoint"]),
        ({"token_endpoint": "https://me:hunter2@id.example/token"}, ["token_endpoint"]),
        ({"token_endpoint": "https://id.example/a,b"}, ["token_endpoint"]),
        ({"token_endpoint": "https://id.example/'a"}, ["token_endpoint"]),
        ({"token_endpoint": "http://127.0.0.1/token", "ca": "/ca.pem"}, ["ca"]),
        ({"ca": "ca.pem"}, ["ca"]),
        ({"scope": ""}, ["scope"]),
        ({"scope": "a  b"}, ["scope"]),
        ({"scope": 'a"b'}, ["scope"]),
        ({"logical_cluster": "lkc-1,x=y"}, ["logical_cluster"]),
        ({"identity_pool": "pool-1\r\nX-Evil: 1"}, ["identity_pool"]),
    ],
)
def test_credentials_that_cannot_work_are_refused(values: dict[str, Any], paths: list[str]) -> None:
    found = problems_of(lambda: OAuth(**(GIVEN | values)))
    assert list(found) == [f"oauth.{path}" for path in paths]
    assert "hunter2" not in str(found)


def test_a_secret_may_travel_in_the_clear_within_this_machine() -> None:
    assert OAuth(**(GIVEN | {"token_endpoint": "http://127.0.0.1:8080/token"}))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["kafka"].get("mechanism", "mTLS"))
def test_each_example_of_the_page_is_a_part_of_an_environment(example: dict[str, Any]) -> None:
    catalog = {"type": "local", "path": "/data/lake.db", "warehouse": "/data/lake"}
    assert parse_environment({"version": 1, "name": "dev", "catalog": catalog, **example})
