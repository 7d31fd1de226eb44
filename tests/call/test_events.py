"""Models that emit native protocol events: held, judged and retried like chunks."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from langchain_retrying import EmptyCompletionError, RetryingChatModel, RetryPolicy
from langchain_retrying.testing import ScriptedChatModel

pytest.importorskip(
    "langchain_core.language_models._compat_bridge",
    reason="protocol events came with later releases of langchain-core",
)

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")


def block(index: int, kind: str, text: str) -> list[dict[str, Any]]:
    """A block of text or reasoning that comes in two parts."""
    empty = {"type": kind, kind: ""}
    delta = {"type": f"{kind}-delta"}
    return [
        {"event": "content-block-start", "index": index, "content": empty},
        *(
            {"event": "content-block-delta", "index": index, "delta": {**delta, kind: part}}
            for part in (text[:2], text[2:])
        ),
        {"event": "content-block-finish", "index": index, "content": {"type": kind, kind: text}},
    ]


def message(*blocks: list[dict[str, Any]], reason: str = "stop") -> list[dict[str, Any]]:
    return [
        {"event": "message-start", "role": "ai", "id": ""},
        *(event for block in blocks for event in block),
        {
            "event": "message-finish",
            "usage": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7},
            "metadata": {"finish_reason": reason},
        },
    ]


TOOL_CALL = [
    {
        "event": "content-block-start",
        "index": 0,
        "content": {"type": "tool_call_chunk", "id": "1", "name": "f", "args": "", "index": 0},
    },
    {
        "event": "content-block-delta",
        "index": 0,
        "delta": {"type": "block-delta", "fields": {"type": "tool_call_chunk", "args": "{}"}},
    },
    {
        "event": "content-block-finish",
        "index": 0,
        "content": {"type": "tool_call", "id": "1", "name": "f", "args": {}},
    },
]
SERVER_TOOL = [
    {
        "event": "content-block-start",
        "index": 0,
        "content": {"type": "server_tool_call_chunk", "id": "1", "name": "search", "args": ""},
    },
    {
        "event": "content-block-delta",
        "index": 0,
        "delta": {"type": "block-delta", "fields": {"args": "{}"}},
    },
    {
        "event": "content-block-finish",
        "index": 0,
        "content": {"type": "server_tool_call", "id": "1", "name": "search", "args": {}},
    },
]
REASONING = block(0, "reasoning", "Let me see")
HELLO = message(block(0, "text", "Hello"))
BLANKS = {
    "nothing": [],
    "no block": message(),
    "white space": message(block(0, "text", " \n ")),
    "reasoning": message(REASONING),
    "think tags": message(block(0, "text", "<think>Hm</think>")),
    "server tool": message(SERVER_TOOL),
    "no end": message(REASONING)[:-1],
}
ANSWERS = {
    "text": HELLO,
    "reasoning, then text": message(REASONING, block(1, "text", "Hello")),
    "tool call": message(TOOL_CALL, reason="tool_calls"),
    "truncated": message(REASONING, reason="length"),
    "unknown": [*message()[:1], {"event": "some-future-event"}, *message()[1:]],
}


class Native(ScriptedChatModel):
    def _stream_chat_model_events(self, messages, stop=None, run_manager=None, **kwargs):
        self._count_stream(1)
        try:
            yield from self._next(messages, stop, kwargs, streamed=True)
        finally:
            self._count_stream(-1)

    async def _astream_chat_model_events(self, messages, stop=None, run_manager=None, **kwargs):
        for event in self._stream_chat_model_events(messages, stop, run_manager, **kwargs):
            yield event


def events_of(model: Any, *, is_async: bool) -> list[dict[str, Any]]:
    if not is_async:
        return list(model._stream_chat_model_events([]))

    async def read():
        return [event async for event in model._astream_chat_model_events([])]

    return asyncio.run(read())


def message_of(model: Any, *, is_async: bool) -> AIMessage:
    if not is_async:
        return model.stream_events("Hi", version="v3").output

    async def read():
        stream = await model.astream_events("Hi", version="v3")
        return await stream.output

    return asyncio.run(read())


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def is_async(request):
    return request.param


@pytest.mark.parametrize("events", ANSWERS.values(), ids=ANSWERS)
def test_events_that_are_not_retried_are_those_of_the_bare_model(events, is_async):
    model = Native([events])
    assert events_of(RetryingChatModel(model), is_async=is_async) == events
    assert len(model.requests) == 1


@pytest.mark.parametrize("events", BLANKS.values(), ids=BLANKS)
def test_blank_events_are_retried_and_not_seen(events, is_async):
    model = Native([events, HELLO])
    *seen, finish = events_of(RetryingChatModel(model), is_async=is_async)
    assert seen == HELLO[:-1]
    account = finish["metadata"].pop("empty_retry")
    assert finish == HELLO[-1]
    assert account["attempts"] == 2
    assert model.streams_open == 0


def test_the_message_put_together_has_the_account(is_async):
    wrapped = RetryingChatModel(Native([message(REASONING), HELLO]))
    reply = message_of(wrapped, is_async=is_async)
    assert reply.text == "Hello"
    (rejected,) = reply.response_metadata["empty_retry"]["rejected"]
    assert (rejected["kind"], rejected["rejected_output_tokens"]) == ("blank", 2)
    assert rejected["saw_reasoning"]


def test_exhaustion(is_async):
    def wrapped(outcome, *script):
        policy = RetryPolicy(max_retries=len(script) - 1, on_exhausted=outcome)
        return RetryingChatModel(Native(script), policy)

    blank = message(REASONING)
    assert events_of(wrapped("return", blank), is_async=is_async) == blank
    *seen, finish = events_of(wrapped("return", [], blank), is_async=is_async)
    assert seen == blank[:-1]
    assert finish["metadata"]["empty_retry"]["attempts"] == 2
    with pytest.raises((ValueError, RuntimeError)) as bare:
        message_of(Native([[]]), is_async=is_async)
    with pytest.raises(type(bare.value), match=re.escape(str(bare.value))):
        message_of(wrapped("return", []), is_async=is_async)
    assert message_of(wrapped("Nothing came.", blank), is_async=is_async).text == "Nothing came."
    with pytest.raises(EmptyCompletionError):
        message_of(wrapped("raise", blank), is_async=is_async)


def test_a_model_without_native_events_has_none_when_wrapped():
    wrapped = RetryingChatModel(ScriptedChatModel([["", " "], ["Hel", "lo"]]))
    assert not hasattr(wrapped, "_stream_chat_model_events")
    assert message_of(wrapped, is_async=False).text == "Hello"
