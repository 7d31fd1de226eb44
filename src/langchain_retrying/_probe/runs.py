"""Asking: the same prompts of a bare and a wrapped model, in turn, and what came of each turn.

Both are measured by the same LangChain callbacks, whichever way they are called: a reply is judged
when its call ends, and earlier attempts are told by the reply itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import LLMResult
from langchain_core.runnables import Runnable, RunnableConfig
from langsmith import tracing_context

from langchain_retrying import ReplyKind, judge
from langchain_retrying._judge.exceptions import verdict_on
from langchain_retrying._probe.inputs import Prompt, own_words


class RunFailedError(Exception):
    """The run can't go on. Its text is a sentence for the user."""


@dataclass
class Call:
    """One call of the model. Times are in seconds of the monotonic clock."""

    began: float
    ended: float | None = None
    """None: it raised, or was cut off."""
    kind: ReplyKind | None = None
    """Of the reply that was returned; None if none was."""
    content: Any = None
    """Of that reply."""
    requests: int = 1
    added_seconds: float = 0
    """From the start to the last attempt: rejected replies, and waits."""
    input_tokens: int = 0
    """Of all attempts, as reported."""
    output_tokens: int = 0
    extra_input_tokens: int = 0
    """Those among them of attempts whose reply is not the one that was returned."""
    extra_output_tokens: int = 0
    reported_tokens: bool = True
    has_chunks: bool = False


class Turn(BaseCallbackHandler):
    """What came of one turn: one call of the model, or several if an agent makes it."""

    raise_error = True  # a fault here must not look like a model's
    run_inline = True  # in the order of events, and without threads

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.calls: list[Call] = []
        self.error: Exception | None = None
        """What ended the turn, if its calls did not end well."""
        self._running: dict[UUID, Call] = {}

    @property
    def outcome(self) -> str | None:
        """The kind of the last reply, or `error` if the turn raised; None: it was cut off."""
        if self.error is not None:
            return "error"
        kind = self.calls[-1].kind if self.calls else None
        return kind.value if kind else None

    @property
    def seconds(self) -> float | None:
        """The time from the turn's start to its answer; None if none came."""
        ended = self.calls[-1].ended if self.outcome == "answer" else None
        return None if ended is None else ended - self.began

    def on_chat_model_start(self, *args: Any, run_id: UUID, **kwargs: Any) -> None:
        """Start a call."""
        call = Call(time.perf_counter())
        self.calls.append(call)
        self._running[run_id] = call

    def on_retry(self, retry_state: Any, *, run_id: UUID, **kwargs: Any) -> Any:
        """Note that another attempt follows, after a wait."""
        call = self._running[run_id]
        call.requests += 1
        call.added_seconds = time.perf_counter() - call.began + retry_state.next_action.sleep

    def on_llm_new_token(self, token: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Note that something has come."""
        self._running[run_id].has_chunks = True

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Judge the reply."""
        call = self._running.pop(run_id)
        call.ended = time.perf_counter()
        if not response.generations[0]:  # LangChain raises after this event
            call.kind = ReplyKind.BLANK
            return
        generation: Any = response.generations[0][0]
        call.kind = judge(generation.message)
        call.content = generation.message.content
        _count_tokens(call, generation.message)

    def raised(self, error: Exception, model: BaseChatModel) -> None:
        """Take what the turn raised, which may be a blank in disguise: a stream without chunks."""
        call = self.calls[-1] if self.calls else None
        if call and not call.kind and verdict_on(error, model, without_chunks=not call.has_chunks):
            call.kind = ReplyKind.BLANK
        elif self.outcome in (None, "answer"):  # after a blank it is what became of that
            self.error = error


def _count_tokens(call: Call, message: Any) -> None:
    """Add up what a reply tells of its own tokens and of the attempts before it."""
    usage = message.usage_metadata
    call.reported_tokens = usage is not None
    rejected = message.response_metadata.get("empty_retry", {}).get("rejected", [])
    if call.kind is not ReplyKind.ANSWER:
        rejected = rejected[:-1]  # the last of them is what was returned
    call.extra_input_tokens = sum(attempt["rejected_input_tokens"] for attempt in rejected)
    call.extra_output_tokens = sum(attempt["rejected_output_tokens"] for attempt in rejected)
    own = usage or {"input_tokens": 0, "output_tokens": 0}
    call.input_tokens = own["input_tokens"] + call.extra_input_tokens
    call.output_tokens = own["output_tokens"] + call.extra_output_tokens


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
    model: BaseChatModel
    ask: Ask
    turns: list[Turn] = field(default_factory=list)
    """In the order in which they began; those that were cut off are among them."""


_HOPELESS = 3
"""So many failures without a reply before them end it."""


async def ask_all(
    pending: Iterator[tuple[Run, Prompt]], concurrency: int, ended: Callable[[], None]
) -> None:
    """Make the turns and record them in their runs.

    Args:
        pending: What is to be done, in this order.
        concurrency: Turns at a time, at least 1.
        ended: Called after each turn.

    Raises:
        RunFailedError: Turns raised, the first few or all. Where replies come, too, exceptions are
            counted only.

    """
    failures: list[Exception] = []
    replied = is_over = False

    async def work() -> None:
        nonlocal replied
        for run, prompt in pending:
            turn = Turn()
            run.turns.append(turn)
            try:
                await run.ask(prompt, {"callbacks": [turn]})
            except Exception as error:
                turn.raised(error, run.model)
            if turn.error is None:
                replied = True
            else:
                failures.append(turn.error)
            ended()
            if is_over or (len(failures) >= _HOPELESS and not replied):
                return

    workers = [asyncio.create_task(work()) for _ in range(concurrency)]
    try:
        await asyncio.wait(workers)
    finally:
        is_over = True  # after Ctrl-C no turn begins, though some clients swallow a cancellation
    await asyncio.gather(*workers)  # raises what they raised
    if failures and not replied:
        raise RunFailedError(f"The calls failed ({own_words(failures[0])}).") from failures[0]


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
