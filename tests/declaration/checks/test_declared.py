"""A constructor refuses misspelt and missing arguments, and raises all problems of its instance."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from frazil.declaration import Pipeline, Table, Topic
from tests.declaration.problems_of import problems_of

ORDERS = Topic("orders", value="avro")


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (
            lambda: Topic("orders", valeu="avro"),
            {
                "topic.valeu": "there is no such field. Did you mean value?",
                "topic.value": "the field is missing. Write Avro(…) or JsonSchema(…) or Protobuf(…) or Json(…) or ConnectJson(…) or Text() or Bytes()",
            },
        ),
        (
            lambda: Topic(),
            {
                "topic.name": "the field is missing. Write text",
                "topic.value": "the field is missing. Write Avro(…) or JsonSchema(…) or Protobuf(…) or Json(…) or ConnectJson(…) or Text() or Bytes()",
            },
        ),
        (
            lambda: replace(ORDERS, nam="x"),
            {"topic.nam": "there is no such field. Did you mean name?"},
        ),
    ],
)
def test_arguments_that_do_not_fit_are_problems_with_a_remedy(make, found):
    assert problems_of(make) == found


def test_the_other_fields_are_judged_too():
    assert list(problems_of(lambda: Table("Bad", partition_by=("dayz(x)",), keep_dys=1))) == [
        "table.keep_dys",
        "table.identifier",
        "table.partition_by[0]",
    ]


def test_a_value_without_its_name_is_an_error_of_python():
    with pytest.raises(TypeError, match=r"takes 2 positional arguments but 3"):
        Topic("a", "avro", value="avro")
    with pytest.raises(TypeError, match="multiple values for argument 'name'"):
        Topic("a", name="b", value="avro")


def test_the_first_part_that_is_made_raises_all_of_its_problems_alone():
    def wrong() -> object:
        return Pipeline(topic=Topic("a b", value="txt"), table=Table("Bad"))

    assert list(problems_of(wrong)) == ["topic.value", "topic.name"]


def test_a_type_checker_takes_the_text_and_gives_the_choice(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        dedent(
            """
            from frazil import Json, Topic
            Topic("a", value="avro", key="text").value.has_schema
            Topic("a", value=Json(columns=("a long",)))
            Topic("a", value=3)
            """
        )
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(file)]
    ended = subprocess.run(
        command, env={"MYPYPATH": str(Path(__file__).parents[3] / "jobs")}, cwd=tmp_path, capture_output=True, text=True
    )
    lines = [line for line in ended.stdout.splitlines() if line.startswith(("mine.py", str(file)))]
    assert len(lines) == 1, ended.stdout
    assert "mine.py:5: error:" in lines[0]
