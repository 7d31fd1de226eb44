"""The demo: a model that is blank at times, bare and wrapped, side by side."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from langsmith import tracing_context
from rich.console import Console
from rich.progress import Progress

from langchain_retrying._demo.report import summary, table
from langchain_retrying._demo.runs import JOBS, SIDES, Tally, run


def run_demo(turns: int, blank_rate: float, seed: int) -> None:
    """Run each job on each side for so many turns, and print what came out."""
    console = Console()
    rate = f"{100 * blank_rate:g}%"
    console.print(f"{turns} turns of each job; a text answer is blank at a rate of {rate}.\n")
    tallies = [Tally(job, side) for job in JOBS for side in SIDES]
    questions = [f"Question {turn + 1}: are you there?" for turn in range(turns)]
    bars = Progress(console=console, transient=True, disable=not console.is_terminal)
    with _undisturbed(), bars as progress:
        for tally in tallies:
            shown = progress.track(questions, description=f"{tally.job}, {tally.side}")
            run(tally, shown, blank_rate, seed)
    console.print(table(tallies))
    console.print(f"\n{summary(tallies)}")


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No traces, no proxy, no settings meant for other models, no warnings amid the progress."""
    environment = dict(os.environ)
    for name in environment:
        if name.startswith(("OPENAI_", "LANGCHAIN_", "LANGSMITH_", "LC_OUTPUT_VERSION")):
            del os.environ[name]
    os.environ["no_proxy"] = "*"  # holds against the system's proxy settings, too
    logger = logging.getLogger("langchain_retrying")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with tracing_context(enabled=False):  # LangSmith may have read the environment already
            yield
    finally:
        logger.setLevel(level)
        os.environ.clear()
        os.environ.update(environment)
