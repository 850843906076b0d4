"""A generated part of `docs/benchmarks.md`, between two markers. No figure of it is written by hand."""

from __future__ import annotations

from dataclasses import dataclass

from bench.fill import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"


@dataclass(frozen=True, slots=True)
class PagePart:
    """A part of the page: its name, and the module that writes it from the results of a run."""

    name: str
    module: str

    @property
    def begin(self) -> str:
        """The line before the part."""
        return f"<!-- {self.name}: written by `python -m {self.module} RESULTS`; do not edit -->"

    @property
    def end(self) -> str:
        """The line behind the part."""
        return f"<!-- {self.name} end -->"

    def replaced(self, page: str, text: str) -> str:
        """Return the page with another text between the markers. Raises `ValueError` if it lacks one."""
        before, begin, rest = page.partition(self.begin)
        _, end, after = rest.partition(self.end)
        if not (begin and end):
            raise ValueError(f"{PAGE.name} lacks a marker: {self.begin} or {self.end}")
        return f"{before}{begin}\n{text}\n{end}{after}"

    def write(self, text: str) -> None:
        """Replace the part in the page."""
        PAGE.write_text(self.replaced(PAGE.read_text(), text))
