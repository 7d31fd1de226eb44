"""What streams that are held for long cost: memory, and the time they take to go out.

    python benchmarks/memory.py [--seconds 3]

Peaks of memory (tracemalloc) are the same in every run. Slopes are those of a least-squares fit of
log(CPU time) on log(chunks): 1 is linear, 2 quadratic. The first visible chunk is held no longer
than what was held before it takes to go out: that time, from its arrival in the model to the
consumer, as a share of the CPU time that bare takes from the request to it, and in microseconds;
beside it stands the whole time to it, wrapped / bare.
"""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Iterator
from statistics import linear_regression
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from pydantic import PrivateAttr

from langchain_retrying import RetryingChatModel, RetryPolicy
from shared.models import UNSEEN, FastChatModel
from shared.ratios import median_of, ratio, rounds
from shared.report import Row, control, parser_of, report, row_of
from shared.work import stream

LENGTHS = (500, 2_000, 8_000)


class Stamping(FastChatModel):
    """Notes when a visible chunk is about to leave it."""

    _arrived: int = PrivateAttr(default=0)

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in super()._stream(messages):
            if chunk.message.content:
                self._arrived = time.process_time_ns()
            yield chunk

    def times_to_first_token(self, model: Any) -> tuple[int, int]:
        """Nanoseconds to the first visible chunk of itself or wrapped: in all, and from here."""
        begun = time.process_time_ns()
        chunks = model.stream("Hi")
        while not next(chunks).content:
            pass
        now = time.process_time_ns()  # before the stream is closed, which has a cost of its own
        chunks.close()
        return now - begun, now - self._arrived


def peak(model: Any) -> int:
    """Bytes that reading a stream takes at its peak."""
    tracemalloc.start()
    stream(model)()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def peaks() -> Iterator[Row]:
    """Streams that are held before their text, retried, or endless."""
    group, at_most = "peak, wrapped / bare", 0.25
    for kind in UNSEEN:
        for held in (1_000, 10_000):
            model = FastChatModel(unseen=held, kind=kind)
            share = peak(RetryingChatModel(model)) / peak(model)
            yield Row(group, f"{held:,} of {kind}, then text", share, at_most)
    retried = RetryingChatModel(FastChatModel(unseen=10_000, blank_first=True))
    share = peak(retried) / peak(FastChatModel(unseen=10_000))
    yield Row(group, "10,000 of reasoning twice, then text", share, at_most)
    endless = RetryingChatModel(FastChatModel(unseen=2**40, kind="whitespace"), RetryPolicy(0))
    yield Row("peak, megabytes", "endless white space", peak(endless) / 1e6, 1.0)


def slopes(seconds: float) -> Iterator[Row]:
    """CPU time by length, as a multiple of the shortest bare stream's."""
    for kind in ("text", *UNSEEN):
        shapes = [{"chunks": n} if kind == "text" else {"unseen": n, "kind": kind} for n in LENGTHS]
        models = [FastChatModel(**shape) for shape in shapes]
        for side, target, sides in (
            ("wrapped", 1.05, [RetryingChatModel(model) for model in models]),
            ("bare", None, models),
        ):
            unit = stream(models[0])
            costs = [ratio(unit, stream(model), seconds=seconds / 3).median for model in sides]
            fit = linear_regression([math.log(n) for n in LENGTHS], [math.log(c) for c in costs])
            yield Row("slope of CPU time", f"{kind}, {side}", fit.slope, target)


def first_tokens(seconds: float) -> Iterator[Row]:
    """The first visible chunk after so many held ones, bare and wrapped in turn."""
    for held, target in ((0, 0.15), (10, 0.05), (1_000, 0.05), (10_000, 0.05)):
        model = Stamping(unseen=held)
        wrapped = RetryingChatModel(model)
        model.times_to_first_token(wrapped)
        times = [
            (*model.times_to_first_token(model), *model.times_to_first_token(wrapped))
            for _ in rounds(seconds)
        ]
        for group, aim, figures in (
            ("delay / bare's time to chunk", target, [d / bare for bare, _, _, d in times]),
            ("delay, microseconds", None, [d / 1_000 for _, _, _, d in times]),
            ("time to chunk, wrapped / bare", None, [t / bare for bare, _, t, _ in times]),
        ):
            yield row_of(group, f"{held:,} held", median_of(figures), aim)


def main() -> None:
    """Measure all of it."""
    seconds: float = parser_of(__doc__).parse_args().seconds
    rows = [control(seconds), *peaks(), *slopes(seconds), *first_tokens(seconds)]
    rows[-12:] = sorted(rows[-12:], key=lambda row: row.group)
    report("memory", "Streams that are held", rows, seconds=seconds)


if __name__ == "__main__":
    main()
