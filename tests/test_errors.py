"""Errors that an operator decides: what each holds, the commands that it names, and the page that lists them."""

from __future__ import annotations

import ast
import inspect
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

import frazil
from frazil import errors
from frazil.declaration import Append, Changelog, Pipeline, Table, Topic, Upsert
from frazil.errors import (
    EVENTS,
    ColumnsMissing,
    CountsDisagree,
    DeadLetterTableMismatch,
    DecisionRequired,
    DeletesLost,
    ForeignTable,
    FrazilError,
    KeysMissing,
    KeysMoved,
    LedgerLost,
    LogTruncated,
    MasksDiffer,
    OffsetsLost,
    OtherPipeline,
    RejectedRecords,
    RememberedDeletesLost,
    RolledBack,
    SourceTruncated,
    TooManyLate,
    TooManyRejected,
    TopicRecreated,
    WriteModeDiffers,
)
from frazil.lake.ledger import entry as ledger
from frazil.recovery.decisions import Accepted, can_happen
from tests.support.guides import parse

CLASSES = {name: each for name, each in vars(errors).items() if inspect.isclass(each) and issubclass(each, FrazilError)}
DECISIONS = {name: each for name, each in CLASSES.items() if issubclass(each, DecisionRequired)}
EXAMPLES: dict[str, DecisionRequired] = {
    "rejected records": RejectedRecords.of(
        "p", "t", counts={"too_short": 2}, first=(0, 7, "too_short"), records={0: [[7, 9]]}
    ),
    "too many rejected": TooManyRejected.of(
        "p", offsets="1 to 9", read=9, counts={"too_short": 8}, most_percent=50, is_unframed=True
    ),
    "a batch that does not add up": CountsDisagree.of_batch("p", offsets="1 to 9", number=8, counts={"read": 7}),
    "gaps": CountsDisagree.of_gaps("p", offsets="1 to 9", number=8, read=7, gaps={0: 1}),
    "a lost ledger": LedgerLost.of("p", "s.t", is_state=False),
    "a lost ledger of a state": LedgerLost.of("p", "s.t", is_state=True),
    "a table of another engine": ForeignTable.of("p", "s.t"),
    "a table of another pipeline": OtherPipeline.of("p", "s.t", {"q"}),
    "a table of another type": OtherPipeline.of_type("p", "s.t", "a.T", "b.T"),
    "a view": ForeignTable.of("p", "s.t", is_iceberg=False),
    "a renamed column": ColumnsMissing.of("p", "s.t", {"_kafka_offset": "off"}),
    "a dropped column": ColumnsMissing.of("p", "s.t", {"_kafka_offset": None}),
    "columns of the other layout": ColumnsMissing.of_layout("p", "s.t", made_with="flat"),
    "a table rolled back": RolledBack.of_table("p", "s.t"),
    "dead letters rolled back": RolledBack.of_dead_letters("p", "s.t__dead_letters"),
    "a table behind its dead letters": RolledBack.behind_dead_letters("p", "s.t", "s.t__dead_letters"),
    "a replaced dead-letter table": DeadLetterTableMismatch.of("p", "s.t__dead_letters", "it was dropped"),
    "dead letters of an earlier table": DeadLetterTableMismatch.of_earlier_table("p", "s.t__dead_letters"),
    "a topic created again": TopicRecreated.of("p", "t", topic_id="2", committed_id="1"),
    "a pipeline that was moved": TopicRecreated.of("p", "t", topic_id="2", committed_id="1", moved_to="u"),
    "missing partitions": LogTruncated.missing("p", "t", {3, 1}),
    "a log that ends too early": LogTruncated.at_end("p", "t", partition=0, committed=9, end=7),
    "a log with other records": LogTruncated.replaced("p", "t", partitions={2, 1}, offset=8),
    "records without keys": KeysMissing.of("p", "t", 3, write="Upsert", may_name_key=True),
    "changes without keys": KeysMissing.of("p", "t", 3, write="Upsert", may_name_key=False),
    "a key in two partitions": KeysMoved.of("p", "s.t", 3),
    "lost deletes": DeletesLost.of("p", "s.t", gaps=3, caught_up=1_700_000_000_000_000, retention_ms=86_400_000),
    "lost deletes, without a time": DeletesLost.of("p", "s.t", gaps=3, caught_up=0, retention_ms=86_400_000),
    "many late records": TooManyLate.of("p", "s.t", offsets="0 to 9", read=1000, late=200),
    "deleted keys that are gone": RememberedDeletesLost.of("p", "s.t", "s3://b/s/t/data/deleted-keys/1.parquet"),
    "other masks": MasksDiffer.of("p", "s.t", paths="email", may_accept=True),
    "a truncated source": SourceTruncated.of("p", "s.t", offsets="0 to 9", number=2),
    "another write mode": WriteModeDiffers.of("p", "s.t", declared="append", made_for="upsert"),
    "another key": WriteModeDiffers.of_key(
        "p", "s.t", kind="upsert", key=["id", "line"], made_for=["id"], is_of_records=False, may_identify=True
    ),
    "another key of the source": WriteModeDiffers.of_key(
        "p", "s.t", kind="upsert", key=["id", "line"], made_for=["id"], is_of_records=True, may_identify=False
    ),
    "lost offsets": OffsetsLost.of("p", "t", partition=0, first=3, earliest=8),
}
WRITES: dict[str, tuple[Append | Upsert | Changelog, ...]] = {
    **dict.fromkeys(("KeysMoved", "RejectedRecords"), (Upsert(),)),
    **dict.fromkeys(("TooManyLate", "RememberedDeletesLost"), (Upsert(order_by="n"),)),
    "DeletesLost": (Upsert(), Changelog()),
    "SourceTruncated": (Upsert(),),
}
"""The write modes in which an error occurs, where these are not all."""
NOT_BY_ACCEPT = {"counts-recount", "rows-deleted"}
"""Events that `frazil verify` names, not an error."""


