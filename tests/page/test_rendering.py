"""Pages hold what facts say, whoever chose the words: nothing is markup, and no secret passes."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from frazil.clients.secrets import Redactor
from frazil.page.dead_letter_views import Rejected
from frazil.page.drawing import Station
from frazil.page.engine_queries import Query
from frazil.page.facts import Detail, Growth, Overview, SchemaVersion
from frazil.page.rendering import Choice, Rendering, shared_reasons
from frazil.status.pipeline_status import Commit, PartitionStatus, PipelineStatus, State
from frazil.status.shown_values import rate
from tests.page.page_facts import HOSTILE, GivenFacts, hostile_letter, many

AT = datetime(2026, 1, 31, tzinfo=UTC)
FULL = PipelineStatus(
    pipeline="orders",
    topic=HOSTILE,
    table=HOSTILE,
    state=State.STOPPED,
    why=HOSTILE,
    commands=(HOSTILE,),
    record=(HOSTILE, 0, 7),
    location=HOSTILE,
    differences=(HOSTILE,),
    stale=(HOSTILE,),
    columns=((HOSTILE, HOSTILE),),
    partitions=(PartitionStatus(partition=0, held=5, stable=9),),
    commits=(Commit(snapshot_id=1, at=AT, operation=HOSTILE, offsets={}, counts=None, is_ours=False),),
)


class Read(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile_detail() -> Detail:
    station = Station(kind="topic", title=HOSTILE, lines=(HOSTILE,), arrives=HOSTILE)
    one = hostile_letter()
    return Detail(
        status=FULL,
        at=time.time(),
        way=(station, station, station, station),
        aside=station,
        growth=(Growth(at=0, rows=0, files=0, bytes=0), Growth(at=9, rows=9, files=9, bytes=9)),
        schemas=(SchemaVersion(id=0, changes=(f"+ {HOSTILE}",)),),
        rejected=Rejected(counts={HOSTILE: 1}, newest=(one.letter,), examples={HOSTILE: one}),
        queries=(Query(engine=HOSTILE, text=HOSTILE),),
        verify=HOSTILE,
    )


def pages(rendering: Rendering, file: Rendering) -> dict[str, str]:
    overview = Overview(environment=HOSTILE, at=0, rows=(FULL,), notes=(HOSTILE,))
    return {
        "overview": rendering.overview(overview, age=1, chosen=Choice(text=HOSTILE, state=HOSTILE)),
        "pipeline": rendering.pipeline(hostile_detail(), 1),
        "letter": rendering.letter("orders", hostile_letter(), at=0, age=1),
        "message": rendering.message(HOSTILE, HOSTILE),
        "file": file.file(overview, [hostile_detail()]),
    }


@pytest.mark.parametrize("name", ["overview", "pipeline", "letter", "message", "file"])
def test_hostile_topics_columns_reasons_and_records_are_text(name: str) -> None:
    page = pages(Rendering(HOSTILE, Redactor()), Rendering(HOSTILE, Redactor(), is_file=True))[name]
    read = Read(page)
    tags = [tag for tag, _ in read.elements]
    assert "img" not in tags
    assert tags.count("script") == 1  # the page's own
    assert not [key for _, attributes in read.elements for key in attributes if key.startswith("on")]
    assert not [1 for _, attributes in read.elements if "style" in attributes]
    assert "alert(1)" in read.text
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert "\\u202e" in read.text
    assert "{{ 7*7 }}" in unescape(page)  # no template is made of a value
    addresses = [a.get(key) or "" for _, a in read.elements for key in ("href", "src", "action") if key in a]
    assert [one for one in addresses if not one.startswith(("/", "#"))] == []


@pytest.mark.parametrize("name", ["overview", "pipeline", "letter", "message", "file"])
def test_secrets_are_masked_on_each_page(name: str) -> None:
    redactor = Redactor()
    redactor.add("onerror=alert(1)")  # a part of each hostile text
    page = pages(Rendering("prod", redactor), Rendering("prod", redactor, is_file=True))[name]
    assert "onerror=alert" not in unescape(page)
    assert "[redacted]" in page


def test_a_secret_with_a_backtick_is_masked_before_commands_are_found() -> None:
    redactor = Redactor()
    redactor.add("hunter`2secret`")
    why = "login hunter`2secret` refused. Run `frazil x`"
    status = PipelineStatus(pipeline="orders", topic="t", table="s.t", state=State.UNKNOWN, why=why)
    page = Rendering("prod", redactor).pipeline(Detail(status=status, at=0), 1)
    assert "2secret" not in page
    assert "login [redacted] refused. Run <code>frazil x</code>" in page


def test_the_file_needs_nothing_else_and_its_policy_allows_its_own_style_and_script_alone() -> None:
    rows = many(60)
    page = Rendering("prod", Redactor(), is_file=True).file(Overview(environment="prod", at=0, rows=rows), [])
    policy = next(a["content"] for tag, a in Read(page).elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    for name in ("style", "script"):
        (text,) = re.findall(f"<{name}>(.*?)</{name}>", page, re.DOTALL)
        assert f"{name}-src 'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy
    assert "/static/" not in page
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.parametrize("state", list(State))
def test_each_state_is_shown_with_its_reason_and_commands(state: State) -> None:
    row = PipelineStatus(
        pipeline="orders",
        topic="orders",
        table="shop.orders",
        state=state,
        why="because `this`",
        commands=("frazil x",),
    )
    rendering = Rendering("prod", Redactor())
    overview = rendering.overview(Overview(environment="prod", at=0, rows=(row,)), age=31, chosen=Choice())
    for page in (overview, rendering.pipeline(Detail(status=row, at=0, verify="frazil verify orders"), 1)):
        assert f'class="badge {state.value.replace(" ", "-")}"' in page
        assert "because <code>this</code>" in page
        assert "frazil x" in page
    assert "newer facts are being read" in overview
    assert "There is no table, or it cannot be read." in page
    read = replace(row, rows=0)
    assert "Not verified yet" in rendering.pipeline(Detail(status=read, at=0, verify="frazil verify orders"), 1)


def test_a_note_names_its_command_for_the_environment() -> None:
    noted = Detail(status=PipelineStatus(pipeline="orders", topic="t", table="s.t", foreign_commits=1), at=0)
    assert "<code>frazil verify orders --env prod</code>" in Rendering("prod", Redactor()).pipeline(noted, 1)
    assert "<code>frazil verify orders</code>" in Rendering("local", Redactor()).pipeline(noted, 1)


def test_pipelines_are_found_by_text_and_state_and_the_urgent_ones_are_first() -> None:
    rows = many(500)
    overview = Overview(environment="prod", at=0, rows=rows)
    page = Rendering("prod", Redactor()).overview(overview, age=0, chosen=Choice(text="BILLING", state="stopped"))
    bodies = [a for tag, a in Read(page).elements if tag == "tbody"]
    assert len(bodies) == 500
    assert {a["data-state"] for a in bodies[:10]} == {"stopped"}
    shown = [a for a in bodies if "hidden" not in a]
    assert [a["data-state"] for a in shown] == ["stopped"] * len(shown)
    assert f"{len(shown)} of 500" in page
    assert 0 < len(shown) < 10


def test_a_reason_of_many_pipelines_is_shown_once() -> None:
    why = "the catalog does not answer"
    rows = tuple(replace(one, state=State.UNKNOWN, why=f"table {one.table}: {why}", commands=()) for one in many(20))
    page = Rendering("x", Redactor()).overview(Overview(environment="x", at=0, rows=rows), age=0, chosen=Choice())
    assert [len(names) for _, names in shared_reasons(rows)] == [20]
    assert Read(page).text.count(why) == 1


def test_without_a_pipeline_the_page_says_how_to_declare_one() -> None:
    page = Rendering("x", Redactor()).overview(Overview(environment="x", at=0, rows=()), age=0, chosen=Choice())
    assert "No pipeline yet" in page
    assert "frazil init" in page


def test_rates_are_short() -> None:
    assert [rate(value) for value in (None, 0, 0.25, 99.94, 12345.6)] == ["–", "0/s", "0.2/s", "99.9/s", "12,346/s"]


def test_500_pipelines_are_one_reading_and_one_rendering() -> None:
    facts, calls = GivenFacts(many(500)), list[str]()
    rendering = Rendering("x", Redactor())
    masked = rendering._masked
    rendering._jinja.finalize = lambda value: (calls.append(""), masked(value))[1]
    rendering._jinja.cache = None
    page = rendering.overview(facts.overview(), age=0, chosen=Choice())
    assert facts.asked == ["overview"]
    assert len(calls) < 500 * 40
    assert len(page) < 1_500_000


def test_templates_and_files_are_next_to_the_module() -> None:
    folder = Path(__file__).parents[2] / "jobs" / "frazil" / "page"
    assert {file.name for file in (folder / "static").iterdir()} == {"page.css", "page.js", "icon.svg"}
    assert "</script" not in (folder / "static" / "page.js").read_text()
    assert "|safe" not in "".join(file.read_text() for file in (folder / "templates").iterdir())
