"""The jobs, and what is counted while one of them runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from langchain.agents import create_agent
from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from langchain_retrying import RetryingChatModel
from langchain_retrying._demo.server import BlankingServer

Ask = Callable[[str, RunnableConfig], Iterable[Any]]
"""One turn: gives what the user sees, as it comes."""

SIDES: dict[str, Callable[[ChatOpenAI], BaseChatModel]] = {
    "bare": lambda model: model,
    "wrapped": RetryingChatModel,
}


class Tally(BaseCallbackHandler):
    """What a job came to on one side."""

    def __init__(self, job: str, side: str) -> None:
        self.job = job
        self.side = side
        self.turns = 0
        self.blank_turns = 0
        """Turns in which the user saw nothing."""
        self.seconds_to_text: list[float] = []
        """Of each turn that was not blank, from its start to the first visible text."""
        self.calls = 0
        """Of the model."""
        self.attempts = 0
        """As LangChain reports them: calls and retries."""
        self.requests = 0
        """As the server counted them."""

    @property
    def extra_requests(self) -> int:
        """Beyond one for each call."""
        return self.requests - self.calls

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self.calls += 1
        self.attempts += 1

    def on_retry(self, *args: Any, **kwargs: Any) -> None:
        self.attempts += 1


def run(tally: Tally, questions: Iterable[str], blank_rate: float, seed: int) -> None:
    """Run the tally's job on its side, a turn for each question."""
    with BlankingServer(blank_rate, f"{seed} {tally.job}") as server:
        ask = JOBS[tally.job](SIDES[tally.side](chat_model(server)))
        for question in questions:
            began = time.perf_counter()
            seconds = [
                time.perf_counter() - began
                for text in ask(question, {"callbacks": [tally]})
                if text.strip()
            ]
            tally.turns += 1
            tally.blank_turns += not seconds
            tally.seconds_to_text += seconds[:1]
        tally.requests = server.requests


def chat_model(server: BlankingServer) -> ChatOpenAI:
    """The model behind the server, without the client's own retries."""
    key = SecretStr("not-needed")
    return ChatOpenAI(model="demo", base_url=server.base_url, api_key=key, max_retries=0)


@tool
def weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"18 °C in {city}"


def _invoke(model: BaseChatModel) -> Ask:
    return lambda question, config: [model.invoke(question, config).content]


def _stream(model: BaseChatModel) -> Ask:
    return lambda question, config: (chunk.content for chunk in model.stream(question, config))


def _agent_executor(model: BaseChatModel) -> Ask:
    prompt = ChatPromptTemplate([("human", "{input}"), ("placeholder", "{agent_scratchpad}")])
    agent = create_tool_calling_agent(model, [weather], prompt)
    executor = AgentExecutor(agent=agent, tools=[weather])
    return lambda question, config: [executor.invoke({"input": question}, config)["output"]]


def _create_agent(model: BaseChatModel) -> Ask:
    agent = create_agent(model, [weather])

    def ask(question: str, config: RunnableConfig) -> Iterable[Any]:
        yield agent.invoke({"messages": [("user", question)]}, config)["messages"][-1].content

    return ask


JOBS: dict[str, Callable[[BaseChatModel], Ask]] = {
    "invoke": _invoke,
    "stream": _stream,
    "AgentExecutor": _agent_executor,
    "create_agent": _create_agent,
}
