"""Draws `results/*.json` as `plots/*.svg`, at the width of a README.

python benchmarks/plots.py
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

HERE = Path(__file__).parent
WIDTH = 8.3  # inches of 100 pixels
OURS, OTHER, LIMIT = "#1f77b4", "#9a9a9a", "#d62728"
STYLE: Any = {  # keys are literals to matplotlib
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titleweight": "bold",
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "svg.hashsalt": "langchain-retrying",  # the same figures give the same file
}


def overhead(results: Any) -> Figure:
    """A point for each ratio, and the target it is to stay below."""
    rows = [row for row in results["rows"][1:] if row["group"] != "import"]
    figure, axes = plt.subplots(figsize=(WIDTH, 0.24 * len(rows) + 1.4))
    for place, row in enumerate(rows):
        axes.plot([row["low"], row["high"]], [place, place], color=OURS, alpha=0.35, linewidth=4)
        axes.plot(row["figure"], place, "o", color=OURS, markersize=5)
        if row["target"] is not None:
            axes.plot(row["target"], place, "|", color=LIMIT, markersize=11, markeredgewidth=2)
    _name_rows(axes, results, [f"{row['group']}: {row['case']}" for row in rows])
    axes.set_xlabel("bar: 95 % interval; red: target, at most")
    axes.set_title("CPU time, wrapped / bare")
    return figure


def peers(results: Any) -> Figure:
    """A bar for each way, by the work done."""
    rows = results["rows"][1:]
    groups = list(dict.fromkeys(row["group"] for row in rows))
    # Each group stands a line below the one before, under its name.
    places = [place + 0.9 * groups.index(row["group"]) for place, row in enumerate(rows)]
    figure, axes = plt.subplots(figsize=(WIDTH, 0.25 * places[-1] + 1.4))
    colours = [OURS if row["case"] == "RetryingChatModel" else OTHER for row in rows]
    axes.barh(places, [row["figure"] for row in rows], color=colours, height=0.8)
    for row, place in zip(rows, places, strict=True):
        axes.text(row["figure"] + 0.03, place, f"{row['figure']:.2f}", va="center")
        if row["group"] in groups:
            axes.text(0.02, place - 0.9, groups.pop(0), weight="bold", va="center")
    _name_rows(axes, results, [row["case"] for row in rows], places)
    axes.set_ylim(top=-1.6)
    axes.set_xlabel("CPU time / that of the bare model on the same work")
    axes.set_title("Ways to retry")
    return figure


def recovery(results: Any) -> Figure:
    """What stays blank after so many retries, a panel for each kind of blank."""
    cells = results["cells"]
    worlds, policies, rates, retries = (
        list(dict.fromkeys(cell[key] for cell in cells))
        for key in ("blanks", "policy", "rate", "retries")
    )
    figure, panels = plt.subplots(1, len(worlds), figsize=(WIDTH, 3.4), sharey=True)
    for world, axes in zip(worlds, panels, strict=True):
        for (position, policy), (number, rate) in product(enumerate(policies), enumerate(rates)):
            line = [
                100 * (1 - cell["answered"] / cell["prompts"])
                for cell in cells
                if (cell["blanks"], cell["policy"], cell["rate"]) == (world, policy, rate)
            ]
            axes.plot(
                retries,
                line,
                ("o-", "s--", "^:", "D-.")[position],
                color=f"C{number}",
                label=f"{rate:.0%}, {policy}",
                markersize=9 - 2 * position,  # where policies meet, each is seen
                fillstyle="full" if position else "none",
            )
        axes.set_title(f"{world} blanks")
        axes.set_xticks(retries)
        axes.set_xlabel("retries")
    panels[0].set_ylabel("% of calls that end blank")
    panels[-1].legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def _name_rows(
    axes: Axes, results: Any, names: Sequence[str], places: Sequence[float] | None = None
) -> None:
    """Name the rows, and draw the bare model as wide as the control says that noise is."""
    axes.set_yticks(range(len(names)) if places is None else places, names)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    control = results["rows"][0]
    axes.axvspan(control["low"], control["high"], color="black", alpha=0.12, linewidth=0)
    axes.axvline(1, color="black", linewidth=0.8)


def main() -> None:
    """Draw what has been measured."""
    drawn: tuple[Callable[[Any], Figure], ...] = (overhead, peers, recovery)
    for draw in drawn:
        name = draw.__name__
        results = json.loads((HERE / "results" / f"{name}.json").read_text(encoding="utf-8"))
        with mpl.rc_context(STYLE):
            figure = draw(results)
            path = HERE / "plots" / f"{name}.svg"
            figure.savefig(path, metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    main()
