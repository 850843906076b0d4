"""Each option of a write mode, in both format versions, without and with an envelope: refused, or supported, by which test."""

from __future__ import annotations

import ast
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path

import pytest

from frazil.declaration import (
    Append,
    Avro,
    Changelog,
    Debezium,
    InvalidDeclaration,
    Order,
    Pipeline,
    Table,
    Topic,
    Upsert,
)
from frazil.declaration.write_modes import WriteMode

MACHINE = "test_state_machine.py::test_any_order_of_events_ends_in_what_the_topic_says"
TOMBSTONE = "test_bad_input.py::test_a_tombstone_becomes_what_is_declared"
REFUSED = ""
SOFT = "test_debezium.py::test_a_soft_delete_keeps_the_values_that_were_left_out"
TRUNCATE = "test_truncates.py::test_all_rows_go_that_are_before_a_truncate"
CHANGES = "test_changelog.py::test_each_event_of_a_source_is_a_change"
COLUMNS = "test_changelog.py::test_columns_of_the_value_are_a_key"
MATRIX: tuple[tuple[str, WriteMode, str, str], ...] = (  # the option; the scenario without, and with an envelope
    ("on_tombstone", Append(), TOMBSTONE, REFUSED),
    ("on_tombstone", Append(on_tombstone="null_row"), TOMBSTONE, REFUSED),
    ("on_tombstone", Append(on_tombstone="skip"), TOMBSTONE, REFUSED),
    ("key", Upsert(), MACHINE, MACHINE),
    ("key", Upsert(key="id"), MACHINE, REFUSED),
    ("order_by", Upsert(order_by="at"), MACHINE, REFUSED),
    ("order_by", Upsert(order_by=Order("at", remember_deletes="3 days")), MACHINE, REFUSED),
    ("on_tombstone", Upsert(on_tombstone="soft_delete"), MACHINE, SOFT),
    ("on_truncate", Upsert(on_truncate="delete_all"), REFUSED, TRUNCATE),
    ("key", Changelog(), MACHINE, CHANGES),
    ("key", Changelog(key="id"), COLUMNS, REFUSED),
    ("order_by", Changelog(order_by="at"), MACHINE, REFUSED),
)


@pytest.mark.parametrize(("option", "mode", "alone", "enveloped"), MATRIX)
@pytest.mark.parametrize("version", [2, 3])
def test_each_option_is_supported_by_a_test_or_refused(
    root: Path, option: str, mode: WriteMode, alone: str, enveloped: str, version: int
) -> None:
    topic, table = Topic("orders", value=Avro(), key=Avro()), Table("shop.orders", format_version=version)
    for envelope, named in ((None, alone), (Debezium(), enveloped)):
        with nullcontext() if named else pytest.raises(InvalidDeclaration, match=f"{option}|pipeline.envelope"):
            Pipeline(topic=topic, table=table, write=mode, envelope=envelope)
        if named:
            file, _, name = named.partition("::")
            tree = ast.parse((root / "tests" / "scenarios" / file).read_text("utf-8"))
            (test,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
            assert "version" in {argument.arg for argument in test.args.args}, "it runs in both format versions"


def test_the_matrix_has_each_option_of_each_mode() -> None:
    options = {(mode.kind, option.name) for mode in (Append, Upsert, Changelog) for option in fields(mode)}
    assert {(mode.kind, option) for option, mode, *_ in MATRIX} == options
