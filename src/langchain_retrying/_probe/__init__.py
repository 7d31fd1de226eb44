"""The probe: how often a model's replies are empty, bare and wrapped, and what helps."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress

from langchain_retrying import RetryingChatModel
from langchain_retrying._probe.errors import BadInputError, RunFailedError
from langchain_retrying._probe.models import build_model
from langchain_retrying._probe.prompts import BUILT_IN, Prompt, read_prompts
from langchain_retrying._probe.report import as_json, print_report
from langchain_retrying._probe.runs import (
    Limits,
    Run,
    ask_all,
    both_sides,
    invoke,
    stream,
    undisturbed,
)
from langchain_retrying._probe.summary import content_of, summarise


@dataclass(frozen=True)
class Output:
    """How the findings are given.

    Args:
        as_json: For machines, instead of tables.
        plot: The file of a picture; None: there is none.
        show_content: Also what the model said.
        console: Where it is printed.

    """

    as_json: bool = False
    plot: Path | None = None
    show_content: bool = False
    console: Console = field(default_factory=Console)

    def check(self) -> None:
        """Find out before anything is asked whether the plot can be drawn.

        Raises:
            BadInputError: It can't.

        """
        if self.plot is not None:
            try:
                from langchain_retrying._probe.plot import check_plot_file  # noqa: PLC0415 -- an extra
            except ImportError as error:
                raise BadInputError(
                    f"--plot needs matplotlib ({error}): pip install 'langchain-retrying[plot]'."
                ) from error
            check_plot_file(self.plot)


def run_probe(  # noqa: PLR0913 -- the options of the command
    name: str,
    *,
    base_url: str | None,
    prompts_file: Path | None,
    calls: int,
    streamed: bool,
    limits: Limits,
    output: Output,
) -> int:
    """Ask a model, bare and wrapped, and report.

    Returns:
        The exit code: 0, 1 if the run failed, 130 after Ctrl-C.

    Raises:
        BadInputError: The model, the prompts or the plot can't be had; the text is for the user.

    """
    output.check()
    prompts = BUILT_IN if prompts_file is None else read_prompts(prompts_file)
    model = build_model(name, base_url)
    job = stream if streamed else invoke
    runs = both_sides(job.__name__, job, model, RetryingChatModel(model))
    asked = list(islice(cycle(prompts), calls))
    with undisturbed():
        return ask_and_report(name, runs, asked, output, limits)


def ask_and_report(
    name: str,
    runs: Sequence[Run],
    prompts: Sequence[Prompt],
    output: Output,
    limits: Limits,
) -> int:
    """Make the turns of all runs, which come in pairs, and report; partly, if it ends early.

    Returns:
        As `run_probe`.

    """
    # Bare and wrapped take turns, so that both meet the provider in the same state.
    pairs = zip(runs[::2], runs[1::2], strict=True)
    pending = ((run, prompt) for pair in pairs for prompt in prompts for run in pair)
    code, stopped = 0, None
    try:
        with _progress(len(runs) * len(prompts)) as ended:
            stopped = asyncio.run(ask_all(pending, limits, ended))
    except RunFailedError as error:
        code, stopped = 1, str(error)
    except KeyboardInterrupt:
        code, stopped = 130, "Interrupted."  # the code is what a shell reports of it
    if any(turn.kind for run in runs for turn in run.turns):
        _report(name, runs, stopped, output)
    if stopped:
        print(stopped, file=sys.stderr)
    return code


def _report(name: str, runs: Sequence[Run], stopped: str | None, output: Output) -> None:
    summary = summarise(name, runs, stopped)
    content = content_of(runs) if output.show_content else []
    if output.as_json:
        print(as_json(summary, content))
    else:
        print_report(output.console, summary, content)
    if output.plot is not None:
        from langchain_retrying._probe.plot import save_plot  # noqa: PLC0415 -- an extra

        save_plot(summary, output.plot)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """A bar on stderr, where that is a terminal; gives what is called after each turn."""
    console = Console(stderr=True)
    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with bar as progress:
        task = progress.add_task("Asking", total=total)
        yield lambda: progress.advance(task)
