"""What is told of rejected attempts, and the error that tells it. Never any content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from langchain_core.messages import AIMessage

from langchain_retrying._compat import ModelError
from langchain_retrying.reply import ReplyKind

_HINTS = {
    ReplyKind.BLANK: "allow more retries or another nudge",
    ReplyKind.TRUNCATED: "raise the output token budget or lower the reasoning effort",
    ReplyKind.BLOCKED: "the provider withheld the reply; change the request",
    ReplyKind.MALFORMED: "simplify the tools' schemas, or allow more retries",
}


@dataclass(frozen=True)
class RejectedAttempt:
    """One request whose reply was empty."""

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

    def as_dict(self) -> dict[str, Any]:
        """The form it has in `response_metadata`: plain JSON types."""
        return {**asdict(self), "kind": self.kind.value}


class EmptyCompletionError(ModelError):
    """A chat model's reply carried nothing that a consumer can use.

    Raised when `RetryPolicy(on_exhausted="raise")`, and handed to tenacity's strategies and to
    `on_retry` handlers as the outcome of each rejected attempt. It is a non-retryable
    `langchain_core.exceptions.ModelError` (where langchain-core has that class): what was
    retried already is not to be retried by the next layer. It pickles. Its text shows counts and
    reasons, never a prompt, a reply, a key or a provider's raw answer.
    """

    is_retryable = False

    def __init__(
        self,
        rejected: Sequence[RejectedAttempt],
        *,
        elapsed_seconds: float,
        last_message: AIMessage,
        model: str = "chat model",
    ) -> None:
        """Account for the attempts of one call.

        Args:
            rejected: The rejected attempts in order, at least one.
            elapsed_seconds: Since the call began, waits included.
            last_message: The last reply as it came; an empty message if none came at all.
            model: Name of the model, for the text.

        """
        self.rejected = tuple(rejected)
        self.kind: ReplyKind = self.rejected[-1].kind
        """Of the last reply."""
        self.attempts = len(self.rejected)
        """Rejected attempts; requests that raised are not among them."""
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
        super().__init__(self._text())

    def _text(self) -> str:
        reasons = ", ".join(reason or "none" for reason in self.finish_reasons)
        return (
            f"Empty completion ({self.kind.value}) from {self.model}: {self.attempts} attempt(s), "
            f"finish reasons: {reasons}; {self.elapsed_seconds:.2f} s, {self.input_tokens} input "
            f"and {self.output_tokens} output tokens. Hint: {_HINTS[self.kind]}."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        state = {
            "elapsed_seconds": self.elapsed_seconds,
            "last_message": self.last_message,
            "model": self.model,
        }
        return _restore, (type(self), self.rejected, state)


def _restore(
    cls: type[EmptyCompletionError], rejected: Sequence[RejectedAttempt], state: dict[str, Any]
) -> EmptyCompletionError:
    return cls(rejected, **state)
