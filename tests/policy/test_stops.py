"""Bounds of a call: deadline, tokens, repetition, an event that ends it, and a shared budget."""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.rate_limiters import InMemoryRateLimiter
from tenacity import (
    retry_if_exception_type,
    stop_after_attempt,
    stop_after_delay,
    stop_all,
    stop_any,
    stop_before_delay,
    stop_when_event_set,
    wait_fixed,
)

from conftest import WAYS, SetsWhenRetrying, ask
from langchain_retrying import (
    EmptyCompletionError,
    RaiseOutputBudget,
    ReplyKind,
    RetryBudget,
    RetryingChatModel,
    RetryPolicy,
    stop_after_rejected_tokens,
)
from langchain_retrying._policy.stops import event_in
from langchain_retrying.testing import ScriptedChatModel


def blank(tokens: int = 0, reason: str = "stop") -> AIMessage:
    usage = {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}
    return AIMessage("", usage_metadata=usage, response_metadata={"finish_reason": reason})


def raised(way, replies, **policy) -> EmptyCompletionError:
    policy = {"max_retries": 9, "wait": None, **policy}
    model = RetryingChatModel(
        ScriptedChatModel(replies), RetryPolicy(on_exhausted="raise", **policy)
    )
    with pytest.raises(EmptyCompletionError) as caught:
        ask(way, model)
    return caught.value


# A deadline


class Slow(ScriptedChatModel):
    """Takes two seconds to reply."""

    def _next(self, *args, **kwargs):
        self.metadata["slept"].advance(2)
        return super()._next(*args, **kwargs)


@pytest.mark.parametrize(
    ("stop", "attempts", "seconds"),
    [
        # Attempts of 2 s, and waits of 3 s between them: 2, 3, 2 and another 3 would be 10.
        (stop_after_delay(10), 2, 7),
        (stop_after_delay(10.5), 3, 12),
        (stop_before_delay(10), 2, 7),
        (stop_after_delay(2), 1, 2),
        (stop_after_delay(99) | stop_after_delay(10), 2, 7),
        (lambda state: state.seconds_since_start >= 10, 2, 7),
    ],
)
def test_a_deadline_counts_attempts_and_waits_and_starts_none_that_begins_too_late(
    way, slept, stop, attempts, seconds
):
    policy = RetryPolicy(max_retries=9, wait=wait_fixed(3), stop=stop, on_exhausted="raise")
    model = Slow([""] * 9, metadata={"slept": slept})
    with pytest.raises(EmptyCompletionError) as caught:
        ask(way, RetryingChatModel(model, policy))
    assert (caught.value.attempts, caught.value.elapsed_seconds) == (attempts, seconds)
    assert slept.seconds == [3] * (attempts - 1)


class SlowLimiter(InMemoryRateLimiter):
    """Takes as long as it is told to, and may set an event meanwhile."""

    def __init__(self, slept, seconds, event=None):
        super().__init__()
        self._slept, self._seconds, self._event = slept, seconds, event
        self._taken = 0

    def acquire(self, *, blocking=True):
        self._slept.advance(self._seconds)
        self._taken += 1
        if self._event and self._taken == 2:  # for the retry
            self._event.set()
        return True

    async def aacquire(self, *, blocking=True):
        return self.acquire()


def test_the_time_a_rate_limiter_takes_counts(way, slept):
    model = ScriptedChatModel([""], rate_limiter=SlowLimiter(slept, 6))
    policy = RetryPolicy(wait=None, stop=stop_after_delay(5), on_exhausted="raise")
    with pytest.raises(EmptyCompletionError) as caught:
        ask(way, RetryingChatModel(model, policy))
    assert (caught.value.attempts, caught.value.elapsed_seconds) == (1, 6)


def test_an_event_set_while_a_rate_limiter_waits_is_heeded(way, slept):
    event = threading.Event()
    budget = RetryBudget(reserve=1)
    model = ScriptedChatModel([""], rate_limiter=SlowLimiter(slept, 0, event))
    policy = RetryPolicy(wait=None, stop=stop_when_event_set(event) | budget)
    ask(way, RetryingChatModel(model, policy))
    assert len(model.requests) == 1
    assert event.is_set()
    assert budget.tokens == 1  # the attempt was not made


# Tokens


@pytest.mark.parametrize(("most", "attempts"), [(1, 1), (100, 1), (101, 2), (200, 2), (201, 3)])
def test_the_tokens_of_rejected_attempts_are_bounded(way, most, attempts):
    error = raised(way, [blank(100)] * 3, stop=stop_after_rejected_tokens(most))
    assert (error.attempts, error.input_tokens) == (attempts, 100 * attempts)


