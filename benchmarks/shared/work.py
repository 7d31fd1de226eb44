"""What a model is asked to do while it is measured: each function makes the work of one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler

Work = Callable[[], object]
TURN: Any = {"messages": [("user", "Hi")]}

run: Callable[[Any], Any] = asyncio.new_event_loop().run_until_complete


def invoke(model: Any, config: Any = None) -> Work:
    """Ask for a whole answer."""
    return lambda: model.invoke("Hi", config)


def ainvoke(model: Any, config: Any = None) -> Work:
    """Ask for a whole answer on the event loop."""
    return lambda: run(model.ainvoke("Hi", config))


def stream(model: Any, config: Any = None) -> Work:
    """Read a stream to its end."""
    return lambda: sum(1 for _ in model.stream("Hi", config))


def astream(model: Any, config: Any = None) -> Work:
    """Read a stream to its end on the event loop."""

    async def read() -> int:
        return sum([1 async for _ in model.astream("Hi", config)])

    return lambda: run(read())


def turn(agent: Any) -> Work:
    """Run an agent or a graph from a request to its answer."""
    return lambda: agent.invoke(TURN)


def both(first: Work, second: Work) -> Work:
    """Do one after the other."""
    return lambda: (first(), second())


def agent(model: Any, *middleware: Any) -> Any:
    """Make an agent with one tool."""
    return create_agent(model, [look_up], middleware=middleware)


def look_up(key: str) -> str:
    """Look up a value."""
    return key


class Idle(BaseCallbackHandler):
    """A callback handler that is called for each token, and does nothing."""

    def on_llm_new_token(self, *args: Any, **kwargs: Any) -> None:
        pass


HANDLER: Any = {"callbacks": [Idle()]}
