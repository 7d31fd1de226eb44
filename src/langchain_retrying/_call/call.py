"""One call: what its attempts came to, and what comes next. No I/O, no waiting.

After each attempt `ended` or `failed` gives a `Retry`, or how the call is `Over`; `out` then gives
what goes out of it. tenacity decides about stopping and waiting: its controller is made when the
first attempt has come to nothing, so a call that is answered at once costs none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto
from functools import partial
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from tenacity import DoSleep, Retrying, retry_always

from langchain_retrying._call import clock
from langchain_retrying._call.another_model import in_place_of
from langchain_retrying._call.chunks import with_account
from langchain_retrying._errors import (
    Bound,
    EmptyCompletionError,
    RejectedAttempt,
    add_note,
    printable,
)
from langchain_retrying._judge.exceptions import verdict_on
from langchain_retrying._judge.kinds import ReplyKind, Verdict
from langchain_retrying._judge.refusals import is_refusal
from langchain_retrying._policy.checks import returned
from langchain_retrying._policy.doubts import Doubts
from langchain_retrying._policy.policy import RetryPolicy
from langchain_retrying._policy.proper_end import follows_terminal_tool
from langchain_retrying._policy.remedies import Request, next_request, next_step
from langchain_retrying._policy.stops import CallState, deadline_in, event_in, stops
from langchain_retrying._policy.tool_choice import forced_tools

logger = logging.getLogger("langchain_retrying")


class Retry(NamedTuple):
    """Another attempt."""

    request: Request
    seconds: float
    """How long to wait before it."""


class Over(Enum):
    """No other attempt."""

    ANSWERED = auto()
    ACCEPTED = auto()
    """The reply is empty, as it should be."""
    EXHAUSTED = auto()
    """The reply is empty, and not retried any more."""


ANSWERED, ACCEPTED, EXHAUSTED = Over  # names are found faster than attributes of an Enum


class Call:
    """The state of one call. Never shared by calls."""

    _base: Request
    """What the ladders start from: what was given, and what is kept of later requests."""

    def __init__(
        self,
        policy: RetryPolicy,
        messages: Sequence[BaseMessage],
        kwargs: Mapping[str, Any],
        model: BaseChatModel,
        reply_type: Any,
    ) -> None:
        """Begin a call, and its first attempt.

        Args:
            policy: The model's.
            messages: What the first attempt sends.
            kwargs: With which arguments; see `Request`.
            model: To which model.
            reply_type: `WholeReply`, `StreamedReply` or `EventReply`: what holds a reply back.

        """
        self.policy = policy
        self.messages, self.kwargs, self.model = messages, kwargs, model  # of the attempt under way
        self.expected_tools = forced_tools(kwargs) if policy.require_tool_call else ()
        """Names of the tools of which one has to be called for the reply to be an answer."""
        doubts = Doubts(policy, messages, kwargs) if policy.has_doubts else None
        self._counts = not self.expected_tools, doubts  # what makes a reply an answer
        self.reply = reply_type(policy, *self._counts)
        self.rejected: tuple[RejectedAttempt, ...] = ()
        self.retry_state: CallState | None = None
        """tenacity's view of the call, for `on_retry`; None: no attempt has come to nothing."""
        self._raised: Exception | None = None  # in place of the reply that was rejected last
        self._reply_type = reply_type
        self._began = self._attempt_began = clock.monotonic()

    def begin(self, retry: Retry) -> None:
        """Begin another attempt: what it sends, its clock, and what holds it back."""
        state = self._state()
        state.prepare_for_next_attempt()
        state.tokens_from.clear()  # they are spent now
        request = self._sent = retry.request
        self.messages, self.kwargs, self.model = request.messages, request.kwargs, request.model
        self._attempt_began = clock.monotonic()
        self.reply = self._reply_type(self.policy, *self._counts, self.reply)

    def ended(self, result: ChatResult | None = None) -> Retry | Over:
        """Take the end of an attempt, or its first usable chunk.

        Args:
            result: What came, of a reply that comes as a whole.

        """
        if result is not None:
            if self.retry_state is not None and self.asks_another:
                result = in_place_of(self._given.model, self.model, result)
            self.reply.result = result
        if not self.reply.is_shown:
            verdict = self.reply.verdict()
            if not verdict.is_answer:
                return self._reject(verdict, self.reply.message())
        self._raised = None  # its traceback holds this call's frames
        for budget in self.policy.budgets:
            budget.answered()
        return ANSWERED

    def failed(self, error: Exception) -> Retry | Over | None:
        """Take an exception of the inner model; None: it is to be raised as it came.

        It may be a blank in disguise, a refusal of the nudge, or one that the policy has retried.
        """
        # LangGraph interrupts a graph with an Exception.
        if self.reply.is_shown or any(c.__name__ == "GraphBubbleUp" for c in type(error).__mro__):
            return None
        verdict = verdict_on(error, self.model, without_chunks=not self.reply.has_come)
        if verdict is not None:
            return self._reject(verdict, None, raised=error)
        state = self._state()
        if self._sent.is_nudged and is_refusal(error):
            # Some reject a user's turn after a tool's. Once more without, within the same bounds;
            # where they are reached, the call ends as it would have without the nudge.
            self._base = replace(self._base, nudge_refused=True)
            return self._told(self._next(error, self._request_of_the_ladder), "Nudge refused")
        if self.policy.retry is not None:
            state.set_exception((type(error), error, error.__traceback__))
            if returned("retry", self.policy.retry(state)):
                again = self._next(error, lambda: self._sent)
                if isinstance(again, Retry):
                    return self._told(again, type(error).__name__)
        self.explain(error)
        return None

    def explain(self, error: Exception, *, is_last_rejected: bool = False) -> None:
        """Note on an exception what was rejected before, and what was held when it came.

        Args:
            error: The exception.
            is_last_rejected: Whether it stands for the reply that was rejected last.

        """
        before = self.rejected[:-1] if is_last_rejected else self.rejected
        if before:
            kinds = ", ".join(attempt.kind.value for attempt in before)
            add_note(
                error,
                f"Raised in attempt {self.attempt_number} of a call to {describe(self.model)}; "
                f"empty replies rejected before: {len(before)} ({kinds}).",
            )
        held = self.reply.held_so_far()
        if held:
            add_note(error, f"What had come of the stream was held back: {held}.")

    def called_off(self) -> Over | None:
        """Whether the attempt waited for is not made: it is too late, or the stop event is set.

        Raises:
            Exception: The inner model's, if it was to be retried and nothing has been rejected.

        """
        event, deadline = event_in(self.policy.stop), deadline_in(self.policy.stop)
        # The wait was in time, but a rate limiter may have taken longer.
        is_late = deadline is not None and clock.monotonic() - self._began >= deadline
        if not (is_late or (event is not None and event.is_set())):
            return None
        self.give_back()
        outcome = self._state().outcome
        if not self.rejected and outcome is not None:
            outcome.result()
        return self._exhausted(Bound.DEADLINE if is_late else Bound.EVENT)

    def give_back(self) -> None:
        """Put back what a retry budget gave for an attempt that is not made."""
        self._state().give_back()

    def out(self, over: Over) -> Any:
        """What goes out of a call, one by one: tokens, then a result; or tokens and chunks.

        Raises:
            EmptyCompletionError: If the policy says so.
            Exception: The inner model's or LangChain's, if that came instead of a reply.

        """
        account = None
        if self.retry_state is not None and self.attempt_number > 1:
            account = self._account()
        if over is ANSWERED:
            return self.reply.as_it_came(account)
        if over is ACCEPTED:
            if self._last_message is None:
                nothing = AIMessage(content="")
                return self.reply.made_of(with_account(nothing, account) if account else nothing)
        elif self.policy.on_exhausted != "return":
            stand_in = with_account(self._stand_in(), {**self._account(), "stand_in": True})
            return self.reply.made_of(stand_in)
        elif self._raised is not None:
            self._raise(self._raised)
        elif self._last_message is None and account is not None:
            self._raise(self.reply.error_of_nothing())
        return self._last_reply.as_it_came(account)

    def amendment(self) -> Any:
        """A function for the chunks that flow after those; None: they go straight through."""
        return self.reply.amendment(self._account()) if self.attempt_number > 1 else None

    @property
    def asks_another(self) -> bool:
        """Whether another model than the inner one is asked."""
        return self.retry_state is not None and self.model is not self._given.model

    @property
    def attempt_number(self) -> int:
        """Of the attempt under way or just over, from 1."""
        return self.retry_state.attempt_number if self.retry_state is not None else 1

    def _state(self) -> CallState:
        """The view of tenacity; with it comes what a call has that is not answered at once."""
        if self.retry_state is None:
            self.error: EmptyCompletionError | None = None  # the account of the rejected attempts
            self._given = self._sent = Request(self.messages, self.kwargs, self.model)
            self._base = self._given
            self._step = -1  # of the ladder, that the last attempt has taken; -1: none
            self._last_reply = self.reply  # that was rejected
            self._last_message: AIMessage | None = None  # in it; None: none came
            retrying = Retrying(
                wait=self.policy.waits,
                stop=partial(stops, self.policy.stop),
                retry=retry_always,  # it is asked only about what is retried
                # Called when it stops; otherwise it would raise, into a traceback of its own.
                retry_error_callback=lambda state: None,
            )
            self.retry_state = CallState(retrying, fn=None, args=(), kwargs={})
            self.retry_state.start_time = self._began
        return self.retry_state

    def _reject(
        self, verdict: Verdict, message: AIMessage | None, raised: Exception | None = None
    ) -> Retry | Over:
        """Take an empty reply.

        Args:
            verdict: On the reply.
            message: The reply; None: none came.
            raised: The exception that came in its place.

        """
        self._state()
        self._last_reply, self._last_message = self.reply, message
        message = AIMessage(content="") if message is None else message
        if self._is_proper_end(verdict, message):
            return ACCEPTED
        self._raised = raised
        elapsed = clock.monotonic() - self._attempt_began
        self.rejected += (RejectedAttempt.of(verdict, message, elapsed),)
        error = self.error = self._account_as_error()
        if self._sent.kept is not None:
            self._base = self._sent.kept(self._base)
        self._base = replace(self._base, last=self._sent)
        step: Retry | Bound = Bound.KIND
        ladder = self.policy.ladders.get(verdict.kind)
        if ladder is not None:
            self._step = next_step(ladder, self._step, error)
            step = self._next(error, self._request_of_the_ladder)
        reason = printable(self.rejected[-1].finish_reason or "none")
        return self._told(step, f"{verdict.kind.value} reply, finish reason {reason}")

    def _is_proper_end(self, verdict: Verdict, message: AIMessage) -> bool:
        policy, messages = self.policy, self._given.messages
        if verdict.kind is ReplyKind.BLANK and follows_terminal_tool(
            messages, policy.terminal_tools
        ):
            return True
        return policy.accept is not None and bool(
            returned("accept", policy.accept([*messages], message))
        )

    def _request_of_the_ladder(self) -> Request | None:
        assert self.error is not None  # a reply was rejected
        ladder = self.policy.ladders[self.error.kind]
        return next_request(ladder[min(self._step, len(ladder) - 1)], self._base, self.error)

    def _next(self, error: Exception, find_request: Callable[[], Request | None]) -> Retry | Bound:
        """The next attempt, or what ends the call.

        The stop strategies are asked last, since a budget gives a token then.
        """
        state = self._state()
        state.set_exception((type(error), error, error.__traceback__))
        state.outcome_timestamp = clock.monotonic()
        if state.attempt_number > self.policy.max_retries:
            return Bound.RETRIES
        request = find_request()
        if request is None:
            return Bound.REMEDIES
        # Statistics are per thread, and a stream may be read from several: fresh ones each time.
        state.retry_object.begin()
        action = state.retry_object.iter(state)
        if isinstance(action, DoSleep):
            return Retry(request, float(action))
        state.give_back()  # of `budget | another`, which has stopped
        return state.bound

    def _told(self, step: Retry | Bound, what: str) -> Retry | Over:
        """A retry, or that the call is over, when it has been logged."""
        if isinstance(step, Bound):
            return self._exhausted(step)
        where = self.attempt_number, describe(self.model)
        logger.warning("%s in attempt %d of %s: trying again in %.2f s", what, *where, step.seconds)
        return step

    def _exhausted(self, bound: Bound) -> Over:
        self.error = self._account_as_error(bound)
        logger.warning("%s", str(self.error))  # a record may live long
        return EXHAUSTED

    def _stand_in(self) -> AIMessage:
        """What replaces the reply of a call that is exhausted."""
        outcome = self.policy.on_exhausted
        self._raised = None
        if outcome == "raise":
            self._raise(self.error)
        assert self.error is not None  # a reply was rejected
        if isinstance(outcome, str):
            return self.error.last_message.model_copy(update={"content": outcome})
        if isinstance(outcome, AIMessage):
            return outcome.model_copy(deep=True)
        message = returned("on_exhausted", outcome(self.error))
        if not isinstance(message, AIMessage):
            raise TypeError(f"on_exhausted must return an AIMessage, not {type(message).__name__}")
        return message

    def _raise(self, error: Exception | None) -> None:
        """Raise what came instead of the last reply, with a note, or our own; nothing for None."""
        if error is None:
            return
        is_our_own = error is self.error
        if not is_our_own:
            self.explain(error, is_last_rejected=True)
        # Its traceback will hold this call's frames: they must not hold it.
        self.error = self.retry_state = self._raised = None
        try:
            raise error
        finally:
            del error

    def _account(self) -> dict[str, Any]:
        return {
            "attempts": self.attempt_number,
            "rejected": [attempt.as_dict() for attempt in self.rejected],
            "rejected_input_tokens": sum(attempt.input_tokens for attempt in self.rejected),
            "rejected_output_tokens": sum(attempt.output_tokens for attempt in self.rejected),
            **({"model": describe(self.model)} if self.asks_another else {}),
        }

    def _account_as_error(self, bound: Bound | None = None) -> EmptyCompletionError:
        return EmptyCompletionError(
            self.rejected,
            elapsed_seconds=clock.monotonic() - self._began,
            last_message=self._last_message or AIMessage(content=""),
            model=describe(self.model),
            expected_tools=self.expected_tools,
            attempts=self.attempt_number,
            bound=bound,
        )


def describe(model: BaseChatModel) -> str:
    """A model's class and name, for people."""
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    kind = type(model).__name__
    return f"{kind} {name}" if isinstance(name, str) else kind
