"""One call's attempts: what was sent, what was rejected, what comes next. No I/O, no waiting.

tenacity decides about stopping, waiting and retrying. A controller is made for a call when its
first attempt has been rejected, so a call that is answered at once costs none.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from tenacity import DoSleep, RetryCallState, Retrying, retry_always

from langchain_retrying import waiting
from langchain_retrying._compat import add_note
from langchain_retrying.disguises import is_disguised_blank, is_refusal
from langchain_retrying.errors import EmptyCompletionError, RejectedAttempt
from langchain_retrying.policy import RetryPolicy
from langchain_retrying.remedies import Request
from langchain_retrying.reply import NOTHING, Verdict

logger = logging.getLogger("langchain_retrying")


class Attempts:
    """The state of one call. Never shared by calls."""

    __slots__ = (
        "_attempt_began",
        "_began",
        "_model",
        "_original",
        "error",
        "exhausted",
        "gate",
        "kwargs",
        "messages",
        "nudge_refused",
        "policy",
        "rejected",
        "retry_state",
        "seconds",
    )

    gate: Any
    """What holds the attempt under way back: see `_new_gate`."""

    def __init__(
        self,
        policy: RetryPolicy,
        messages: Sequence[BaseMessage],
        kwargs: Mapping[str, Any],
        model: BaseChatModel,
    ) -> None:
        self.policy = policy
        self.messages = messages
        """What the next attempt sends."""
        self.kwargs = kwargs
        """With which arguments; see `Request`."""
        self._original = messages, kwargs
        self._model = model
        self._began = self._attempt_began = waiting.monotonic()
        self.rejected: list[RejectedAttempt] = []
        self.error: EmptyCompletionError | None = None
        """The account of the attempts rejected so far."""
        self.nudge_refused = False
        """Whether the provider has refused a request for the message that was added to it."""
        self.exhausted = False
        """Whether the last attempt was rejected and none follows."""
        self.retry_state: RetryCallState | None = None
        """tenacity's view of the call, for `on_retry`; None before the first rejection."""
        self.seconds = 0.0
        """How long to wait before the next attempt."""
        self.gate = self._new_gate()

    def _new_gate(self) -> Any:
        """What holds an attempt back until it is known to be an answer."""
        raise NotImplementedError

    def begin_attempt(self) -> None:
        """Start another attempt: its clock, its gate, and what it sends."""
        assert self.retry_state is not None  # another attempt follows a decision
        self.retry_state.prepare_for_next_attempt()
        self._attempt_began = waiting.monotonic()
        self.gate = self._new_gate()
        if self.nudge_refused:
            self.messages, self.kwargs = self._original
        elif self.error is not None:
            ladder = self.policy.ladders[self.error.kind]
            rung = min(self.error.attempts, len(ladder)) - 1
            request = ladder[rung](Request(*self._original), self.error)
            self.messages, self.kwargs = request.messages, request.kwargs

    def reject(self, verdict: Verdict, message: AIMessage) -> bool:
        """Take an empty reply; True: another attempt is made, False: the call is exhausted."""
        now = waiting.monotonic()
        usage: Mapping[str, Any] = message.usage_metadata or {}
        self.rejected.append(
            RejectedAttempt(
                kind=verdict.kind,
                finish_reason=verdict.finish_reason and verdict.finish_reason[:64],
                elapsed_seconds=now - self._attempt_began,
                input_tokens=usage.get("input_tokens", 0),
                output_tokens=usage.get("output_tokens", 0),
                saw_reasoning="reasoning" in verdict.seen,
            )
        )
        self.error = EmptyCompletionError(
            self.rejected,
            elapsed_seconds=now - self._began,
            last_message=message,
            model=self.model_name,
        )
        self.exhausted = not self._goes_on(self.error, now)
        if self.exhausted:
            logger.warning("%s", str(self.error))  # a record may live long
        else:
            reason = self.error.finish_reasons[-1] or "none"
            self._log_retry(f"{verdict.kind.value} reply, finish reason {reason}")
        return not self.exhausted

    def catches(self, error: Exception, *, without_chunks: bool = True) -> bool:
        """Take an exception of the inner model; False: it is to be raised.

        True: `reject` has taken it for a blank in disguise, the nudge was refused, or the policy
        has it retried.

        Args:
            error: The exception.
            without_chunks: Whether nothing of the reply had come before it.

        """
        if is_disguised_blank(error, without_chunks=without_chunks):
            self.reject(NOTHING, AIMessage(content=""))
            return True
        if self.messages is not self._original[0] and is_refusal(error):
            # Some reject a user's turn after a tool's. Once more without, within the same bounds;
            # where they are reached, the call ends as it would have without the nudge.
            self.nudge_refused = True
            self.exhausted = not self._goes_on(error, waiting.monotonic())
            if self.exhausted:
                logger.warning("%s", str(self.error))
            else:
                self._log_retry("Nudge refused")
            return True
        if self.policy.retry is not None and self._goes_on(error, waiting.monotonic()):
            self._log_retry(type(error).__name__)
            return True
        if self.rejected:
            add_note(error, self._note())
        return False

    def stand_in(self) -> AIMessage | None:
        """What replaces the reply of an exhausted call; None: it is returned as it came.

        Raises:
            EmptyCompletionError: If the policy says so.

        """
        error, outcome = self.error, self.policy.on_exhausted
        assert error is not None  # exhausted means that a reply was rejected
        if outcome == "return":
            return None
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
            message = outcome(error)
            if not isinstance(message, AIMessage):
                raise TypeError(
                    f"on_exhausted must return an AIMessage, not {type(message).__name__}"
                )
        return with_account(message, {**self._account(), "stand_in": True})

    def account_of_retries(self) -> dict[str, Any] | None:
        """`response_metadata["empty_retry"]`; None if the call made one attempt."""
        return self._account() if self.attempt_number > 1 else None

    @property
    def last_message(self) -> AIMessage:
        """The last reply, for an exhausted call whose last attempt brought none, as it is told."""
        assert self.error is not None
        account = self.account_of_retries()
        message = self.error.last_message
        return message if account is None else with_account(message, account)

    @property
    def model_name(self) -> str:
        """The inner model's class and name, for people."""
        return describe(self._model)

    @property
    def attempt_number(self) -> int:
        """Of the attempt under way or just over, from 1."""
        return self.retry_state.attempt_number if self.retry_state is not None else 1

    def _account(self) -> dict[str, Any]:
        return {
            "attempts": self.attempt_number,
            "rejected": [attempt.as_dict() for attempt in self.rejected],
            "input_tokens": sum(attempt.input_tokens for attempt in self.rejected),
            "output_tokens": sum(attempt.output_tokens for attempt in self.rejected),
        }

    def _goes_on(self, error: Exception, now: float) -> bool:
        """Whether tenacity has another attempt made; if so, `seconds` is set."""
        if self.retry_state is None:
            retrying = Retrying(
                wait=self.policy.wait,  # type: ignore[arg-type]  # None is "no wait" to tenacity
                stop=self.policy.stop_strategy,
                retry=retry_always,  # it is asked only about what is retried
                # Called when it stops; otherwise it would raise, into a traceback of its own.
                retry_error_callback=lambda state: None,
            )
            self.retry_state = RetryCallState(retrying, fn=None, args=(), kwargs={})
            self.retry_state.start_time = self._began
        state = self.retry_state
        state.set_exception((type(error), error, error.__traceback__))
        state.outcome_timestamp = now
        if not self._is_retried(error, state):
            return False
        # Statistics are per thread, and a stream may be read from several: fresh ones each time.
        state.retry_object.begin()
        action = state.retry_object.iter(state)
        if not isinstance(action, DoSleep):
            return False
        self.seconds = float(action)
        return True

    def _is_retried(self, error: Exception, state: RetryCallState) -> bool:
        if error is self.error and self.error is not None:
            return self.error.kind in self.policy.ladders
        if any(cls.__name__ == "GraphBubbleUp" for cls in type(error).__mro__):
            return False  # LangGraph's way to interrupt a graph, though an Exception
        if self.nudge_refused and self.messages is not self._original[0]:
            return True
        return self.policy.retry is not None and self.policy.retry(state)

    def _log_retry(self, what: str) -> None:
        logger.warning(
            "%s in attempt %d of %s: trying again in %.2f s",
            what,
            self.attempt_number,
            self.model_name,
            self.seconds,
        )

    def _note(self) -> str:
        kinds = ", ".join(attempt.kind.value for attempt in self.rejected)
        return (
            f"Raised in attempt {self.attempt_number} of a call to {self.model_name}; "
            f"empty replies rejected before: {len(self.rejected)} ({kinds})."
        )


Message = TypeVar("Message", bound=BaseMessage)


def with_account(message: Message, account: dict[str, Any]) -> Message:
    """A copy of the message that tells of the attempts made."""
    metadata = {**message.response_metadata, "empty_retry": account}
    return message.model_copy(update={"response_metadata": metadata})


def describe(model: BaseChatModel) -> str:
    """A model's class and name, for people."""
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    kind = type(model).__name__
    return f"{kind} {name}" if isinstance(name, str) else kind