# ── Errors that an operator decides ─────────────────────────────────────────────────────────────
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_decision_names_its_pipeline_its_place_and_its_commands(name: str) -> None:
    error = EXAMPLES[name]
    assert error.pipeline == "p"
    assert str(error).startswith("pipeline p, ")
    assert re.findall(r"`frazil accept p ([a-z-]+) --reason …`", error.do) == list(error.events)
    assert error.events or error.do
    assert "\n" not in str(error)


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_command_of_a_decision_is_accepted_and_decides_where_the_error_occurs(name: str) -> None:
    error = EXAMPLES[name]
    for command in re.findall(r"`frazil ([^`]+)`", str(error)):
        parse(f"frazil {command}")
    for write in WRITES.get(type(error).__name__, (Append(), Upsert(), Changelog())):
        assert all(can_happen(Accepted(event), write) for event in error.events), write
    assert set(error.commands) == {f"frazil accept p {event} --reason …" for event in error.events}


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_declaration_that_a_remedy_names_is_valid(name: str) -> None:
    given = {"key=…": 'key="id"', "At(…)": "At(datetime(2026, 1, 1, tzinfo=UTC))"}
    code = EXAMPLES[name].do
    for text, value in given.items():
        code = code.replace(text, value)
    for field, value in re.findall(r'\b(write|start|on_error)=("\w+"|\w+\((?:[^()]|\([^()]*\))*\))', code):
        chosen = eval(value, {**vars(frazil), "datetime": datetime, "UTC": UTC})
        Pipeline(
            topic=Topic("t", value="avro", key="avro"),
            table=Table("s.t"),
            **({"write": Upsert()} | {field: chosen}),
            envelope="debezium" if "on_truncate" in value else None,
        )


def test_each_class_of_a_decision_has_an_example() -> None:
    assert {type(error).__name__ for error in EXAMPLES.values()} == set(DECISIONS) - {"DecisionRequired"}


def test_each_event_is_named_by_an_error_accepted_and_on_the_page(root: Path) -> None:
    named = {event for error in EXAMPLES.values() for event in error.events}
    assert named | NOT_BY_ACCEPT == set(EVENTS) == {*Accepted, ledger.RECOUNT, ledger.ROWS_DELETED}
    section = (root / "docs" / "running.md").read_text().partition("## Operator decisions")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE)) == set(EVENTS)


def test_decisions_are_made_by_their_named_constructors_only(root: Path) -> None:
    for module in (root / "jobs").rglob("*.py"):
        if module.parent.name == "errors":
            continue
        for node in ast.walk(ast.parse(module.read_text())):
            is_direct = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in DECISIONS
            assert not is_direct, f"{module}:{node.lineno}"  # type: ignore[attr-defined]
