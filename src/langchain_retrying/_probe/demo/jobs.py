"""The ways to use a model that the demo shows, besides those of a probe."""

from __future__ import annotations

from langchain.agents import create_agent
from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import tool

from langchain_retrying._probe.runs import Ask, Job, invoke, stream


@tool
def weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"18 °C in {city}"


def _agent_executor(model: BaseChatModel) -> Ask:
    template = ChatPromptTemplate([("human", "{input}"), ("placeholder", "{agent_scratchpad}")])
    agent = create_tool_calling_agent(model, [weather], template)
    executor = AgentExecutor(agent=agent, tools=[weather])
    return lambda prompt, config: executor.ainvoke({"input": prompt.messages[-1].content}, config)


def _create_agent(model: BaseChatModel) -> Ask:
    agent = create_agent(model, [weather])
    return lambda prompt, config: agent.ainvoke({"messages": [*prompt.messages]}, config)


JOBS: dict[str, Job] = {
    "invoke": invoke,
    "stream": stream,
    "AgentExecutor": _agent_executor,
    "create_agent": _create_agent,
}
