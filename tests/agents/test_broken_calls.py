"""Agents on calls whose arguments don't parse, and on calls that are printed as text.

A real ChatOpenAI and a server on loopback; the loops are the real ones.
"""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from conftest import WAYS, ask, chunks_of
from langchain_retrying import RaiseOutputBudget, ReplyKind, RetryingChatModel, RetryPolicy
from wire.agents import executor_of
from wire.clients import build
from wire.turns import Turn, calls

CUT = '{"key": "a", "note": "The whole no'
BROKEN = Turn(calls=(("look_up", CUT),))
CALLED = calls("look_up", key="a", note="The whole note.")
LEAKED = '<tool_call>\n{"name": "look_up", "arguments": {"key": "a", "note": "b"}}\n</tool_call>'
SAID = Turn("It is 42.")
HELD = RetryPolicy(hold_tool_calls=True, wait=None)


@pytest.fixture
def looked_up():
    return []


@pytest.fixture
def tools(looked_up):
    @tool
    def look_up(key: str, note: str = "") -> str:
        """Look up a value."""
        looked_up.append((key, note))
        return f"{key} is 42"

    return [look_up]


def chat_model(server: Any, **kwargs: Any) -> Any:
    return build({"class": "ChatOpenAI", "kwargs": kwargs}, server.url)


# The loops: each gives what the user reads


async def with_create_agent(model, tools, way):
    agents = pytest.importorskip("langchain.agents", reason="create_agent came with langchain 1.0")
    if not hasattr(agents, "create_agent"):
        pytest.skip("create_agent came with langchain 1.0")
    agent, prompt = agents.create_agent(model, tools), {"messages": [("human", "a?")]}
    if way == "invoke":
        state = agent.invoke(prompt)
    elif way == "ainvoke":
        state = await agent.ainvoke(prompt)
    else:  # the model is streamed where tokens are asked for
        modes = ["messages", "values"]
        if way == "stream":
            pieces = list(agent.stream(prompt, stream_mode=modes))
        else:
            pieces = [piece async for piece in agent.astream(prompt, stream_mode=modes)]
        *_, state = [piece for mode, piece in pieces if mode == "values"]
    return state["messages"][-1].content


async def with_executor(model, tools, way):
    executor = executor_of(model, tools, stream_runnable="stream" in way)
    prompt = {"input": "a?"}
    result = await executor.ainvoke(prompt) if way.startswith("a") else executor.invoke(prompt)
    return result["output"]


async def with_langgraph(model, tools, way):
    prebuilt = pytest.importorskip("langgraph.prebuilt", reason="comes with langchain 1.0")
    graph = pytest.importorskip("langgraph.graph")
    bound = model.bind_tools(tools)

    async def asked(state):
        messages = state["messages"]
        if way == "invoke":
            return {"messages": [bound.invoke(messages)]}
        if way == "ainvoke":
            return {"messages": [await bound.ainvoke(messages)]}
        if way == "stream":
            first, *rest = bound.stream(messages)
        else:
            first, *rest = [chunk async for chunk in bound.astream(messages)]
        return {"messages": [first + rest]}

    builder = graph.StateGraph(graph.MessagesState)
    builder.add_node("model", asked)
    builder.add_node("tools", prebuilt.ToolNode(tools))
    builder.add_edge(graph.START, "model")
    builder.add_conditional_edges("model", prebuilt.tools_condition)
    builder.add_edge("tools", "model")
    state = await builder.compile().ainvoke({"messages": [HumanMessage("a?")]})
    return state["messages"][-1].content


LOOPS = {"create_agent": with_create_agent, "executor": with_executor, "langgraph": with_langgraph}
loops = pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)


@loops
async def test_a_broken_call_is_asked_for_again(server, loop, way, tools, looked_up):
    bare = chat_model(server)
    broken = Turn(calls=(("look_up", '{"key": a}'),))
    server.play(broken, CALLED, SAID)
    with contextlib.suppress(ValueError):  # of the executor in langchain 0.3, if it does not stream
        assert await loop(bare, tools, way) == ""
    assert looked_up == []

    server.play(broken, CALLED, SAID)
    assert await loop(RetryingChatModel(bare, HELD), tools, way) == "It is 42."
    assert looked_up == [("a", "The whole note.")]
    again = server.requests[1]["json"]["messages"]
    assert [message["role"] for message in again] == ["user"]  # the broken call is not sent
    assert "Make the tool call again, with its arguments in valid JSON." in str(again[0]["content"])


