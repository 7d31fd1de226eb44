"""How long one thing takes as a ratio to another, on a machine whose speed is not steady.

Both are run in turn in short blocks, A B B A or B A A B at random, in one process, on CPU time and
without the garbage collector; the figure is the median of the blocks' ratios. What slows the
machine for longer than a block slows both sides of it.
"""

from __future__ import annotations

import gc
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

BLOCK_NS = 500_000
WARM_UP_CALLS = 20
WARM_UP_SECONDS = 0.2  # where twenty calls take longer
FEWEST_ROUNDS = 5  # where `seconds` is too short for more


@dataclass(frozen=True)
class Ratio:
    """A median of measured figures."""

    median: float
    low: float
    """Lower end of the median's 95 % confidence interval, from order statistics."""
    high: float
    """Its upper end."""


def ratio(a: Callable[[], object], b: Callable[[], object], *, seconds: float) -> Ratio:
    """time(b) / time(a), measured for `seconds` of wall-clock time."""
    draw = random.Random(0)
    calls = max(1, int(BLOCK_NS / _warm_up(a, b)))
    ratios: list[float] = []
    for _ in rounds(seconds):
        first, last = draw.choice([(a, b), (b, a)])
        outer = _block(first, calls)
        inner = _block(last, calls) + _block(last, calls)
        outer += _block(first, calls)
        ratios.append(inner / outer if first is a else outer / inner)
    return median_of(ratios)


def rounds(seconds: float) -> Iterator[None]:
    """Turns of a loop for so long, five at least, with garbage collected between them only."""
    end = time.monotonic() + seconds
    done = 0
    gc.collect()
    with _no_collector():
        while done < FEWEST_ROUNDS or time.monotonic() < end:
            yield
            gc.collect(0)
            done += 1


def median_of(figures: Sequence[float]) -> Ratio:
    """The median, and how far it may be off."""
    ordered = sorted(figures)
    last = len(ordered) - 1
    reach = 0.98 * math.sqrt(len(ordered))  # half of 1.96 standard deviations of the median's rank
    low, high = math.floor(last / 2 - reach), math.ceil(last / 2 + reach)
    return Ratio(statistics.median(ordered), ordered[max(0, low)], ordered[min(last, high)])


@contextmanager
def _no_collector() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _warm_up(a: Callable[[], object], b: Callable[[], object]) -> int:
    """Run both some times; the least CPU time of a call of `a`, in nanoseconds."""
    end = time.monotonic() + WARM_UP_SECONDS
    taken: list[int] = []
    while not taken or (len(taken) < WARM_UP_CALLS and time.monotonic() < end):
        taken.append(_block(a, 1))
        b()
    return min(taken)


def _block(function: Callable[[], object], calls: int) -> int:
    start = time.process_time_ns()
    for _ in range(calls):
        function()
    return max(1, time.process_time_ns() - start)
