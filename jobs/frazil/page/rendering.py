"""Facts as HTML. Each value is masked and escaped on its way into a template, whoever wrote it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from frazil.clients.secrets import MASK, Redactor
from frazil.dead_letters.show import DeadLetterView, Part
from frazil.dead_letters.shown_bytes import header_text, key_text
from frazil.page import drawing, plots
from frazil.page.facts import Detail, Overview
from frazil.status.all_pipelines import states, totals
from frazil.status.looking import command_in, in_environment
from frazil.status.pipeline_status import DIFFERS, PartitionStatus, PipelineStatus, State
from frazil.status.shown_values import duration, number, plain, rate, size

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"
SHARED = 3
"""A reason of more pipelines than this is shown once, above all."""
ORDER = (State.STOPPED, State.UNKNOWN, State.BEHIND, State.WAITING, State.NO_TABLE, State.CAUGHT_UP)
"""The states, those that need a person first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The choice of pipelines to list: those that have the text somewhere, and the state; each if it is empty."""

    text: str = ""
    state: str = ""

    def fits(self, one: PipelineStatus) -> bool:
        """Return whether a pipeline is chosen. The script of the page decides by the same rule."""
        return self.state in ("", one.state.value) and self.text.strip().lower() in searched(one).lower()


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def urgent_first(rows: Sequence[PipelineStatus]) -> list[PipelineStatus]:
    """Return the pipelines that need a person first, then the others, by name."""
    return sorted(rows, key=lambda one: (ORDER.index(one.state), one.pipeline))


def searched(one: PipelineStatus) -> str:
    """Return the text of a pipeline that is searched."""
    return f"{one.pipeline} {one.topic} {one.table} {one.why}"


class Rendering:
    """Renders pages of one environment; `is_file` those of one file, which needs no server."""

    def __init__(self, environment: str, redactor: Redactor, *, is_file: bool = False) -> None:
        self._redactor = redactor
        jinja = Environment(
            loader=FileSystemLoader(FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=self._masked,
        )
        jinja.filters |= {
            "age": lambda seconds: duration(seconds) if seconds >= 10 else f"{round(seconds)} s",
            "cut": lambda text, most: _cut(redactor.redact(text), most),
            "common_reason": _common_reason,
            "command": lambda text: command_in(text, environment),
            "duration": duration,
            "fitting": lambda rows, chosen: [one for one in rows if chosen.fits(one)],
            "header_text": lambda value: header_text(self._without_secrets(value)),
            "key_text": lambda key: key_text(self._without_secrets(key)),
            "link": lambda name: f"#p-{name}" if is_file else f"/pipelines/{name}",
            "masked": self._masked,
            "moment": lambda at: "–" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
            "number": number,
            "part": self._part,
            "plots": _plots,
            "rate": rate,
            "rates": lambda rows: rate(sum(one.read_per_second or 0 for one in rows)),
            "remarks": lambda one: [in_environment(text, environment) for text in _remarks(one)],
            "searched": searched,
            "share": _share,
            "shared_reasons": shared_reasons,
            "short": lambda count: _short(count) if count >= 10**7 else number(count),
            "size": lambda count: "–" if count is None else size(count),
            "urgent_first": urgent_first,
            "states": lambda rows: states(rows).items(),
            "tall": lambda detail: drawing.tall(detail.way, detail.aside),
            "time": lambda at: f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}",
            "totals": totals,
            "wide": lambda detail: drawing.wide(detail.way, detail.aside),
        }
        style, script = (STATIC / name for name in ("page.css", "page.js"))
        jinja.globals |= {"environment": environment, "is_file": is_file, "home": "#main" if is_file else "/"}
        jinja.globals |= {"style": "", "script": "", "policy": ""}
        if is_file:
            texts = {"style": style.read_text(), "script": script.read_text()}
            hashes = {name: base64.b64encode(hashlib.sha256(text.encode()).digest()) for name, text in texts.items()}
            parts = (f"{name}-src 'sha256-{text.decode()}'" for name, text in hashes.items())
            policy = "; ".join(("default-src 'none'", *parts, "base-uri 'none'", "form-action 'none'"))
            jinja.globals |= {**{name: Markup(text) for name, text in texts.items()}, "policy": Markup(policy)}  # noqa: S704 - our own files
        self._jinja = jinja

    def overview(self, overview: Overview, *, age: float, chosen: Choice) -> str:
        """Return the page of all pipelines. `age` is in seconds."""
        return self._page("overview", overview=overview, age=age, chosen=chosen)

    def pipeline(self, detail: Detail, age: float) -> str:
        """Return the page of one pipeline."""
        return self._page("pipeline", detail=detail, age=age)

    def letter(self, name: str, letter: DeadLetterView, *, at: float, age: float) -> str:
        """Return the page of a dead letter."""
        place = f"{letter.letter.partition}:{letter.letter.offset}"
        return self._page("letter", name=name, letter=letter, place=place, at=at, age=age)

    def message(self, heading: str, text: str, *, reloads: str = "") -> str:
        """Return a page that says something; with `reloads` it is the address of facts that are being read."""
        more = {"link": reloads, "label": "Reload" if reloads else ""}
        return self._page("message", heading=heading, text=text, reloads=bool(reloads), **more)

    def file(self, overview: Overview, details: Sequence[Detail]) -> str:
        """Return one page with all pipelines, and these in full."""
        return self._page("file", overview=overview, details=details, chosen=Choice())

    def _page(self, template: str, **values: Any) -> str:
        return self._jinja.get_template(f"{template}.html").render(values)

    def _part(self, part: Part) -> Part:
        """Return a key or value. If it holds a secret, its bytes are not shown: lines and cut texts have parts of secrets."""
        data = self._without_secrets(part.data)
        return part if data == part.data else Part(data=data)

    def _without_secrets(self, data: bytes | None) -> bytes | None:
        """Return bytes if they hold no secret, else a text that says so."""
        texts = [(data or b"").decode(encoding, "replace") for encoding in ("latin-1", "utf-8")]
        return data if all(self._redactor.redact(text) == text for text in texts) else MASK.encode()

    def _masked(self, value: Any) -> Any:
        """Return a value without secrets and control characters; what a template made is done already."""
        if not isinstance(value, str) or isinstance(value, Markup):
            return value
        return "\n".join(map(plain, self._redactor.redact(value).split("\n")))


def shared_reasons(rows: Sequence[PipelineStatus]) -> list[tuple[str, list[str]]]:
    """Return the reasons that many pipelines have, and the names of these."""
    names: dict[str, list[str]] = {}
    for one in rows:
        if one.why and not one.commands:
            names.setdefault(_common_reason(one), []).append(one.pipeline)
    return [(why, of) for why, of in names.items() if len(of) > SHARED]


def _common_reason(one: PipelineStatus) -> str:
    """Return the reason of a state without the table's name, as a catalog's errors have it."""
    return one.why.removeprefix(f"table {one.table}: ")


def _remarks(status: PipelineStatus) -> list[str]:
    """Return what a person should know of a pipeline apart from its state."""
    found = [f"{DIFFERS}: {one}" for one in status.differences] + list(status.stale)
    if status.deleted_by_others:
        found.append(f"{number(status.deleted_by_others)} rows deleted by other engines, as accepted")
    if status.foreign_commits:
        what = f"Other engines changed rows in {number(status.foreign_commits)} commits"
        found.append(f"{what}, so the number of rows may differ; `frazil verify {status.pipeline}` counts")
    return found


def _share(one: PartitionStatus) -> float:
    """Return how much of a partition is read, in percent."""
    return 0.0 if not one.stable or one.held is None else round(min(one.held / one.stable, 1) * 100, 1)


def _plots(growth: Sequence[Any]) -> list[plots.Plot]:
    """Return the plots of a table's rows, files and bytes."""
    shown: Mapping[str, Any] = {"rows": _short, "files": number, "bytes": size}
    titles = {"rows": "Rows", "files": "Files", "bytes": "Size"}
    made = (
        plots.plot(titles[name], [(one.at, getattr(one, name)) for one in growth], show) for name, show in shown.items()
    )
    return [one for one in made if one is not None]


def _short(count: int) -> str:
    """Return a number for an axis: `12 k`, `3.4 M`."""
    for unit, one in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= 10 * one or (count >= one and count % (one // 10) == 0):
            return f"{count / one:.3g} {unit}"
    return number(count)
