"""A picture of a probe. Needs matplotlib, so it is imported only where one is asked for."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from langchain_retrying._probe.errors import BadInputError
from langchain_retrying._probe.summary import SideSummary, Summary

_COLOURS = {"bare": "#c44e52", "wrapped": "#4c72b0"}


def check_plot_file(path: Path) -> None:
    """Raise before anything is asked, and not when all is done.

    Raises:
        BadInputError: Its suffix is that of no format, or its folder is not there.

    """
    formats = Figure().canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in formats:
        raise BadInputError(f"{path}: name it .png, .svg or .pdf.")
    if not path.parent.is_dir():
        raise BadInputError(f"{path}: there is no folder {path.parent}.")


def save_plot(summary: Summary, path: Path) -> None:
    """Draw the shares of empty replies with their intervals, and when answers were there.

    Raises:
        BadInputError: The file can't be written.

    """
    figure = Figure(figsize=(9, 4), layout="constrained")
    figure.suptitle(f"{summary.model}: bare and wrapped in RetryingChatModel")
    left, right = figure.subplots(1, 2)
    _draw_empty(left, summary)
    _draw_answers(right, summary)
    try:
        figure.savefig(path)
    except OSError as error:
        raise BadInputError(f"{path}: {error.strerror}.") from error


def _draw_empty(axes: Axes, summary: Summary) -> None:
    """Bars by kind."""
    sides = (summary.bare, summary.wrapped)
    kinds = [
        kind
        for kind in summary.bare.kinds
        if kind != "answer" and any(side.kinds[kind].count for side in sides)
    ] or ["blank"]
    for offset, side in ((-0.2, summary.bare), (0.2, summary.wrapped)):
        shares = [side.kinds[kind] for kind in kinds]
        axes.bar(
            [place + offset for place in range(len(kinds))],
            [share.rate for share in shares],
            width=0.38,
            color=_COLOURS[side.side],
            label=side.side,
            yerr=[
                [share.rate - share.low for share in shares],
                [share.high - share.rate for share in shares],
            ],
            capsize=4,
        )
    axes.set_xticks(range(len(kinds)), kinds)
    axes.set_xlim(-0.6, len(kinds) - 0.4)
    axes.margins(y=0.15)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_title("Calls without an answer (95% interval)")
    axes.legend()


def _draw_answers(axes: Axes, summary: Summary) -> None:
    """The share of calls that have their answer by then."""
    longest = max(
        (side.answers_after[-1] for side in (summary.bare, summary.wrapped) if side.answers_after),
        default=1.0,
    )
    for side in (summary.bare, summary.wrapped):
        seconds, shares = _steps(side, 1.05 * longest)
        axes.step(seconds, shares, where="post", color=_COLOURS[side.side], label=side.side)
    axes.set_xlim(0, 1.05 * longest)
    axes.set_ylim(0, 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_xlabel("seconds")
    axes.set_title("Calls answered by then")
    axes.legend(loc="lower right")


def _steps(side: SideSummary, end: float) -> tuple[list[float], list[float]]:
    answers, calls = side.answers_after, max(side.calls, 1)
    shares = [number / calls for number in range(len(answers) + 1)]
    return [0, *answers, end], [*shares, shares[-1]]
