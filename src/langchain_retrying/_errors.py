"""What is told of rejected attempts, and the error that tells it. Never any content."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from langchain_core import exceptions
from langchain_core.messages import AIMessage

from langchain_retrying._judge.kinds import ReplyKind, Verdict
from langchain_retrying._judge.reply import INVALID_CALLS, LEAKED_CALL

if TYPE_CHECKING:
    from langchain_core.exceptions import ModelError as ModelError  # noqa: PLC0414 -- exported
else:
    ModelError = getattr(exceptions, "ModelError", exceptions.LangChainException)
"""`langchain_core.exceptions.ModelError`; its base class where core has none yet (before 1.7)."""


class Bound(str, Enum):
    """What ended a call whose replies were empty."""

    RETRIES = "max_retries"
    """No retry was left."""
    KIND = "not_retried"
    """The policy has no remedy for this kind of emptiness."""
    REMEDIES = "nothing_to_try"
    """The remedy had nothing to try."""
    DEADLINE = "deadline"
    """`stop_after_delay` or `stop_before_delay`."""
    TOKENS = "rejected_tokens"
    """`stop_after_rejected_tokens`."""
    BUDGET = "retry_budget"
    """`RetryBudget`."""
    EVENT = "event"
    """`stop_when_event_set`."""
    STOP = "stop"
    """Another stop strategy of the policy."""


_HINTS: dict[Bound | ReplyKind | None, str] = {
    Bound.REMEDIES: "the remedy had nothing to try; add another one",
    Bound.DEADLINE: "allow more time, or wait less between the attempts",
    Bound.TOKENS: "allow more tokens for rejected attempts",
    Bound.BUDGET: "many calls come back empty at the same time; look at the provider",
    Bound.EVENT: "the call was told to stop",
    Bound.STOP: "see the policy's stop strategy",
    ReplyKind.BLANK: "allow more retries or another nudge",
    ReplyKind.TRUNCATED: (
        "raise the output token budget (RaiseOutputBudget) or lower the reasoning effort"
    ),
    ReplyKind.BLOCKED: "the provider withheld the reply; change the request or use FallbackModel",
    ReplyKind.MALFORMED: "simplify the tools' schemas, or allow more retries",
}


def printable(text: str) -> str:
    """A provider's word on one line, whatever is in it: a line break could forge a log record."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


@dataclass(frozen=True)
class RejectedAttempt:
    """One request whose reply was not accepted."""

    kind: ReplyKind
    finish_reason: str | None
    """As the provider spelt it, at most 64 characters; None if it gave none."""
    elapsed_seconds: float
    """From sending the request to the end of the reply."""
    input_tokens: int
    """As reported by the provider; 0 if it reported none."""
    output_tokens: int
    """As reported by the provider, reasoning included; 0 if it reported none."""
    saw_reasoning: bool = False
    saw_text: bool = False
    """Visible text; it is not accepted where a tool call is required or the policy rejects it."""
    saw_invalid_call: bool = False
    """A tool call whose arguments are no JSON."""
    saw_leaked_call: bool = False
    """A tool call that was printed as text."""

    @classmethod
    def of(cls, verdict: Verdict, message: AIMessage, elapsed_seconds: float) -> RejectedAttempt:
        """The account of a reply."""
        usage = message.usage_metadata
        reason = verdict.finish_reason
        return cls(
            kind=verdict.kind,
            finish_reason=reason and reason[:64],
            elapsed_seconds=elapsed_seconds,
            input_tokens=_tokens(usage, "input_tokens"),
            output_tokens=_tokens(usage, "output_tokens"),
            saw_reasoning="reasoning" in verdict.seen,
            saw_text="text" in verdict.seen,
            saw_invalid_call=INVALID_CALLS in verdict.seen,
            saw_leaked_call=LEAKED_CALL in verdict.seen,
        )

    def as_dict(self) -> dict[str, Any]:
        """The form it has in `response_metadata`: plain JSON types.

        Tokens have names of their own there: some tracers take whatever has `input_tokens` for the
        usage of the reply.
        """
        told = {**vars(self), "kind": self.kind.value}
        for name in ("input_tokens", "output_tokens"):
            told[f"rejected_{name}"] = told.pop(name)
        for name in ("saw_invalid_call", "saw_leaked_call"):  # most never are
            if not told[name]:
                del told[name]
        return told


def _tokens(usage: Any, key: str) -> int:
    tokens = usage.get(key) if isinstance(usage, Mapping) else None
    return tokens if isinstance(tokens, int) else 0


