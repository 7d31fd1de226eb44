"""A probe from the first request to the report, which is on what there is if it ends early."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import cycle, islice
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from langchain_retrying import RetryingChatModel
from langchain_retrying._probe import inputs, runs
from langchain_retrying._probe.figures import summarise
from langchain_retrying._probe.inputs import Prompt
from langchain_retrying._probe.report import print_report
from langchain_retrying._probe.runs import Run


def run_probe(  # noqa: PLR0913 -- the options of the command
    name: str,
    *,
    base_url: str | None,
    prompts_file: Path | None,
    calls: int,
    concurrency: int,
    streamed: bool,
    as_json: bool,
) -> int:
    """Ask a model, bare and wrapped, and report.

    Returns:
        The exit code: 0; 1 if the run failed; 2 if the model or the prompts can't be had; 130
        after Ctrl-C.

    """
    try:
        prompts = inputs.BUILT_IN if prompts_file is None else inputs.read_prompts(prompts_file)
        model = inputs.build_model(name, base_url)
    except inputs.BadInputError as error:
        print(error, file=sys.stderr)
        return 2
    job = runs.stream if streamed else runs.invoke
    both = [Run(job.__name__, each, job(each)) for each in (model, RetryingChatModel(model))]
    asked = list(islice(cycle(prompts), calls))
    return ask_and_report(name, both, asked, concurrency, None if as_json else Console())


def ask_and_report(
    name: str,
    all_runs: Sequence[Run],
    prompts: Sequence[Prompt],
    concurrency: int,
    console: Console | None,
) -> int:
    """Make the turns of all runs and report.

    Args:
        name: The heading of the report.
        all_runs: Of each job a bare one, then a wrapped one.
        prompts: Each is asked once in each run.
        concurrency: Turns at a time, at least 1.
        console: Where a table is printed; None: JSON is, to standard output.

    Returns:
        The exit code, as of `run_probe`.

    """
    # Bare and wrapped take turns, so that both meet the provider in the same state.
    pairs = zip(all_runs[::2], all_runs[1::2], strict=True)
    pending = ((run, prompt) for pair in pairs for prompt in prompts for run in pair)
    code, stopped = 0, None
    try:
        with runs.undisturbed(), _progress(len(all_runs) * len(prompts)) as ended:
            asyncio.run(runs.ask_all(pending, concurrency, ended))
    except runs.RunFailedError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        code, stopped = 130, "Interrupted."  # the code is what a shell reports of it
        print(stopped, file=sys.stderr)
    summary = summarise(name, all_runs, stopped)
    if console is None:
        print(json.dumps(asdict(summary), indent=2))
    else:
        print_report(console, summary)
    return code


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """A bar on stderr, where that is a terminal; gives what is called after each turn."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("Asking", total=total)
        yield lambda: progress.advance(task)
