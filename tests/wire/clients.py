"""The real integration that a case was recorded with, pointed at the loopback server."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable


def lookup(key: str) -> str:
    """Look a key up."""
    return key


def _bedrock(url: str) -> dict[str, Any]:
    config = pytest.importorskip("botocore.config").Config(retries={"total_max_attempts": 1})
    return {
        "model": "anthropic.claude-a",
        "base_url": url,
        "region_name": "us-east-1",
        "aws_access_key_id": "none",
        "aws_secret_access_key": "none",
        "config": config,
    }


# Package and constructor arguments of each class; the clients' own retries are off.
_CLIENTS: dict[str, tuple[str, Callable[[str], dict[str, Any]]]] = {
    "ChatOpenAI": (
        "langchain_openai",
        lambda url: {
            "model": "model-a",
            "api_key": "none",
            "base_url": f"{url}/v1",
            "max_retries": 0,
        },
    ),
    "ChatAnthropic": (
        "langchain_anthropic",
        lambda url: {
            "model": "claude-model-a",
            "api_key": "none",
            "base_url": url,
            "max_retries": 0,
            "max_tokens": 4096,
        },
    ),
    "ChatGoogleGenerativeAI": (
        "langchain_google_genai",
        lambda url: {
            "model": "gemini-2.5-flash",
            "api_key": "none",
            "base_url": url,
            "max_retries": 1,  # attempts; 0 means the client's default
        },
    ),
    "ChatMistralAI": (
        "langchain_mistralai",
        lambda url: {
            "model": "model-a",
            "api_key": "none",
            "base_url": f"{url}/v1",
            "max_retries": 0,
        },
    ),
    "ChatOllama": ("langchain_ollama", lambda url: {"model": "model-a", "base_url": url}),
    "ChatBedrockConverse": ("langchain_aws", _bedrock),
    "ChatCohere": (
        "langchain_cohere",
        lambda url: {"model": "model-a", "cohere_api_key": "none", "base_url": url},
    ),
}


def build(client: dict[str, Any], url: str) -> BaseChatModel:
    """The chat model of a case's `client`; skips the test where there is none."""
    return _built(client["class"], json.dumps(client.get("kwargs", {})), url)


@cache  # Bedrock's takes half a second to build
def _built(name: str, kwargs: str, url: str) -> BaseChatModel:
    package, arguments = _CLIENTS[name]
    chat_model = getattr(pytest.importorskip(package), name)
    fields = chat_model.model_fields
    own = json.loads(kwargs)
    if not own.keys() <= fields.keys() | {field.alias for field in fields.values()}:
        pytest.skip(f"this version of {package} has no such parameter: {', '.join(own)}")
    return chat_model(**{**arguments(url), **own})


def bound(client: dict[str, Any], model: BaseChatModel) -> Runnable:
    """The model with the case's tools, if it has any."""
    return model.bind_tools([lookup]) if client.get("bind_tools") else model
