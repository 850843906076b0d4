"""A person walks through all views, with the mouse and the keyboard, in light, dark and on a phone; and docs get their pictures."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from frazil.clients.secrets import Redactor
from frazil.page.facts import Overview
from frazil.page.rendering import Rendering
from frazil.status.pipeline_status import State
from tests.page.page_facts import GivenFacts, facts_of, landed_orders, many, other_pipelines, proven, served
from tests.support.chromium import browser

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
WAYS = {
    "light": ("light", WIDE),
    "dark": ("dark", WIDE),
    "phone": ("light", PHONE),
    "phone in the dark": ("dark", PHONE),
}
LARGEST = 200_000


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> GivenFacts:
    """The facts of a real table, among pipelines in all states, one of which has stopped."""
    folder = tmp_path_factory.mktemp("lake")
    landed = landed_orders(folder)
    proven(landed, folder / "proofs")
    real = facts_of(landed, *other_pipelines(), proofs=folder / "proofs", ends=1500)
    rows = real.overview().rows
    detail, letter = real.detail("orders"), real.letter("orders", (0, 145))
    shown = replace(detail.status, location="s3://lake/warehouse/shop/orders", differences=())
    return GivenFacts((shown, *rows[1:], *many(40)), replace(detail, status=shown), letter)


class Person:
    """A page in one of `WAYS`, whose requests and problems are noted."""

    def __init__(self, chromium: Any, address: str, scheme: str, size: dict[str, int]) -> None:
        self.context = chromium.new_context(color_scheme=scheme, viewport=size)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page, self.address, self.size = self.context.new_page(), address, size
        self.requests: list[str] = []
        self.problems: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))

    def check(self) -> None:
        """Check the view by axe; it must not be wider than the screen."""
        from axe_playwright_python.sync_playwright import Axe

        self.page.wait_for_load_state("load")  # a click returns before the new view has its style
        self.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        found = Axe().run(self.page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]})
        violations = [
            (one["id"], [node["html"][:200] for node in one["nodes"]][:3]) for one in found.response["violations"]
        ]
        assert violations == [], self.page.url
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.size["width"]

    def leave(self) -> None:
        """Check that no request left this machine, and that the browser found no problem."""
        assert {urlsplit(url).hostname for url in self.requests} <= {"127.0.0.1"}
        assert self.problems == []
        self.context.close()


@pytest.mark.parametrize("way", WAYS)
def test_all_views_are_accessible_and_stay_on_this_machine(chromium: Any, facts: GivenFacts, way: str) -> None:
    with served(facts) as address:
        person = Person(chromium, address, *WAYS[way])
        page = person.page
        page.goto(address)
        person.check()
        page.get_by_role("button", name="stopped").click()
        assert page.locator("tbody:visible").count() == 1
        page.get_by_role("button", name="Copy command of orders_17").click()
        page.get_by_role("button", name="Copy command of orders_17").get_by_text("Copied").wait_for()
        assert page.evaluate("navigator.clipboard.readText()").startswith("frazil accept orders_17 ")
        page.get_by_role("button", name="all").click()
        page.get_by_role("link", name="orders", exact=True).click()
        person.check()
        page.get_by_role("link", name="0:1145").click()
        person.check()
        page.get_by_role("link", name="Pipelines").click()
        page.goto(f"{address}pipelines/orders_23")
        person.check()
        unknown = tuple(replace(one, state=State.UNKNOWN, why="no answer") for one in many(9))
        for rows in ((), unknown):
            with served(GivenFacts(rows, notes=("the catalog does not answer. Run `frazil doctor`",))) as other:
                page.goto(other)
                person.check()
        person.leave()


def test_the_keyboard_reaches_everything(chromium: Any, facts: GivenFacts) -> None:
    with served(facts) as address:
        person = Person(chromium, address, *WAYS["light"])
        page = person.page
        page.goto(address)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        page.keyboard.press("/")
        page.keyboard.type("shop.orders")
        page.keyboard.press("Enter")
        assert "?q=shop.orders" in page.url
        while page.evaluate("document.activeElement.textContent") != "orders":
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_url("**/pipelines/orders")
        while page.evaluate("document.activeElement.tagName") != "SUMMARY":
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.locator("details[open]").count() == 1
        page.go_back()
        assert page.locator("tbody:visible").count() == 15  # the filter is part of the address
        person.leave()


def test_the_file_works_without_a_server(chromium: Any, facts: GivenFacts, tmp_path: Path) -> None:
    detail = facts.detail("orders")
    file = tmp_path / "status.html"
    overview = Overview(environment="production", at=detail.at, rows=facts.rows)
    file.write_text(Rendering("production", Redactor(), is_file=True).file(overview, [detail]))
    for way in WAYS.values():
        person = Person(chromium, "", *way)
        person.page.goto(file.as_uri())
        person.check()
        person.page.locator("#q").fill("orders_17")
        assert person.page.locator("tbody[data-state]:visible").count() == 1
        person.page.locator("#q").fill("")
        person.page.get_by_role("link", name="orders", exact=True).click()
        assert person.page.url.endswith("#p-orders")
        assert {urlsplit(url).scheme for url in person.requests} == {"file"}
        assert person.problems == []
        person.context.close()


def test_docs_have_pictures_of_the_page(chromium: Any, facts: GivenFacts, root: Path) -> None:
    from PIL import Image

    images = root / "docs" / "images"
    images.mkdir(exist_ok=True)
    with served(facts) as address:
        for name, path in {"ui-pipelines": "", "ui-pipeline": "pipelines/orders"}.items():
            person = Person(chromium, address, *WAYS["light"])
            person.page.goto(f"{address}{path}")
            taken = Image.open(io.BytesIO(person.page.screenshot()))
            file = images / f"{name}.png"
            taken.convert("P", palette=Image.Palette.ADAPTIVE, colors=128).save(file, optimize=True)
            assert file.stat().st_size <= LARGEST
            person.leave()
