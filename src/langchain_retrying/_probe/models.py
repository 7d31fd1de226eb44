"""The model of a probe, from its name; and a clear sentence where there is none."""

from __future__ import annotations

import os

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel

from langchain_retrying._probe.errors import BadInputError, missing_key, missing_variable, own_words


def build_model(name: str, base_url: str | None = None) -> BaseChatModel:
    """Build a chat model by name.

    Args:
        name: As for `init_chat_model`; of a model of the server, if `base_url` is given.
        base_url: Of an OpenAI-compatible server; None: that of the provider.

    Raises:
        BadInputError: The name is not known, a package or a key is missing.

    """
    if not name.strip():
        raise BadInputError("The model's name is empty.")
    try:
        model = _init(name, base_url)
    except ImportError as error:
        raise BadInputError(f"A package is missing. {own_words(error)}.") from error
    except Exception as error:
        variable = missing_variable(error)
        if variable is not None:
            raise BadInputError(missing_key(variable)) from error
        if "infer model provider" in str(error):
            raise BadInputError(
                f"Unknown model {name!r}: name its provider, as in openai:gpt-5-mini or "
                "ollama:qwen3, or a server with --base-url."
            ) from error
        raise BadInputError(f"Can't build the model {name!r}: {own_words(error)}.") from error
    # Some are built without a key, and fail only when they are called.
    for field, variable in model.lc_secrets.items():
        if variable.endswith("_API_KEY") and not _is_set(getattr(model, field, None)):
            raise BadInputError(missing_key(variable))
    return model


def _init(name: str, base_url: str | None) -> BaseChatModel:
    if base_url is None:
        return init_chat_model(name)
    # `stream_usage`: for servers other than OpenAI's, tokens of streams must be asked for.
    return init_chat_model(
        name,
        model_provider="openai",
        base_url=base_url,
        api_key=os.environ.get("OPENAI_API_KEY") or "not-needed",
        stream_usage=True,
    )


def _is_set(secret: object) -> bool:
    get_value = getattr(secret, "get_secret_value", None)
    return bool(get_value() if get_value else secret)
