"""The result of the demonstration, as a page for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.demo.steps import Done

VERSION = 1
REVIEW, DIFFERENCE, PAGE, DOCUMENT = "review.md", "change.diff", "summary.md", "summary.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The records of one topic: in the broker, in its tables according to another reader, and in `frazil verify`."""

    produced: int
    spoilt: int
    landed: int
    dead_lettered: int
    is_same: bool
    """Whether the tables hold exactly the records of the journal, each once; of a state, the last ones of its keys."""
    verified: str
    read: int
    superseded: int = 0
    """Of a state: records whose key has a later one, and deletes."""

    @property
    def adds_up(self) -> bool:
        """Whether every produced record is in one of the tables once or superseded, also according to `frazil verify`."""
        return (
            self.is_same
            and self.verified == "proven"
            and self.produced == self.landed + self.superseded + self.dead_lettered == self.read
            and self.spoilt == self.dead_lettered
        )


@dataclass(slots=True, kw_only=True)
class Summary:
    """The results so far."""

    outcome: str = "failed"
    failure: str = ""
    seconds: float = 0.0
    steps: list[Done] = field(default_factory=list)
    topics: dict[str, Account] = field(default_factory=dict)
    releases: list[str] = field(default_factory=list)
    runs: list[Mapping[str, Any]] = field(default_factory=list)
    maintained: str = ""
    """How the maintenance run ended."""
    produced_meanwhile: int = 0
    """Records that the broker took between the deployment of the change and the end of the swap."""
    moved: str = ""
    """From which application of EMR Serverless to which one the run has moved."""
    columns: dict[str, list[str]] = field(default_factory=dict)
    """The table's columns that the change has added or widened, as before and after."""
    unchanged: list[str] = field(default_factory=list)
    """Stacks that a deployment planned again and left as they are."""
    reviewed: str = ""
    """The heading of the review of the change."""
    accepted: str = ""
    """Why its danger was accepted."""
    rolled_back: str = ""
    """What the deployed reconciler did with a release of which no run can start."""
    is_destroying_refused: bool = False
    left: dict[str, list[str]] | None = None
    """What was still there at the end; nothing known if it did not come to that."""


def write(summary: Summary, folder: Path) -> str:
    """Write page and JSON, and return the page."""
    document = {"version": VERSION, **asdict(summary)}
    (folder / DOCUMENT).write_text(json.dumps(document, indent=2) + "\n")
    page = _page(summary)
    (folder / PAGE).write_text(page)
    return page


def _page(summary: Summary) -> str:
    minutes = f"{summary.seconds // 60:.0f} min {summary.seconds % 60:.0f} s"
    lines = [f"# make deploy-demo: {summary.outcome} in {minutes}", ""]
    if summary.failure:
        lines += ["```", summary.failure, "```", ""]
    if summary.topics:
        lines += [
            "| topic | produced | landed | superseded | dead-lettered | `frazil verify` | read back |",
            "|---|--:|--:|--:|--:|---|---|",
        ]
        for name, one in summary.topics.items():
            same = "the same records, each once" if one.is_same else "not the same"
            figures = f"{one.produced:,} | {one.landed:,} | {one.superseded:,} | {one.dead_lettered:,}"
            lines.append(f"| {name} | {figures} | {one.verified} | {same} |")
        lines.append("")
    facts = {
        "empty plans": ", ".join(summary.unchanged),
        "review of the change": f"{summary.reviewed} ({REVIEW}; the change itself: {DIFFERENCE})"
        if summary.reviewed
        else "",
        "its danger is accepted": summary.accepted,
        "a bad release": summary.rolled_back,
        "the application": summary.moved,
        "columns": "; ".join(f"{name}: {' -> '.join(kinds)}" for name, kinds in summary.columns.items()),
        "releases": ", then ".join(summary.releases),
        "records while the release was swapped": f"{summary.produced_meanwhile:,}"
        if summary.produced_meanwhile
        else "",
        "runs": "; ".join(
            f"generation {r['generation']}, {r['release']}: {r['state']}" for r in reversed(summary.runs)
        ),
        "maintenance": summary.maintained,
        "destroying with one key": "refused" if summary.is_destroying_refused else "",
        "left after destroying with both": ""
        if summary.left is None
        else (json.dumps(summary.left) if summary.left else "nothing"),
    }
    lines += [f"- {name}: {value}" for name, value in facts.items() if value]
    lines += ["", "| step | seconds | of the CPU |", "|---|--:|--:|"]
    lines += [f"| {step.name} | {step.seconds:.1f} | {step.cpu_seconds:.1f} |" for step in summary.steps]
    return "\n".join(lines) + "\n"
