"""One call's attempts: what was sent, what was rejected, what comes next. No I/O, no waiting.

tenacity decides about stopping, waiting and retrying. A controller is made for a call when its
first attempt has been rejected, so a call that is answered at once costs none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from tenacity import DoSleep, Retrying, retry_always

from langchain_retrying._call import clock
from langchain_retrying._errors import (
    Bound,
    EmptyCompletionError,
    RejectedAttempt,
    add_note,
    printable,
)
from langchain_retrying._judge.exceptions import verdict_on
from langchain_retrying._judge.refusals import is_refusal
from langchain_retrying._judge.reply import ReplyKind, Verdict
from langchain_retrying._policy.checks import returned
from langchain_retrying._policy.policy import RetryPolicy
from langchain_retrying._policy.proper_end import follows_terminal_tool
from langchain_retrying._policy.remedies import Request, next_request, next_step
from langchain_retrying._policy.stops import CallState, stops
from langchain_retrying._policy.tool_choice import forced_tools

logger = logging.getLogger("langchain_retrying")


class Attempts:
    """The state of one call. Never shared by calls."""

    # What most calls never change stands here and not in each of them.
    gate: Any
    """What holds the attempt under way back: see `_new_gate`."""
    messages: Sequence[BaseMessage]
    """What the attempt under way sends."""
    kwargs: Mapping[str, Any]
    """With which arguments; see `Request`."""
    model: BaseChatModel
    """To which model."""
    asks_another = False
    """Whether that is another than the inner model."""
    expected_tools: Sequence[str] = ()
    """Names of the tools of which one has to be called for the reply to be an answer."""
    rejected: tuple[RejectedAttempt, ...] = ()
    error: EmptyCompletionError | None = None
    """The account of the attempts rejected so far."""
    last_reply: AIMessage | None = None
    """The last empty reply; without content if none came at all."""
    nothing_came = False
    """Whether the last attempt ended well and brought no reply at all."""
    raised: Exception | None = None
    """What the last attempt raised instead of an empty reply."""
    is_over = False
    """Whether the last attempt brought no answer and none follows."""
    is_accepted = False
    """Whether that is as it should be."""
    retry_state: CallState | None = None
    """tenacity's view of the call, for `on_retry`; None before the first rejection."""
    seconds = 0.0
    """How long to wait before the next attempt."""
    step = -1
    """Of the ladder of remedies, that the next attempt takes; -1: none."""
    request: Request | None = None
    """What the attempt under way sends; None: what the caller gave."""
    next_request: Request
    """What the next attempt sends; set when one is to be made."""
    base: Request | None = None
    """What the ladders start from: what the caller gave, and what is kept of later requests."""

    def __init__(
        self,
        policy: RetryPolicy,
        messages: Sequence[BaseMessage],
        kwargs: Mapping[str, Any],
        model: BaseChatModel,
    ) -> None:
        self.policy = policy
        self.messages = messages
        self.kwargs = kwargs
        self.model = model
        self._original = messages, kwargs, model
        if policy.require_tool_call:
            self.expected_tools = forced_tools(kwargs)
        self._began = self._attempt_began = clock.monotonic()
        self.gate = self._new_gate()

    def _new_gate(self) -> Any:
        """What holds an attempt back until it is known to be an answer."""
        raise NotImplementedError

    def begin_attempt(self) -> None:
        """Start another attempt: its clock, its gate, and what it sends."""
        assert self.retry_state is not None  # another attempt follows a decision
        self.retry_state.prepare_for_next_attempt()
        self.retry_state.tokens_from.clear()  # they are spent now
        self._attempt_began = clock.monotonic()
        request = self.request = self.next_request
        self.messages, self.kwargs, self.model = request.messages, request.kwargs, request.model
        self.asks_another = request.model is not self._original[2]
        self.gate = self._new_gate()

    def reject(
        self, verdict: Verdict, message: AIMessage | None, raised: Exception | None = None
    ) -> bool:
        """Take an empty reply.

        Args:
            verdict: On the reply.
            message: The reply; None: none came.
            raised: The exception that came in its place.

        Returns:
            Whether another attempt is made; False: the call is over.

        """
        self.nothing_came = message is None and raised is None
        self.raised = raised
        message = self.last_reply = AIMessage(content="") if message is None else message
        if self._is_proper_end(verdict, message):
            self.is_over = self.is_accepted = True
            self.nothing_came, self.raised = False, None  # nothing is what was wanted
            return False
        now = clock.monotonic()
        self.rejected += (
            RejectedAttempt(
                kind=verdict.kind,
                finish_reason=verdict.finish_reason and verdict.finish_reason[:64],
                elapsed_seconds=now - self._attempt_began,
                input_tokens=_tokens(message.usage_metadata, "input_tokens"),
                output_tokens=_tokens(message.usage_metadata, "output_tokens"),
                saw_reasoning="reasoning" in verdict.seen,
                saw_text="text" in verdict.seen,
            ),
        )
        self.error = self._account_as_error(now)
        self.base = self._base_after_a_reply()
        ladder = self.policy.ladders.get(verdict.kind)
        if ladder is not None:
            self.step = next_step(ladder, self.step, self.error)
        reason = printable(self.error.finish_reasons[-1] or "none")
        self._decide(self.error, now, f"{verdict.kind.value} reply, finish reason {reason}")
        return not self.is_over

    def _base_after_a_reply(self) -> Request:
        base = self.base or Request(*self._original)
        sent = self.request or base
        if sent.kept is not None:
            base = sent.kept(base)
        return replace(base, last=sent)

    def catches(self, error: Exception, *, without_chunks: bool = True) -> bool:
        """Take an exception of the inner model; False: it is to be raised.

        True: `reject` has taken it for a blank in disguise, the nudge was refused, or the policy
        has it retried.

        Args:
            error: The exception.
            without_chunks: Whether nothing of the reply had come before it.

        """
        if any(cls.__name__ == "GraphBubbleUp" for cls in type(error).__mro__):
            return False  # LangGraph's way to interrupt a graph, though an Exception
        verdict = verdict_on(error, self.model, without_chunks=without_chunks)
        if verdict is not None:
            self.reject(verdict, None, raised=error)
            return True
        now = clock.monotonic()
        if self.request and self.request.is_nudged and is_refusal(error):
            # Some reject a user's turn after a tool's. Once more without, within the same bounds;
            # where they are reached, the call ends as it would have without the nudge.
            assert self.base is not None  # a reply was rejected
            self.base = replace(self.base, nudge_refused=True)
            self.error = self._account_as_error(now)
            self._decide(error, now, "Nudge refused")
            return True
        if self.policy.retry is not None and not self._ends(error, now, self._same_request):
            self._log_retry(type(error).__name__)
            return True
        self.explain(error)
        return False

    def explain(self, error: Exception, *, is_last_rejected: bool = False) -> None:
        """Note on an exception which attempt it broke, if others were rejected before.

        Args:
            error: The exception.
            is_last_rejected: Whether it stands for the reply that was rejected last.

        """
        before = self.rejected[:-1] if is_last_rejected else self.rejected
        if before:
            kinds = ", ".join(attempt.kind.value for attempt in before)
            add_note(
                error,
                f"Raised in attempt {self.attempt_number} of a call to {self.model_name}; "
                f"empty replies rejected before: {len(before)} ({kinds}).",
            )

    def is_called_off(self) -> bool:
        """Whether the attempt waited for is not made: it is too late, or the stop event is set.

        Raises:
            Exception: The inner model's, if it was to be retried and nothing has been rejected.

        """
        event, deadline = self.policy.stop_event, self.policy.deadline
        now = clock.monotonic()
        # The wait was in time, but a rate limiter may have taken longer.
        is_late = deadline is not None and now - self._began >= deadline
        if not (is_late or (event is not None and event.is_set())):
            return False
        assert self.retry_state is not None  # another attempt follows a decision
        self.is_over = True
        self.retry_state.give_back()
        if not self.rejected:
            assert self.retry_state.outcome is not None
            self.retry_state.outcome.result()
        self.error = self._account_as_error(now, Bound.DEADLINE if is_late else Bound.EVENT)
        logger.warning("%s", str(self.error))
        return True

    def stand_in(self) -> AIMessage | None:
        """What replaces the reply of a call that is over; None: it is returned as it came.

        Raises:
            EmptyCompletionError: If the policy says so.
            Exception: The inner model's, if that is what came, and is to be returned.

        """
        error, outcome = self.error, self.policy.on_exhausted
        if self.is_accepted or outcome == "return":
            self.raise_again(self.raised)
            return None
        self.raised = None  # as below
        assert error is not None  # over, and not accepted, means that a reply was rejected
        if outcome == "raise":
            # Its traceback will hold this call's frames: they must not hold it.
            self.error = self.retry_state = None
            try:
                raise error
            finally:
                del error
        if isinstance(outcome, str):
            message = error.last_message.model_copy(update={"content": outcome})
        elif isinstance(outcome, AIMessage):
            message = outcome.model_copy(deep=True)
        else:
            message = returned("on_exhausted", outcome(error))
            if not isinstance(message, AIMessage):
                raise TypeError(
                    f"on_exhausted must return an AIMessage, not {type(message).__name__}"
                )
        return with_account(message, {**self._account(), "stand_in": True})

    def raise_again(self, error: Exception | None) -> None:
        """Raise what came instead of the last reply, with a note; nothing, if it was none."""
        if error is None:
            return
        self.explain(error, is_last_rejected=True)
        # Its traceback will hold this call's frames: they must not hold it.
        self.raised = self.retry_state = None
        try:
            raise error
        finally:
            del error

    def answered(self) -> None:
        """Take note that the call was answered."""
        self.raised = None  # its traceback holds this call's frames
        for budget in self.policy.budgets:
            budget.answered()

    def account_of_retries(self) -> dict[str, Any] | None:
        """`response_metadata["empty_retry"]`; None if the call made one attempt."""
        if self.retry_state is None or self.retry_state.attempt_number == 1:
            return None
        return self._account()

    @property
    def last_message(self) -> AIMessage:
        """The last empty reply, of a call that is over, as it is told."""
        assert self.last_reply is not None
        account = self.account_of_retries()
        return self.last_reply if account is None else with_account(self.last_reply, account)

    @property
    def model_name(self) -> str:
        """Class and name of the model that was asked, for people."""
        return describe(self.model)

    @property
    def attempt_number(self) -> int:
        """Of the attempt under way or just over, from 1."""
        return self.retry_state.attempt_number if self.retry_state is not None else 1

    def _account(self) -> dict[str, Any]:
        return {
            "attempts": self.attempt_number,
            "rejected": [attempt.as_dict() for attempt in self.rejected],
            "rejected_input_tokens": sum(attempt.input_tokens for attempt in self.rejected),
            "rejected_output_tokens": sum(attempt.output_tokens for attempt in self.rejected),
            **({"model": self.model_name} if self.asks_another else {}),
        }

    def _account_as_error(self, now: float, bound: Bound | None = None) -> EmptyCompletionError:
        assert self.last_reply is not None  # a reply was rejected
        ladder = self.policy.ladders.get(self.rejected[-1].kind, ())
        return EmptyCompletionError(
            self.rejected,
            elapsed_seconds=now - self._began,
            last_message=self.last_reply,
            model=self.model_name,
            expected_tools=self.expected_tools,
            untried_remedies=max(0, len(ladder) - 1 - self.step),
            attempts=self.attempt_number,
            bound=bound,
        )

    def _is_proper_end(self, verdict: Verdict, message: AIMessage) -> bool:
        policy, messages = self.policy, self._original[0]
        if verdict.kind is ReplyKind.BLANK and follows_terminal_tool(
            messages, policy.terminal_tools
        ):
            return True
        return policy.accept is not None and bool(
            returned("accept", policy.accept([*messages], message))
        )

    def _decide(self, error: Exception, now: float, what: str) -> None:
        """Go on to another attempt, or end the call, and say so."""
        bound = self._ends(error, now, self._request_of_the_ladder)
        self.is_over = bound is not None
        if self.is_over:
            self.error = self._account_as_error(now, bound)
            logger.warning("%s", str(self.error))  # a record may live long
        else:
            self._log_retry(what)

    def _ends(
        self, error: Exception, now: float, find_request: Callable[[], Request | None]
    ) -> Bound | None:
        """What ends the call; None: another attempt is made, `seconds` and `next_request` are set.

        The stop strategies are asked last, since a budget gives a token then.
        """
        state = self._state_after(error, now)
        if not self._is_retried(error, state):
            return Bound.KIND
        if state.attempt_number > self.policy.max_retries:
            return Bound.RETRIES
        request = find_request()
        if request is None:
            return Bound.REMEDIES
        # Statistics are per thread, and a stream may be read from several: fresh ones each time.
        state.retry_object.begin()
        action = state.retry_object.iter(state)
        if not isinstance(action, DoSleep):
            state.give_back()  # of `budget | another`, which has stopped
            return state.bound
        self.seconds, self.next_request = float(action), request
        return None

    def _state_after(self, error: Exception, now: float) -> CallState:
        """Tenacity's view of the call after an attempt that came to nothing."""
        state = self.retry_state
        if state is None:
            retrying = Retrying(
                wait=self.policy.waits,
                stop=partial(stops, self.policy.stop),
                retry=retry_always,  # it is asked only about what is retried
                # Called when it stops; otherwise it would raise, into a traceback of its own.
                retry_error_callback=lambda state: None,
            )
            state = self.retry_state = CallState(retrying, fn=None, args=(), kwargs={})
            state.start_time = self._began
        state.set_exception((type(error), error, error.__traceback__))
        state.outcome_timestamp = now
        return state

    def _is_retried(self, error: Exception, state: CallState) -> bool:
        if error is self.error and self.error is not None:
            return self.error.kind in self.policy.ladders
        if self.request and self.request.is_nudged and self.base and self.base.nudge_refused:
            return True
        return self.policy.retry is not None and returned("retry", self.policy.retry(state))

    def _same_request(self) -> Request:
        return self.request or Request(*self._original)

    def _request_of_the_ladder(self) -> Request | None:
        assert self.error is not None  # a reply was rejected
        assert self.base is not None  # as above
        ladder = self.policy.ladders[self.error.kind]
        return next_request(ladder[min(self.step, len(ladder) - 1)], self.base, self.error)

    def _log_retry(self, what: str) -> None:
        logger.warning(
            "%s in attempt %d of %s: trying again in %.2f s",
            what,
            self.attempt_number,
            self.model_name,
            self.seconds,
        )


Message = TypeVar("Message", bound=BaseMessage)


def with_account(message: Message, account: dict[str, Any]) -> Message:
    """A copy of the message that tells of the attempts made."""
    metadata = {**message.response_metadata, "empty_retry": account}
    return message.model_copy(update={"response_metadata": metadata})


def _tokens(usage: Any, key: str) -> int:
    tokens = usage.get(key) if isinstance(usage, Mapping) else None
    return tokens if isinstance(tokens, int) else 0


def describe(model: BaseChatModel) -> str:
    """A model's class and name, for people."""
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    kind = type(model).__name__
    return f"{kind} {name}" if isinstance(name, str) else kind
