"""Whether the cost of a stream is linear in its length, shown by a fit.

    python benchmarks/linearity.py [--seconds 3]

Least squares of log(CPU time) on log(chunks): the slope is 1 where the cost is linear, 2 where it
is quadratic. Beside it stands that of the bare model, which is LangChain's own.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

from langchain_retrying import RetryingChatModel
from shared.models import UNSEEN, FastChatModel
from shared.ratios import ratio
from shared.report import Row, noise_of_machine, progress, report, seconds_of_command_line

LENGTHS = (500, 1_000, 2_000, 4_000, 8_000)
STEEPEST = 1.05


def stream_of(kind: str, length: int) -> FastChatModel:
    """A model that streams so many chunks, one of them text at least."""
    if kind == "text":
        return FastChatModel(chunks=length)
    return FastChatModel(unseen=length - 1, kind=kind)


def reading(model: Any) -> Callable[[], object]:
    """Read the model's stream to its end."""
    return lambda: sum(1 for _ in model.stream("Hi"))


def costs(wrap: Callable[[Any], Any], kind: str, seconds: float) -> list[float]:
    """CPU time at each length, as a multiple of the shortest bare stream's."""
    unit = reading(stream_of(kind, LENGTHS[0]))
    works = [reading(wrap(stream_of(kind, length))) for length in LENGTHS]
    return [round(ratio(unit, work, seconds=seconds).median, 4) for work in works]


def slope_of(measured: list[float]) -> float:
    """Of the fit."""
    fit = statistics.linear_regression(
        [math.log(length) for length in LENGTHS], [math.log(cost) for cost in measured]
    )
    return round(fit.slope, 4)


def main() -> None:
    """Fit each kind of stream."""
    seconds = seconds_of_command_line(__doc__)
    noise = noise_of_machine(seconds)
    rows, curves = [], []
    for kind in progress(["text", *UNSEEN]):
        for side, wrap in (("wrapped", RetryingChatModel), ("bare", lambda model: model)):
            measured = costs(wrap, kind, seconds / 3)
            target = STEEPEST if side == "wrapped" else None
            rows.append(Row("slope of the fit", f"{kind}, {side}", slope_of(measured), target))
            curves.append({"kind": kind, "side": side, "lengths": LENGTHS, "costs": measured})
    title = "CPU time by length of a stream"
    report("linearity", title, rows, seconds=seconds, noise=noise, curves=curves)


if __name__ == "__main__":
    main()
