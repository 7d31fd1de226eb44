"""Asking: the same prompts of a bare and a wrapped model, in turn, within the caps given."""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig
from langsmith import tracing_context

from langchain_retrying import RetryingChatModel
from langchain_retrying._probe.errors import RunFailedError, sentence
from langchain_retrying._probe.prompts import Prompt
from langchain_retrying._probe.recorder import Recorder

Ask = Callable[[Prompt, RunnableConfig], Awaitable[object]]
"""Makes one turn; what comes of it is learnt from the callbacks in the config."""

Job = Callable[[BaseChatModel], Ask]
"""A way to use a model."""


def invoke(model: BaseChatModel) -> Ask:
    """The job of one whole reply."""
    return lambda prompt, config: _bound(model, prompt).ainvoke(prompt.messages, config)


def stream(model: BaseChatModel) -> Ask:
    """The job of one streamed reply."""
    return lambda prompt, config: _drain(_bound(model, prompt).astream(prompt.messages, config))


def _bound(model: BaseChatModel, prompt: Prompt) -> Runnable[Any, Any]:
    return model.bind_tools([dict(tool) for tool in prompt.tools]) if prompt.tools else model


async def _drain(stream: AsyncIterator[object]) -> None:
    async for _ in stream:
        pass


@dataclass
class Run:
    """A job done by one of the two models, and what came of it."""

    job: str
    side: str
    """`bare` or `wrapped`."""
    model: BaseChatModel
    ask: Ask
    max_requests: int = 1
    """That one turn may take; agents' turns, which are not capped, take more."""
    turns: list[Recorder] = field(default_factory=list)
    """In the order in which they began; those that were cut off are among them."""


def both_sides(name: str, job: Job, bare: BaseChatModel, wrapped: RetryingChatModel) -> list[Run]:
    """The runs of a job: of the bare and of the wrapped model."""
    most = wrapped.retry_policy.max_retries + 1
    return [
        Run(name, "bare", bare, job(bare)),
        Run(name, "wrapped", wrapped, job(wrapped), most),
    ]


@dataclass
class Limits:
    """What a probe may use. A call begins only if all its attempts fit in.

    Args:
        concurrency: Turns at a time, at least 1.
        requests: Attempts, at least 1; None: no cap.
        tokens: Input and output as reported by the provider, at least 1; None: no cap. Known only
            when a reply has come, so the calls under way may go beyond it.

    """

    concurrency: int = 1
    requests: int | None = None
    tokens: int | None = None
    _used_requests: int = 0
    """Or set aside for calls under way."""
    _used_tokens: int = 0
    _unreported: bool = False

    def set_aside(self, requests: int) -> str | None:
        """Make room for a call; gives why there is none."""
        if self.requests is not None and self._used_requests + requests > self.requests:
            return f"Stopped early: another call may not fit in {self.requests} requests."
        if self.tokens is not None:
            if self._unreported:
                return "Stopped early: the model reports no tokens, so they can't be limited."
            if self._used_tokens >= self.tokens:
                return f"Stopped early: {self.tokens} tokens are used."
        self._used_requests += requests
        return None

    def settle(self, requests: int, turn: Recorder) -> None:
        """Give back what a turn did not use of the requests set aside."""
        self._used_requests -= requests - sum(call.requests for call in turn.calls)
        for call in turn.calls:
            self._used_tokens += call.input_tokens + call.output_tokens
            self._unreported = self._unreported or not call.reported_tokens


_HOPELESS = 3
"""So many failures without a reply before them end it."""


async def ask_all(
    pending: Iterator[tuple[Run, Prompt]],
    limits: Limits,
    ended: Callable[[], None],
) -> str | None:
    """Make the turns, so many at a time, and record them in their runs.

    Args:
        pending: What is to be done, in this order.
        limits: What may be used.
        ended: Called after each turn.

    Returns:
        Why it ended before all was done; None if all was.

    Raises:
        RunFailedError: Turns raised, the first few or all. Where replies come, too, exceptions are
            counted only.

    """
    stopped: str | None = None
    failures: list[Exception] = []
    replied = False

    async def work() -> None:
        nonlocal stopped, replied
        for run, prompt in pending:
            stopped = stopped or limits.set_aside(run.max_requests)
            if stopped or (len(failures) >= _HOPELESS and not replied):
                return
            turn = Recorder()
            run.turns.append(turn)
            try:
                await run.ask(prompt, {"callbacks": [turn]})
            except Exception as error:
                turn.raised(error, run.model)
            if turn.error is None:
                replied = True
            else:
                failures.append(turn.error)
            limits.settle(run.max_requests, turn)
            ended()

    await asyncio.gather(*(work() for _ in range(limits.concurrency)))
    if failures and not replied:
        raise RunFailedError(sentence(failures[0])) from failures[0]
    return stopped


@contextmanager
def undisturbed() -> Iterator[None]:
    """No traces, which would store what is asked, and no warnings amid the progress."""
    logger = logging.getLogger("langchain_retrying")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with tracing_context(enabled=False), warnings.catch_warnings():
            # The HTTP client drops its own coroutines where Ctrl-C meets it while it connects.
            warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
            yield
    finally:
        logger.setLevel(level)
