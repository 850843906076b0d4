"""docs/reference/declaration.md is what the dataclasses make, and the examples of docs/declaration.md are valid."""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass
from enum import StrEnum
from pathlib import Path

import pytest

import frazil.declaration as declaration
from frazil.declaration import FLAT_COLUMNS, parse, parse_environment
from frazil.declaration.checks.allowed_options import CONSUMER_OPTIONS
from tests.support import declaration_page

PAGE = (Path(__file__).parents[2] / "docs" / "declaration.md").read_text("utf-8")
REFERENCE = declaration_page.PAGE.read_text("utf-8")
PLAIN_VALUES = {"PartitionField", "SortField", "Transform", "Problem"}
PUBLIC = [
    each
    for name, each in vars(declaration).items()
    if isinstance(each, type) and name == each.__name__ and name not in PLAIN_VALUES
]


# ── The reference ───────────────────────────────────────────────────────────────────────────────
def test_the_reference_is_what_the_declarations_make() -> None:
    assert declaration_page.page() == REFERENCE, "run python -m tests.support.declaration_page"


@pytest.mark.parametrize("cls", [each for each in PUBLIC if is_dataclass(each)], ids=lambda cls: cls.__name__)
def test_the_reference_has_each_field_of_each_declared_class(cls: type) -> None:
    section = REFERENCE.split(f"\n## {cls.__name__}\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| .*? \| \S.*? \|$", section, re.MULTILINE)
    assert [name for name, _, _ in rows] == [field.name for field in fields(cls)]


def test_the_reference_names_every_member_of_every_closed_set() -> None:
    sets = [each for each in PUBLIC if issubclass(each, StrEnum)]
    assert sets
    assert [m for each in sets for m in each if f"`{m.name}` (`{m}`)" not in REFERENCE] == []


def test_the_reference_names_every_option_and_column() -> None:
    assert [name for name in (*CONSUMER_OPTIONS, *FLAT_COLUMNS) if f"`{name}`" not in REFERENCE] == []


def test_each_link_of_the_reference_has_its_heading() -> None:
    headings = {heading.lower() for heading in re.findall(r"^## (\w+)$", REFERENCE, re.MULTILINE)}
    assert {*re.findall(r"\]\(#(\w+)\)", REFERENCE)} <= headings


# ── The examples ────────────────────────────────────────────────────────────────────────────────
def test_the_documents_on_the_page_are_valid() -> None:
    pipelines, environment = (json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    assert parse(pipelines)[0].name == "orders"
    assert parse_environment(environment).name == "dev"


def test_the_problems_on_the_page_are_what_a_person_sees() -> None:
    shown = [
        lambda: declaration.Topic("my orders", value="avro"),
        lambda: declaration.Table("shop.orders", partition_by=("days(event_time)", "bucket(user_id, 8)")),
    ]
    for make in shown:
        with pytest.raises(declaration.InvalidDeclaration) as raised:
            make()
        assert f"\n{raised.value}\n" in PAGE


def test_the_examples_declare_pipelines() -> None:
    examples = [text for text in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "import" in text]
    assert len(examples) >= 4
    for text in examples:
        names: dict[str, object] = {}
        exec(text, names)
        listed = names.get("pipelines", [each for each in names.values() if isinstance(each, declaration.Pipeline)])
        assert isinstance(listed, list | tuple)
        assert listed, text
