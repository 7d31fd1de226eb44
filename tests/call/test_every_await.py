"""A call may be stopped wherever it waits and wherever it yields: nothing is left, nothing follows.

Each test stops the same call again and again, one step later each time, until it ends by itself.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler

from langchain_retrying import RetryingChatModel, RetryPolicy
from langchain_retrying.testing import ScriptedChatModel

SCRIPT = [
    [""] * 9,
    ["", "\u200b"],
    ["", "\u200b", "a", "b", "c"],
]  # held to the bound; to the end; answered
POLICY = RetryPolicy(
    wait=lambda state: 1.0,
    retry=lambda state: True,  # whatever it is shown
    max_held_bytes=4,
)
TURNS = 3  # of the loop, in each wait


class SlowToClose(ScriptedChatModel):
    """Its async streams wait while they are closed, as connections do."""

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        self._count_stream(1)
        try:
            for piece in self._next(messages, stop, kwargs, streamed=True):
                await asyncio.sleep(0)
                yield next(ScriptedChatModel([piece])._stream(messages))
        finally:
            try:
                await asyncio.sleep(0)
            finally:
                self._count_stream(-1)


class SlowToHear(AsyncCallbackHandler):
    """Waits in each of its hooks, and counts how the run ends."""

    def __init__(self) -> None:
        self.overs = 0

    async def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        await asyncio.sleep(0)

    async def on_llm_new_token(self, *args: Any, **kwargs: Any) -> None:
        await asyncio.sleep(0)

    async def on_retry(self, *args: Any, **kwargs: Any) -> None:
        await asyncio.sleep(0)

    async def on_llm_end(self, *args: Any, **kwargs: Any) -> None:
        self.overs += 1
        await asyncio.sleep(0)

    async def on_llm_error(self, *args: Any, **kwargs: Any) -> None:
        self.overs += 1
        await asyncio.sleep(0)


async def turn(times: int = TURNS) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


@pytest.fixture
def waits(monkeypatch) -> list[str]:
    """Where waits between attempts have come to: `begun`, `over`."""
    noted = []

    async def asleep(seconds):
        noted.append("begun")
        await turn()
        noted.append("over")

    monkeypatch.setattr("langchain_retrying._call.clock.asleep", asleep)
    monkeypatch.setattr(
        "langchain_retrying._call.clock.sleep", lambda seconds, _: noted.append(seconds)
    )
    return noted


@contextmanager
def inner_streams_closed() -> Iterator[None]:
    """No inner stream is left to the garbage collector. (LangChain leaves the wrapper's to it.)"""
    left: list[str] = []
    firstiter, finalizer = sys.get_asyncgen_hooks()

    def finalize(generator: Any) -> None:
        left.append(generator.ag_code.co_name)
        finalizer(generator)

    sys.set_asyncgen_hooks(firstiter, finalize)
    try:
        yield
    finally:
        sys.set_asyncgen_hooks(firstiter, finalizer)
    assert SlowToClose._astream.__name__ not in left


async def taken_from(stream: AsyncIterator[Any], count: int) -> list[Any]:
    """So many things off a stream; fewer if it ends."""
    taken = []
    async for thing in stream:
        taken.append(thing)
        if len(taken) == count:
            break
    return taken


async def ainvoke(model: Any, config: Any, seen: list[Any]) -> None:
    seen.append((await model.ainvoke("Hi", config)).content)


async def astream(model: Any, config: Any, seen: list[Any]) -> None:
    async for chunk in model.astream("Hi", config):
        seen.append(chunk.content)


@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize("call", [ainvoke, astream])
async def test_cancelled_at_each_await(call: Callable[..., Awaitable[None]], heard, waits):
    """While holding, closing, waiting, reporting and after the commit."""
    struck = set()
    for steps in itertools.count():
        model, handler, seen = SlowToClose(SCRIPT), SlowToHear(), []
        waits.clear()
        config = {"callbacks": [handler] if heard else []}
        with inner_streams_closed():
            task = asyncio.create_task(call(RetryingChatModel(model, POLICY), config, seen))
            await turn(steps)
            if task.done():
                break
            waiting = waits[-1:] == ["begun"]
            struck.add("wait" if waiting else "shown" if any(seen) else len(model.requests))
            before = list(seen), len(model.requests)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert model.streams_open == 0
            await turn(10)
            assert (seen, len(model.requests)) == before
        assert handler.overs <= 1  # LangChain doesn't report each cancellation
    assert await task is None
    assert "".join(seen).lstrip("\u200b") == "abc"
    assert struck >= {0, 1, 2, 3, "wait"} | ({"shown"} if call is astream else set())


@pytest.mark.parametrize("heard", [False, True])
async def test_an_async_stream_closed_at_each_yield(heard, waits):
    """Held chunks and those that flow."""
    for taken in itertools.count(1):
        model, handler = SlowToClose(SCRIPT), SlowToHear()
        stream = RetryingChatModel(model, POLICY).astream(
            "Hi", {"callbacks": [handler] if heard else []}
        )
        with inner_streams_closed():
            seen = [chunk.content for chunk in await taken_from(stream, taken)]
            await stream.aclose()
            assert (model.streams_open, len(model.requests)) == (0, 3)
            assert [chunk async for chunk in stream] == []
        assert handler.overs == heard
        if len(seen) < taken:
            break
    assert seen[:5] == ["", "\u200b", "a", "b", "c"]


def test_a_stream_closed_at_each_yield(waits):
    """Also those of rejected attempts, which no reference count closes here."""
    held = []

    class Holding(ScriptedChatModel):
        def _stream(self, *args, **kwargs):
            held.append(super()._stream(*args, **kwargs))
            return held[-1]

    for taken in itertools.count(1):
        model = Holding(SCRIPT)
        stream = RetryingChatModel(model, POLICY).stream("Hi")
        seen = [chunk.content for chunk in itertools.islice(stream, taken)]
        stream.close()
        assert (model.streams_open, len(model.requests)) == (0, 3)
        assert list(stream) == []
        if len(seen) < taken:
            break
    assert seen[:5] == ["", "\u200b", "a", "b", "c"]


async def test_events_closed_at_each_of_them(waits):
    for taken in itertools.count(1):
        model = SlowToClose(SCRIPT)
        events = RetryingChatModel(model, POLICY).astream_events("Hi", version="v2")
        seen = [event["event"] for event in await taken_from(events, taken)]
        await events.aclose()
        requests = len(model.requests)
        await turn(20)
        assert (model.streams_open, len(model.requests)) == (0, requests)
        if len(seen) < taken:
            break
    assert seen[-1] == "on_chat_model_end"


async def test_an_async_stream_dropped_is_closed_by_the_loop(waits):
    for taken in range(1, 6):
        model = SlowToClose(SCRIPT)
        stream = RetryingChatModel(model, POLICY).astream("Hi")
        for _ in range(taken):
            await anext(stream)
        assert model.streams_open == 1
        del stream
        await turn(20)
        assert (model.streams_open, len(model.requests)) == (0, 3)
