"""The page of growth, from the results of one run: `python -m bench.growth_page RESULTS`.

It replaces a part of `docs/benchmarks.md`. The bench prints the same lines.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.contenders.requests import CASES
from bench.growth_costs import assumptions, cost_lines, setting
from bench.growth_model import Parts, parts_of, prediction, predictions
from bench.page_part import PagePart
from bench.request_figures import GLUE, READS, WRITES, billed, billed_of_a_commit, in_series, of_a_commit, price
from bench.shapes import SHAPES
from policies.review.prices import Prices, price_table

PART = PagePart("growth", "bench.growth_page")
STARTS = {
    "proof": "the check of the catalog before a run",
    "first": "the first run, with its first batch: creates both tables",
    "idle": "a later run without new records",
}
_ASSUMED = {WRITES: "puts", READS: "gets", GLUE: "glue_requests"}


def section(document: Mapping[str, Any]) -> str:
    """Return the part of the page that one run's document makes. A run of requests alone has no cores and no prices."""
    machine, growth = document["machine"], document["growth"]
    loads = f"load average {machine['load'][0]:.1f} at its end"
    if growth:
        loads = f"load average {growth['load'][0]:.1f} before the landings and {growth['load'][1]:.1f} after them"
    first = (
        f'One `make bench ARGS="--only {"growth" if growth else "requests"}"` on {machine["cores"]} cores '
        f"({machine['memory_gib']} GiB), {machine['date'][:10]}: {machine['seconds'] / 60:.0f} minutes, {loads}, the bench's own work included."
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
    names = sorted({name for each in found for name in of_a_commit(each)})
    says = {case.name: case.says for case in CASES}
    yield f"| a commit, median | {' | '.join(says[each['case']] for each in found)} |"
    yield "|---" * (len(found) + 1) + "|"
    for name in names:
        yield f"| {name} | {' | '.join(f'{of_a_commit(each).get(name, 0):g}' for each in found)} |"
    yield f"| … of these in series | {' | '.join(f'{in_series(each):.0f}' for each in found)} |"
    yield f"| data and delete files of the last one | {' | '.join(_files(each['files']) for each in found)} |"
    dear = (price(billed_of_a_commit(each), prices) * 1000 for each in found)
    yield f"| {prices.currency} for 1,000 commits | {' | '.join(f'{each:.3f}' for each in dear)} |"
    for what, name in _ASSUMED.items():
        counts = (
            f"{billed_of_a_commit(each)[what]:.1f} ({prices.of_a_batch(name, is_state=each['case'] == 'upsert'):g})"
            for each in found
        )
        yield f"| {what}, mean (what the estimate of a review assumes) | {' | '.join(counts)} |"
    yield ""
    yield f"| requests of a start | {' | '.join(says[each['case']] for each in found)} |"
    yield "|---" * (len(found) + 1) + "|"
    for start, words in STARTS.items():
        yield f"| {words} | {' | '.join(_summed(each['starts'][start]['requests']) for each in found)} |"
    yield ""


def _files(added: Mapping[str, int]) -> str:
    return f"{added['added-data-files']} and {added['added-delete-files']}"


def _summed(requests: Mapping[str, float]) -> str:
    return ", ".join(f"{count:g} {how}" for how, count in billed(requests).items() if count)


def _cores(growth: Mapping[str, Any]) -> Iterator[str]:
    yield (
        "| CPU-s per million rows, one core | bytes a record | read | decode | write | rest | fixed, CPU-s a batch | waiting, s a batch |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for shape, found in growth["shapes"].items():
        parts = _parts(found)
        millions = (f"{getattr(parts, name) * 1e6:.2f}" for name in ("read", "decode", "write", "rest"))
        yield (
            f"| {SHAPES[shape].says} | {parts.record_bytes:.0f} | {' | '.join(millions)} | {parts.fixed:.2f} | {parts.waiting:.2f} |"
        )
    yield ""
    yield "| rows/s | one core, measured | two cores, predicted | two cores, measured | predicted / measured |"
    yield "|---|---|---|---|---|"
    for shape, found in growth["shapes"].items():
        many = max(each["rows"] for each in found["landings"])
        of_one = [each for each in found["landings"] if (each["way"], each["cores"], each["rows"]) == ("ours", 1, many)]
        pairs = predictions(found)
        one, predicted, measured = (
            median(values)
            for values in ([each["rows"] / each["wall"] for each in of_one], *map(list, zip(*pairs, strict=True)))
        )
        each_round = ", ".join(f"{p / m:.2f}" for p, m in pairs)
        yield (
            f"| {SHAPES[shape].says} | {one:,.0f} | {predicted:,.0f} | {measured:,.0f} | {prediction(found):.2f} ({each_round}) |"
        )
    yield ""


def _costs(growth: Mapping[str, Any], append: Mapping[str, Any], prices: Prices) -> Iterator[str]:
    deployed = setting(append, prices)
    yield f"| {prices.currency} a TB | GB a day | workers | requests | sum | Tableflow, list price |"
    yield "|---|---|---|---|---|---|"
    for shape, found in growth["shapes"].items():
        first = f"**{SHAPES[shape].says}, {found['record_bytes']:.0f} B**: "
        for line in cost_lines(_parts(found), deployed, prices):
            cells = ("cannot keep up", "–", "–")
            if line.cost is not None:
                cells = (f"{line.cost.workers:.2f}", f"{line.cost.requests:.2f}", f"{line.cost.sum:.2f}")
            yield f"| {first}{line.says} | {line.gb_a_day:,.0f} | {' | '.join(cells)} | {line.tableflow:.2f} |"
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