def test_exceptions_that_are_retried_cost_no_tokens(way):
    model = ScriptedChatModel([TimeoutError(), blank(60), TimeoutError(), blank(60), "never"])
    policy = RetryPolicy(
        max_retries=9,
        wait=None,
        retry=retry_if_exception_type(TimeoutError),
        stop=stop_after_rejected_tokens(100),
    )
    assert ask(way, RetryingChatModel(model, policy)).content == ""
    assert len(model.requests) == 4


@pytest.mark.parametrize(
    ("tokens", "error", "text"),
    [
        (0, ValueError, "max_tokens must be at least 1, not 0"),
        (1.5, TypeError, "max_tokens must be an int, not float"),
        (True, TypeError, "max_tokens must be an int, not bool"),
    ],
)
def test_wrong_numbers_of_tokens_are_refused(tokens, error, text):
    with pytest.raises(error, match=text):
        stop_after_rejected_tokens(tokens)


def test_bounds_combine_and_are_shown(way):
    stop = stop_after_delay(99) | stop_after_rejected_tokens(150)
    assert raised(way, [blank(100, "a"), blank(100, "b")], stop=stop).attempts == 2
    assert RetryPolicy(stop=stop) == pickle.loads(pickle.dumps(RetryPolicy(stop=stop)))


# An event


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_an_event_ends_the_wait_and_the_call_at_once(way, caplog):
    """The wait is an hour, and real."""
    event = threading.Event()
    model = ScriptedChatModel([blank(7), "never"])
    policy = RetryPolicy(
        wait=wait_fixed(3600), stop=stop_when_event_set(event), on_exhausted="raise"
    )
    with pytest.raises(EmptyCompletionError) as caught:
        ask(way, RetryingChatModel(model, policy), config={"callbacks": [SetsWhenRetrying(event)]})
    assert (caught.value.attempts, caught.value.input_tokens) == (1, 7)
    assert len(model.requests) == 1
    assert "trying again in 3600.00 s" in caplog.messages[0]
    assert caplog.messages[1].startswith("Empty completion (blank)")


def test_an_event_set_during_the_wait_leaves_the_last_reply(way, slept):
    event = threading.Event()
    policy = RetryPolicy(
        wait=wait_fixed(30), stop=stop_after_delay(3600) | stop_when_event_set(event)
    )
    model = ScriptedChatModel([blank(7, "odd"), "never"])
    reply = ask(
        way, RetryingChatModel(model, policy), config={"callbacks": [SetsWhenRetrying(event)]}
    )
    assert (reply.content, reply.usage_metadata["input_tokens"]) == ("", 7)
    assert reply.response_metadata["finish_reason"] == "odd"
    assert slept.seconds == [30]
    assert len(model.requests) == 1


def test_what_stands_in_does_so_then_too(way, slept):
    event = threading.Event()
    policy = RetryPolicy(
        wait=wait_fixed(30), stop=stop_when_event_set(event), on_exhausted="It stopped."
    )
    model = RetryingChatModel(ScriptedChatModel([""]), policy)
    reply = ask(way, model, config={"callbacks": [SetsWhenRetrying(event)]})
    assert reply.content == "It stopped."
    assert reply.response_metadata["empty_retry"]["stand_in"] is True


def test_where_only_exceptions_came_the_last_one_is_raised(way, slept):
    event = threading.Event()
    policy = RetryPolicy(
        wait=wait_fixed(30),
        stop=stop_when_event_set(event),
        retry=retry_if_exception_type(TimeoutError),
    )
    model = RetryingChatModel(ScriptedChatModel([TimeoutError("slow")]), policy)
    with pytest.raises(TimeoutError, match="slow"):
        ask(way, model, config={"callbacks": [SetsWhenRetrying(event)]})


def test_an_event_that_is_not_set_changes_nothing(way, slept):
    policy = RetryPolicy(wait=wait_fixed(30), stop=stop_when_event_set(threading.Event()))
    assert (
        ask(way, RetryingChatModel(ScriptedChatModel(["", "Hello."]), policy)).content == "Hello."
    )
    assert slept.seconds == [30]


def test_only_an_event_that_stops_by_itself_ends_a_wait():
    event = threading.Event()
    when_set = stop_when_event_set(event)
    assert event_in(when_set) is event
    assert event_in(stop_any(stop_after_delay(1), when_set)) is event
    assert event_in(stop_all(stop_after_attempt(3), when_set)) is None
    assert event_in(stop_after_delay(1)) is None
    assert event_in(None) is None


# A budget


def answers_and_blanks(answers, blanks):
    return ["Hello."] * answers + [""] * blanks


