"""docs/declaration.md tells every field as the dataclass does."""

import json
import re
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from pathlib import Path

import pytest

import frazil.declaration as declaration
from frazil.declaration import FLAT_COLUMNS, parse, parse_environment
from frazil.declaration.checks.allowed_options import CONSUMER_OPTIONS
from frazil.declaration.checks.validation import hints, taken_apart

PAGE = (Path(__file__).parents[2] / "docs" / "declaration.md").read_text("utf-8")
ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*) \|$", re.MULTILINE)
PLAIN_VALUES = {"PartitionField", "SortField", "Problem"}
DECLARED = [
    each
    for name, each in vars(declaration).items()
    if isinstance(each, type)
    and name == each.__name__
    and is_dataclass(each)
    and fields(each)
    and name not in PLAIN_VALUES
]


def told(default: object) -> str:
    if isinstance(default, StrEnum):
        return f"`{type(default).__name__}.{default.name}`"
    if type(default) is int:
        return f"`{default:_}`" if default > 9999 else f"`{default}`"
    if is_dataclass(default) and default == type(default)():
        return f"`{type(default).__name__}()`"
    return f"`{default!r}`"


def default_of(field: Field[object]) -> str:
    if field.default is MISSING:
        return "required"
    return "from the table" if field.default == "" else told(field.default)


@pytest.mark.parametrize("cls", DECLARED, ids=lambda cls: cls.__name__)
def test_the_page_tells_each_field_with_default_and_meaning(cls):
    rows = {(name, default, meaning) for name, default, _, meaning in ROW.findall(PAGE)}
    expected = {(field.name, default_of(field), taken_apart(hints(cls)[field.name]).meaning) for field in fields(cls)}
    assert expected - rows == set()


def test_every_field_that_counts_something_has_a_unit_on_the_page():
    units = {name: unit for name, _, unit, _ in ROW.findall(PAGE)}
    counted = {
        "target_seconds",
        "first_rows",
        "max_rows",
        "max_bytes",
        "target_file_size_bytes",
        "newest",
        "days",
    }
    assert {name for name in counted if not units.get(name)} == set()


def test_the_page_names_every_member_of_every_closed_set():
    sets = [each for each in vars(declaration).values() if isinstance(each, type) and issubclass(each, StrEnum)]
    unsaid = [m for each in sets for m in each if not re.search(rf"\b({re.escape(m.name)}|{re.escape(m)})\b", PAGE)]
    assert unsaid == []


def test_the_page_names_every_option_and_column():
    assert [name for name in (*CONSUMER_OPTIONS, *FLAT_COLUMNS) if f"`{name}`" not in PAGE] == []


def test_the_documents_on_the_page_are_valid():
    whole = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    pipelines, environment = whole
    assert parse(pipelines)[0].name == "orders"
    assert parse_environment(environment).name == "dev"


def test_the_problems_on_the_page_are_what_a_person_sees():
    shown = [
        lambda: declaration.Topic("my orders", value="avro"),
        lambda: declaration.Table("shop.orders", partition_by=("days(event_time)", "bucket(user_id, 8)")),
    ]
    for make in shown:
        with pytest.raises(declaration.InvalidDeclaration) as raised:
            make()
        assert f"\n{raised.value}\n" in PAGE


def test_the_examples_declare_pipelines() -> None:
    examples = [
        text for text in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if text.startswith("from frazil import")
    ]
    assert len(examples) >= 4
    for text in examples:
        names: dict[str, object] = {}
        exec(text, names)
        listed = names.get("pipelines", [each for each in names.values() if isinstance(each, declaration.Pipeline)])
        assert isinstance(listed, list)
        assert listed, text
