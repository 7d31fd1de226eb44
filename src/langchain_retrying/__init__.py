"""Retries the empty completions of LangChain chat models, underneath every kind of agent loop."""

from langchain_retrying.chat_model import RetryingChatModel
from langchain_retrying.errors import EmptyCompletionError, RejectedAttempt
from langchain_retrying.init import init_retrying_chat_model
from langchain_retrying.policy import RetryPolicy
from langchain_retrying.remedies import DEFAULT_NUDGE, Nudge
from langchain_retrying.reply import ReplyKind, is_empty_ai_message, judge

__all__ = [
    "DEFAULT_NUDGE",
    "EmptyCompletionError",
    "Nudge",
    "RejectedAttempt",
    "ReplyKind",
    "RetryPolicy",
    "RetryingChatModel",
    "init_retrying_chat_model",
    "is_empty_ai_message",
    "judge",
]
