"""The plot: CPU of a million rows by contender and shape, and the cost of commits as a table ages."""

from __future__ import annotations

from pathlib import Path

from bench.goals import Results
from bench.report import CAPTIONS
from bench.rounds import middle


def plot(results: Results, file: Path) -> None:
    """Write the plot as SVG. Without figures, write no file."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    panels = len(results.races) + bool(results.commits)
    if not panels:
        return
    figure, axes = pyplot.subplots(panels, 1, figsize=(9, 2.2 * panels), squeeze=False)
    places = iter(axes[:, 0])
    for shape, figures in results.races.items():
        axis = next(places)
        ways = [way for way in reversed(CAPTIONS) if any(f.way == way for f in figures)]
        values = [middle(figures, way, "cpu_a_million") or 0.0 for way in ways]
        bars = axis.barh([CAPTIONS[way].partition(":")[0] for way in ways], values, color="#4477aa")
        axis.bar_label(bars, fmt="%.1f", padding=3)
        axis.set_title(f"{shape}: CPU-seconds for a million rows", loc="left", fontsize=10)
        axis.margins(x=0.12)
    if results.commits:
        axis = next(places)
        seconds = results.commits["commits"]
        axis.plot(range(1, len(seconds) + 1), seconds, ".", markersize=2, color="#4477aa", label="commit")
        looks = results.commits["looks"]
        axis.plot([s["commit"] for s in looks], [s["java_planning_seconds"] for s in looks], "x", label="planning")
        axis.set_ylim(0, sorted(seconds)[int(len(seconds) * 0.99)] * 1.3)
        axis.set_title("seconds of each commit, and of planning a scan", loc="left", fontsize=10)
        axis.legend()
    figure.tight_layout()
    figure.savefig(file)
    pyplot.close(figure)
