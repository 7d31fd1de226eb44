"""Handlers that keep all they hear."""

from __future__ import annotations

import inspect
from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.tracers.base import BaseTracer

_EVENTS = [name for name in dir(BaseCallbackHandler) if name.startswith("on_")]


class Recorder(BaseCallbackHandler):
    """Keeps every event with all its arguments, by name."""

    def __init__(self) -> None:
        self.heard: list[Any] = []


class AsyncRecorder(AsyncCallbackHandler):
    """The same, from async handlers."""

    def __init__(self) -> None:
        self.heard: list[Any] = []


def _keeping(name: str) -> Any:
    def keep(self: Any, *args: Any, **kwargs: Any) -> None:
        self.heard.append((name, list(args), kwargs))

    return keep


def _keeping_async(name: str) -> Any:
    keep = _keeping(name)

    async def keep_async(self: Any, *args: Any, **kwargs: Any) -> None:
        keep(self, *args, **kwargs)

    return keep_async


for _name in _EVENTS:
    setattr(Recorder, _name, _keeping(_name))
    if inspect.iscoroutinefunction(getattr(AsyncCallbackHandler, _name)):
        setattr(AsyncRecorder, _name, _keeping_async(_name))


class Tracer(BaseTracer):
    """Keeps the runs; so do LangSmith and its kind."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Any] = []

    def _persist_run(self, run: Any) -> None:
        self.runs.append(run)
