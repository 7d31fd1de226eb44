"""Retries the empty completions of LangChain chat models, underneath every kind of agent loop."""

from langchain_retrying.bounds import (
    RetryBudget,
    stop_after_rejected_tokens,
    stop_when_blank_repeats,
)
from langchain_retrying.chat_model import RetryingChatModel
from langchain_retrying.errors import EmptyCompletionError, RejectedAttempt
from langchain_retrying.fallback import FallbackModel
from langchain_retrying.init import init_retrying_chat_model
from langchain_retrying.output_budget import RaiseOutputBudget
from langchain_retrying.policy import RetryPolicy
from langchain_retrying.remedies import DEFAULT_NUDGE, Nudge, Remedy, Request, WithParams, repeat
from langchain_retrying.reply import ReplyKind, is_empty_ai_message, judge

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
    "stop_when_blank_repeats",
]
