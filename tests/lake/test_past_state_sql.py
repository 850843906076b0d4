"""The query of an earlier state, run by DuckDB on tables that a model of commits made."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot

from frazil.errors import InvalidInput
from frazil.lake import past_state_sql
from frazil.lake.changelog_views import table_name
from frazil.lake.history.history_columns import STATE_NAMES
from frazil.lake.history.history_ledger import HistoryAccount
from frazil.lake.offsets import Offsets
from frazil.lake.past_state_sql import UNKNOWN, PastState, StateColumn
from frazil.lake.sql_engine import SqlEngine

KEYS = 4
NOTHING, BEGIN = HistoryAccount(rows=0, hash=0, since=0, began=0), Offsets("t", "T1", {0: 0, 1: 0})
STATE = pa.schema({"key": pa.int32(), "word": pa.string()})
CHANGES = pa.schema(
    {"key": pa.int32(), "_end": pa.string(), "_sequence": pa.int64(), "_before": pa.struct(list(STATE))}
)
Rows = dict[int, str]
At = dict[int, int]


def of_ids(names: dict[int, str], image: dict[int, str]) -> dict[str, Any]:
    """Return a schema of columns by id, with those of the row before in `_before`."""

    def fields(of: dict[int, str]) -> list[dict[str, Any]]:
        return [{"id": number, "name": name, "required": False, "type": "string"} for number, name in of.items()]

    before = {"id": 99, "name": "_before", "required": False, "type": {"type": "struct", "fields": fields(image)}}
    return {"type": "struct", "fields": [*fields(names), *([before] if image else [])]}


def test_a_column_whose_name_another_one_has_now_is_read_by_its_name_of_then() -> None:
    """The history followed the present names, and has recorded no commit since; what the state has dropped keeps its values."""
    recorded, then = of_ids({1: "key", 5: "a"}, {}), of_ids({1: "key", 2: "a"}, {11: "key", 12: "a"})
    now = of_ids({1: "key", 2: "a_dropped", 3: "a"}, {11: "key", 12: "a_dropped", 13: "a"})
    names = {STATE_NAMES: json.dumps({"1": "key", "9": "a"})}
    history: Any = SimpleNamespace(properties=names, schema=now)
    assert past_state_sql._columns(recorded, recorded, history, then)[1] == StateColumn("a", "a", "a")
    present = of_ids({1: "key", 9: "a"}, {})
    assert past_state_sql._columns(present, recorded, history, now)[1] == StateColumn("a", "a", "a")
    assert past_state_sql._columns(recorded, recorded, history, now)[1] == StateColumn("a", None, None)


@dataclass
class Model:
    """A state and its history. `states` are those behind each commit, with their offsets; some of them change no row."""

    dice: random.Random
    account: HistoryAccount = NOTHING
    rows: Rows = field(default_factory=dict)
    offsets: Offsets = BEGIN
    changes: list[tuple[int, str, int, str | None]] = field(default_factory=list)
    states: list[tuple[At, Rows]] = field(default_factory=list)

    def commit(self, at: At, topic_id: str = "T1", *, keys: int) -> None:
        sequence, now = len(self.states) + 1, Offsets("t", topic_id, at)
        self.account, self.offsets = self.account.moved(self.offsets, now, sequence), now
        end = json.dumps({str(partition): offset for partition, offset in at.items()})
        for key in self.dice.sample(range(KEYS), keys):
            self.changes.append((key, end, sequence, self.rows.get(key)))
            if self.dice.random() < 0.3:
                self.rows.pop(key, None)
            else:
                self.rows[key] = f"word of {sequence}"
        self.states.append((at, dict(self.rows)))

    def land(self, commits: int) -> None:
        for _ in range(commits):
            at = {partition: offset + self.dice.randrange(20) for partition, offset in self.offsets.at.items()}
            self.commit(at, self.offsets.topic_id, keys=self.dice.randrange(KEYS))

    @property
    def past(self) -> PastState:
        return PastState(
            columns=(StateColumn("key", "key", "key"), StateColumn("word", "word", "word")),
            key=("key",),
            held=self.offsets.at,
            set_backs=self.account.set_backs,
            state_snapshot=1,
            history_snapshot=1,
        )

    def at(self, at: At, kept_from: int = 0) -> Rows:
        changes = [
            {
                "key": key,
                "_end": end,
                "_sequence": number,
                "_before": None if word is None else {"key": key, "word": word},
            }
            for key, end, number, word in self.changes
            if number >= kept_from
        ]
        lake = duckdb.connect()
        lake.register("state", pa.table([list(self.rows), list(self.rows.values())], STATE))
        lake.register("changes", pa.Table.from_pylist(changes, CHANGES))
        return dict(lake.execute(self.past.query(SqlEngine.DUCKDB, "state", "changes", at)).fetchall())


@pytest.fixture
def model() -> Model:
    """Three commits: of one row, of another one, and of its update."""
    made = Model(random.Random(1))
    for at in ({0: 40, 1: 0}, {0: 40, 1: 50}, {0: 100, 1: 90}):
        made.commit(at, keys=KEYS)
    return made


def test_the_state_is_that_of_the_last_commit_at_these_offsets_or_before(model: Model) -> None:
    (_, first), (_, second), (_, third) = model.states
    assert model.at({0: 40}) == model.at({0: 99, 1: 49}) == first
    assert model.at({0: 40, 1: 50}) == model.at({0: 100, 1: 89}) == second
    assert model.at({0: 100, 1: 90}) == model.at({0: 10**6, 1: 10**6}) == third


def test_offsets_before_the_first_change_that_is_kept_are_unknown(model: Model) -> None:
    with pytest.raises(duckdb.Error, match=UNKNOWN):
        model.at({0: 39, 1: 90})
    with pytest.raises(duckdb.Error, match=UNKNOWN):
        model.at({0: 40, 1: 50}, kept_from=3)


def test_offsets_of_a_topic_that_was_created_again_are_those_of_the_present_one(model: Model) -> None:
    """Before its first commit, the state is what the former topic left. What the former one's offsets were is no longer named."""
    left = model.states[-1][1]
    model.commit({0: 0, 1: 0}, "T2", keys=0)
    model.commit({0: 60, 1: 10}, "T2", keys=KEYS)
    assert model.at({0: 60, 1: 10}) == model.states[-1][1]
    assert model.at({0: 59, 1: 10}) == model.at({0: 40}) == left
    with pytest.raises(InvalidInput, match="its offsets went back once"):
        model.at({0: 100, 1: 90})


