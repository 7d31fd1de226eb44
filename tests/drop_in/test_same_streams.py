"""Streams: what comes when, native events, and what happens when the reader stops."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langchain_core.tracers import _streaming

from side_by_side import small_models as small
from side_by_side import uses
from side_by_side.listening import AsyncRecorder, Recorder
from side_by_side.rows import FILTERS, V1_OUTPUT, V3_EVENTS, needs, row
from side_by_side.small_models import END, Journal, always, call
from side_by_side.uses import error_of, four_ways

pytestmark = FILTERS

V2_HANDLER = getattr(_streaming, "_V2StreamingCallbackHandler", None)
V2_HANDLERS = needs(V2_HANDLER, "handlers of protocol events")
THINKING = [
    AIMessageChunk(content=[{"type": "thinking", "thinking": "Hm", "index": 0}]),
    AIMessageChunk(content=[{"type": "thinking", "signature": "sig", "index": 0}]),
    AIMessageChunk(content=[{"type": "text", "text": "Four", "index": 1}]),
    AIMessageChunk(content=[{"type": "text", "text": ".", "index": 1}]),
    END,
]
REASONING = [
    AIMessageChunk(content="", additional_kwargs={"reasoning_content": "Hm"}),
    AIMessageChunk(content="", additional_kwargs={"reasoning_content": " so"}),
    "Four",
    ".",
    END,
]
TAGGED = ["<think>", "Hm", "</think>", "\n\n", "Four", ".", END]
TOOL_CALL = [
    "I look it up.",
    AIMessageChunk(
        content="",
        tool_call_chunks=[{"name": "f", "args": "", "id": "call-1", "index": 0}],
    ),
    AIMessageChunk(
        content="",
        tool_call_chunks=[{"name": None, "args": '{"key": "a"}', "id": None, "index": 0}],
    ),
    END,
]
LAST = [
    "Hi",
    AIMessageChunk(content=" you", id="own-id"),
    *(
        [AIMessageChunk(content="", chunk_position="last")]
        if "chunk_position" in AIMessageChunk.model_fields
        else []
    ),
]
PREFIX = ["", " ", *[AIMessageChunk(content="", additional_kwargs={"k": None})] * 8, "Hi"]


class V1Streaming(Recorder):
    """What LangGraph's messages mode attaches: makes `invoke` stream."""

    def tap_output_aiter(self, run_id: Any, output: Any) -> Any:
        return output

    def tap_output_iter(self, run_id: Any, output: Any) -> Any:
        return output


class V2Streaming(Recorder, V2_HANDLER or object):
    """The same for protocol events."""


class AsyncV2Streaming(AsyncRecorder, V2_HANDLER or object):
    """The same with async handlers."""


def under(handler_class: type) -> Any:
    """All ways to call it while such a handler listens."""

    def use(model: Any) -> Any:
        handlers = [handler_class() for _ in uses.WAYS]
        told = [
            uses.told_by(way, model, config={"callbacks": [handler]})
            for way, handler in zip(uses.WAYS, handlers, strict=True)
        ]
        assert all(handler.heard for handler in handlers[2 * ("Async" in handler_class.__name__) :])
        return told, [handler.heard for handler in handlers]

    return use


def events_v3(model: Any) -> Any:
    """The typed streams: events one by one, projections, the message and what is heard of it."""
    recorder = Recorder()

    def stream() -> Any:
        return model.stream_events("Hi", {"callbacks": [recorder]}, version="v3")

    whole = stream()
    came_out = [list(whole), whole.output, list(stream().text), stream().tool_calls.get()]
    return came_out, recorder.heard, asyncio.run(_async_events_v3(model))


async def _async_events_v3(model: Any) -> Any:
    async def events(stream: Any) -> Any:
        return [event async for event in stream]

    async def text(stream: Any) -> Any:
        return [text async for text in stream.text]

    async def tool_calls(stream: Any) -> Any:
        return await stream.tool_calls

    async def message(stream: Any) -> Any:
        return await stream

    told = []
    for read in (events, text, tool_calls, message):
        recorder = Recorder()
        stream = await model.astream_events("Hi", {"callbacks": [recorder]}, version="v3")
        told.append((await read(stream), recorder.heard))
        while recorder.heard[-1][0] != "on_llm_end":  # the run goes on behind its reader
            await asyncio.sleep(0)
    return told


def read_by_turns(model: Any) -> Any:
    """The model and its reader take turns: nothing is read ahead."""
    for chunk in model.stream("Hi"):
        model.journal.append(("reads", chunk.content))
    asyncio.run(_read_by_turns(model))
    return model.journal


async def _read_by_turns(model: Any) -> None:
    async for chunk in model.astream("Hi"):
        model.journal.append(("reads", chunk.content))
    async for event in model.astream_events("Hi", version="v2"):
        model.journal.append(("reads", event["event"]))