class EmptyCompletionError(ModelError, RuntimeError):
    """A chat model's reply carried nothing that a consumer can use.

    Raised when `RetryPolicy(on_exhausted="raise")`, and handed to remedies, to tenacity's
    strategies and to `on_retry` handlers as the account of what was rejected. It is a
    non-retryable `langchain_core.exceptions.ModelError` (where langchain-core has that class):
    what was retried already is not to be retried by the next layer. (It is a `RuntimeError`, since
    the default retry policy of LangGraph's nodes repeats all but those and the like.) It pickles.
    Its text shows counts, reasons and names of tools, never a prompt, a reply, a key or a
    provider's raw answer.
    """

    is_retryable = False

    def __init__(  # noqa: PLR0913 -- an account has many parts
        self,
        rejected: Sequence[RejectedAttempt],
        *,
        elapsed_seconds: float,
        last_message: AIMessage,
        model: str = "chat model",
        expected_tools: Sequence[str] = (),
        attempts: int | None = None,
        bound: Bound | None = None,
    ) -> None:
        """Account for the attempts of one call.

        Args:
            rejected: The rejected attempts in order, at least one.
            elapsed_seconds: Since the call began, waits included.
            last_message: The last reply as it came; an empty message if none came at all.
            model: Name of the model, for the text.
            expected_tools: Names of the tools of which one had to be called, if the policy
                requires it; a schema for structured output is such a tool.
            attempts: Attempts made, at least as many as were rejected; None: no more.
            bound: What ended the call; None: it is not over.

        """
        self.rejected = tuple(rejected)
        self.kind: ReplyKind = self.rejected[-1].kind
        """Of the last reply."""
        self.attempts = len(self.rejected) if attempts is None else attempts
        """Attempts made: those rejected, and those that raised and were made again."""
        self.bound = bound
        """What ended the call; None: it is not over."""
        self.finish_reasons: tuple[str | None, ...] = tuple(
            attempt.finish_reason for attempt in self.rejected
        )
        self.elapsed_seconds = elapsed_seconds
        self.input_tokens = sum(attempt.input_tokens for attempt in self.rejected)
        """Of all rejected attempts."""
        self.output_tokens = sum(attempt.output_tokens for attempt in self.rejected)
        """Of all rejected attempts."""
        self.last_message = last_message
        self.model = model
        self.expected_tools = tuple(expected_tools)
        super().__init__(self._text())

    @property
    def is_repeated_blank(self) -> bool:
        """Whether the last two attempts came to nothing in the same way, not likely by chance."""
        if len(self.rejected) == 1:
            return False
        before, last = self.rejected[-2:]
        return (before.kind, before.finish_reason) == (last.kind, last.finish_reason) and not any(
            attempt.output_tokens or attempt.saw_reasoning or attempt.saw_text
            for attempt in (before, last)
        )

    def _text(self) -> str:
        reasons = ", ".join(printable(reason or "none") for reason in self.finish_reasons)
        expected = f"no call of {' or '.join(self.expected_tools)}; " if self.expected_tools else ""
        ended = f" Ended by: {self.bound.value}." if self.bound else ""
        return (
            f"Empty completion ({self.kind.value}) from {self.model}: {expected}"
            f"{self.attempts} attempt(s), finish reasons: {reasons}; "
            f"{self.elapsed_seconds:.2f} s, {self.input_tokens} input "
            f"and {self.output_tokens} output tokens.{ended} Hint: {self._hint()}."
        )

    def _hint(self) -> str:
        if self.bound is Bound.REMEDIES and self.kind is ReplyKind.TRUNCATED:
            return "the output budget is at its ceiling or not known: set one, or add a remedy"
        if self.bound is Bound.KIND and self.kind in (ReplyKind.BLANK, ReplyKind.MALFORMED):
            return f"remedies turn the retries of a {self.kind.value} reply off"
        if self.bound not in _HINTS and self.rejected[-1].saw_leaked_call:
            return "the server leaves tool calls in the text; set its tool call parser"
        if self.bound not in _HINTS and self.expected_tools and self.rejected[-1].saw_text:
            return "the model answered in text; check that it supports a forced tool choice"
        return _HINTS.get(self.bound) or _HINTS[self.kind]

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, vars(self))


def _restored(cls: type[EmptyCompletionError], args: Any, state: Any) -> EmptyCompletionError:
    error = cls.__new__(cls, *args)
    vars(error).update(state)
    return error


def add_note(error: BaseException, note: str) -> None:
    """`error.add_note(note)`, which Python 3.10 has not; none, where an exception takes none."""
    with suppress(Exception):
        if sys.version_info >= (3, 11):
            error.add_note(note)
        else:
            # Where Python 3.11 has them.
            vars(error)["__notes__"] = [*getattr(error, "__notes__", ()), note]
