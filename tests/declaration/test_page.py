"""docs/reference/declaration.md is what the dataclasses make, and the examples of docs/declaration.md are valid."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import frazil.declaration as declaration
from frazil.declaration import parse, parse_environment
from tests.support import declaration_page

PAGE = (Path(__file__).parents[2] / "docs" / "declaration.md").read_text("utf-8")
REFERENCE = declaration_page.PAGE.read_text("utf-8")


# ── The reference ───────────────────────────────────────────────────────────────────────────────
def test_the_reference_is_what_the_declarations_make() -> None:
    assert declaration_page.page() == REFERENCE, "run python -m tests.support.declaration_page"


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
