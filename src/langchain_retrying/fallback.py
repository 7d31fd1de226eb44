"""`FallbackModel`: the remedy that asks another model, and how to ask one of another kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables.base import RunnableBinding
from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_retrying.callbacks import takes_run_manager
from langchain_retrying.calls import message_of
from langchain_retrying.errors import EmptyCompletionError
from langchain_retrying.opening import chunk_of
from langchain_retrying.remedies import Request
from langchain_retrying.tool_choice import forced_tools, offered_tools

_MODEL = ("model", "model_name", "model_id", "modelId")
"""Call arguments that say which model is asked."""


@dataclass(frozen=True)
class FallbackModel:
    """The remedy that asks another model.

    A model of the same integration gets all call arguments of the request. To one of another,
    tools and a forced tool choice are bound anew; the other arguments (`temperature`,
    `response_format` ...) mean nothing to it and are left out, so bind to it what it is to have:
    `FallbackModel(ChatOllama(model="b").bind(format="json"))`. So structured output that rests on
    such arguments, and not on a tool, needs a fallback of the same integration.

    Args:
        model: A chat model, or a binding of one. It is called underneath, as the inner model is:
            its own callbacks and cache take no part; its rate limiter does.

    Raises:
        TypeError: `model` is neither.

    """

    model: BaseChatModel | RunnableBinding[Any, Any]

    def __post_init__(self) -> None:
        model, _ = _unbound(self.model)
        if not isinstance(model, BaseChatModel):
            raise TypeError(
                f"FallbackModel needs a chat model or a binding of one, not {type(model).__name__}"
            )

    def __call__(self, request: Request, error: EmptyCompletionError) -> Request:
        """The same messages for the other model."""
        model, bound = _unbound(self.model)
        if type(model).bind_tools is type(request.model).bind_tools:
            kwargs: Mapping[str, Any] = {
                key: value for key, value in request.kwargs.items() if key not in _MODEL
            }
        else:
            model, kwargs = _unbound(_with_tools(model, request.kwargs))
        return replace(request, model=model, kwargs={**kwargs, **bound})


def _unbound(runnable: Any) -> tuple[Any, Mapping[str, Any]]:
    """A model, and what is bound to it."""
    bound: Mapping[str, Any] = {}
    while isinstance(runnable, RunnableBinding):
        runnable, bound = runnable.bound, {**runnable.kwargs, **bound}
    return runnable, bound


def _with_tools(model: BaseChatModel, kwargs: Mapping[str, Any]) -> Any:
    tools = [
        convert_to_openai_tool(tool)
        for tool in (*(kwargs.get("tools") or ()), *(kwargs.get("functions") or ()))
        if not _runs_at_the_provider(tool)
    ]
    if not tools or kwargs.get("tool_choice") == "none":
        return model
    forced = forced_tools(kwargs)
    if not forced:
        return model.bind_tools(tools)
    one_of_several = len(forced) == 1 < len(offered_tools(kwargs))
    return model.bind_tools(tools, tool_choice=forced[0] if one_of_several else "any")


def _runs_at_the_provider(tool: Any) -> bool:
    """Whether it is the provider's own tool, such as web search, which another has not."""
    if not isinstance(tool, Mapping):
        return False
    if "type" in tool:
        return tool["type"] not in ("function", "custom", "object")
    return not any(key in tool for key in ("name", "toolSpec", "title"))


def method_of(model: Any, hook: str) -> Callable[..., Any]:
    """A generation hook of a model, or what comes nearest where it has none.

    Whether it streams is decided as LangChain does in `stream`.
    """
    if hook == "_stream":
        return lambda *args, **kwargs: _stream(model, *args, **kwargs)
    if hook == "_astream":
        return lambda *args, **kwargs: _astream(model, *args, **kwargs)
    method = getattr(model, hook, None)
    if method is None:
        return _events(model) if hook == "_stream_chat_model_events" else _async_events(model)
    return method  # type: ignore[no-any-return]  # named at run time


def _stream(model: Any, messages: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
    if model._should_stream(async_api=False, **_asking_to_stream(kwargs)):
        yield from model._stream(messages, **kwargs)
    else:
        yield _whole(model._generate(messages, **_taken_by(model._generate, kwargs)))


async def _astream(model: Any, messages: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
    if model._should_stream(async_api=True, **_asking_to_stream(kwargs)):
        async for chunk in model._astream(messages, **kwargs):
            yield chunk
    else:
        yield _whole(await model._agenerate(messages, **_taken_by(model._agenerate, kwargs)))


def _asking_to_stream(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    call = {key: value for key, value in kwargs.items() if key not in ("run_manager", "stop")}
    return {**call, "stream": True}


def _taken_by(method: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    if takes_run_manager(getattr(method, "__func__", method)):
        return kwargs
    return {key: value for key, value in kwargs.items() if key != "run_manager"}


def _whole(result: ChatResult) -> ChatGenerationChunk:
    return chunk_of(message_of(result))


def _events(model: Any) -> Callable[..., Any]:
    from langchain_core.language_models._compat_bridge import (  # noqa: PLC0415 -- not in 0.3
        chunks_to_events,
    )

    return lambda *args, **kwargs: chunks_to_events(_stream(model, *args, **kwargs))


def _async_events(model: Any) -> Callable[..., Any]:
    from langchain_core.language_models._compat_bridge import (  # noqa: PLC0415 -- not in 0.3
        achunks_to_events,
    )

    return lambda *args, **kwargs: achunks_to_events(_astream(model, *args, **kwargs))
