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

from langchain.agents import create_agent
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.utils.function_calling import convert_to_openai_tool
from ratios import ratio

from langchain_retrying import RetryingChatModel


class FastChatModel(BaseChatModel):
    """Answers at once, with `chunks` chunks when streamed."""

    chunks: int = 1

    @property
    def _llm_type(self) -> str:
        return "fast"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Bind tools, given in OpenAI's format."""
        return self.bind(tools=tools, **kwargs)

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


class Counting(BaseCallbackHandler):
    """A callback handler that does next to nothing."""

    def on_llm_new_token(self, *args: Any, **kwargs: Any) -> None:
        pass


def look_up(key: str) -> str:
    """Look up a value."""
    return key


Side = Callable[[Any], Callable[[], object]]


def cases(run: Callable[[Any], Any]) -> Iterator[tuple[str, float, BaseChatModel, Side]]:
    """Each case: its name, its target, the bare model, and what is done with either."""
    config: RunnableConfig = {"callbacks": [Counting()]}
    tools = [convert_to_openai_tool(look_up)]

    def stream(model: Any) -> Callable[[], object]:
        return lambda: sum(1 for _ in model.stream("Hi"))

    def astream(model: Any) -> Callable[[], object]:
        async def read() -> int:
            return sum([1 async for _ in model.astream("Hi")])

        return lambda: run(read())

    def agent_turn(model: Any) -> Callable[[], object]:
        agent = create_agent(model, [look_up])
        return lambda: agent.invoke({"messages": [("user", "Hi")]})

    def with_cache(model: Any) -> Callable[[], object]:
        cached = model.model_copy(update={"cache": InMemoryCache()})
        return lambda: cached.invoke("Hi")

    one = FastChatModel()
    prompts: list[list[BaseMessage]] = [[HumanMessage("Hi")] for _ in range(10)]
    yield "invoke", 1.0, one, lambda model: lambda: model.invoke("Hi")
    yield "ainvoke", 1.0, one, lambda model: lambda: run(model.ainvoke("Hi"))
    yield "generate of 10", 1.0, one, lambda model: lambda: model.generate(prompts)
    yield (
        "bind_tools + invoke",
        1.0,
        one,
        lambda model: lambda: model.bind_tools(tools).invoke("Hi"),
    )
    yield "invoke, a handler", 1.0, one, lambda model: lambda: model.invoke("Hi", config)
    yield "ainvoke, a handler", 1.0, one, lambda model: lambda: run(model.ainvoke("Hi", config))
    yield "invoke, a cache hit", 1.02, one, with_cache
    yield "create_agent turn", 1.02, one, agent_turn
    for chunks, sync_target, async_target in (
        (1, 1.09, 1.09),
        (100, 1.04, 1.06),
        (1000, 1.04, 1.06),
    ):
        model = FastChatModel(chunks=chunks)
        yield f"stream of {chunks}", sync_target, model, stream
        yield f"astream of {chunks}", async_target, model, astream


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="for each case, default 3")
    seconds = parser.parse_args().seconds
    loop = asyncio.new_event_loop()
    print(f"{'case':<22} {'wrapped / bare':>14} {'target':>8}")
    bare = FastChatModel()
    noise = ratio(lambda: bare.invoke("Hi"), lambda: bare.invoke("Hi"), seconds=seconds)
    print(f"{'bare / bare':<22} {noise:>14.3f} {1:>8.2f}", flush=True)
    for name, target, model, side in cases(loop.run_until_complete):
        figure = ratio(side(model), side(RetryingChatModel(model)), seconds=seconds)
        missed = "" if figure <= target else "  missed"
        print(f"{name:<22} {figure:>14.3f} {target:>8.2f}{missed}", flush=True)
    loop.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
