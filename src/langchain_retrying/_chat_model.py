"""`RetryingChatModel`: the four entry points, whole and streamed, sync and async.

Each makes an attempt, and lets it out or waits and tries again. What is to be done is decided in
`_call`; here it is done.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from langchain_retrying._call import clock
from langchain_retrying._call.another_model import method_of
from langchain_retrying._call.call import ANSWERED, Call, Over, Retry
from langchain_retrying._call.events import EventReply
from langchain_retrying._call.replies import StreamedReply, WholeReply
from langchain_retrying._call.run_managers import (
    Token,
    holding_tokens,
    run_manager_of_stream,
    takes_run_manager,
)
from langchain_retrying._drop_in.facade import Facade, hook
from langchain_retrying._policy.policy import DEFAULT_POLICY, RetryPolicy
from langchain_retrying._policy.stops import event_in

Result = TypeVar("Result")


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
        call = Call(self.retry_policy, messages, kwargs, self.inner_model, WholeReply)
        while True:
            try:
                result = _send("_generate", call, stop, run_manager)
            except Exception as error:
                step = call.failed(error)
                if step is None:
                    raise
            else:
                step = call.ended(result)
            if isinstance(step, Retry):
                step = _at_once(_until_next(call, step, run_manager, asynchronous=False))
            if step is not None:
                *tokens, result = call.out(step)
                for token in tokens:
                    token.send()
                return result  # type: ignore[no-any-return]  # what `WholeReply` holds

    @hook
    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        call = Call(self.retry_policy, messages, kwargs, self.inner_model, WholeReply)
        while True:
            try:
                result = await _send("_agenerate", call, stop, run_manager)
            except Exception as error:
                step = call.failed(error)
                if step is None:
                    raise
            else:
                step = call.ended(result)
            if isinstance(step, Retry):
                step = await _until_next(call, step, run_manager, asynchronous=True)
            if step is not None:
                *tokens, result = call.out(step)
                for token in tokens:
                    await _awaited(token.send())
                return result  # type: ignore[no-any-return]  # as above

    @hook
    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        call = Call(self.retry_policy, messages, kwargs, self.inner_model, StreamedReply)
        return self._flow(call, "_stream", stop, run_manager)

    @hook
    def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        call = Call(self.retry_policy, messages, kwargs, self.inner_model, StreamedReply)
        return self._async_flow(call, "_astream", stop, run_manager)

    def _flow(self, call: Call, hook: str, stop: Any, run_manager: Any) -> Iterator[Any]:
        try:
            while True:
                while (step := _read(call, hook, stop, run_manager)) is None:
                    yield from call.reply.take_live()
                if isinstance(step, Retry):
                    _close(call.reply)
                    told = run_manager or run_manager_of_stream(self)
                    step = _at_once(_until_next(call, step, told, asynchronous=False))
                    if step is None:
                        continue
                for item in call.out(step):
                    if isinstance(item, Token):
                        item.send()
                    else:
                        yield item
                if step is ANSWERED:
                    amend = call.amendment() if call.retry_state else None
                    try:
                        chunks = call.reply.source
                        yield from chunks if amend is None else map(amend, chunks)
                    except Exception as error:
                        call.explain(error)
                        raise
                return
        finally:
            _close(call.reply)

    async def _async_flow(
        self, call: Call, hook: str, stop: Any, run_manager: Any
    ) -> AsyncIterator[Any]:
        try:
            while True:
                while (step := await _aread(call, hook, stop, run_manager)) is None:
                    for chunk in call.reply.take_live():
                        yield chunk
                if isinstance(step, Retry):
                    await _aclose(call.reply)
                    told = run_manager or run_manager_of_stream(self)
                    step = await _until_next(call, step, told, asynchronous=True)
                    if step is None:
                        continue
                for item in call.out(step):
                    if isinstance(item, Token):
                        await _awaited(item.send())
                    else:
                        yield item
                if step is ANSWERED:
                    amend = call.amendment() if call.retry_state else None
                    try:
                        async for chunk in call.reply.source:
                            yield chunk if amend is None else amend(chunk)
                    except Exception as error:
                        call.explain(error)
                        raise
                return
        finally:
            await _aclose(call.reply)

    @classmethod
    def _optional_hooks(cls) -> dict[str, Any]:
        return {
            "_stream_chat_model_events": _stream_events,
            "_astream_chat_model_events": _astream_events,
        }


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
    call = Call(self.retry_policy, messages, kwargs, self.inner_model, EventReply)
    return self._flow(call, "_stream_chat_model_events", stop, run_manager)


@hook
def _astream_events(
    self: RetryingChatModel, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
) -> AsyncIterator[Any]:
    call = Call(self.retry_policy, messages, kwargs, self.inner_model, EventReply)
    return self._async_flow(call, "_astream_chat_model_events", stop, run_manager)


def _send(hook: str, call: Call, stop: Any, run_manager: Any) -> Any:
    """Make one attempt, with a message list of its own and a run manager that holds tokens."""
    method = (method_of if call.asks_another else getattr)(call.model, hook)
    kwargs = {"stop": stop, **call.kwargs}
    # As LangChain does: what `_stream` is given it gets; `_generate` is asked for the parameter.
    if run_manager is not None and ("stream" in hook or takes_run_manager(method)):
        holds = bool(run_manager.handlers)
        kwargs["run_manager"] = holding_tokens(run_manager, call.reply) if holds else run_manager
    return method([*call.messages], **kwargs)


async def _until_next(
    call: Call, retry: Retry, run_manager: Any, *, asynchronous: bool
) -> Over | None:
    """Report a retry, wait for it and begin it; how the call is over, if it was called off.

    Both kinds of calls run this: of a synchronous one nothing in it suspends.
    """
    limiter = retry.request.model.rate_limiter
    try:
        if run_manager is not None:
            await _awaited(run_manager.on_retry(call.retry_state))
        if retry.seconds > 0 and asynchronous:
            await clock.asleep(retry.seconds)
        elif retry.seconds > 0:
            clock.sleep(retry.seconds, event_in(call.policy.stop))
        over = call.called_off()
        if over is None and limiter is not None:  # one more request; it may take long
            acquire = limiter.aacquire if asynchronous else limiter.acquire
            await _awaited(acquire(blocking=True))
            over = call.called_off()
    except BaseException:
        call.give_back()
        raise
    if over is None:
        call.begin(retry)
    return over


def _at_once(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in which nothing suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    raise AssertionError("something suspends in a synchronous call")


def _read(call: Call, hook: str, stop: Any, run_manager: Any) -> Retry | Over | None:
    """Read until the attempt is decided; None: there is reasoning to go out live.

    What a consumer throws into the stream is no failure of the model, so nothing is yielded here.
    """
    reply = call.reply
    try:
        if reply.source is None:
            reply.source = iter(_send(hook, call, stop, run_manager))
        else:
            reply.resume()
        for chunk in reply.source:
            if reply.add(chunk):
                break
    except Exception as error:
        step = call.failed(error)
        if step is None:
            raise
        return step
    return None if reply.live else call.ended()


_UNLIMITED = nullcontext()


async def _aread(call: Call, hook: str, stop: Any, run_manager: Any) -> Retry | Over | None:
    """As `_read`."""
    reply = call.reply
    if reply.source is not None:
        reply.resume()
    try:
        with clock.Cancelling(reply.until, reply.is_empty) if reply.until else _UNLIMITED:
            if reply.source is None:
                reply.source = aiter(_send(hook, call, stop, run_manager))
            async for chunk in reply.source:
                if reply.add(chunk):
                    break
    except Exception as error:
        step = call.failed(error)
        if step is None:
            raise
        return step
    return None if reply.live else call.ended()


def _close(reply: StreamedReply) -> None:
    close = getattr(reply.source, "close", None)
    reply.source = None
    if close is not None:
        close()


async def _aclose(reply: StreamedReply) -> None:
    close = getattr(reply.source, "aclose", None)
    reply.source = None
    if close is not None:
        await close()


async def _awaited(result: Any) -> None:
    if inspect.isawaitable(result):
        await result
