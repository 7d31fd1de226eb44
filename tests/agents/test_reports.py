"""Four faults as people have reported them: on the bare model, and wrapped."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pydantic
import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from tenacity import stop_after_delay, stop_when_event_set, wait_fixed

from conftest import SetsWhenRetrying, ask, chunks_of
from langchain_retrying import (
    EmptyCompletionError,
    RaiseOutputBudget,
    ReplyKind,
    RetryingChatModel,
    RetryPolicy,
    stop_after_rejected_tokens,
)
from wire.clients import build
from wire.turns import BLANK, Turn, calls

try:
    from langchain.agents import create_agent
    from langchain.agents.structured_output import ToolStrategy
except ImportError:  # they came with langchain 1.0
    create_agent = ToolStrategy = None

needs_create_agent = pytest.mark.skipif(
    create_agent is None, reason="create_agent came with langchain 1.0"
)


def chat_model(server: Any, **kwargs: Any) -> Any:
    return build({"class": "ChatOpenAI", "kwargs": {"stream_usage": True, **kwargs}}, server.url)


@tool
def look_up(key: str) -> str:
    """Look up a value."""
    return f"{key} is 42"


# 1. An empty turn after a long tool chain


def falls_silent(asked):
    """Calls a tool ten times, then says nothing; asked once more it answers."""
    roles = [message["role"] for message in asked["json"]["messages"]]
    if roles.count("tool") < 10:
        return Turn(calls=(("look_up", {"key": f"k{len(roles)}"}),), number=len(roles))
    return BLANK if roles[-1] == "tool" else Turn("All are 42.")


@needs_create_agent
def test_an_empty_turn_after_a_long_tool_chain(server):
    prompt = {"messages": [("human", "What are they?")]}
    server.play(falls_silent)
    bare = chat_model(server)
    state = create_agent(bare, [look_up]).invoke(prompt)
    assert (state["messages"][-1].type, state["messages"][-1].text) == ("ai", "")

    agent = create_agent(RetryingChatModel(bare), [look_up])
    messages = agent.invoke(prompt)["messages"]
    # The state holds the accepted reply, and neither a blank nor a nudge.
    assert [message.type for message in messages] == ["human", *["ai", "tool"] * 10, "ai"]
    assert messages[-1].content == "All are 42."
    assert all(message.content or message.tool_calls for message in messages)

    # A streaming consumer sees the tokens of the accepted reply only.
    tokens = [
        message
        for message, _ in agent.stream(prompt, stream_mode="messages")
        if message.type == "AIMessageChunk" and not message.tool_call_chunks
    ]
    assert "".join(token.text for token in tokens) == "All are 42."
    accepted = {token.id for token in tokens if token.text}
    assert len(accepted) == 1
    assert agent.invoke(prompt)["messages"][-1].content == "All are 42."


# 2. Reasoning that eats the whole output budget


def thinks_first(asked):
    """Needs 90 tokens to think before it says a word."""
    budget = asked["json"]["max_completion_tokens"]
    if budget <= 90:
        return Turn(finish="length", tokens=(20, budget))
    return Turn("42.", tokens=(20, 92))


def test_reasoning_that_eats_the_whole_output_budget(server, way):
    bare = chat_model(server, max_tokens=50)
    server.play(thinks_first)
    replies = [ask(way, bare) for _ in range(5)]
    assert [reply.content for reply in replies] == [""] * 5
    assert {reply.response_metadata["finish_reason"] for reply in replies} == {"length"}

    # By default the same request is not repeated: it meets the same end.
    server.play(thinks_first)
    raising = RetryPolicy(on_exhausted="raise")
    with pytest.raises(EmptyCompletionError, match="Hint: raise the output token budget") as cut:
        ask(way, RetryingChatModel(bare, raising))
    assert (cut.value.kind, cut.value.attempts) == (ReplyKind.TRUNCATED, 1)
    assert len(server.requests) == 1

    server.play(thinks_first)
    policy = RetryPolicy(remedies={ReplyKind.TRUNCATED: [RaiseOutputBudget()]})
    reply = ask(way, RetryingChatModel(bare, policy))
    assert reply.content == "42."
    budgets = [request["json"]["max_completion_tokens"] for request in server.requests]
    assert budgets == [50, 100]
    # The accepted attempt's own usage; that of the rejected one beside it.
    assert reply.usage_metadata["output_tokens"] == 92
    assert reply.response_metadata["empty_retry"]["rejected_output_tokens"] == 50


# 3. Structured output that never comes


class Verdict(pydantic.BaseModel):
    """A verdict."""

    text: str


def chatty(asked):
    """Never makes the tool call that the request forces."""
    assert asked["json"]["tool_choice"] == "required"
    return Turn("I think it is fine.")


COMPLIANT = calls("Verdict", text="Fine.")


@needs_create_agent
@pytest.mark.parametrize("tools", [[], [look_up]], ids=["alone", "with other tools"])
def test_structured_output_that_never_comes(server, tools):
    recursion_error = pytest.importorskip("langgraph.errors").GraphRecursionError
    prompt = {"messages": [("human", "Is it fine?")]}
    policy = RetryPolicy(require_tool_call=True, on_exhausted="raise", wait=None)
    server.play(chatty)
    bare = chat_model(server)
    agent = create_agent(bare, tools, response_format=ToolStrategy(Verdict))
    if tools:  # it ends as if all were well
        assert agent.invoke(prompt).get("structured_response") is None
    else:  # its own limit is 10,000 steps; a shorter one shows the same
        with pytest.raises(recursion_error):
            agent.invoke(prompt, {"recursion_limit": 40})
        assert len(server.requests) >= 39

    server.play(chatty)
    wrapped = RetryingChatModel(bare, policy)
    agent = create_agent(wrapped, tools, response_format=ToolStrategy(Verdict))
    with pytest.raises(EmptyCompletionError, match=r"no call of .*Verdict; 3 attempt"):
        agent.invoke(prompt)
    assert len(server.requests) == 1 + policy.max_retries

    for model in (chat_model(server), RetryingChatModel(chat_model(server), policy)):
        server.play(COMPLIANT)
        agent = create_agent(model, tools, response_format=ToolStrategy(Verdict))
        state = agent.invoke(prompt)
        assert state["structured_response"] == Verdict(text="Fine.")
        assert "empty_retry" not in state["messages"][1].response_metadata
        assert len(server.requests) == 1


# 4. An unbounded retry on a huge frozen request


HUGE = [HumanMessage("word " * 2000)]


# Whatever it is asked; each request costs what the prompt holds.
COSTLY = Turn(tokens=(100_000, 0))


def test_an_unbounded_retry_on_a_huge_frozen_request(server, way, slept):
    server.play(COSTLY)
    bare = chat_model(server)
    # The loop that was meant to help: it would go on for ever.
    for count in itertools.count(1):
        if chunks_of(way, bare, HUGE)[0].content or count == 20:
            break
    assert count == len(server.requests) == 20

    def capped(by: str, **bounds: Any) -> EmptyCompletionError:
        server.play(COSTLY)
        config = {"callbacks": bounds.pop("callbacks", [])}
        bounds = {"max_retries": 1000, "wait": wait_fixed(60), **bounds}
        policy = RetryPolicy(nudge=None, on_exhausted="raise", **bounds)
        with pytest.raises(EmptyCompletionError) as caught:
            ask(way, RetryingChatModel(bare, policy), HUGE, config=config)
        assert len(server.requests) == caught.value.attempts, by
        assert f"finish reasons: {', '.join(['stop'] * caught.value.attempts)};" in str(
            caught.value
        )
        return caught.value

    by_count = capped("count", max_retries=4)
    assert (by_count.attempts, by_count.elapsed_seconds) == (5, 240)
    assert (by_count.input_tokens, by_count.output_tokens) == (500_000, 0)
    assert "5 attempt(s)" in str(by_count)
    assert "240.00 s, 500000 input" in str(by_count)
    by_time = capped("time", stop=stop_after_delay(200))
    assert (by_time.attempts, by_time.elapsed_seconds) == (4, 180)
    by_tokens = capped("tokens", stop=stop_after_rejected_tokens(250_000))
    assert (by_tokens.attempts, by_tokens.input_tokens) == (3, 300_000)
    # And at once by an event, in the middle of a wait.
    event = threading.Event()
    stopped = capped("event", stop=stop_when_event_set(event), callbacks=[SetsWhenRetrying(event)])
    assert stopped.attempts == 1