def test_offsets_before_those_of_a_truncation_are_what_they_were(model: Model) -> None:
    (_, first), (_, second), (_, left) = model.states
    model.commit({0: 70, 1: 60}, keys=0)
    model.commit({0: 75, 1: 90}, keys=KEYS)
    model.commit({0: 120, 1: 90}, keys=KEYS)
    assert model.at({0: 40}) == first
    assert model.at({0: 69, 1: 60}) == second
    assert model.at({0: 75, 1: 80}) == left  # as it was when offsets went back to 70 and 60
    assert model.at({0: 100, 1: 90}) == model.states[-2][1]
    with pytest.raises(InvalidInput, match="before it in one partition"):
        model.at({0: 100, 1: 50})


def test_a_history_that_has_not_noted_that_offsets_went_back_returns_the_present_state_at_its_end(model: Model) -> None:
    """Releases before it noted none."""
    model.commit({0: 0, 1: 0}, "T2", keys=0)
    model.commit({0: 60, 1: 10}, "T2", keys=KEYS)
    model.account = NOTHING
    assert model.at({0: 60, 1: 10}) == model.states[-1][1]


def test_duckdb_parses_the_text_that_reads_both_tables_at_their_snapshots(model: Model) -> None:
    state, history = (SqlEngine.DUCKDB.at_snapshot(name, 7) for name in ("lake.s.t", "lake.s.t__changes"))
    (statement,) = duckdb.extract_statements(model.past.query(SqlEngine.DUCKDB, state, history, {0: 1}))
    assert statement.query.count("AT (VERSION => 7)") == 2


