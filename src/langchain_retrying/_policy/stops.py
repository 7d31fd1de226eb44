"""tenacity stop strategies about tokens and load; they combine with `|` and `&`."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tenacity import (
    RetryCallState,
    stop_after_attempt,
    stop_after_delay,
    stop_any,
    stop_before_delay,
    stop_when_event_set,
)
from tenacity.stop import stop_base

from langchain_retrying._errors import Bound, EmptyCompletionError
from langchain_retrying._policy.checks import returned


class CallState(RetryCallState):
    """tenacity's view of a call, and what the stop strategies have made of it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.bound = Bound.STOP
        """What ended the call, if a stop strategy did."""
        self.tokens_from: list[RetryBudget] = []
        """The budgets that have given a token for the attempt that is to come."""

    def give_back(self) -> None:
        """Put back what was given for an attempt that is not made."""
        while self.tokens_from:
            self.tokens_from.pop().give_back()


class stop_after_rejected_tokens(stop_base):  # noqa: N801 -- as tenacity names its strategies
    """Stop when the rejected attempts of a call have cost so many tokens.

    Args:
        max_tokens: Input and output tokens of all rejected attempts of one call together, as
            reported by the provider; at least 1. An attempt whose tokens are not reported costs
            none.

    Raises:
        TypeError: `max_tokens` is not an int.
        ValueError: `max_tokens` is below 1.

    """

    def __init__(self, max_tokens: int) -> None:
        if not isinstance(max_tokens, int) or isinstance(max_tokens, bool):
            raise TypeError(f"max_tokens must be an int, not {type(max_tokens).__name__}")
        if max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {max_tokens}")
        self.max_tokens = max_tokens

    def __call__(self, retry_state: RetryCallState) -> bool:
        """Whether the bound is reached."""
        error = retry_state.outcome.exception() if retry_state.outcome is not None else None
        # After another exception no more has been rejected than when this was last asked.
        if not isinstance(error, EmptyCompletionError):
            return False
        return error.input_tokens + error.output_tokens >= self.max_tokens


class RetryBudget(stop_base):
    """Stop when too many calls need retries: a bound on the load that all of them add together.

    A bucket of tokens, full at first, shared by all calls whose policy holds this very object:
    models, threads and tasks of one process. A retry takes one token, and there is none where less
    than one is left; a call that is answered adds `share` of one. So retries number at most
    `reserve` + `share` x answered calls: when a provider is blank for everyone they cease, and
    they come back by themselves when it answers again. As in gRPC's retry throttling
    (https://github.com/grpc/proposal/blob/master/A6-client-retries.md) and the AWS SDKs' standard
    mode (https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html).

    The token of a retry that is not made after all goes back. The budget learns of answers only
    where it is itself part of a policy's `stop`, by `|` or `&`, and not inside a function. A copy
    in another process starts with a full bucket of its own.

    Args:
        share: Tokens that an answered call adds, above 0 and at most 1; the default, 0.2, allows
            a retry for one call in five.
        reserve: Tokens that the bucket holds at most, and at first; at least 1.

    Raises:
        ValueError: A number is out of its bounds.

    """

    def __init__(self, share: float = 0.2, reserve: int = 100) -> None:
        if not 0 < share <= 1:
            raise ValueError(f"share must be above 0 and at most 1, not {share}")
        if not reserve >= 1:
            raise ValueError(f"reserve must be at least 1, not {reserve}")
        self.share = share
        self.reserve = reserve
        self._tokens = float(reserve)
        self._lock = threading.Lock()

    def __call__(self, retry_state: RetryCallState) -> bool:
        """Take a token for the next attempt; True: there is none."""
        with self._lock:
            if self._tokens < 1:
                return True
            self._tokens -= 1
        if isinstance(retry_state, CallState):
            retry_state.tokens_from.append(self)
        return False

    @property
    def tokens(self) -> float:
        """How many retries are left at this moment."""
        return self._tokens

    def answered(self) -> None:
        """Add the share of a call that was answered."""
        self._add(self.share)

    def give_back(self) -> None:
        """Put back the token of an attempt that is not made after all."""
        self._add(1)

    def _add(self, tokens: float) -> None:
        with self._lock:
            self._tokens = min(self.reserve, self._tokens + tokens)

    def __repr__(self) -> str:
        return f"RetryBudget(share={self.share}, reserve={self.reserve})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.share, self.reserve)


_DELAYS = (stop_after_delay, stop_before_delay)
_BOUNDS: tuple[tuple[Any, Bound], ...] = (
    (_DELAYS, Bound.DEADLINE),
    (stop_after_attempt, Bound.RETRIES),
    (stop_when_event_set, Bound.EVENT),
    (stop_after_rejected_tokens, Bound.TOKENS),
    (RetryBudget, Bound.BUDGET),
)


def stops(stop: Callable[[RetryCallState], bool] | None, state: RetryCallState) -> bool:
    """Whether a stop strategy ends a call; it is asked as the call will stand after the wait."""
    if stop is None:
        return False
    assert isinstance(state, CallState)  # the caller's own
    later = copy.copy(state)
    # It is there: this is asked only about an attempt that has ended.
    later.outcome_timestamp = (state.outcome_timestamp or 0) + state.upcoming_sleep
    later.upcoming_sleep = 0.0
    for part in _alternatives(stop):
        if returned("stop", part(later)):
            bounds = (bound for kind, bound in _BOUNDS if isinstance(part, kind))
            state.bound = next(bounds, Bound.STOP)
            return True
    return False


def budgets_in(stop: Any) -> Iterator[RetryBudget]:
    """Every budget in a stop strategy, to tell it of answers."""
    if isinstance(stop, RetryBudget):
        yield stop
    for part in getattr(stop, "stops", ()):  # of `|` and `&`
        yield from budgets_in(part)


def deadline_in(stop: Any) -> float | None:
    """The first time limit that stops by itself, in seconds; None if there is none."""
    delays = (part.max_delay for part in _alternatives(stop) if isinstance(part, _DELAYS))
    return next(delays, None)


def event_in(stop: Any) -> threading.Event | None:
    """The event of the first `stop_when_event_set` that stops by itself; None if there is none."""
    alternatives = _alternatives(stop)
    return next(
        (part.event for part in alternatives if isinstance(part, stop_when_event_set)), None
    )


def _alternatives(stop: Any) -> Iterator[Any]:
    """The strategies of which each stops by itself."""
    if type(stop) is stop_any:
        for part in stop.stops:
            yield from _alternatives(part)
    elif stop is not None:
        yield stop