def test_a_budget_has_a_reserve_and_a_share_of_answers(way):
    budget = RetryBudget(share=0.5, reserve=2)
    policy = RetryPolicy(max_retries=9, wait=None, stop=budget)

    def requests_of(*replies) -> int:
        model = ScriptedChatModel(replies)
        ask(way, RetryingChatModel(model, policy))
        return len(model.requests)

    assert (requests_of("", "", "", "never"), budget.tokens) == (3, 0)
    assert requests_of("", "never") == 1
    assert (requests_of("Hello."), budget.tokens) == (1, 0.5)
    assert (requests_of("", "never"), budget.tokens) == (1, 0.5)
    assert (requests_of("Hello."), budget.tokens) == (1, 1)
    assert (requests_of("", "Hello."), budget.tokens) == (2, 0.5)
    for _ in range(9):
        requests_of("Hello.")
    assert budget.tokens == 2


def test_a_budget_is_shared_by_policies_models_and_threads():
    budget = RetryBudget(reserve=10)
    model = ScriptedChatModel(lambda messages: "")
    wrapped = [
        RetryingChatModel(model, RetryPolicy(wait=None, stop=stop_after_delay(60) | budget)),
        RetryingChatModel(model, RetryPolicy(max_retries=5, wait=None, stop=budget)),
    ]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: ask(WAYS[number % 4], wrapped[number % 2]), range(40)))
    assert len(model.requests) == 40 + 10


def test_other_bounds_that_stop_first_take_no_token():
    budget = RetryBudget(reserve=10)
    for stop in (budget, stop_after_delay(0) | budget):
        policy = RetryPolicy(max_retries=0 if stop is budget else 9, wait=None, stop=stop)
        RetryingChatModel(ScriptedChatModel([""]), policy).invoke("Hi")
    assert budget.tokens == 10


def test_a_retry_for_which_there_is_nothing_to_try_takes_no_token(way):
    budget = RetryBudget(reserve=1)
    remedies = {ReplyKind.BLANK: [lambda request, error: None]}
    policy = RetryPolicy(wait=None, stop=budget, remedies=remedies)
    ask(way, RetryingChatModel(ScriptedChatModel([""]), policy))
    assert budget.tokens == 1


class RaisesWhenRetrying(BaseCallbackHandler):
    raise_error = True

    def on_retry(self, retry_state, **kwargs):
        raise LookupError


def test_a_retry_that_is_not_made_gives_its_token_back(way, slept):
    """Not one more: of `a & budget` it may have taken none."""
    event = threading.Event()
    for combine, left in (
        (lambda budget: budget, 3),
        (lambda budget: stop_after_attempt(99) & budget, 3),
        (lambda budget: stop_after_attempt(1) & budget, 3),
        (lambda budget: stop_any(budget, budget.__call__), 3),
    ):
        budget = RetryBudget(reserve=9)
        while budget.tokens > left:
            budget(None)
        stop = combine(budget) | stop_when_event_set(event)
        event.clear()
        model = RetryingChatModel(
            ScriptedChatModel(["", "never"]), RetryPolicy(wait=wait_fixed(9), stop=stop)
        )
        ask(way, model, config={"callbacks": [SetsWhenRetrying(event)]})
        assert budget.tokens == left


def test_a_token_of_a_bound_that_stops_after_all_goes_back(way):
    budget = RetryBudget(reserve=3)
    policy = RetryPolicy(wait=None, stop=budget | stop_after_attempt(1))
    ask(way, RetryingChatModel(ScriptedChatModel([""]), policy))
    assert budget.tokens == 3


def test_so_does_that_of_a_retry_whose_report_raises(way):
    budget = RetryBudget(reserve=3)
    model = RetryingChatModel(ScriptedChatModel([""]), RetryPolicy(wait=None, stop=budget))
    with pytest.raises(LookupError):
        ask(way, model, config={"callbacks": [RaisesWhenRetrying()]})
    assert budget.tokens == 3


@pytest.mark.parametrize("streamed", [False, True])
async def test_so_does_that_of_a_cancelled_wait(streamed):
    """The wait is an hour, and real."""
    budget = RetryBudget(reserve=3)
    retrying = asyncio.Event()

    class Tells(AsyncCallbackHandler):
        async def on_retry(self, retry_state, **kwargs):
            retrying.set()

    policy = RetryPolicy(wait=wait_fixed(3600), stop=budget)
    model = RetryingChatModel(ScriptedChatModel([""]), policy)
    config = {"callbacks": [Tells()]}

    async def read():
        return [chunk async for chunk in model.astream("Hi", config)]

    task = asyncio.create_task(read() if streamed else model.ainvoke("Hi", config))
    await retrying.wait()
    assert budget.tokens == 2
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert budget.tokens == 3


def test_an_attempt_that_is_made_has_used_its_token(way):
    budget = RetryBudget(reserve=3)
    model = ScriptedChatModel(["", TimeoutError()])
    with pytest.raises(TimeoutError):
        ask(way, RetryingChatModel(model, RetryPolicy(wait=None, stop=budget)))
    assert budget.tokens == 2


# What ended a call


