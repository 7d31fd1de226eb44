"""Another model in the inner one's place: how it is asked, and what becomes of its results."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from langchain_retrying._call.chunks import chunk_of, message_in
from langchain_retrying._call.run_managers import takes_run_manager

_OPENAI = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "total_tokens": "total_tokens",
}
"""Its words for usage."""


def in_place_of(first: BaseChatModel, asked: BaseChatModel, result: ChatResult) -> ChatResult:
    """A result of the model asked, for the code of LangChain that runs in the first one's name.

    `generate` has the first model combine the `llm_output` of all results, which reads its own
    integration's keys and adds up what it finds. So another's goes into the message, where
    LangChain would have merged it, and in its place stands the usage in OpenAI's words: all
    integrations that combine anything take these, and so do callbacks.
    """
    combine = type(first)._combine_llm_outputs
    if result.llm_output is not None and combine is type(asked)._combine_llm_outputs:
        return result
    generations = list(result.generations)
    llm_output: dict[str, Any] = {"token_usage": {}}
    if generations:
        message = generations[0].message
        metadata = message.response_metadata
        if len(generations) == 1:  # LangChain merges no others
            metadata = {**(result.llm_output or {}), **metadata}
            message = message.model_copy(update={"response_metadata": metadata})
            generations = [generations[0].model_copy(update={"message": message})]
        usage = getattr(message, "usage_metadata", None)
        if usage:
            llm_output["token_usage"] = {_OPENAI[name]: usage[name] for name in _OPENAI}
        if "model_name" in metadata:
            llm_output["model_name"] = metadata["model_name"]
    return result.model_copy(update={"generations": generations, "llm_output": llm_output})


def method_of(model: Any, hook: str) -> Callable[..., Any]:
    """A generation hook of a model, or what comes nearest where it has none.

    Whether it streams is decided as LangChain does in `stream`.
    """
    own = getattr(model, hook, None)
    if own is None or hook in ("_stream", "_astream"):
        return partial(_NEAREST[hook], model)
    return own  # type: ignore[no-any-return]  # named at run time


def _stream(model: Any, messages: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
    if model._should_stream(async_api=False, **{**kwargs, "stream": True}):
        yield from model._stream(messages, **kwargs)
    else:
        yield from _as_chunks(model._generate(messages, **_taken_by(model._generate, kwargs)))


async def _astream(model: Any, messages: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
    if model._should_stream(async_api=True, **{**kwargs, "stream": True}):
        async for chunk in model._astream(messages, **kwargs):
            yield chunk
    else:
        result = await model._agenerate(messages, **_taken_by(model._agenerate, kwargs))
        for chunk in _as_chunks(result):
            yield chunk


def _taken_by(method: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    if takes_run_manager(method):
        return kwargs
    return {key: value for key, value in kwargs.items() if key != "run_manager"}


def _as_chunks(result: ChatResult) -> Iterable[ChatGenerationChunk]:
    message = message_in(result)
    return () if message is None else (chunk_of(message),)


def _events(model: Any, messages: Any, **kwargs: Any) -> Any:
    from langchain_core.language_models import _compat_bridge  # noqa: PLC0415 -- not in 0.3

    return _compat_bridge.chunks_to_events(_stream(model, messages, **kwargs))


def _async_events(model: Any, messages: Any, **kwargs: Any) -> Any:
    from langchain_core.language_models import _compat_bridge  # noqa: PLC0415 -- as above

    return _compat_bridge.achunks_to_events(_astream(model, messages, **kwargs))


_NEAREST: dict[str, Callable[..., Any]] = {
    "_stream": _stream,
    "_astream": _astream,
    "_stream_chat_model_events": _events,
    "_astream_chat_model_events": _async_events,
}
