"""How long one thing takes as a ratio to another, on a machine whose speed is not steady.

Both are run in turn in short blocks, A B B A or B A A B at random, in one process, on CPU time and
without the garbage collector; the figure is the median of the blocks' ratios. What slows the
machine for longer than a block slows both sides of it.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable

BLOCK_NS = 500_000
WARM_UP = 20


def ratio(
    a: Callable[[], object], b: Callable[[], object], *, seconds: float = 3.0, seed: int = 0
) -> float:
    """Median of time(b) / time(a), measured for `seconds` of wall-clock time."""
    draw = random.Random(seed)
    for _ in range(WARM_UP):
        a()
        b()
    calls = max(1, int(BLOCK_NS * WARM_UP / _block(a, WARM_UP)))
    ratios = []
    end = time.monotonic() + seconds
    enabled = gc.isenabled()
    gc.disable()
    try:
        while time.monotonic() < end:
            first, last = draw.choice([(a, b), (b, a)])
            outer = _block(first, calls)
            inner = _block(last, calls) + _block(last, calls)
            outer += _block(first, calls)
            ratios.append(inner / outer if first is a else outer / inner)
            gc.collect(0)
    finally:
        if enabled:
            gc.enable()
    return statistics.median(ratios)


def _block(function: Callable[[], object], calls: int) -> int:
    start = time.process_time_ns()
    for _ in range(calls):
        function()
    return max(1, time.process_time_ns() - start)
