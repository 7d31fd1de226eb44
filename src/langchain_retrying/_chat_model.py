"""`RetryingChatModel`: the four entry points, whole and streamed, sync and async.

Each makes an attempt, and lets it out or waits and tries again. What is to be done is decided in
`calls` and below; here it is done.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from langchain_retrying._call import clock
from langchain_retrying._call.attempts import Attempts
from langchain_retrying._call.calls import StreamedCall, WholeCall, message_of
from langchain_retrying._call.events import EventCall
from langchain_retrying._call.held import chunk_of
from langchain_retrying._call.run_managers import (
    Token,
    gated,
    run_manager_of_stream,
    takes_run_manager,
)
from langchain_retrying._drop_in.facade import Facade, hook
from langchain_retrying._policy.policy import DEFAULT_POLICY, RetryPolicy


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
            `init_chat_model` ...) is put around the wrapper instead, and returned. A wrapper is
            not wrapped again: the new policy is put around its inner model, so that requests do
            not multiply.
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

        def __getattr__(self, name: str) -> Any: ...  # of the inner model

    else:

        def __init__(
            self,
            inner_model: BaseChatModel | None = None,
            policy: RetryPolicy = DEFAULT_POLICY,
            *args: Any,
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
                result = _send("_generate", call, stop, run_manager)
            except Exception as error:
                if not call.catches(error):
                    raise
                result = None
            accepted = call.ended(result)
            if accepted is None and not self._retries(call, run_manager):
                accepted = call.at_its_end()
            if accepted is not None:
                for token in call.gate.release():
                    token.send()
                return accepted

    @hook
    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        call = WholeCall(self.retry_policy, messages, kwargs, self.inner_model)
        while True:
            try:
                result = await _send("_agenerate", call, stop, run_manager)
            except Exception as error:
                if not call.catches(error):
                    raise
                result = None
            accepted = call.ended(result)
            if accepted is None and not await self._aretries(call, run_manager):
                accepted = call.at_its_end()
            if accepted is not None:
                for token in call.gate.release():
                    await _awaited(token.send())
                return accepted

    @hook
    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        call = StreamedCall(self.retry_policy, messages, kwargs, self.inner_model)
        return self._flow(call, "_stream", stop, run_manager)

    @hook
    def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        call = StreamedCall(self.retry_policy, messages, kwargs, self.inner_model)
        return self._async_flow(call, "_astream", stop, run_manager)

    def _flow(self, call: StreamedCall, hook: str, stop: Any, run_manager: Any) -> Iterator[Any]:
        while True:
            try:
                while _read(call, hook, stop, run_manager):
                    yield from call.take_live()
                opening = call.ended()
                if opening is not None:
                    for item in opening:
                        if isinstance(item, Token):
                            item.send()
                        else:
                            yield item
                    if not call.is_over:
                        amend = call.amend
                        try:
                            yield from call.chunks if amend is None else map(amend, call.chunks)
                        except Exception as error:
                            call.explain(error)
                            raise
                    return
            finally:
                _close(call.chunks)
            if not self._retries(call, run_manager or run_manager_of_stream(self)):
                yield from call.at_its_end()
                return

    async def _async_flow(  # noqa: PLR0912 -- as `_flow`, where loops are `yield from`
        self, call: StreamedCall, hook: str, stop: Any, run_manager: Any
    ) -> AsyncIterator[Any]:
        while True:
            try:
                while await _aread(call, hook, stop, run_manager):
                    for chunk in call.take_live():
                        yield chunk
                opening = call.ended()
                if opening is not None:
                    for item in opening:
                        if isinstance(item, Token):
                            await _awaited(item.send())
                        else:
                            yield item
                    if not call.is_over:
                        amend = call.amend
                        try:
                            async for chunk in call.chunks:
                                yield chunk if amend is None else amend(chunk)
                        except Exception as error:
                            call.explain(error)
                            raise
                    return
            finally:
                await _aclose(call.chunks)
            if not await self._aretries(call, run_manager or run_manager_of_stream(self)):
                for chunk in call.at_its_end():
                    yield chunk
                return

    @classmethod
    def _optional_hooks(cls) -> dict[str, Any]:
        return {
            "_stream_chat_model_events": _stream_events,
            "_astream_chat_model_events": _astream_events,
        }

    def _retries(self, call: Attempts, run_manager: Any) -> bool:
        """Report the retry, wait for it and begin it; False: it was called off meanwhile."""
        assert call.retry_state is not None  # another attempt follows a decision
        with call.retry_state:
            if run_manager is not None:
                run_manager.on_retry(call.retry_state)
            if call.seconds > 0:
                clock.sleep(call.seconds, call.policy.stop_event)
            if call.is_called_off():
                return False
            limiter = call.next_request.model.rate_limiter
            if limiter is not None:  # one more request
                limiter.acquire(blocking=True)
                if call.is_called_off():  # it may have taken long
                    return False
        call.begin_attempt()
        return True

    async def _aretries(self, call: Attempts, run_manager: Any) -> bool:
        """As `_retries`."""
        assert call.retry_state is not None  # as above
        with call.retry_state:
            if run_manager is not None:
                await run_manager.on_retry(call.retry_state)
            if call.seconds > 0:
                await clock.asleep(call.seconds)
            if call.is_called_off():
                return False
            limiter = call.next_request.model.rate_limiter
            if limiter is not None:
                await limiter.aacquire(blocking=True)
                if call.is_called_off():  # it may have taken long
                    return False
        call.begin_attempt()
        return True


def init_retrying_chat_model(
    *args: Any, policy: RetryPolicy = DEFAULT_POLICY, **kwargs: Any
) -> Any:
    """Build a chat model with LangChain's `init_chat_model`, and wrap it.

    Args:
        *args: As for `init_chat_model`.
        policy: What is retried and how; default `RetryPolicy()`: two retries.
        **kwargs: As for `init_chat_model`: `model_provider`, `configurable_fields`,
            `config_prefix`, and what the model's constructor takes.

    Returns:
        A `RetryingChatModel`. With `configurable_fields`, or without a model, what
        `init_chat_model` returns then: a runnable that builds the model of each call from
        `config={"configurable": {...}}`; here it wraps it too.

    Raises:
        ImportError: langchain is not installed.
        TypeError: `policy` is not a `RetryPolicy`.

    """
    try:
        from langchain.chat_models import init_chat_model  # noqa: PLC0415 -- an extra
    except ImportError as error:
        raise ImportError(
            "init_retrying_chat_model needs langchain: pip install 'langchain-retrying[langchain]'"
        ) from error
    return RetryingChatModel(init_chat_model(*args, **kwargs), policy)


@hook
def _stream_events(
    self: RetryingChatModel, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
) -> Iterator[Any]:
    call = EventCall(self.retry_policy, messages, kwargs, self.inner_model)
    return self._flow(call, "_stream_chat_model_events", stop, run_manager)


@hook
def _astream_events(
    self: RetryingChatModel, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
) -> AsyncIterator[Any]:
    call = EventCall(self.retry_policy, messages, kwargs, self.inner_model)
    return self._async_flow(call, "_astream_chat_model_events", stop, run_manager)


def _send(hook: str, call: Attempts, stop: Any, run_manager: Any) -> Any:
    """Make one attempt, with a message list of its own and a run manager that holds tokens."""
    method = (method_of if call.asks_another else getattr)(call.model, hook)
    kwargs = {"stop": stop, **call.kwargs}
    # As LangChain does: what `_stream` is given it gets; `_generate` is asked for the parameter.
    if run_manager is not None and not (
        isinstance(call, WholeCall) and not takes_run_manager(getattr(method, "__func__", method))
    ):
        kwargs["run_manager"] = (
            gated(run_manager, call.gate) if run_manager.handlers else run_manager
        )
    return method([*call.messages], **kwargs)


def _read(call: StreamedCall, hook: str, stop: Any, run_manager: Any) -> bool:
    """Read until the attempt is decided; True: until there is reasoning to go out live.

    What a consumer throws into the stream is no failure of the model, so nothing is yielded here.
    """
    try:
        if call.chunks is None:
            call.chunks = iter(_send(hook, call, stop, run_manager))
        else:
            call.gate.resume()
        for chunk in call.chunks:
            if call.gate.add(chunk):
                return bool(call.gate.live)
    except Exception as error:
        if not call.catches(error):
            raise
    return False


_UNLIMITED = nullcontext()


async def _aread(call: StreamedCall, hook: str, stop: Any, run_manager: Any) -> bool:
    """As `_read`."""
    gate = call.gate
    if call.chunks is not None:
        gate.resume()
    try:
        with clock.Cancelling(gate.until, gate.is_empty) if gate.until else _UNLIMITED:
            if call.chunks is None:
                call.chunks = aiter(_send(hook, call, stop, run_manager))
            async for chunk in call.chunks:
                if gate.add(chunk):
                    return bool(gate.live)
    except Exception as error:
        if not call.catches(error):
            raise
    return False


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
    if model._should_stream(async_api=False, **{**kwargs, "stream": True}):
        yield from model._stream(messages, **kwargs)
    else:
        yield _whole(model._generate(messages, **_taken_by(model._generate, kwargs)))


async def _astream(model: Any, messages: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
    if model._should_stream(async_api=True, **{**kwargs, "stream": True}):
        async for chunk in model._astream(messages, **kwargs):
            yield chunk
    else:
        yield _whole(await model._agenerate(messages, **_taken_by(model._agenerate, kwargs)))


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
