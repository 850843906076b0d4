"""The page of growth, from the results of one run: `python -m bench.growth_page RESULTS`.

It replaces a part of `docs/benchmarks.md`. The bench prints the same lines.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.contenders.requests import CASES
from bench.growth_costs import MODES, assumptions, cost_lines, setting
from bench.growth_model import Parts, parts_of, prediction
from bench.page_part import PagePart
from bench.request_figures import GLUE, READS, WRITES, billed, billed_of_a_commit, in_series, price
from bench.shapes import SHAPES
from policies.review.prices import Prices, price_table

PART = PagePart("growth", "bench.growth_page")
STARTS = {
    "proof": "the check before a run",
    "first": "the first run and batch",
    "idle": "a run without records",
}
_BILLED = (WRITES, READS, GLUE)


def section(document: Mapping[str, Any]) -> str:
    """Return the part of the page that one run's document makes. A run of requests alone has no cores and no prices."""
    machine, growth = document["machine"], document["growth"]
    loads = f"load average {machine['load'][0]:.1f} at its end"
    if growth:
        loads = f"load average {growth['load'][0]:.1f} before the landings and {growth['load'][1]:.1f} after them"
    first = (
        f'`make bench ARGS="--only {"growth" if growth else "requests"}"`, {machine["cores"]} cores, '
        f"{machine['memory_gib']} GiB, {machine['date'][:10]}: {machine['seconds'] / 60:.0f} minutes, {loads}."
    )
    return "\n".join([first, "", *lines(document["requests"], growth)]).rstrip()


def lines(requests: Sequence[Mapping[str, Any]], growth: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the tables of what was measured."""
    prices = price_table()
    if requests:
        yield from _requests(requests, prices)
    if growth:
        yield from _cores(growth)
    if requests and growth:
        yield from _costs(growth, next(each for each in requests if each["case"] == "append"), prices)


def _requests(found: Sequence[Mapping[str, Any]], prices: Prices) -> Iterator[str]:
    says = {case.name: case.says for case in CASES}
    yield f"| requests of a commit | {' | '.join(says[each['case']] for each in found)} |"
    yield "|---" * (len(found) + 1) + "|"
    counted = (_listed(billed_of_a_commit(each)[what] for what in _BILLED) for each in found)
    yield f"| writes, reads, Glue: mean | {' | '.join(counted)} |"
    yield f"| that wait for one another | {' | '.join(f'{in_series(each):.0f}' for each in found)} |"
    dear = (price(billed_of_a_commit(each), prices) * 1000 for each in found)
    yield f"| {prices.currency} for 1,000 commits | {' | '.join(f'{each:.3f}' for each in dear)} |"
    for start, words in STARTS.items():
        starts = (billed(each["starts"][start]["requests"]) for each in found)
        yield f"| {words} | {' | '.join(', '.join(f'{counts[what]:g}' for what in _BILLED) for counts in starts)} |"
    yield ""


def _listed(counts: Iterable[float]) -> str:
    return ", ".join(f"{count:.1f}" for count in counts)


def _cores(growth: Mapping[str, Any]) -> Iterator[str]:
    yield "| rows/s | one core | two cores | two cores, predicted / measured |"
    yield "|---|---|---|---|"
    for shape, found in growth["shapes"].items():
        many = max(each["rows"] for each in found["landings"])
        large = [each for each in found["landings"] if each["rows"] == many]
        one, two = (median(each["rows"] / each["wall"] for each in large if each["cores"] == cores) for cores in (1, 2))
        yield f"| {SHAPES[shape].says} | {one:,.0f} | {two:,.0f} | {prediction(found):.2f} |"
    yield ""


def _costs(growth: Mapping[str, Any], append: Mapping[str, Any], prices: Prices) -> Iterator[str]:
    deployed = setting(append, prices)
    head = [f"{prices.currency} a TB", "GB a day", *MODES, "Tableflow, list price"]
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for shape, found in growth["shapes"].items():
        first = f"{SHAPES[shape].says}, {found['record_bytes']:.0f} B"
        for line in cost_lines(_parts(found), deployed, prices):
            cells = [f"{cost.sum:.2f}" if cost else "cannot keep up" for cost in line.costs]
            cells += ["–"] * (len(MODES) - len(cells))
            yield f"| {first} | {line.gb_a_day:,.0f} | {' | '.join(cells)} | {line.tableflow:.2f} |"
            first = ""
    yield ""
    yield "Assumptions of the prices:"
    yield ""
    for each in assumptions(append, prices):
        yield f"- {each}"


def _parts(found: Mapping[str, Any]) -> Parts:
    return parts_of(found["landings"], found["record_bytes"], has_broker=False)


def main() -> None:
    PART.write(section(json.loads(Path(sys.argv[1]).read_text())))


if __name__ == "__main__":
    main()
