"""Real agent loops: tool call, tool result, blank, answer. Bare they end in silence."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from langchain_retrying import RetryingChatModel, RetryPolicy
from langchain_retrying.testing import ScriptedChatModel
from wire.agents import executor_of

SCRIPT = [
    AIMessage(
        content="",
        tool_calls=[{"name": "look_up", "args": {"key": "a"}, "id": "call-1", "type": "tool_call"}],
    ),
    AIMessage(content="", response_metadata={"finish_reason": "stop"}),
    "The value is 42.",
]


@tool
def look_up(key: str) -> str:
    """Look up a value."""
    return f"{key} is 42"


def executor(model: Any, *, stream_runnable: bool) -> Any:
    return executor_of(model, [look_up], stream_runnable)


@pytest.mark.parametrize("stream_runnable", [True, False])
async def test_agent_executor_ends_with_the_answer(stream_runnable):
    async def outputs(make):
        yield executor(make(), stream_runnable=stream_runnable).invoke({"input": "a?"})
        yield await executor(make(), stream_runnable=stream_runnable).ainvoke({"input": "a?"})

    bare = [result["output"] async for result in outputs(lambda: ScriptedChatModel(SCRIPT))]
    wrapped = [
        result["output"]
        async for result in outputs(lambda: RetryingChatModel(ScriptedChatModel(SCRIPT)))
    ]
    assert bare == ["", ""]
    assert wrapped == ["The value is 42."] * 2


async def test_a_streaming_agent_executor_shows_no_rejected_step():
    steps = list(
        executor(RetryingChatModel(ScriptedChatModel(SCRIPT)), stream_runnable=True).stream(
            {"input": "a?"}
        )
    )
    assert [set(step) & {"actions", "steps", "output"} for step in steps] == [
        {"actions"},
        {"steps"},
        {"output"},
    ]
    assert steps[-1]["output"] == "The value is 42."


async def test_create_agent_ends_with_the_answer_and_keeps_no_blank():
    create_agent = pytest.importorskip(
        "langchain.agents", reason="create_agent came with langchain 1.0"
    )
    if not hasattr(create_agent, "create_agent"):
        pytest.skip("create_agent came with langchain 1.0")
    create_agent = create_agent.create_agent
    prompt = {"messages": [("human", "a?")]}

    bare = create_agent(ScriptedChatModel(SCRIPT), tools=[look_up]).invoke(prompt)
    assert bare["messages"][-1].content == ""

    model = ScriptedChatModel(SCRIPT)
    result = create_agent(RetryingChatModel(model), tools=[look_up]).invoke(prompt)
    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "ai"]
    assert result["messages"][-1].content == "The value is 42."
    assert len(model.requests) == 3

    result = await create_agent(
        RetryingChatModel(ScriptedChatModel(SCRIPT)), tools=[look_up]
    ).ainvoke(prompt)
    assert result["messages"][-1].content == "The value is 42."


def test_the_nudge_after_a_tool_result_names_tool_calls_and_stays_out_of_the_state():
    model = ScriptedChatModel(SCRIPT)
    executor(RetryingChatModel(model), stream_runnable=False).invoke({"input": "a?"})
    _, second, third = model.requests
    assert third.messages[:-1] == second.messages
    assert "tool call" in third.messages[-1].content
    assert third.kwargs["tools"] == second.kwargs["tools"]


def test_bind_tools_keeps_the_retry_underneath():
    model = ScriptedChatModel(["", "Hello."])
    bound = RetryingChatModel(model, RetryPolicy(nudge=None)).bind_tools([look_up])
    assert bound.invoke("Hi").content == "Hello."
    first, second = model.requests
    assert first.kwargs["tools"][0]["function"]["name"] == "look_up"
    assert second == first
