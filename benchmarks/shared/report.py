"""A benchmark's figures: as a table on screen, as a line on its targets, and as JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import track
from rich.table import Table

from shared.models import FastChatModel
from shared.ratios import Ratio, ratio
from shared.work import invoke

RESULTS = Path(__file__).parent.parent / "results"
PACKAGES = ("langchain-retrying", "langchain-core", "langchain", "langgraph", "tenacity")
CONTROL = "bare / bare"
STEADY = 0.015
"""How far the control may be off."""

console = Console(highlight=False, soft_wrap=True)
if not console.is_terminal:
    console.width = 130


@dataclass(frozen=True)
class Row:
    """One figure."""

    group: str
    """What figures of one kind have in common."""
    case: str
    figure: float
    target: float | None = None
    """The figure is to be at most this; None: there is no target."""
    low: float | None = None
    """Lower end of the figure's 95 % confidence interval; None where it has none."""
    high: float | None = None
    """Its upper end."""

    @property
    def told(self) -> str:
        """The figure and its interval."""
        interval = "" if self.low is None else f" ({self.low:.3f} - {self.high:.3f})"
        return f"{self.figure:.3f}{interval}"

    @property
    def verdict(self) -> str:
        """Whether the target is met; where it is missed, the noise alone may be why."""
        if self.case == CONTROL:
            off = max(abs(1 - (end or 0)) for end in (self.low, self.high))
            return "steady" if off <= STEADY else "unsteady"
        if self.target is None or self.figure <= self.target:
            return "" if self.target is None else "met"
        return "within noise" if self.low is not None and self.low <= self.target else "missed"

    def beside(self, before: Row) -> str:
        """Whether it differs from a figure of before by more than noise."""
        if self.low is not None and before.high is not None and self.low > before.high:
            return "worse"
        if self.high is not None and before.low is not None and self.high < before.low:
            return "better"
        return ""


def row_of(group: str, case: str, figure: Ratio, target: float | None = None) -> Row:
    """A row of a measured ratio."""
    median, low, high = (round(x, 4) for x in (figure.median, figure.low, figure.high))
    return Row(group, case, median, target, low, high)


def control(seconds: float) -> Row:
    """Measure the bare model against itself: the noise of the machine."""
    work = invoke(FastChatModel())
    return row_of("control", CONTROL, ratio(work, work, seconds=seconds))


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """A parser with the option that all measurements of time have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="for each case, default 3")
    return parser


Each = TypeVar("Each")


def progress(cases: Sequence[Each]) -> Iterator[Each]:
    """The cases, with a bar on screen; no thread draws it beside what is measured."""
    yield from track(cases, "Measuring", auto_refresh=False, console=console, transient=True)


def report(
    name: str, title: str, rows: Sequence[Row], before: Sequence[Row] = (), *, seconds: float
) -> None:
    """Print a table, with the figures of before beside it if there are any; write the results."""
    cells, group = [], None
    for position, row in enumerate(rows):
        was = before[position] if before else row
        compared = [was.told, row.told, row.beside(was)] if before else [row.told]
        target = "" if row.target is None else f"{row.target:.2f}"
        cells.append([row.group if row.group != group else "", row.case, *compared])
        cells[-1] += [target, row.verdict]
        group = row.group
    figures = ["before", "after", ""] if before else ["figure (95 % interval)"]
    show(title, ["", "case", *figures, "target", ""], cells)
    verdicts = [row.verdict for row in rows if row.target is not None]
    console.print(f"Targets: {verdicts.count('met')} of {len(verdicts)} met.")
    written = {"rows": [{**asdict(row), "verdict": row.verdict} for row in rows]}
    if before:
        written["before"] = [asdict(row) for row in before]
    write(name, {"title": title, "seconds_per_case": seconds, **written})


def show(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; a row whose first cell is filled begins a section."""
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading)
    for row in rows:
        if row[0]:
            table.add_section()
        table.add_row(*row, style="red" if {"missed", "worse"} & set(row) else None)
    console.print(table)


def write(name: str, results: dict[str, Any]) -> None:
    """Write `results/<name>.json`, with the facts of the machine."""
    facts = {
        "measured": datetime.now(timezone.utc).date().isoformat(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "packages": {package: version(package) for package in PACKAGES},
    }
    text = json.dumps({**facts, **results}, indent=2, ensure_ascii=False)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")
