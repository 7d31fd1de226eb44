"""`FallbackModel`: the remedy that asks another model, and how to ask one of another kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_retrying.errors import EmptyCompletionError
from langchain_retrying.opening import chunk_of
from langchain_retrying.remedies import Request
from langchain_retrying.tool_choice import forced_tools, offered_tools


@dataclass(frozen=True)
class FallbackModel:
    """The remedy that asks another model.

    A model of the same integration gets all call arguments of the request. To one of another,
    tools and a forced tool choice are bound anew; the other arguments (`temperature`,
    `response_format` ...) mean nothing to it and are left out, so bind to it what it is to have:
    `FallbackModel(ChatOllama(model="b").bind(format="json"))`.

    Args:
        model: A chat model, or a binding of one. It is called underneath, as the inner model is:
            its own callbacks and cache take no part; its rate limiter does.

    Raises:
        TypeError: `model` is neither.

    """

    model: BaseChatModel | RunnableBindingBase[Any, Any]

    def __post_init__(self) -> None:
        model, _ = _unbound(self.model)
        if not isinstance(model, BaseChatModel):
            raise TypeError(
                f"FallbackModel needs a chat model or a binding of one, not {type(model).__name__}"
            )

    def __call__(self, request: Request, error: EmptyCompletionError) -> Request:
        """The same messages for the other model."""
        model, bound = _unbound(self.model)
        kwargs = request.kwargs
        if type(model).bind_tools is not type(request.model).bind_tools:
            model, kwargs = _unbound(_with_tools(model, kwargs))
        return replace(request, model=model, kwargs={**kwargs, **bound})


def _unbound(runnable: Any) -> tuple[Any, Mapping[str, Any]]:
    """A model, and what is bound to it."""
    bound: Mapping[str, Any] = {}
    while isinstance(runnable, RunnableBindingBase):
        runnable, bound = runnable.bound, {**runnable.kwargs, **bound}
    return runnable, bound


def _with_tools(model: BaseChatModel, kwargs: Mapping[str, Any]) -> Any:
    tools = [
        convert_to_openai_tool(tool)
        for tool in (*(kwargs.get("tools") or ()), *(kwargs.get("functions") or ()))
        if not _runs_at_the_provider(tool)
    ]
    if not tools:
        return model
    choice: dict[str, Any] = {}
    forced = forced_tools(kwargs)
    if forced:
        choice["tool_choice"] = forced[0] if len(forced) < len(offered_tools(kwargs)) else "any"
    return model.bind_tools(tools, **choice)


def _runs_at_the_provider(tool: Any) -> bool:
    """Whether it is the provider's own tool, such as web search, which another has not."""
    if not isinstance(tool, Mapping):
        return False
    if "type" in tool:
        return tool["type"] not in ("function", "custom", "object")
    return not any(key in tool for key in ("name", "toolSpec", "title"))


def method_of(model: Any, name: str) -> Callable[..., Any]:
    """A generation hook of a model, or what comes nearest where its class has none."""
    method = getattr(model, name, None)
    if name in ("_stream", "_astream") and not _streams(model):
        return _chunk_of_whole(model) if name == "_stream" else _async_chunk_of_whole(model)
    if method is None:
        return _events(model) if name == "_stream_chat_model_events" else _async_events(model)
    return method  # type: ignore[no-any-return]  # named at run time


def _streams(model: Any) -> bool:
    return any(
        getattr(getattr(model, name), "__func__", None) is not getattr(BaseChatModel, name)
        for name in ("_stream", "_astream")
    )


def _chunk_of_whole(model: Any) -> Callable[..., Any]:
    def stream(*args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        result = model._generate(*args, **kwargs)
        yield from (chunk_of(generation.message) for generation in result.generations[:1])

    return stream


def _async_chunk_of_whole(model: Any) -> Callable[..., Any]:
    async def stream(*args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        result = await model._agenerate(*args, **kwargs)
        for generation in result.generations[:1]:
            yield chunk_of(generation.message)

    return stream


def _events(model: Any) -> Callable[..., Any]:
    from langchain_core.language_models._compat_bridge import (  # noqa: PLC0415 -- not in 0.3
        chunks_to_events,
    )

    stream = method_of(model, "_stream")
    return lambda *args, **kwargs: chunks_to_events(stream(*args, **kwargs))


def _async_events(model: Any) -> Callable[..., Any]:
    from langchain_core.language_models._compat_bridge import (  # noqa: PLC0415 -- not in 0.3
        achunks_to_events,
    )

    stream = method_of(model, "_astream")
    return lambda *args, **kwargs: achunks_to_events(stream(*args, **kwargs))