def parsed_by_turns(model: Any) -> Any:
    """The same behind a parser."""
    for chunk in (model | StrOutputParser()).stream("Hi"):
        model.journal.append(("reads", chunk))
    return model.journal


def json_by_turns(model: Any) -> Any:
    for chunk in (model | JsonOutputParser()).stream("Hi"):
        model.journal.append(("reads", chunk))
    return model.journal


def in_parallel(model: Any) -> Any:
    """Two at once in one chain: which is first is the scheduler's business."""
    chain = RunnableParallel(a=model, b=model | StrOutputParser()) | RunnableLambda(
        lambda both: (both["a"].content, both["b"])
    )
    return chain.invoke("Hi"), asyncio.run(chain.ainvoke("Hi")), list(chain.stream("Hi"))


def closed(model: Any) -> Any:
    """The inner stream is closed at once, not when it is collected."""
    recorder = Recorder()
    stream = model.stream("Hi", {"callbacks": [recorder]})
    next(stream)
    stream.close()
    return [*model.journal, "after"], recorder.heard


def abandoned(model: Any) -> Any:
    for _ in model.stream("Hi"):
        break
    return [*model.journal, "after"]


def never_begun(model: Any) -> Any:
    model.stream("Hi").close()
    return model.journal


def thrown_into(model: Any) -> Any:
    """A reader's exception is not taken for the model's failure."""
    recorder = Recorder()
    stream = model.stream("Hi", {"callbacks": [recorder]})
    next(stream)
    error = error_of(stream.throw, ValueError("No generations found in stream."))
    return error, [*model.journal, "after"], recorder.heard


def interrupted(model: Any) -> Any:
    stream = model.stream("Hi")
    next(stream)
    with contextlib.suppress(KeyboardInterrupt):
        stream.throw(KeyboardInterrupt())
    return [*model.journal, "after"]


async def aclosed(model: Any) -> Any:
    recorder = Recorder()
    stream = model.astream("Hi", {"callbacks": [recorder]})
    await anext(stream)
    await stream.aclose()
    return [*model.journal, "after"], recorder.heard


async def athrown_into(model: Any) -> Any:
    stream = model.astream("Hi")
    await anext(stream)
    error = None
    try:
        await stream.athrow(ValueError("No generation chunks were returned"))
    except ValueError as raised:
        error = raised
    return error, [*model.journal, "after"]


async def cancelled(model: Any) -> Any:
    recorder = Recorder()

    async def read() -> None:
        async for chunk in model.astream("Hi", {"callbacks": [recorder]}):
            model.journal.append(("reads", chunk.content))

    task = asyncio.create_task(read())
    while "waits" not in model.journal and not task.done():
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return [*model.journal, "after"], task.cancelled(), recorder.heard


async def cancelled_invoke(model: Any) -> Any:
    """With a handler that makes it stream."""
    recorder = V1Streaming()
    task = asyncio.create_task(model.ainvoke("Hi", {"callbacks": [recorder]}))
    while "waits" not in model.journal and not task.done():
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return [*model.journal, "after"], task.cancelled(), recorder.heard


async def events_left(model: Any) -> Any:
    """Breaking out of an event stream, which cancels the run behind it."""
    async with contextlib.aclosing(model.astream_events("Hi", version="v2")) as events:
        async for event in events:
            if event["event"] == "on_chat_model_stream":
                break
    return [*model.journal, "after"]


async def typed_events_left(model: Any) -> Any:
    recorder = Recorder()
    stream = await model.astream_events("Hi", {"callbacks": [recorder]}, version="v3")
    async for _ in stream:
        break
    await stream.aclose()
    return [*model.journal, "after"], recorder.heard


def read_by_threads(model: Any) -> Any:
    """Each chunk is fetched by another thread."""
    stream, came_out = model.stream("Hi"), []

    def fetch() -> None:
        came_out.append(next(stream, None))

    while not came_out or came_out[-1] is not None:
        thread = threading.Thread(target=fetch)
        thread.start()
        thread.join()
    return came_out


def read_by_two(model: Any) -> Any:
    """Two streams of one model, read by turns."""
    first, second = model.stream("a"), model.stream("b")
    return [[next(first), next(second)], list(first), list(second)]


def v3_error(model: Any) -> Any:
    return error_of(lambda: model.stream_events("Hi", version="v3").output)


def failing(model: Any) -> Any:
    return [uses.told_by(way, model) for way in uses.WAYS], getattr(model, "journal", None)


