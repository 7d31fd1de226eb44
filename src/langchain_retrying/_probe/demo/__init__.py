"""The demo: a probe of a model that is blank at times, on a server of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from langchain.agents import create_agent
from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from rich.console import Console
from rich.text import Text

from langchain_retrying import RetryingChatModel
from langchain_retrying._probe.demo.server import BlankingServer
from langchain_retrying._probe.inputs import Prompt
from langchain_retrying._probe.probe import ask_and_report
from langchain_retrying._probe.runs import Ask, Job, Run, invoke, stream


def run_demo(calls: int, blank_rate: float, console: Console | None) -> int:
    """Do each job so many times with each model, and report.

    Args:
        calls: At least 1.
        blank_rate: From 0 to 1.
        console: Where a table is printed; None: JSON is, to standard output.

    Returns:
        The exit code, as of `run_probe`.

    """
    name = f"demo, blank at a rate of {blank_rate:.0%}"
    with _no_settings_of_others(), ExitStack() as servers:
        runs = demo_runs(servers, blank_rate)
        code = ask_and_report(name, runs, prompts(calls), concurrency=1, console=console)
    if console and (example := _example(*runs[-2:])):
        console.print(Text(f"\n{example}"))
    return code


def prompts(calls: int) -> list[Prompt]:
    """So many questions, no two alike: the server's luck depends on them."""
    return [Prompt([HumanMessage(f"Question {n}: are you there?")]) for n in range(1, calls + 1)]


# The default seed draws about as many blanks as the default rate is expected to give.
def demo_runs(servers: ExitStack, blank_rate: float, seed: int = 7) -> list[Run]:
    """All jobs. Each side has a server of its own: the same seed, so the same luck."""
    runs = []
    for name, job in JOBS.items():
        bare, inner = (
            chat_model(servers.enter_context(BlankingServer(blank_rate, f"{seed} {name}")))
            for _ in range(2)
        )
        runs += [Run(name, model, job(model)) for model in (bare, RetryingChatModel(inner))]
    return runs


def chat_model(server: BlankingServer) -> ChatOpenAI:
    """The model behind the server, without the client's own retries."""
    key = SecretStr("not-needed")
    return ChatOpenAI(
        model="demo", base_url=server.base_url, api_key=key, max_retries=0, stream_usage=True
    )


def _example(bare: Run, wrapped: Run) -> str | None:
    """What the user saw of a turn that was blank bare, and not wrapped; None if there is none."""
    for number, (before, after) in enumerate(zip(bare.turns, wrapped.turns, strict=False), 1):
        if (before.outcome, after.outcome) == ("blank", "answer"):
            return (
                f"For example, asked question {number}, {bare.job} gave "
                f"{before.calls[-1].content!r} with the bare model and "
                f"{after.calls[-1].content!r} with the wrapped one."
            )
    return None


@contextmanager
def _no_settings_of_others() -> Iterator[None]:
    """No proxy, and no settings meant for other models."""
    environment = dict(os.environ)
    for name in environment:
        if name.startswith(("OPENAI_", "LANGCHAIN_", "LANGSMITH_", "LC_OUTPUT_VERSION")):
            del os.environ[name]
    os.environ["no_proxy"] = "*"  # holds against the system's proxy settings, too
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(environment)


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
