"""The scripted model and the recording sleep that users test their own agents with."""

from __future__ import annotations

import asyncio
import time

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.tools import tool

from conftest import ask, chunks_of
from langchain_retrying._call import clock
from langchain_retrying.testing import RecordingSleep, ScriptedChatModel

CALL = {"name": "f", "args": {"x": 1}, "id": "1", "type": "tool_call"}


def test_text_messages_pieces_and_callables(way):
    model = ScriptedChatModel(
        ["a", AIMessage("b", id="x"), ["c", AIMessageChunk("d")], lambda messages: messages[0].text]
        if hasattr(AIMessage("a"), "content_blocks")
        else ["a", AIMessage("b", id="x"), ["c", AIMessageChunk("d")], lambda messages: "Hi"]
    )
    assert [ask(way, model).content for _ in range(4)] == ["a", "b", "cd", "Hi"]


def test_pieces_come_one_by_one_when_streamed(streaming_way):
    chunks = chunks_of(streaming_way, ScriptedChatModel([["a", "b"]]))
    assert [chunk.content for chunk in chunks if chunk.content] == ["a", "b"]


def test_tool_calls(way):
    reply = ask(way, ScriptedChatModel([AIMessage("", tool_calls=[CALL])]))
    assert reply.tool_calls == [CALL]


def test_exceptions_are_raised(way):
    with pytest.raises(ConnectionError):
        ask(way, ScriptedChatModel([ConnectionError()]))


def test_an_exception_among_pieces_is_raised_after_those_before_it():
    stream = ScriptedChatModel([["a", ConnectionError()]]).stream("Hi")
    assert next(stream).content == "a"
    with pytest.raises(ConnectionError):
        next(stream)


def test_the_end_of_the_script_says_so(way):
    model = ScriptedChatModel(["a"])
    ask(way, model)
    with pytest.raises(AssertionError, match="request 2 of a script with 1 replies"):
        ask(way, model)


def test_requests_are_recorded(way):
    model = ScriptedChatModel(["a"])

    @tool
    def look_up(key: str) -> str:
        """Look up."""
        return key

    ask(way, model.bind_tools([look_up], tool_choice="any").bind(stop=["x"]))
    (request,) = model.requests
    assert [message.content for message in request.messages] == ["Hi"]
    assert request.kwargs["stop"] == ["x"]
    assert request.kwargs["tool_choice"] == "any"
    assert request.kwargs["tools"][0]["function"]["name"] == "look_up"
    assert request.streamed == ("stream" in way)


def test_a_script_is_not_changed_by_being_played(way):
    script = [AIMessage("a")]
    ask(way, ScriptedChatModel(script), config={"run_id": None})
    assert script == [AIMessage("a")]


def test_the_recording_sleep_does_not_wait_and_is_undone():
    started = time.monotonic()
    real = clock.sleep, clock.asleep, clock.monotonic
    with RecordingSleep() as slept:
        began = clock.monotonic()
        clock.sleep(1000)
        asyncio.run(clock.asleep(500))
        slept.advance(7)
        assert clock.monotonic() - began == 1507
    assert slept.seconds == [1000, 500]
    assert (clock.sleep, clock.asleep, clock.monotonic) == real
    assert clock.monotonic() - started < 1000
