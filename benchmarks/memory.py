"""Peak memory of reading a stream (tracemalloc), and whether endless white space ends.

    python benchmarks/memory.py [--seconds 3]

`--seconds` is taken for the noise of the machine only: memory is the same in every run.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import repeat
from typing import Any

from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from pydantic import PrivateAttr

from langchain_retrying import RetryingChatModel, RetryPolicy
from shared.models import UNSEEN, FastChatModel
from shared.report import Row, noise_of_machine, report, seconds_of_command_line

MEGABYTE = 1_000_000
LARGEST_SHARE = 0.25
"""Of bare's peak, where 1,000 or more are held."""


class RejectedFirst(FastChatModel):
    """Streams only the unseen chunks at its first request, and everything at the next."""

    _requests: int = PrivateAttr(default=0)

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        self._requests += 1
        if self._requests > 1:
            yield from super()._stream(messages)
            return
        unseen = UNSEEN[self.kind]
        for _ in range(10_000):
            yield ChatGenerationChunk(message=unseen())


class EndlessChatModel(FastChatModel):
    """Streams white space for ever."""

    white_space: str = " "

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        for text in repeat(self.white_space):
            yield ChatGenerationChunk(message=AIMessageChunk(content=text))


def peak(model: Any) -> int:
    """Bytes, above what stood before, that reading a stream takes at its peak."""
    FastChatModel().invoke("Hi")  # what is imported and cached at a first call
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in model.stream("Hi"):
            pass
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def held_streams() -> Iterator[Row]:
    """Streams with chunks held before their text."""
    group = "wrapped / bare"
    for kind in UNSEEN:
        for held, target in ((100, None), (1_000, LARGEST_SHARE), (10_000, LARGEST_SHARE)):
            model = FastChatModel(unseen=held, kind=kind)
            figure = peak(RetryingChatModel(model)) / peak(model)
            yield Row(group, f"{held:,} of {kind}, then text", round(figure, 4), target)


def rejected_attempts() -> Iterator[Row]:
    """A rejected attempt of 10,000 chunks, then an answer of 10,000; bare reads the answer only."""
    group = "wrapped / bare, 10,000 rejected"
    for name, target, unseen, chunks in (
        ("9,999 of reasoning, then text", LARGEST_SHARE, 9_999, 1),
        # LangChain itself keeps all chunks that are seen: no wrapper can be below bare here.
        ("10,000 of text", None, 0, 10_000),
    ):
        bare = FastChatModel(unseen=unseen, chunks=chunks)
        wrapped = RetryingChatModel(RejectedFirst(unseen=unseen, chunks=chunks))
        yield Row(group, name, round(peak(wrapped) / peak(bare), 4), target)


def endless_white_space() -> Iterator[Row]:
    """Streams that only the bound on held data ends."""
    default, low = RetryPolicy(max_retries=0), RetryPolicy(max_retries=0, max_held_bytes=2**15)
    for name, length, policy, target in (
        ("chunks of 1", 1, default, 1.0),
        ("chunks of 256", 256, default, 1.0),
        ("chunks of 1, max_held_bytes=2**15", 1, low, None),
    ):
        model = RetryingChatModel(EndlessChatModel(white_space=" " * length), policy)
        figure = peak(model) / MEGABYTE
        yield Row("endless white space, MB", name, round(figure, 4), target)


def main() -> None:
    """Measure all cases."""
    seconds = seconds_of_command_line(__doc__)
    noise = noise_of_machine(seconds)
    rows = [*held_streams(), *rejected_attempts(), *endless_white_space()]
    report("memory", "Peak memory of reading a stream", rows, seconds=seconds, noise=noise)


if __name__ == "__main__":
    main()
