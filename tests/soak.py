"""Soaks the library for long, and says what came out. Ends at the first thing that is wrong.

python tests/soak.py --calls 20000 --seed 1
"""

from __future__ import annotations

import argparse
import logging
import os

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from wire.soaking import BrokenInvariantError, soak


def main() -> None:
    """Soak as the command line says, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=20_000, help="default: 20000")
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    parser.add_argument("--minutes", type=float, default=30, help="at most; default: 30")
    arguments = parser.parse_args()
    logging.getLogger("langchain_retrying").setLevel(logging.ERROR)
    console = Console()
    columns = ("soaking", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=arguments.calls)
        try:
            tally = soak(
                arguments.calls,
                arguments.seed,
                60 * arguments.minutes,
                lambda: progress.advance(bar),
            )
        except BrokenInvariantError as error:
            console.print(str(error), markup=False, style="red")
            # At once: a call that hangs would hold the interpreter.
            os._exit(1)
    if not progress.finished:
        console.print("Time is up.")
    console.print(f"{tally.calls} calls, {tally.requests} requests: all invariants kept.")
    for counts in (tally.outcomes, tally.ways):
        console.print(", ".join(f"{count} {name}" for name, count in counts.most_common()))
    console.print(f"Python objects after each third: {[found.total() for found in tally.objects]}")
    console.print(f"Peak memory after each third, MB: {[*map(round, tally.peak_megabytes)]}")


if __name__ == "__main__":
    main()
