"""The ways in which a model is called, and what each brings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk

try:
    from langchain.agents import create_agent
except ImportError:  # langchain 1 is not installed
    create_agent = None


class Listener(BaseCallbackHandler):
    """Counts what the callbacks of one call report."""

    run_inline = True  # in order, also where the call is a task

    def __init__(self) -> None:
        self.starts = self.ends = self.errors = self.retries = 0
        self.retries_of_last = 0
        """Since the last start."""
        self.tokens: list[str] = []

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self.starts += 1
        self.retries_of_last = 0

    def on_llm_end(self, *args: Any, **kwargs: Any) -> None:
        self.ends += 1

    def on_llm_error(self, *args: Any, **kwargs: Any) -> None:
        self.errors += 1

    def on_retry(self, *args: Any, **kwargs: Any) -> None:
        self.retries += 1
        self.retries_of_last += 1

    def on_llm_new_token(self, token: str, **kwargs: Any) -> None:
        self.tokens.append(token)


@dataclass
class Call:
    """One call, and what it has brought so far."""

    name: str
    script: tuple[str, ...]
    """The faults that the server is to serve, in order; the last one repeats."""
    way: str
    listener: Listener = field(default_factory=Listener)
    pieces: list[str] = field(default_factory=list)
    """The content of the reply, piece by piece if it was streamed."""
    reply: Any = None
    error: BaseException | None = None
    stopped: bool = False
    """Whether the consumer has stopped reading before the end."""

    @property
    def prompt(self) -> str:
        return f"call {self.name}: {', '.join(self.script)}"

    @property
    def config(self) -> dict[str, Any]:
        return {"callbacks": [self.listener]}

    def __str__(self) -> str:
        return f"call {self.name} ({self.way}: {', '.join(self.script)})"

    def take(self, message: Any) -> None:
        """Note a reply or the next chunk of one."""
        self.pieces.append(message.content)
        is_next = isinstance(message, AIMessageChunk) and self.reply is not None
        self.reply = self.reply + message if is_next else message


def invoke(model: BaseChatModel, call: Call) -> None:
    call.take(model.invoke(call.prompt, call.config))


async def ainvoke(model: BaseChatModel, call: Call) -> None:
    call.take(await model.ainvoke(call.prompt, call.config))


def stream(model: BaseChatModel, call: Call) -> None:
    for chunk in model.stream(call.prompt, call.config):
        call.take(chunk)


async def astream(model: BaseChatModel, call: Call) -> None:
    async for chunk in model.astream(call.prompt, call.config):
        call.take(chunk)


def stream_closed(model: BaseChatModel, call: Call) -> None:
    """The consumer closes the stream at its first chunk."""
    chunks = model.stream(call.prompt, call.config)
    call.take(next(chunks))
    call.stopped = True
    chunks.close()
    for chunk in chunks:
        call.take(chunk)


async def astream_closed(model: BaseChatModel, call: Call) -> None:
    chunks = model.astream(call.prompt, call.config)
    call.take(await anext(chunks))
    call.stopped = True
    await chunks.aclose()
    async for chunk in chunks:
        call.take(chunk)


async def astream_cancelled(model: BaseChatModel, call: Call) -> None:
    """The consumer's task is cancelled at the first chunk."""

    async def read() -> None:
        async for chunk in model.astream(call.prompt, call.config):
            call.take(chunk)
            call.stopped = True
            task.cancel()

    task = asyncio.create_task(read())
    with suppress(asyncio.CancelledError):
        await task


async def astream_events(model: BaseChatModel, call: Call) -> None:
    names = []
    async for event in model.astream_events(call.prompt, call.config, version="v2"):
        names.append(event["event"])
        if event["event"] == "on_chat_model_stream":
            call.take(event["data"]["chunk"])
    assert names[0] == "on_chat_model_start"
    assert names[-1] == "on_chat_model_end"
    assert set(names[1:-1]) <= {"on_chat_model_stream"}


def batch(model: BaseChatModel, *calls: Call) -> None:
    prompts, configs = [call.prompt for call in calls], [call.config for call in calls]
    _share_out(calls, model.batch(prompts, configs, return_exceptions=True))


async def abatch(model: BaseChatModel, *calls: Call) -> None:
    prompts, configs = [call.prompt for call in calls], [call.config for call in calls]
    _share_out(calls, await model.abatch(prompts, configs, return_exceptions=True))


def _share_out(calls: tuple[Call, ...], replies: list[Any]) -> None:
    for call, reply in zip(calls, replies, strict=True):
        if isinstance(reply, BaseException):
            call.error = reply
        else:
            call.take(reply)


def look_up(key: str) -> str:
    """Look a key up."""
    return f"{key} is 42"


def _agent(model: BaseChatModel, call: Call) -> tuple[Any, dict[str, Any]]:
    """An agent with a tool, which its model calls first, and what it is asked."""
    return create_agent(model, [look_up]), {"messages": [("user", call.prompt)]}


def agent(model: BaseChatModel, call: Call) -> None:
    agent, question = _agent(model, call)
    call.take(agent.invoke(question, call.config)["messages"][-1])


async def agent_async(model: BaseChatModel, call: Call) -> None:
    agent, question = _agent(model, call)
    state = await agent.ainvoke(question, call.config)
    call.take(state["messages"][-1])


def agent_streamed(model: BaseChatModel, call: Call) -> None:
    """The same, whose tokens are streamed."""
    agent, question = _agent(model, call)
    for message, _ in agent.stream(question, call.config, stream_mode="messages"):
        if isinstance(message, AIMessageChunk):
            call.pieces.append(message.content)


WAYS: dict[str, Callable[..., Any]] = {
    way.__name__: way
    for way in (
        invoke,
        ainvoke,
        stream,
        astream,
        stream_closed,
        astream_closed,
        astream_cancelled,
        astream_events,
        batch,
        abatch,
        *((agent, agent_async, agent_streamed) if create_agent else ()),
    )
}
