"""Draws `results/*.json` as `plots/*.svg`, at the width of a README.

python benchmarks/plots.py
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

HERE = Path(__file__).parent
PLOTS = HERE / "plots"
WIDTH = 8.3  # inches of 100 pixels
OURS, OTHER, LIMIT = "#1f77b4", "#9a9a9a", "#d62728"

STYLE: Any = {  # keys are literals to matplotlib
    "figure.dpi": 100,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titleweight": "bold",
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "svg.hashsalt": "langchain-retrying",  # the same figures give the same file
}


def overhead(results: Any) -> Figure:
    """A point for each case, and the target it is to stay below."""
    rows = results["rows"]
    figure, axes = plt.subplots(figsize=(WIDTH, 0.24 * len(rows) + 1.4), layout="constrained")
    _bare_line(axes, results)
    for place, row in enumerate(rows):
        axes.plot([row["low"], row["high"]], [place, place], color=OURS, alpha=0.35, linewidth=4)
        axes.plot(row["figure"], place, "o", color=OURS, markersize=5)
        if row["target"] is not None:
            axes.plot(row["target"], place, "|", color=LIMIT, markersize=11, markeredgewidth=2)
    _name_rows(axes, [f"{row['group']}: {row['case']}" for row in rows])
    figures = [row["figure"] for row in rows]
    axes.set_xlim(min(0.75, *figures) - 0.02, max(1.25, *figures) + 0.02)
    axes.set_xlabel("CPU time, wrapped / bare (bar: 95 % interval; red: target, at most)")
    axes.set_title("What the wrapper costs where nothing is empty")
    return figure


def peers(results: Any) -> Figure:
    """A bar for each way, by the work done."""
    rows = results["rows"]
    places, place, before = [], 0.0, None
    for row in rows:
        place += 1.0 if row["group"] == before else 1.9  # a line for the group's name
        before = row["group"]
        places.append(place)
    figure, axes = plt.subplots(figsize=(WIDTH, 0.25 * place + 1.2), layout="constrained")
    colours = [OURS if row["case"] == "RetryingChatModel" else OTHER for row in rows]
    axes.barh(places, [row["figure"] for row in rows], color=colours, height=0.8)
    for row, at in zip(rows, places, strict=True):
        axes.text(row["figure"] + 0.03, at, f"{row['figure']:.2f}", va="center")
    for group in dict.fromkeys(row["group"] for row in rows):
        first = next(at for row, at in zip(rows, places, strict=True) if row["group"] == group)
        axes.text(0.02, first - 0.9, group, weight="bold", va="center")
    _name_rows(axes, [row["case"] for row in rows], places)
    axes.set_ylim(place + 0.6, 0.3)
    _bare_line(axes, results)
    axes.set_xlabel("CPU time / that of the bare model on the same work")
    axes.set_title("Ways to retry")
    return figure


def first_token(results: Any) -> Figure:
    """The delay of the first visible chunk, by what was held before it."""
    rows = [row for row in results["rows"] if row["target"] is not None]
    figure, axes = plt.subplots(figsize=(WIDTH, 2.8), layout="constrained")
    for place, row in enumerate(rows):
        axes.bar(place, 100 * row["figure"], color=OURS, width=0.5)
        axes.text(place, 100 * row["figure"] + 0.3, f"{row['figure']:.1%}", ha="center")
        axes.plot([place - 0.35, place + 0.35], [100 * row["target"]] * 2, color=LIMIT, linewidth=2)
    axes.set_xticks(range(len(rows)), [row["case"].replace("held", "chunks held") for row in rows])
    axes.set_ylabel("% of bare's CPU time\nup to that chunk")
    axes.set_ylim(0, 18)
    axes.set_title("From arrival of the first visible chunk to the consumer (red: target, at most)")
    return figure


def memory(results: Any) -> Figure:
    """Peak memory as a share of the bare model's."""
    rows = [row for row in results["rows"] if row["group"].startswith("wrapped / bare")]
    figure, axes = plt.subplots(figsize=(WIDTH, 0.28 * len(rows) + 1.2), layout="constrained")
    axes.barh(range(len(rows)), [row["figure"] for row in rows], color=OURS, height=0.7)
    for place, row in enumerate(rows):
        axes.text(row["figure"] + 0.01, place, f"{row['figure']:.2f}", va="center")
        if row["target"] is not None:
            axes.plot(row["target"], place, "|", color=LIMIT, markersize=12, markeredgewidth=2)
    names = [
        f"{'10,000 rejected, then ' if 'rejected' in row['group'] else ''}{row['case']}"
        for row in rows
    ]
    _name_rows(axes, names)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("peak memory, wrapped / bare (red: target, at most)")
    axes.set_title("Memory that reading a stream takes")
    return figure


