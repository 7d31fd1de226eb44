"""Run managers: finding that of a stream, and holding back the tokens an attempt reports itself."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import FrameType
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import chat_models

_EMPTY_STREAM = {
    "stream": "No generation chunks were returned",
    "astream": "No generation chunks were returned",
    "_generate_with_cache": "No generations found in stream.",
    "_agenerate_with_cache": "No generations found in stream.",
}


def run_manager_of_stream(model: Any) -> Any:
    """The run manager of the `stream` or `astream` that is reading from `model`; None if none is.

    LangChain starts the run in `stream` and does not hand its manager to `_stream`, so `on_retry`
    could not be reported. It is a local variable there, and that frame is below ours on the stack:
    looked up only when a retry happens, it costs nothing otherwise.
    """
    for frame in _frames_of_langchain():
        variables = frame.f_locals
        if "run_manager" in variables and variables.get("self") is model:
            return variables["run_manager"]
    return None


def error_of_empty_stream() -> Exception | None:
    """What LangChain is about to raise, since the stream it reads from us brings no chunk.

    None where it is not LangChain that reads.
    """
    for frame in _frames_of_langchain():
        if frame.f_code.co_name in _EMPTY_STREAM:
            return ValueError(_EMPTY_STREAM[frame.f_code.co_name])
    return None


def _frames_of_langchain() -> Iterator[FrameType]:
    """The frames of LangChain's chat models on the stack, from the innermost out."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == chat_models.__name__:
            yield frame
        frame = frame.f_back


class Token:
    """One report of the inner model to its run manager, kept for later."""

    __slots__ = ("_arguments", "_report")

    def __init__(self, report: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self._report = report
        self._arguments = args, kwargs

    def send(self) -> Any:
        """Report it; what comes back is to be awaited unless it is None."""
        args, kwargs = self._arguments
        return self._report(*args, **kwargs)

    @property
    def said(self) -> Any:
        """The chunk that was reported, else the text."""
        args, kwargs = self._arguments
        chunk = kwargs.get("chunk")
        if chunk is not None:
            return chunk
        return args[0] if args else kwargs.get("token")


class _HoldingRunManager(CallbackManagerForLLMRun):
    """Stands in for a run manager during one attempt; all but tokens goes straight through."""

    def __init__(self, run_manager: CallbackManagerForLLMRun, reply: Any) -> None:
        self.__dict__.update(run_manager.__dict__)
        self._report = run_manager.on_llm_new_token
        self._reply = reply

    def on_llm_new_token(self, *args: Any, **kwargs: Any) -> None:
        for token in self._reply.hold_token(Token(self._report, *args, **kwargs)):
            token.send()


class _AsyncHoldingRunManager(AsyncCallbackManagerForLLMRun):
    """The same for an async call."""

    def __init__(self, run_manager: AsyncCallbackManagerForLLMRun, reply: Any) -> None:
        self.__dict__.update(run_manager.__dict__)
        self._run_manager = run_manager
        self._reply = reply

    async def on_llm_new_token(self, *args: Any, **kwargs: Any) -> None:
        report = self._run_manager.on_llm_new_token
        for token in self._reply.hold_token(Token(report, *args, **kwargs)):
            await token.send()

    def get_sync(self) -> CallbackManagerForLLMRun:
        return _HoldingRunManager(self._run_manager.get_sync(), self._reply)


def holding_tokens(run_manager: Any, reply: Any) -> Any:
    """A run manager for one attempt, whose tokens are held by what holds the reply."""
    if isinstance(run_manager, AsyncCallbackManagerForLLMRun):
        return _AsyncHoldingRunManager(run_manager, reply)
    return _HoldingRunManager(run_manager, reply)


def takes_run_manager(method: Any) -> bool:
    """Whether the parameter is there, and not only `**kwargs`."""
    return _takes_run_manager(getattr(method, "__func__", method))


@lru_cache(maxsize=256)
def _takes_run_manager(function: Callable[..., Any]) -> bool:
    return "run_manager" in inspect.signature(function).parameters
