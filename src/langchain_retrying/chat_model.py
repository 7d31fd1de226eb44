"""`RetryingChatModel`: the four entry points, whole and streamed, sync and async.

Each makes an attempt, and lets it out or waits and tries again. What is to be done is decided in
`calls` and below; here it is done.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from langchain_retrying import waiting
from langchain_retrying.attempts import Attempts
from langchain_retrying.cache import AnswerCache, effective_cache
from langchain_retrying.callbacks import Token, gated, run_manager_of_stream
from langchain_retrying.calls import StreamedCall, WholeCall
from langchain_retrying.events import EventCall
from langchain_retrying.facade import DEFAULT_POLICY, Facade, hook
from langchain_retrying.policy import RetryPolicy

if TYPE_CHECKING:
    from typing_extensions import Self


class RetryingChatModel(Facade):
    """A chat model that retries the empty completions of another one.

    It stands wherever the inner model stood: it is an instance of the inner model's class, with
    the same attributes, tools, structured output, callbacks and traces. A reply that carries
    nothing usable (no text, no tool call, nothing else) is rejected and asked for again, before
    anything of it reaches a consumer; a stream is held until its first usable chunk and flows
    straight through from then on.

    Args:
        inner_model: The chat model to wrap. It is never changed, and keeps working by itself.
            A binding or a configurable model around one (from `bind_tools`, `with_retry`,
            `init_chat_model` ...) is put around the wrapper instead, and returned.
        policy: What is retried and how; default `RetryPolicy()`: two retries.

    Attributes:
        inner_model: The model given.
        retry_policy: The policy given.

    Raises:
        TypeError: `inner_model` is not a chat model (the text says what to write), or `policy` is
            not a `RetryPolicy`.

    Example:
        >>> from langchain_retrying import RetryingChatModel
        >>> from langchain_retrying.testing import ScriptedChatModel
        >>> model = RetryingChatModel(ScriptedChatModel(["", "Hello."]))
        >>> model.invoke("Hi").content
        'Hello.'

    """

    if TYPE_CHECKING:

        def __init__(
            self, inner_model: BaseChatModel, policy: RetryPolicy = DEFAULT_POLICY
        ) -> None: ...
    else:

        def __init__(
            self,
            inner_model: BaseChatModel | None = None,
            policy: RetryPolicy = DEFAULT_POLICY,
            **fields: Any,
        ) -> None:
            """Do nothing: `__new__` has built the wrapper, and the inner model's fields are set."""

    @hook
    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        call = WholeCall(self.retry_policy, messages, kwargs, self.inner_model)
        while True:
            try:
                result = _send(self.inner_model._generate, call, stop, run_manager)
            except Exception as error:
                if not call.catches(error):
                    raise
                result = None
            accepted = call.ended(result)
            if accepted is not None:
                for token in call.gate.release():
                    token.send()
                return accepted
            self._before_retry(call, run_manager)

    @hook
    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        call = WholeCall(self.retry_policy, messages, kwargs, self.inner_model)
        while True:
            try:
                result = await _send(self.inner_model._agenerate, call, stop, run_manager)
            except Exception as error:
                if not call.catches(error):
                    raise
                result = None
            accepted = call.ended(result)
            if accepted is not None:
                for token in call.gate.release():
                    await _awaited(token.send())
                return accepted
            await self._before_async_retry(call, run_manager)

    @hook
    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        call = StreamedCall(self.retry_policy, messages, kwargs, self.inner_model)
        return self._flow(call, self.inner_model._stream, stop, run_manager)

    @hook
    def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        call = StreamedCall(self.retry_policy, messages, kwargs, self.inner_model)
        return self._async_flow(call, self.inner_model._astream, stop, run_manager)

    def _flow(
        self, call: StreamedCall, method: Callable[..., Any], stop: Any, run_manager: Any
    ) -> Iterator[Any]:
        while True:
            chunks: Any = ()
            try:
                try:
                    chunks = iter(_send(method, call, stop, run_manager))
                    for chunk in chunks:
                        if call.gate.add(chunk):
                            break
                except Exception as error:
                    if not call.catches(error):
                        raise
                opening = call.ended()
                if opening is not None:
                    for item in opening:
                        if isinstance(item, Token):
                            item.send()
                        else:
                            yield item
                    if not call.exhausted:
                        amend = call.amend
                        yield from chunks if amend is None else map(amend, chunks)
                    return
            finally:
                _close(chunks)
            self._before_retry(call, run_manager or run_manager_of_stream(self))

    async def _async_flow(
        self, call: StreamedCall, method: Callable[..., Any], stop: Any, run_manager: Any
    ) -> AsyncIterator[Any]:
        while True:
            chunks: Any = ()
            try:
                try:
                    chunks = aiter(_send(method, call, stop, run_manager))
                    async for chunk in chunks:
                        if call.gate.add(chunk):
                            break
                except Exception as error:
                    if not call.catches(error):
                        raise
                opening = call.ended()
                if opening is not None:
                    for item in opening:
                        if isinstance(item, Token):
                            await _awaited(item.send())
                        else:
                            yield item
                    if not call.exhausted:
                        amend = call.amend
                        async for chunk in chunks:
                            yield chunk if amend is None else amend(chunk)
                    return
            finally:
                await _aclose(chunks)
            await self._before_async_retry(call, run_manager or run_manager_of_stream(self))

    def _generate_with_cache(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        model = self._with_answer_cache()
        return super(RetryingChatModel, model)._generate_with_cache(
            messages, stop, run_manager, **kwargs
        )

    async def _agenerate_with_cache(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        model = self._with_answer_cache()
        return await super(RetryingChatModel, model)._agenerate_with_cache(
            messages, stop, run_manager, **kwargs
        )

    def _with_answer_cache(self) -> Self:
        """The model itself, or where a cache is in use a twin that caches answers only."""
        cache = effective_cache(self.cache)
        return self if cache is None else self._twin(cache=AnswerCache(cache))

    def _get_llm_string(self, stop: Any = None, **kwargs: Any) -> str:
        key = self.inner_model._get_llm_string(stop=stop, **kwargs)
        return f"{key}---{self.retry_policy.fingerprint}"

    @classmethod
    def _optional_hooks(cls) -> dict[str, Any]:
        return {
            "_stream_chat_model_events": _stream_events,
            "_astream_chat_model_events": _astream_events,
        }

    def _before_retry(self, call: Attempts, run_manager: Any) -> None:
        """Report the retry, wait, and take the inner model's rate limit for one more request."""
        if run_manager is not None:
            run_manager.on_retry(call.retry_state)
        if call.seconds > 0:
            waiting.sleep(call.seconds)
        if self.rate_limiter is not None:
            self.rate_limiter.acquire(blocking=True)
        call.begin_attempt()

    async def _before_async_retry(self, call: Attempts, run_manager: Any) -> None:
        """As `_before_retry`."""
        if run_manager is not None:
            await run_manager.on_retry(call.retry_state)
        if call.seconds > 0:
            await waiting.asleep(call.seconds)
        if self.rate_limiter is not None:
            await self.rate_limiter.aacquire(blocking=True)
        call.begin_attempt()


@hook
def _stream_events(
    self: RetryingChatModel, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
) -> Iterator[Any]:
    inner: Any = self.inner_model
    call = EventCall(self.retry_policy, messages, kwargs, inner)
    return self._flow(call, inner._stream_chat_model_events, stop, run_manager)


@hook
def _astream_events(
    self: RetryingChatModel, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
) -> AsyncIterator[Any]:
    inner: Any = self.inner_model
    call = EventCall(self.retry_policy, messages, kwargs, inner)
    return self._async_flow(call, inner._astream_chat_model_events, stop, run_manager)


def _send(method: Callable[..., Any], call: Attempts, stop: Any, run_manager: Any) -> Any:
    """Make one attempt, with a message list of its own and a run manager that holds tokens."""
    # As LangChain does: what `_stream` is given it gets; `_generate` is asked for the parameter.
    if run_manager is None or (
        isinstance(call, WholeCall) and not _takes_run_manager(getattr(method, "__func__", method))
    ):
        return method([*call.messages], stop=stop, **call.kwargs)
    if run_manager.handlers:
        run_manager = gated(run_manager, call.gate)
    return method([*call.messages], stop=stop, run_manager=run_manager, **call.kwargs)


@lru_cache(maxsize=256)
def _takes_run_manager(function: Callable[..., Any]) -> bool:
    """Whether the parameter is there, and not only `**kwargs`."""
    return "run_manager" in inspect.signature(function).parameters


def _close(iterator: Any) -> None:
    close = getattr(iterator, "close", None)
    if close is not None:
        close()


async def _aclose(iterator: Any) -> None:
    close = getattr(iterator, "aclose", None)
    if close is not None:
        await close()


async def _awaited(result: Any) -> None:
    if inspect.isawaitable(result):
        await result
