"""`init_retrying_chat_model`: build by name and wrap, fixed or configurable at run time."""

from __future__ import annotations

from typing import Any

from langchain_retrying.chat_model import RetryingChatModel
from langchain_retrying.facade import DEFAULT_POLICY
from langchain_retrying.policy import RetryPolicy


def init_retrying_chat_model(
    *args: Any, policy: RetryPolicy = DEFAULT_POLICY, **kwargs: Any
) -> Any:
    """Build a chat model with LangChain's `init_chat_model`, and wrap it.

    Args:
        *args: As for `init_chat_model`.
        policy: What is retried and how; default `RetryPolicy()`: two retries.
        **kwargs: As for `init_chat_model`: `model_provider`, `configurable_fields`,
            `config_prefix`, and what the model's constructor takes.

    Returns:
        A `RetryingChatModel`. With `configurable_fields`, or without a model, what
        `init_chat_model` returns then: a runnable that builds the model of each call from
        `config={"configurable": {...}}`; here it wraps it too.

    Raises:
        ImportError: langchain is not installed.
        TypeError: `policy` is not a `RetryPolicy`.

    """
    try:
        from langchain.chat_models import init_chat_model  # noqa: PLC0415 -- an extra
    except ImportError as error:
        raise ImportError(
            "init_retrying_chat_model needs langchain: pip install 'langchain-retrying[langchain]'"
        ) from error
    return RetryingChatModel(init_chat_model(*args, **kwargs), policy)
