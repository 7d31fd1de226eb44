"""Retries the empty completions of LangChain chat models, underneath every kind of agent loop."""

from langchain_retrying._chat_model import RetryingChatModel, init_retrying_chat_model
from langchain_retrying._errors import EmptyCompletionError, RejectedAttempt
from langchain_retrying._judge.kinds import ReplyKind
from langchain_retrying._judge.reply import is_empty_ai_message, judge
from langchain_retrying._policy.fallback import FallbackModel
from langchain_retrying._policy.output_budget import RaiseOutputBudget
from langchain_retrying._policy.policy import RetryPolicy
from langchain_retrying._policy.remedies import (
    DEFAULT_NUDGE,
    Nudge,
    Remedy,
    Request,
    WithParams,
    repeat,
)
from langchain_retrying._policy.stops import RetryBudget, stop_after_rejected_tokens

__all__ = [
    "DEFAULT_NUDGE",
    "EmptyCompletionError",
    "FallbackModel",
    "Nudge",
    "RaiseOutputBudget",
    "RejectedAttempt",
    "Remedy",
    "ReplyKind",
    "Request",
    "RetryBudget",
    "RetryPolicy",
    "RetryingChatModel",
    "WithParams",
    "init_retrying_chat_model",
    "is_empty_ai_message",
    "judge",
    "repeat",
    "stop_after_rejected_tokens",
]

# Pickles, tracebacks and help texts name the package, not the file that a name stands in today.
for _public in map(globals().get, __all__):
    if hasattr(_public, "__qualname__") and _public.__module__.startswith(__name__):
        _public.__module__ = __name__