HOSTILE = PastState(
    columns=(
        StateColumn('it\'s "a" \\ `b`', 'it\'s "a" \\ `b`', 'it\'s "a" \\ `b`'),
        StateColumn("order", 'or"der', 'Or"der'),
        StateColumn("new", None, None),
    ),
    key=('it\'s "a" \\ `b`', "order"),
    held={0: 5, 1: 5},
    set_backs=(),
    state_snapshot=7,
    history_snapshot=8,
)
TEXTS = {
    SqlEngine.ATHENA: """WITH changes AS (
  SELECT *, (COALESCE(CAST(json_extract_scalar("_end", '$["0"]') AS BIGINT), 0) > 3 OR COALESCE(CAST(json_extract_scalar("_end", '$["1"]') AS BIGINT), 0) > 0) AS _frazil_later
  FROM "shop"."o""r; 'd'__changes" FOR VERSION AS OF 8
),
point AS (
  SELECT CASE WHEN COUNT(CASE WHEN _frazil_later THEN NULL ELSE 1 END) = 0
    THEN fail('the history has no change at or before these offsets, so the state there is unknown') ELSE MAX(CASE WHEN _frazil_later THEN NULL ELSE "_sequence" END) END AS _frazil_last
  FROM changes
),
later AS (
  SELECT c.*, ROW_NUMBER() OVER (PARTITION BY "it's ""a"" \\ `b`", "or""der" ORDER BY "_sequence") AS _frazil_number
  FROM changes c CROSS JOIN point p
  WHERE c."_sequence" > p._frazil_last
)
SELECT s."it's ""a"" \\ `b`", s."order", s."new"
FROM "shop"."o""r; 'd'" FOR VERSION AS OF 7 s
WHERE NOT EXISTS (SELECT 1 FROM later l WHERE l."it's ""a"" \\ `b`" = s."it's ""a"" \\ `b`" AND l."or""der" = s."order")
UNION ALL
SELECT "_before"."it's ""a"" \\ `b`" AS "it's ""a"" \\ `b`", "_before"."Or""der" AS "order", NULL AS "new"
FROM later
WHERE _frazil_number = 1 AND "_before" IS NOT NULL""",
    SqlEngine.SNOWFLAKE: """WITH changes AS (
  SELECT *, (COALESCE(CAST(GET(PARSE_JSON("_END"), '0') AS BIGINT), 0) > 3 OR COALESCE(CAST(GET(PARSE_JSON("_END"), '1') AS BIGINT), 0) > 0) AS _frazil_later
  FROM "SHOP"."o""r; 'd'__changes"
),
point AS (
  SELECT CASE WHEN COUNT(CASE WHEN _frazil_later THEN NULL ELSE 1 END) = 0
    THEN TO_NUMBER('the history has no change at or before these offsets, so the state there is unknown') ELSE MAX(CASE WHEN _frazil_later THEN NULL ELSE "_SEQUENCE" END) END AS _frazil_last
  FROM changes
),
later AS (
  SELECT c.*, ROW_NUMBER() OVER (PARTITION BY "it's ""a"" \\ `b`", "or""der" ORDER BY "_SEQUENCE") AS _frazil_number
  FROM changes c CROSS JOIN point p
  WHERE c."_SEQUENCE" > p._frazil_last
)
SELECT s."it's ""a"" \\ `b`", s."ORDER", s."NEW"
FROM "SHOP"."o""r; 'd'" s
WHERE NOT EXISTS (SELECT 1 FROM later l WHERE l."it's ""a"" \\ `b`" = s."it's ""a"" \\ `b`" AND l."or""der" = s."ORDER")
UNION ALL
SELECT "_BEFORE":"it's ""a"" \\ `b`" AS "it's ""a"" \\ `b`", "_BEFORE":"Or""der" AS "ORDER", NULL AS "NEW"
FROM later
WHERE _frazil_number = 1 AND "_BEFORE" IS NOT NULL""",
}


@pytest.mark.parametrize("engine", TEXTS)
def test_the_text_for_an_engine_that_no_test_runs_is_this_one(engine: SqlEngine) -> None:
    """Its names are quoted, whatever they contain."""
    state, history = (
        engine.at_snapshot(table_name(engine, "lake", f"shop.o\"r; 'd'{suffix}"), number)
        for suffix, number in (("", HOSTILE.state_snapshot), ("__changes", HOSTILE.history_snapshot))
    )
    query = HOSTILE.query(engine, state, history, {0: 3})
    assert query == TEXTS[engine]
    assert isinstance(sqlglot.parse_one(query, read=engine.value), sqlglot.exp.Query)


@pytest.mark.parametrize("number", [0, *(pytest.param(number, marks=pytest.mark.long) for number in range(1, 4))])
def test_offsets_name_the_last_commit_that_ended_there_as_the_topic_is_now(number: int) -> None:
    """A commit has its name until offsets go back to before its end."""
    dice = random.Random(number)
    model = Model(dice)
    model.commit({0: 1, 1: 1}, keys=KEYS)
    model.land(5)
    named = list(model.states)
    for _ in range(3):
        topic_id = dice.choice([model.offsets.topic_id, f"T{len(model.states)}"])
        at = {partition: dice.randrange(offset + 1) for partition, offset in model.offsets.at.items()}
        named = [one for one in named if topic_id == model.offsets.topic_id and is_up_to(one[0], at)]
        begin = at if topic_id == model.offsets.topic_id else {0: 0, 1: 0}
        model.commit(at, topic_id, keys=0)
        model.land(5)
        named += [(begin, model.states[-6][1]), *model.states[-5:]]
    refused = 0
    for at in [*(at for at, _ in model.states), *({0: dice.randrange(90), 1: dice.randrange(90)} for _ in range(20))]:
        wanted = [rows for end, rows in named if is_up_to(end, at)]
        try:
            found = model.at(at)
        except InvalidInput:
            refused += 1
        except duckdb.Error:
            assert not wanted
        else:
            assert found == wanted[-1], at
    assert refused < 35


def is_up_to(one: At, other: At) -> bool:
    return all(one[partition] <= other[partition] for partition in other)