STREAMS: dict[str, Any] = {
    "text": always(),
    "thinking first": always(*THINKING),
    "reasoning first": always(*REASONING),
    "think tags first": always(*TAGGED),
    "a tool call": always(*TOOL_CALL),
    "own ids and positions": always(*LAST),
    "a held prefix": always(*PREFIX),
    "one whole message": always(call("f", a=1)),
    "no streaming": always(cls=small.Whole),
    "sync streaming only": always(cls=small.SyncStreaming),
    "tokens reported by itself": always(cls=small.Reporting),
    "native events": always(cls=small.Native),
    "native events sync only": always(cls=small.NativeSync),
    "generation_info": always(cls=small.Informing),
}
USES = {
    "four ways": (four_ways, ()),
    "events v1": (uses.events_v1, ()),
    "events v2": (uses.events_v2, ()),
    "events v3": (events_v3, V3_EVENTS),
    "a v1 streaming handler": (under(V1Streaming), ()),
    "a v2 streaming handler": (under(V2Streaming), V2_HANDLERS),
    "an async v2 streaming handler": (under(AsyncV2Streaming), V2_HANDLERS),
    "StrOutputParser": (uses.in_a_chain, ()),
}
CHUNK_FOR_CHUNK = [
    row(f"{use} of {stream}", model, function, marks=marks)
    for use, (function, marks) in USES.items()
    for stream, model in STREAMS.items()
    if (use, stream) != ("events v3", "no streaming")  # not supported; see below
] + [
    row(
        "output_version v1 under v3",
        always(*THINKING, output_version="v1"),
        events_v3,
        marks=[V1_OUTPUT, V3_EVENTS],
    ),
    row(
        "disable_streaming under a v2 handler",
        always(disable_streaming=True),
        uses.events_v2,
        marks=V2_HANDLERS,
    ),
]
NO_STREAMING = [
    row("async only", always(cls=small.AsyncOnly), four_ways),
    row("hooks that raise NotImplementedError", always(cls=small.NotStreamingAfterAll), four_ways),
    row(
        "hooks that raise it with arguments",
        always(cls=small.NotStreamingAfterAll),
        lambda model: four_ways(model, stop=["END"]),
    ),
    row("events v3", always(cls=small.Whole), v3_error, marks=V3_EVENTS),
    row("an async stream of its own", always(cls=small.AsyncStreamOfWhole), four_ways),
    row("a failure before the first piece", always(cls=Journal, fails_before=0), failing),
    row("a failure after some pieces", always(cls=Journal, fails_before=2), failing),
    row("exceptions of a model", always(ConnectionError("lost")), failing),
    row("exceptions in the middle", always("a", ConnectionError("lost")), failing),
]
INCREMENTAL = [
    row("chunk by chunk in time", always("a", "b", "c", cls=Journal), read_by_turns),
    row("chunk by chunk through a parser", always("a", "b", "c", cls=Journal), parsed_by_turns),
    row(
        "JSON as it grows", always('{"a": 1,', ' "b":', " [1, 2", "]}", cls=Journal), json_by_turns
    ),
    row("in parallel branches", always("a", "b"), in_parallel),
    row("from changing threads", always(*PREFIX, "more", "and more"), read_by_threads),
    row("two at a time", always("a", "b", "c"), read_by_two),
]
STOPPING = [
    row("close", always("a", "b", "c", cls=Journal), closed),
    row("break", always("a", "b", "c", cls=Journal), abandoned),
    row("close before the start", always("a", "b", cls=Journal), never_begun),
    row("throw", always("a", "b", "c", cls=Journal), thrown_into),
    row("KeyboardInterrupt", always("a", "b", cls=Journal), interrupted),
    row("aclose", always("a", "b", "c", cls=Journal), aclosed),
    row("athrow", always("a", "b", "c", cls=Journal), athrown_into),
    row(
        "cancelled before the first piece", always("a", "b", cls=Journal, waits_before=0), cancelled
    ),
    row(
        "cancelled after the commit", always("a", "b", "c", cls=Journal, waits_before=1), cancelled
    ),
    row("a cancelled ainvoke", always("a", "b", cls=Journal, waits_before=1), cancelled_invoke),
    row("break out of events v2", always("a", "b", "c", cls=Journal), events_left),
    row(
        "break out of events v3",
        always("a", "b", "c", cls=Journal),
        typed_events_left,
        marks=V3_EVENTS,
    ),
]


@pytest.mark.parametrize("row", CHUNK_FOR_CHUNK)
def test_chunk_for_chunk(row):
    row.check()


@pytest.mark.parametrize("row", NO_STREAMING)
def test_where_it_does_not_stream_or_fails(row):
    row.check()


@pytest.mark.parametrize("row", INCREMENTAL)
def test_incremental(row):
    row.check()


@pytest.mark.parametrize("row", STOPPING)
def test_when_the_reader_stops(row):
    row.check()
