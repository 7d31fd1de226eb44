"""What the wrapper costs where nothing is empty: CPU time, wrapped / bare.

    python benchmarks/overhead.py [--seconds 3]

The same fast model stands on both sides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from langchain.agents import create_agent
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_retrying import RetryingChatModel
from shared.models import UNSEEN, BlankFirst, FastChatModel
from shared.ratios import ratio
from shared.report import noise_of_machine, progress, report, row_of, seconds_of_command_line

Work = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """What is measured."""

    group: str
    name: str
    target: float | None
    work_with: Callable[[Any], Work]
    """Makes the work of a model, bare or wrapped."""
    model: FastChatModel
    bare_work_with: Callable[[Any], Work] | None = None
    """Where the bare model's work is another."""


class Idle(BaseCallbackHandler):
    """A callback handler that is called for each token, and does nothing."""

    def on_llm_new_token(self, *args: Any, **kwargs: Any) -> None:
        pass


def look_up(key: str) -> str:
    """Look up a value."""
    return key


HANDLER: RunnableConfig = {"callbacks": [Idle()]}
NO_HANDLER: RunnableConfig = {}
TURN: Any = {"messages": [("user", "Hi")]}


def whole_calls(run: Callable[[Any], Any]) -> Iterator[Case]:
    """Calls that give one message each."""
    model = FastChatModel()
    prompts: list[list[BaseMessage]] = [[HumanMessage("Hi")] for _ in range(10)]
    tools = [convert_to_openai_tool(look_up)]
    hundred = ["Hi"] * 100

    def concurrently(model: Any) -> Work:
        async def gather() -> None:
            await asyncio.gather(*(model.ainvoke("Hi") for _ in range(1000)))

        return lambda: run(gather())

    def cached(model: Any) -> Work:
        model = model.model_copy(update={"cache": InMemoryCache()})
        return lambda: model.invoke("Hi")

    for name, config in (("", NO_HANDLER), (", a handler", HANDLER)):
        yield Case("call", f"invoke{name}", 1.0, _invoke(config), model)
        yield Case("call", f"ainvoke{name}", 1.0, _ainvoke(run, config), model)
    for name, target, work_with in (
        ("generate of 10", 1.0, lambda model: lambda: model.generate(prompts)),
        ("bind_tools + invoke", 1.0, lambda model: lambda: model.bind_tools(tools).invoke("Hi")),
        ("batch of 100", 1.02, lambda model: lambda: model.batch(hundred)),
        ("abatch of 100", 1.02, lambda model: lambda: run(model.abatch(hundred))),
        ("1,000 concurrent ainvoke", 1.02, concurrently),
        ("invoke, a cache hit", 1.02, cached),
    ):
        yield Case("call", name, target, work_with, model)


def recovery(run: Callable[[Any], Any]) -> Iterator[Case]:
    """One blank, then an answer; the bare model is asked twice, the least that it can cost."""
    for call, ask in (("invoke", _invoke(NO_HANDLER)), ("ainvoke", _ainvoke(run, NO_HANDLER))):
        name = f"{call} / two bare ones"
        yield Case("blank, then answer", name, None, ask, BlankFirst(), _twice(ask))


def streams(run: Callable[[Any], Any]) -> Iterator[Case]:
    """Streams of text, read to their end."""
    for chunks, sync_target, async_target in (
        (1, 1.09, 1.09),
        (100, 1.04, 1.06),
        (1_000, 1.04, 1.06),
        (10_000, 1.04, 1.06),
    ):
        model = FastChatModel(chunks=chunks)
        for handler, config in (("", NO_HANDLER), (", a handler", HANDLER)):
            name = f"of {chunks:,}{handler}"
            yield Case("stream", name, sync_target, _stream(config), model)
            yield Case("stream", f"{name}, async", async_target, _astream(run, config), model)
    model = FastChatModel(chunks=100)
    yield Case("stream", "astream_events of 100", None, _astream_events(run), model)


def held_streams(run: Callable[[Any], Any]) -> Iterator[Case]:
    """Streams that are held for long before their text."""
    group = "900, then 100 of text"
    for kind in UNSEEN:
        model = FastChatModel(unseen=900, kind=kind, chunks=100)
        yield Case(group, kind, 0.95, _stream(NO_HANDLER), model)
        yield Case(group, f"{kind}, async", 0.95, _astream(run, NO_HANDLER), model)


def agents() -> Iterator[Case]:
    """The model in an agent."""

    def turn(model: Any) -> Work:
        agent: Any = create_agent(model, [look_up])
        return lambda: agent.invoke(TURN)

    def streamed_turn(model: Any) -> Work:
        agent: Any = create_agent(model, [look_up])
        return lambda: sum(1 for _ in agent.stream(TURN, stream_mode="messages"))

    yield Case("agent", "create_agent turn", 1.02, turn, FastChatModel())
    model = FastChatModel(chunks=100)
    yield Case("agent", 'stream_mode="messages", 100', None, streamed_turn, model)


def _invoke(config: RunnableConfig) -> Callable[[Any], Work]:
    return lambda model: lambda: model.invoke("Hi", config)


def _ainvoke(run: Callable[[Any], Any], config: RunnableConfig) -> Callable[[Any], Work]:
    return lambda model: lambda: run(model.ainvoke("Hi", config))


def _twice(work_with: Callable[[Any], Work]) -> Callable[[Any], Work]:
    def twice(model: Any) -> Work:
        once = work_with(model)
        return lambda: (once(), once())

    return twice


def _stream(config: RunnableConfig) -> Callable[[Any], Work]:
    return lambda model: lambda: sum(1 for _ in model.stream("Hi", config))


def _astream(run: Callable[[Any], Any], config: RunnableConfig) -> Callable[[Any], Work]:
    async def read(model: Any) -> int:
        return sum([1 async for _ in model.astream("Hi", config)])

    return lambda model: lambda: run(read(model))


def _astream_events(run: Callable[[Any], Any]) -> Callable[[Any], Work]:
    async def read(model: Any) -> int:
        return sum([1 async for _ in model.astream_events("Hi", version="v2")])

    return lambda model: lambda: run(read(model))


def main() -> None:
    """Measure all cases."""
    seconds = seconds_of_command_line(__doc__)
    noise = noise_of_machine(seconds)
    loop = asyncio.new_event_loop()
    run = loop.run_until_complete
    cases = [*whole_calls(run), *streams(run), *held_streams(run), *agents(), *recovery(run)]
    rows = []
    for case in progress(cases):
        bare = (case.bare_work_with or case.work_with)(case.model)
        wrapped = case.work_with(RetryingChatModel(case.model))
        figure = ratio(bare, wrapped, seconds=seconds)
        rows.append(row_of(case.group, case.name, figure, case.target))
    loop.close()
    report("overhead", "CPU time, wrapped / bare", rows, seconds=seconds, noise=noise)


if __name__ == "__main__":
    main()
