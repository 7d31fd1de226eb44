"""What the tests share: the four ways to ask a model, and the server that models are asked on."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessageChunk

from langchain_retrying.testing import RecordingSleep
from wire.server import WireServer

# A busy machine is slow at times, and a run should find what the last one found.
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


def named(value: Any) -> str:
    """The id of a parameter: the same in each process, so without addresses."""
    return re.sub(" at 0x[0-9a-f]+", "", repr(value))


WAYS = ("invoke", "ainvoke", "stream", "astream")


def chunks_of(way: str, model: Any, prompt: Any = "Hi", **kwargs: Any) -> list[Any]:
    """What comes out of `stream` or `astream`, chunk by chunk; of `invoke`, the one message."""
    if way == "invoke":
        return [model.invoke(prompt, **kwargs)]
    if way == "stream":
        return list(model.stream(prompt, **kwargs))

    async def ask() -> list[Any]:
        if way == "ainvoke":
            return [await model.ainvoke(prompt, **kwargs)]
        return [chunk async for chunk in model.astream(prompt, **kwargs)]

    return asyncio.run(ask())


def ask(way: str, model: Any, prompt: Any = "Hi", **kwargs: Any) -> Any:
    """The reply as one message, whichever way it was asked for."""
    first, *rest = chunks_of(way, model, prompt, **kwargs)
    return first + rest if rest and isinstance(first, AIMessageChunk) else first


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=("stream", "astream"))
def streaming_way(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(autouse=True)
def slept() -> Iterator[RecordingSleep]:
    """The clock: no test waits for a retry."""
    with RecordingSleep() as recording:
        yield recording


@pytest.fixture(scope="session")
def _server() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


@pytest.fixture
def server(_server: WireServer) -> WireServer:
    """The server, with no script yet. One for all tests, so clients are built once."""
    _server.play()
    return _server


async def take(iterator: AsyncIterator[Any], count: int) -> list[Any]:
    return [await anext(iterator) for _ in range(count)]


class SetsWhenRetrying(BaseCallbackHandler):
    """Sets an event when a retry is reported."""

    def __init__(self, event):
        self.event = event

    def on_retry(self, retry_state, **kwargs):
        self.event.set()
