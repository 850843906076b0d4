import pytest

from frazil.declaration import Secret
from frazil.declaration.from_json import from_json
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
