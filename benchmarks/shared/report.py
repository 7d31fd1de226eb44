"""A benchmark's figures: as a table on screen, as a line on its targets, and as JSON."""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

RESULTS = Path(__file__).parent.parent / "results"
PACKAGES = (
    "langchain-retrying",
    "langchain-core",
    "langchain",
    "langgraph",
    "pydantic",
    "tenacity",
)
STEADY = 0.015
"""How far bare / bare may be off."""
UNSTEADY = f"bare / bare may be off by more than {STEADY:.1%}: run again, and for longer."

console = Console(highlight=False, soft_wrap=True)
if not console.is_terminal:
    console.width = 110


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
    """Lower end of the figure's 95 % confidence interval; None where it is not measured."""
    high: float | None = None
    """Its upper end."""

    @property
    def verdict(self) -> str:
        """Whether the target is met; where it is missed, the noise alone may be why."""
        if self.target is None:
            return ""
        if self.figure <= self.target:
            return "met"
        within_noise = self.low is not None and self.low <= self.target
        return "within noise" if within_noise else "missed"


def row_of(
    group: str, case: str, figure: Ratio, target: float | None = None, *, digits: int = 4
) -> Row:
    """A row of a measured ratio."""
    median, low, high = (round(x, digits) for x in (figure.median, figure.low, figure.high))
    return Row(group, case, median, target, low, high)


def seconds_of_command_line(description: str | None, default: float = 3.0) -> float:
    """What `--seconds` says."""
    # Each retry is told to the log, which is not to be written between the lines of a table.
    logging.getLogger("langchain_retrying").addHandler(logging.NullHandler())
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--seconds", type=float, default=default, help=f"for each case, default {default:g}"
    )
    seconds: float = parser.parse_args().seconds
    return seconds


Each = TypeVar("Each")


def progress(cases: Iterable[Each], total: int | None = None) -> Iterator[Each]:
    """The cases, with a bar on screen; no thread draws it beside what is measured."""
    yield from track(cases, "Measuring", total, auto_refresh=False, console=console, transient=True)


def noise_of_machine(seconds: float) -> Ratio:
    """Measure bare / bare, and print it."""
    model = FastChatModel()
    noise = ratio(lambda: model.invoke("Hi"), lambda: model.invoke("Hi"), seconds=seconds)
    console.print(f"bare / bare, the noise of this machine: {_told(noise)}")
    if not _is_steady(noise):
        console.print(UNSTEADY, style="bold red")
    return noise


def report(
    name: str, title: str, rows: Sequence[Row], *, seconds: float, noise: Ratio, **more: Any
) -> None:
    """Print the table and how the targets are met; write `results/<name>.json`, with `more`."""
    table = Table(title=title, caption=f"bare / bare: {_told(noise)}", title_justify="left")
    for heading in ("", "case"):
        table.add_column(heading)
    for heading in ("figure", "95 % interval", "target"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    group = None
    for row in rows:
        if row.group != group:
            table.add_section()
        table.add_row(
            "" if row.group == group else row.group,
            row.case,
            _number(row.figure),
            "" if row.low is None else f"{_number(row.low)} - {_number(row.high)}",
            _number(row.target),
            row.verdict,
            style="red" if row.verdict == "missed" else None,
        )
        group = row.group
    console.print(table)
    for line in _on_targets(rows):
        console.print(line)
    if not _is_steady(noise):
        console.print(UNSTEADY, style="bold red")
    written = [{**asdict(row), "verdict": row.verdict} for row in rows]
    write_results(name, {"title": title, "rows": written, **more}, seconds=seconds, noise=noise)


def write_results(name: str, results: Mapping[str, Any], *, seconds: float, noise: Ratio) -> None:
    """Write `results/<name>.json`, with the facts of the machine."""
    RESULTS.mkdir(exist_ok=True)
    facts = {
        "measured": datetime.now(timezone.utc).date().isoformat(),
        "seconds_per_case": seconds,
        "noise": {"bare / bare": asdict(noise), "steady": _is_steady(noise)},
        "machine": {
            "python": f"{platform.python_implementation()} {platform.python_version()}",
            "system": f"{platform.system()} {platform.machine()}",
            "processor": _processor(),
            "cores": os.cpu_count(),
            "packages": {package: version(package) for package in PACKAGES},
        },
    }
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({**facts, **results}, indent=2) + "\n", encoding="utf-8")


def _on_targets(rows: Sequence[Row]) -> list[str]:
    aimed = [row for row in rows if row.target is not None]
    if not aimed:
        return []
    met = sum(row.verdict == "met" for row in aimed)
    lines = [f"Targets: {met} of {len(aimed)} met."]
    for verdict, told in (("missed", "Missed"), ("within noise", "Missed, but within noise")):
        named = [
            f"{row.group}, {row.case}: {_number(row.figure)} > {_number(row.target)}"
            for row in aimed
            if row.verdict == verdict
        ]
        if named:
            lines.append(f"{told}: {'; '.join(named)}.")
    return lines


def _number(figure: float | None) -> str:
    return "" if figure is None else f"{figure:.3f}"


def _told(noise: Ratio) -> str:
    return f"{noise.median:.3f} ({noise.low:.3f} - {noise.high:.3f})"


def _is_steady(noise: Ratio) -> bool:
    return noise.low >= 1 - STEADY and noise.high <= 1 + STEADY


def _processor() -> str:
    """Linux tells the processor's name here only."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            key, _, name = line.partition(":")
            if key.strip() == "model name":
                return name.strip()
    return platform.processor() or "unknown"