@loops
async def test_a_cut_call_is_asked_for_with_more_tokens(server, loop, way, tools, looked_up):
    """Streamed, LangChain mends what was cut, and an agent calls with it."""
    bare = chat_model(server, max_tokens=16)
    cut = Turn(calls=(("look_up", CUT),), finish="length", tokens=(20, 16))
    remedies = {ReplyKind.TRUNCATED: [RaiseOutputBudget(ceiling=64)]}
    policy = RetryPolicy(hold_tool_calls=True, remedies=remedies, wait=None)
    server.play(cut, CALLED, SAID)
    assert await loop(RetryingChatModel(bare, policy), tools, way) == "It is 42."
    assert looked_up == [("a", "The whole note.")]
    budgets = [request["json"]["max_completion_tokens"] for request in server.requests]
    assert budgets[:2] == [16, 32]


@loops
async def test_a_leaked_call_is_asked_for_again_and_not_executed(
    server, loop, way, tools, looked_up
):
    bare = chat_model(server)
    server.play(Turn(LEAKED), CALLED, SAID)
    assert await loop(bare, tools, way) == LEAKED
    policy = RetryPolicy(leaked_tool_calls=True, wait=None)
    server.play(Turn(LEAKED), CALLED, SAID)
    assert await loop(RetryingChatModel(bare, policy), tools, way) == "It is 42."
    assert looked_up == [("a", "The whole note.")]
    (asked,) = server.requests[1]["json"]["messages"]
    assert "Make the tool call again, as a tool call and not as text." in str(asked["content"])


# By itself


def of_tools(model, tools):
    return model.bind_tools(tools)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_broken_call_is_malformed_by_default(server, way, tools):
    model = of_tools(RetryingChatModel(chat_model(server)), tools)
    server.play(Turn(calls=(("look_up", "{"),)), CALLED)
    reply = ask(way, model)
    assert reply.tool_calls[0]["args"] == {"key": "a", "note": "The whole note."}
    (rejected,) = reply.response_metadata["empty_retry"]["rejected"]
    assert (rejected["kind"], rejected["saw_invalid_call"]) == ("malformed", True)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_cut_call_is_truncated_by_default_and_goes_out_as_it_came(server, way, tools):
    bare = chat_model(server)
    cut = Turn(calls=(("look_up", CUT),), finish="length")
    server.play(cut)
    reply = ask(way, of_tools(RetryingChatModel(bare), tools))
    assert len(server.requests) == 1
    assert reply.invalid_tool_calls[0]["args"] == CUT
    assert "empty_retry" not in reply.response_metadata


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_an_exhausted_broken_call_goes_out_as_it_came(server, way, tools):
    broken = Turn(calls=(("look_up", "{"),))
    server.play(broken, broken, broken)
    reply = ask(way, of_tools(RetryingChatModel(chat_model(server), RetryPolicy(wait=None)), tools))
    assert len(server.requests) == 3
    assert reply.invalid_tool_calls[0]["args"] == "{"


@pytest.mark.parametrize("way", WAYS)
def test_a_valid_call_beside_a_broken_one_is_an_answer(server, way, tools):
    both = Turn(calls=(("look_up", {"key": "a"}), ("look_up", "[1")))
    server.play(both)
    reply = ask(way, of_tools(RetryingChatModel(chat_model(server)), tools))
    assert len(server.requests) == 1
    assert reply.tool_calls[0]["args"] == {"key": "a"}


def test_a_stream_of_calls_that_parse_goes_out_as_it_came(server, streaming_way, tools):
    both = Turn(calls=(("look_up", {"key": "a"}), ("look_up", {"key": "b"})), number=1)
    bare = chat_model(server)
    server.play(both, both)
    outs = [
        chunks_of(streaming_way, of_tools(model, tools))
        for model in (bare, RetryingChatModel(bare, HELD))
    ]
    assert len(server.requests) == 2
    told = [[(chunk.content, chunk.tool_call_chunks) for chunk in chunks] for chunks in outs]
    assert told[0] == told[1]