def spent() -> RetryBudget:
    budget = RetryBudget(reserve=1)
    budget(None)
    return budget


def set_event() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


@pytest.mark.parametrize(
    ("policy", "bound", "hint"),
    [
        ({"max_retries": 1}, "max_retries", "allow more retries or another nudge"),
        ({"stop": stop_after_attempt(2)}, "max_retries", "allow more retries or another nudge"),
        (
            {"remedies": {ReplyKind.BLANK: [lambda request, error: None]}},
            "nothing_to_try",
            "the remedy had nothing to try; add another one",
        ),
        (
            {"remedies": {ReplyKind.BLANK: None}},
            "not_retried",
            "remedies turn the retries of a blank reply off",
        ),
        ({"stop": stop_after_delay(0)}, "deadline", "allow more time"),
        ({"stop": stop_before_delay(0)}, "deadline", "allow more time"),
        ({"stop": stop_after_rejected_tokens(7)}, "rejected_tokens", "allow more tokens"),
        ({"stop": spent()}, "retry_budget", "look at the provider"),
        ({"stop": stop_after_delay(99) | spent()}, "retry_budget", "look at the provider"),
        ({"stop": stop_when_event_set(set_event())}, "event", "the call was told to stop"),
        ({"stop": lambda state: True}, "stop", "see the policy's stop strategy"),
        ({"stop": stop_all(stop_after_delay(0), spent())}, "stop", "see the policy's stop"),
    ],
)
def test_the_error_says_which_bound_ended_the_call(way, policy, bound, hint):
    error = raised(way, [blank(7)] * 3, **policy)
    assert error.bound == bound
    assert f"Ended by: {bound}. Hint: " in str(error)
    assert hint in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (again.bound, str(again)) == (bound, str(error))


def test_so_does_that_of_a_kind_that_is_not_retried(way):
    cut = AIMessage("", response_metadata={"finish_reason": "length"})
    error = raised(way, [cut])
    assert error.bound == "not_retried"
    assert "RaiseOutputBudget" in str(error)
    error = raised(way, [cut], remedies={ReplyKind.TRUNCATED: [RaiseOutputBudget()]})
    assert error.bound == "nothing_to_try"
    assert "the output budget is at its ceiling or not known" in str(error)


@pytest.mark.parametrize("late", [True, False])
def test_so_does_that_of_a_wait_that_is_ended(way, slept, late):
    event = threading.Event()
    handler = SetsWhenRetrying(event)
    model = ScriptedChatModel([""], rate_limiter=SlowLimiter(slept, 6 if late else 0))
    stop = stop_after_delay(5) if late else stop_when_event_set(event)
    policy = RetryPolicy(wait=None, stop=stop, on_exhausted="raise")
    with pytest.raises(EmptyCompletionError) as caught:
        ask(way, RetryingChatModel(model, policy), config={"callbacks": [handler]})
    assert caught.value.bound == ("deadline" if late else "event")


def test_while_a_call_goes_on_nothing_has_ended_it(way):
    bounds = []
    policy = RetryPolicy(wait=None, nudge=lambda messages, error: bounds.append(error.bound))
    ask(way, RetryingChatModel(ScriptedChatModel(["", "Hello."]), policy))
    assert bounds == [None]


def test_a_proper_end_and_a_refusal_to_retry_add_nothing(way):
    budget = RetryBudget(reserve=1)
    policy = RetryPolicy(wait=None, stop=budget)
    ask(way, RetryingChatModel(ScriptedChatModel(["", ""]), policy))
    cut = AIMessage("", response_metadata={"finish_reason": "length"})
    ask(way, RetryingChatModel(ScriptedChatModel([cut]), policy))
    assert budget.tokens == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"share": 0}, "share must be above 0 and at most 1, not 0"),
        ({"share": 1.1}, "share must be above 0 and at most 1, not 1.1"),
        ({"reserve": 0}, "reserve must be at least 1, not 0"),
        ({"reserve": float("nan")}, "reserve must be at least 1, not nan"),
    ],
)
def test_wrong_budgets_are_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        RetryBudget(**arguments)


def test_a_budgets_value_is_what_it_was_made_with(caplog):
    policy = RetryPolicy(stop=RetryBudget(share=0.1, reserve=5))
    with caplog.at_level(logging.ERROR):
        RetryingChatModel(ScriptedChatModel([""] * 3), policy).invoke("Hi")
    assert policy == RetryPolicy(stop=RetryBudget(share=0.1, reserve=5))
    for copied in (pickle.loads(pickle.dumps(policy)), copy.deepcopy(policy)):
        assert copied == policy
        assert copied.stop.tokens == 5
    assert repr(policy.stop) == "RetryBudget(share=0.1, reserve=5)"
    assert RetryPolicy(stop=RetryBudget()) != policy
