"""`RetryPolicy`: what is retried, how often, after which wait, and what happens in the end."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from tenacity import RetryCallState, stop_after_attempt, stop_any, wait_chain, wait_none
from tenacity.wait import wait_random_exponential

from langchain_retrying._fingerprint import fingerprint
from langchain_retrying.errors import EmptyCompletionError
from langchain_retrying.remedies import DEFAULT_NUDGE, Nudge, NudgeText, Remedy, repeat
from langchain_retrying.reply import ReplyKind, is_empty_ai_message

# Full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
DEFAULT_WAIT = wait_chain(wait_none(), wait_random_exponential(multiplier=0.25, max=8))
"""First retry at once; then a random wait of at most 0.5, 1, 2, 4, 8, 8 ... seconds."""

OnExhausted = str | AIMessage | Callable[[EmptyCompletionError], AIMessage]


@dataclass(frozen=True, eq=False, repr=False)
class RetryPolicy:
    """How empty completions are retried.

    Frozen, hashable and picklable where its parts are; equal to another with equal parts. One
    policy may serve any number of models, threads and event loops.

    Args:
        max_retries: Retries after the first attempt, so a call makes at most `max_retries + 1`
            requests. At least 0, which judges but never retries.
        wait: A tenacity wait strategy, in seconds. Default: the first retry at once, then full
            jitter with 0.5 s base and 8 s cap. None: no wait.
        stop: A further tenacity stop strategy, such as `stop_after_delay(30)`; the call stops at
            whichever of it and `max_retries` comes first. None: only `max_retries` counts.
        retry: A tenacity retry predicate for exceptions of the inner model, such as
            `retry_if_exception_type(TimeoutError)`. None: exceptions are not retried; that is
            what the provider client's own `max_retries` is for.
        nudge: The message put at the end of a retried request: text, a message, or a callable
            `(messages, error)` that returns either, or None. Default: a wording that fits what
            happened. None: the request is repeated as it was.
        on_exhausted: What becomes of an empty reply that is not retried any more. `"return"`: it
            is returned as it came. `"raise"`: `EmptyCompletionError`. Any other text stands in
            for the reply, with its id, usage and metadata. An `AIMessage` is returned in its
            place; so is what a callable makes of the `EmptyCompletionError`.
        max_held_bytes: How much of a stream is held while nothing usable has come, counted in
            characters of text and reasoning and one for each chunk; at least 1. At the bound the
            attempt is closed and counts as empty. The default, 2**20, is more than the largest
            output of any model.

    Raises:
        TypeError: An argument is of a kind that can't be used.
        ValueError: A number is out of its bounds, or a text is empty.

    """

    max_retries: int = 2
    wait: Callable[[RetryCallState], float] | None = DEFAULT_WAIT
    stop: Callable[[RetryCallState], bool] | None = None
    retry: Callable[[RetryCallState], bool] | None = None
    nudge: NudgeText | Nudge | None = DEFAULT_NUDGE
    on_exhausted: OnExhausted = "return"
    max_held_bytes: int = 2**20

    def __post_init__(self) -> None:
        _check_int("max_retries", self.max_retries, at_least=0)
        _check_int("max_held_bytes", self.max_held_bytes, at_least=1)
        _check_callable("wait", self.wait, "a tenacity wait strategy such as wait_fixed(2)")
        _check_callable("stop", self.stop, "a tenacity stop strategy such as stop_after_delay(30)")
        _check_callable(
            "retry",
            self.retry,
            "a tenacity retry predicate such as retry_if_exception_type(TimeoutError)",
        )
        _check_nudge(self.nudge)
        _check_on_exhausted(self.on_exhausted)

    @cached_property
    def fingerprint(self) -> str:
        """The policy's value as text, the same in every process."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return fingerprint(parts)

    @cached_property
    def ladders(self) -> dict[ReplyKind, Sequence[Remedy]]:
        """The remedies of each kind that is retried: retry k uses the k-th, the last repeats."""
        nudge = self.nudge
        if nudge is None:
            remedy: Remedy = repeat
        else:
            remedy = nudge if isinstance(nudge, Nudge) else Nudge(nudge)
        return {ReplyKind.BLANK: (remedy,), ReplyKind.MALFORMED: (remedy,)}

    @cached_property
    def stop_strategy(self) -> Callable[[RetryCallState], bool]:
        """`stop` and `max_retries` in one."""
        at_most = stop_after_attempt(self.max_retries + 1)
        return at_most if self.stop is None else stop_any(at_most, self.stop)  # type: ignore[arg-type]  # any callable will do

    def __repr__(self) -> str:
        differing = (
            f"{field.name}={value!r}"
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        )
        return f"RetryPolicy({', '.join(differing)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RetryPolicy):
            return NotImplemented
        return self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)


def _check_int(name: str, value: Any, *, at_least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}, not {value}")


def _check_callable(name: str, value: Any, wanted: str) -> None:
    if value is None:
        return
    if isinstance(value, type):
        raise TypeError(f"{name} must be {wanted}, not the class {value.__name__}: call it")
    if not callable(value):
        raise TypeError(f"{name} must be {wanted} or None, not {type(value).__name__}")
    call = value if inspect.isfunction(value) else getattr(value, "__call__", None)  # noqa: B004 -- the method is wanted, not whether there is one
    if inspect.iscoroutinefunction(call):
        raise TypeError(f"{name} must not be async: one policy serves sync and async calls")


def _check_nudge(nudge: Any) -> None:
    if isinstance(nudge, str):
        if not nudge.strip():
            raise ValueError("nudge must not be empty; write nudge=None to repeat silently")
    elif not isinstance(nudge, BaseMessage):
        _check_callable("nudge", nudge, "a text, a message or a callable (messages, error)")


def _check_on_exhausted(outcome: Any) -> None:
    if isinstance(outcome, str):
        word = outcome.strip().lower()
        if not word:
            raise ValueError('on_exhausted must not be an empty text; write "return" or "raise"')
        if word in ("return", "raise") and outcome != word:
            raise ValueError(f"on_exhausted={outcome!r}: write {word!r}")
    elif isinstance(outcome, AIMessage):
        if is_empty_ai_message(outcome):
            raise ValueError("on_exhausted must not be an empty AIMessage: give it some text")
    elif outcome is None:
        raise TypeError('on_exhausted must not be None; write "return" to get the empty reply')
    else:
        _check_callable(
            "on_exhausted", outcome, '"return", "raise", a text, an AIMessage or a callable (error)'
        )
