"""Measures checkouts of the package in turn: each in processes of its own, with the same script.

What differs from process to process, as the layout of memory and the hashes of strings, is the same
for as long as one runs, however long it measures. So a figure is the median of those of six
processes; from the least to the greatest of them is an interval that holds the median of all such
processes 31 times of 32.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import langchain_retrying
from shared.ratios import median_of
from shared.report import Row, progress, row_of

PROCESSES = 6
HERE = Path(langchain_retrying.__file__).parents[1]
"""The `src` that this process has imported the package from."""


def measured(script: str, sources: Sequence[Path], seconds: float) -> list[list[Row]]:
    """The rows of each source; the script is called with `--once`, and says them by `tell`."""
    told: dict[Path, list[list[Row]]] = {source: [] for source in sources}
    turns = [source for turn in range(PROCESSES) for source in sources[:: 1 - turn % 2 * 2]]
    for source in progress(turns):
        told[source].append(_rows_of_process(script, source, seconds / PROCESSES))
    return [[_middle(same) for same in zip(*told[source], strict=True)] for source in sources]


def tell(rows: Sequence[Row]) -> None:
    """In the process: say what it has measured."""
    asked, _, _ = os.environ["PYTHONPATH"].partition(os.pathsep)
    assert asked == str(HERE), f"the package of {HERE} was imported, not that of {asked}"
    print(json.dumps([asdict(row) for row in rows]))


def _rows_of_process(script: str, source: Path, seconds: float) -> list[Row]:
    others = os.environ.get("PYTHONPATH")
    path = f"{source}{os.pathsep}{others}" if others else str(source)
    finished = subprocess.run(  # noqa: S603 -- a script of this folder
        [sys.executable, script, "--once", "--seconds", str(seconds)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        check=True,
    )
    return [Row(**row) for row in json.loads(finished.stdout)]


def _middle(rows: Sequence[Row]) -> Row:
    first = rows[0]
    return row_of(first.group, first.case, median_of([row.figure for row in rows]), first.target)
