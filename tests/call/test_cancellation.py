"""When the consumer stops, the inner stream is closed at once and no further request is made."""

from __future__ import annotations

import asyncio
import gc

import pytest

from langchain_retrying import RetryingChatModel, RetryPolicy
from langchain_retrying.testing import ScriptedChatModel


class Stalling(ScriptedChatModel):
    """Its async streams and replies hang once the script's pieces are out."""

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        self._next(messages, stop, kwargs, streamed=False)
        await asyncio.Event().wait()

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        self._count_stream(1)
        try:
            for piece in self._next(messages, stop, kwargs, streamed=True):
                yield next(ScriptedChatModel([piece])._stream(messages))
            await asyncio.Event().wait()
        finally:
            self._count_stream(-1)


async def until(condition) -> None:
    while not condition():
        await asyncio.sleep(0)


async def read(stream, seen):
    async for chunk in stream:
        seen.append(chunk.content)


@pytest.mark.parametrize("held", [[], ["", " "]])
async def test_cancelled_while_holding(held):
    model = Stalling([held])
    seen = []
    task = asyncio.create_task(read(RetryingChatModel(model).astream("Hi"), seen))
    await until(lambda: model.requests)
    await asyncio.sleep(0)
    assert model.streams_open == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (seen, model.streams_open, len(model.requests)) == ([], 0, 1)


async def test_cancelled_after_the_commit():
    model = Stalling([["Hello"]])
    seen = []
    task = asyncio.create_task(read(RetryingChatModel(model).astream("Hi"), seen))
    await until(lambda: seen)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (seen, model.streams_open, len(model.requests)) == (["Hello"], 0, 1)


@pytest.mark.parametrize("streamed", [False, True])
async def test_cancelled_while_waiting(streamed, monkeypatch):
    """The wait breaks at once, and nothing more is asked for."""
    waiting = []

    async def wait(seconds):
        waiting.append(seconds)
        await asyncio.Event().wait()

    monkeypatch.setattr("langchain_retrying._call.clock.asleep", wait)
    model = ScriptedChatModel(["", "never"])
    wrapped = RetryingChatModel(model, RetryPolicy(wait=lambda state: 60.0))
    call = read(wrapped.astream("Hi"), []) if streamed else wrapped.ainvoke("Hi")
    task = asyncio.create_task(call)
    await until(lambda: waiting)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (model.streams_open, len(model.requests)) == (0, 1)


async def test_cancelled_during_an_attempt():
    model = Stalling([""])
    task = asyncio.create_task(RetryingChatModel(model).ainvoke("Hi"))
    await until(lambda: model.requests)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(model.requests) == 1


async def test_an_async_generator_closed_after_the_commit():
    model = Stalling([["Hello"]])
    stream = RetryingChatModel(model).astream("Hi")
    assert (await anext(stream)).content == "Hello"
    await stream.aclose()
    assert model.streams_open == 0


async def test_the_hook_closed_among_held_chunks_closes_the_inner_stream():
    """Closed where held chunks go out, between the commit and what follows."""
    model = Stalling([["", "Hello"]])
    stream = RetryingChatModel(model)._astream([])
    assert (await anext(stream)).message.content == ""
    assert model.streams_open == 1
    await stream.aclose()
    assert model.streams_open == 0


def test_a_generator_closed_at_each_of_its_yields():
    for taken in range(1, 5):
        model = ScriptedChatModel([["", "a", "b", "c"], "never"])
        stream = RetryingChatModel(model).stream("Hi")
        for _ in range(taken):
            next(stream)
        stream.close()
        assert (model.streams_open, len(model.requests)) == (0, 1)


def test_a_generator_dropped_is_closed_without_the_garbage_collector():
    model = ScriptedChatModel([["", ""], ["a", "b"]])
    stream = RetryingChatModel(model).stream("Hi")
    gc.disable()
    try:
        next(stream)
        assert model.streams_open == 1
        del stream
        assert model.streams_open == 0
    finally:
        gc.enable()


def test_an_exception_thrown_in_by_the_consumer_is_not_a_failure_of_the_model():
    for taken in (1, 2):
        model = ScriptedChatModel([["", "a", "b"], "never"])
        stream = RetryingChatModel(model, RetryPolicy(retry=lambda state: True)).stream("Hi")
        for _ in range(taken):
            next(stream)
        with pytest.raises(TimeoutError):
            stream.throw(TimeoutError())
        assert (model.streams_open, len(model.requests)) == (0, 1)


async def test_a_rejected_stream_is_closed_before_the_next_is_opened():
    open_at_request = []

    class Watching(ScriptedChatModel):
        def _next(self, messages, stop, kwargs, *, streamed):
            open_at_request.append(self.streams_open)
            return super()._next(messages, stop, kwargs, streamed=streamed)

    script = [[" " * 10] * 20, ["Hello"]]
    policy = RetryPolicy(max_held_bytes=50)
    async for _ in RetryingChatModel(Watching(script), policy).astream("Hi"):
        pass
    for _ in RetryingChatModel(Watching(script), policy).stream("Hi"):
        pass
    assert open_at_request == [1, 1, 1, 1]
