"""The legacy agent loop, which streams unless it is told not to."""

from __future__ import annotations

from typing import Any

from langchain_core.prompts import ChatPromptTemplate

try:
    from langchain_classic import agents
except ImportError:  # langchain 0.3, where they are at home
    from langchain import agents


def executor_of(model: Any, tools: list[Any], stream_runnable: bool) -> Any:
    prompt = ChatPromptTemplate.from_messages(
        [("human", "{input}"), ("placeholder", "{agent_scratchpad}")]
    )
    agent = agents.create_tool_calling_agent(model, tools, prompt)
    return agents.AgentExecutor(agent=agent, tools=tools, stream_runnable=stream_runnable)
