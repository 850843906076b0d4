"""The plot of the peers' page: CPU of a million rows by shape and contender."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.peers.races import CAPTIONS
from bench.rounds import Figure, middle
from bench.shapes import SHAPES


def plot(races: Mapping[str, Sequence[Figure]], file: Path) -> None:
    """Write the plot as SVG, the same bytes for the same figures."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "peers"})
    from matplotlib import pyplot

    heights = [sum(any(f.way == way for f in figures) for way in CAPTIONS) + 1.2 for figures in races.values()]
    figure, axes = pyplot.subplots(
        len(races), 1, figsize=(9, 0.3 * sum(heights)), squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    for axis, (shape, figures) in zip(axes[:, 0], races.items(), strict=True):
        ways = [way for way in reversed(CAPTIONS) if any(f.way == way for f in figures)]
        values = [middle(figures, way, "cpu_a_million") or 0.0 for way in ways]
        colours = ["#4477aa" if way.startswith("ours") else "#bbbbbb" for way in ways]
        axis.bar_label(axis.barh([CAPTIONS[way] for way in ways], values, color=colours), fmt="%.1f", padding=3)
        axis.set_title(f"{SHAPES[shape].says}: CPU-seconds for a million rows", loc="left", fontsize=10)
        axis.margins(x=0.12)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)