def linearity(results: Any) -> Figure:
    """CPU time by length on logarithmic axes, a panel for each kind of stream."""
    curves = results["curves"]
    kinds = list(dict.fromkeys(curve["kind"] for curve in curves))
    figure, panels = plt.subplots(
        1, len(kinds), figsize=(WIDTH, 2.8), sharey=True, layout="constrained"
    )
    slopes = {row["case"]: row["figure"] for row in results["rows"]}
    for kind, axes in zip(kinds, panels, strict=True):
        for curve in (curve for curve in curves if curve["kind"] == kind):
            side = curve["side"]
            label = f"{side}: slope {slopes[f'{kind}, {side}']:.2f}"
            colour, marker = (OURS, "o-") if side == "wrapped" else (OTHER, "s--")
            axes.loglog(
                curve["lengths"], curve["costs"], marker, color=colour, label=label, markersize=4
            )
        axes.set_title(kind)
        axes.set_xticks([500, 2_000, 8_000], ["500", "2,000", "8,000"])
        axes.minorticks_off()
        axes.legend(frameon=False, fontsize=8, loc="upper left", handlelength=1.5)
    panels[0].set_ylabel("CPU time / bare stream of 500")
    panels[0].set_yticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
    figure.supxlabel("chunks", fontsize=10)
    return figure


def recovery(results: Any) -> Figure:
    """What stays blank after so many retries, a panel for each kind of blank."""
    cells = results["cells"]
    worlds = list(dict.fromkeys(cell["blanks"] for cell in cells))
    policies = list(dict.fromkeys(cell["policy"] for cell in cells))
    rates = sorted({cell["rate"] for cell in cells})
    retries = sorted({cell["retries"] for cell in cells})
    figure, panels = plt.subplots(
        1, len(worlds), figsize=(WIDTH, 3.4), sharey=True, layout="constrained"
    )
    for world, axes in zip(worlds, panels, strict=True):
        for position, policy in enumerate(policies):
            for number, rate in enumerate(rates):
                blank = [
                    100 * (1 - cell["answered"] / cell["prompts"])
                    for cell in cells
                    if (cell["blanks"], cell["policy"], cell["rate"]) == (world, policy, rate)
                ]
                axes.plot(
                    retries,
                    blank,
                    ("o-", "s--", "^:", "D-.")[position % 4],
                    color=f"C{number}",
                    label=f"{rate:.0%}, {policy}",
                    markersize=max(3, 9 - 3 * position),  # where policies meet, each is seen
                    fillstyle="full" if position else "none",
                )
        axes.set_title(f"{world} blanks")
        axes.set_xticks(retries)
        axes.set_xlabel("retries")
    panels[0].set_ylabel("% of calls that end blank")
    panels[-1].legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def _bare_line(axes: Axes, results: Any) -> None:
    """The bare model, as wide as the noise of the machine."""
    noise = results["noise"]["bare / bare"]
    axes.axvspan(noise["low"], noise["high"], color="black", alpha=0.12, linewidth=0)
    axes.axvline(1, color="black", linewidth=0.8)


def _name_rows(axes: Axes, names: Sequence[str], places: Sequence[float] | None = None) -> None:
    axes.set_yticks(range(len(names)) if places is None else places, names)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.margins(y=0.01)


DRAWN: dict[str, Callable[[Any], Figure]] = {
    "overhead": overhead,
    "peers": peers,
    "first_token": first_token,
    "memory": memory,
    "linearity": linearity,
    "recovery": recovery,
}


def main() -> None:
    """Draw what has been measured."""
    PLOTS.mkdir(exist_ok=True)
    for name, draw in DRAWN.items():
        path = HERE / "results" / f"{name}.json"
        if path.exists():
            with mpl.rc_context(STYLE):
                figure = draw(json.loads(path.read_text(encoding="utf-8")))
                figure.savefig(PLOTS / f"{name}.svg", metadata={"Date": None}, facecolor="white")
                plt.close(figure)


if __name__ == "__main__":
    main()
