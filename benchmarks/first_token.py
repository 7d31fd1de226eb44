"""How long the first visible chunk takes from its arrival in the model to the consumer.

    python benchmarks/first_token.py [--seconds 3]

It is held back no longer than what was held before it takes to go out. The figure is that time as
a share of the CPU time which the bare model spends from the request to that chunk. Beside it stands
the whole CPU time up to that chunk, wrapped / bare: chunks that are held cost LangChain's work
later, and those that are merged never do.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from pydantic import PrivateAttr

from langchain_retrying import RetryingChatModel
from shared.models import FastChatModel
from shared.ratios import FEWEST_ROUNDS, median_of
from shared.report import Row, noise_of_machine, progress, report, row_of, seconds_of_command_line

# Chunks held, and the largest share of bare's time that is allowed.
TARGETS = {0: 0.15, 10: 0.05, 1_000: 0.05, 10_000: 0.05}


class StampingChatModel(FastChatModel):
    """Notes when the first visible chunk is about to leave it."""

    _arrived: int = PrivateAttr(default=0)

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in super()._stream(messages):
            if chunk.message.content:
                self._arrived = time.process_time_ns()
            yield chunk


def times_to_first_token(model: Any, source: StampingChatModel) -> tuple[int, int]:
    """Nanoseconds of CPU time from the request to the chunk, and from its arrival to it."""
    start = time.process_time_ns()
    stream = model.stream("Hi")
    while not next(stream).content:
        pass
    now = time.process_time_ns()  # before the stream is closed, which has a cost of its own
    stream.close()
    return now - start, now - source._arrived  # noqa: SLF001 -- the stamp of this module's own model


def rows_for(held: int, target: float, seconds: float) -> list[Row]:
    """Measure with so many chunks held, bare and wrapped in turn."""
    source = StampingChatModel(unseen=held)
    wrapped = RetryingChatModel(source)
    for model in (source, wrapped):
        times_to_first_token(model, source)
    delays: list[float] = []
    totals: list[float] = []
    bare_delays: list[float] = []
    micros: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(delays) < FEWEST_ROUNDS:
        gc.collect(0)
        bare_total, bare_delay = times_to_first_token(source, source)
        total, delay = times_to_first_token(wrapped, source)
        delays.append(delay / bare_total)
        bare_delays.append(bare_delay / bare_total)
        totals.append(total / bare_total)
        micros.append(delay / 1_000)
    case = f"{held:,} held"
    return [
        row_of("delay / bare's time to chunk", case, median_of(delays), target),
        row_of("delay, microseconds", case, median_of(micros)),
        row_of("the same share of bare itself", case, median_of(bare_delays)),
        row_of("time to chunk, wrapped / bare", case, median_of(totals)),
    ]


def main() -> None:
    """Measure for each number of held chunks."""
    seconds = seconds_of_command_line(__doc__)
    noise = noise_of_machine(seconds)
    gc.disable()
    rows = [
        row for held, target in progress(TARGETS.items()) for row in rows_for(held, target, seconds)
    ]
    gc.enable()
    rows.sort(key=lambda row: row.group)
    report("first_token", "The first visible chunk", rows, seconds=seconds, noise=noise)


if __name__ == "__main__":
    main()
