"""What the wrapper costs where nothing is empty: CPU time, wrapped / bare.

    python benchmarks/overhead.py [--seconds 3]

The same fast fake model stands on both sides. Printed first is bare / bare, the noise of the
machine: if it is off by more than 1.5 %, run again.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from ratios import ratio

from langchain_retrying import RetryingChatModel


class FastChatModel(BaseChatModel):
    """Answers at once, with `chunks` chunks when streamed."""

    chunks: int = 1

    @property
    def _llm_type(self) -> str:
        return "fast"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content="Hello"))])

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return self._generate(messages)

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        for _ in range(self.chunks):
            yield ChatGenerationChunk(message=AIMessageChunk(content="Hello"))

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages):
            yield chunk


def cases(run: Callable[[Any], Any]) -> Iterator[tuple[str, float, Any, Any]]:
    """Each case: its name, its target, and the two sides."""

    def invoke(model: Any) -> Callable[[], object]:
        return lambda: model.invoke("Hi")

    def ainvoke(model: Any) -> Callable[[], object]:
        return lambda: run(model.ainvoke("Hi"))

    def stream(model: Any) -> Callable[[], object]:
        return lambda: sum(1 for _ in model.stream("Hi"))

    def astream(model: Any) -> Callable[[], object]:
        async def read() -> int:
            return sum([1 async for _ in model.astream("Hi")])

        return lambda: run(read())

    model = FastChatModel()
    yield "bare / bare", 1.0, invoke(model), invoke(model)
    for name, target, side in (("invoke", 1.03, invoke), ("ainvoke", 1.03, ainvoke)):
        yield name, target, side(model), side(RetryingChatModel(model))
    for chunks, sync_target, async_target in (
        (1, 1.09, 1.09),
        (100, 1.04, 1.06),
        (1000, 1.04, 1.06),
    ):
        model = FastChatModel(chunks=chunks)
        wrapped = RetryingChatModel(model)
        yield f"stream of {chunks}", sync_target, stream(model), stream(wrapped)
        yield f"astream of {chunks}", async_target, astream(model), astream(wrapped)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="for each case, default 3")
    seconds = parser.parse_args().seconds
    loop = asyncio.new_event_loop()
    print(f"{'case':<18} {'wrapped / bare':>14} {'target':>8}")
    for name, target, bare, wrapped in cases(loop.run_until_complete):
        figure = ratio(bare, wrapped, seconds=seconds)
        print(f"{name:<18} {figure:>14.3f} {target:>8.2f}", flush=True)
    loop.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
