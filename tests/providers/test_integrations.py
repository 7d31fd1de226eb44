"""Agents on further integrations' wire formats that go silent after their tool.

Where these are installed: `make test-integrations`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.prompts import ChatPromptTemplate

from langchain_retrying import RetryingChatModel
from wire.clients import build, lookup
from wire.replies import Reply
from wire.turns import GOOD, Turn, calls

SILENT = {
    "reasoning only": Turn(None, reasoning="The tool told me."),
    "nothing": Reply(b""),
    "null choices": Reply(b'{"choices": null}'),
}


def created_agent(model: Any, *, in_a_loop: bool) -> str:
    agents = pytest.importorskip("langchain.agents")
    if not hasattr(agents, "create_agent"):
        pytest.skip("this version of langchain has no create_agent")
    agent = agents.create_agent(model, [lookup])
    state = {"messages": [("user", "Look a up.")]}
    result = asyncio.run(agent.ainvoke(state)) if in_a_loop else agent.invoke(state)
    return str(result["messages"][-1].content)


def executor(model: Any, *, in_a_loop: bool) -> str:
    agents = pytest.importorskip("langchain_classic.agents")
    prompt = ChatPromptTemplate.from_messages(
        [("user", "{input}"), ("placeholder", "{agent_scratchpad}")]
    )
    tools = [pytest.importorskip("langchain_core.tools").tool(lookup)]
    agent = agents.create_tool_calling_agent(model, tools, prompt)
    run = agents.AgentExecutor(agent=agent, tools=tools)
    asked = {"input": "Look a up."}
    result = asyncio.run(run.ainvoke(asked)) if in_a_loop else run.invoke(asked)
    return str(result["output"])


@pytest.mark.parametrize("in_a_loop", [False, True])
@pytest.mark.parametrize("silence", SILENT)
@pytest.mark.parametrize("agent", [created_agent, executor])
@pytest.mark.parametrize("name", ["ChatNVIDIA", "ChatDeepSeek"])
def test_an_agent_that_goes_silent_after_its_tool_is_made_to_answer(
    server, name, agent, silence, in_a_loop
):
    """Bare it ends silent or raises; wrapped it answers, with one request more."""
    called = calls("lookup", key="a")
    server.play(called, SILENT[silence])
    try:
        said = agent(build({"class": name}, server.url), in_a_loop=in_a_loop)
    except Exception:
        said = ""
    assert said == ""
    assert len(server.requests) == 2
    server.play(called, SILENT[silence], GOOD)
    model = RetryingChatModel(build({"class": name}, server.url))
    assert agent(model, in_a_loop=in_a_loop) == "Recovered."
    assert len(server.requests) == 3
