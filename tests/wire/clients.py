"""The real integration that a case was recorded with, pointed at the loopback server."""

from __future__ import annotations

import json
import os
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


def _bedrock_invoke(url: str) -> dict[str, Any]:
    arguments = {**_bedrock(url), "model": "anthropic.claude-3-haiku-20240307-v1:0"}
    arguments["endpoint_url"] = arguments.pop("base_url")
    return arguments


def _openai_compatible(url: str) -> dict[str, Any]:
    return {"model": "model-a", "api_key": "none", "base_url": f"{url}/v1", "max_retries": 0}


def _litellm(url: str) -> dict[str, Any]:
    return {"model": "openai/model-a", "api_key": "none", "api_base": f"{url}/v1"}


def _huggingface(url: str) -> dict[str, Any]:
    arguments = {"endpoint_url": url, "huggingfacehub_api_token": "none"}
    endpoint = pytest.importorskip("langchain_huggingface").HuggingFaceEndpoint(**arguments)
    return {"llm": endpoint, "model_id": "model-a"}


def _tongyi(url: str) -> dict[str, Any]:
    pytest.importorskip("dashscope").base_http_api_url = url
    return {"model": "qwen-a", "api_key": "none", "max_retries": 1}  # attempts


def _azure_ai(url: str) -> dict[str, Any]:
    return {"model": "model-a", "credential": "none", "endpoint": f"{url}/v1", "max_retries": 0}


def _perplexity(url: str) -> dict[str, Any]:
    os.environ["PERPLEXITY_BASE_URL"] = url  # read once, when a client is built
    return {"model": "sonar", "api_key": "none", "max_retries": 0}


# LiteLLM would fetch its table of prices.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

# Package and constructor arguments of each class; the clients' own retries are off.
_CLIENTS: dict[str, tuple[str, Callable[[str], dict[str, Any]]]] = {
    "ChatOpenAI": ("langchain_openai", _openai_compatible),
    "ChatDeepSeek": ("langchain_deepseek", _openai_compatible),
    "ChatXAI": (
        "langchain_xai",
        lambda url: {
            "model": "model-a",
            "api_key": "none",
            "xai_api_base": f"{url}/v1",
            "max_retries": 0,
        },
    ),
    "ChatTogether": ("langchain_together", _openai_compatible),
    "ChatCerebras": ("langchain_cerebras", _openai_compatible),
    "ChatQwen": ("langchain_qwq", _openai_compatible),
    "AzureAIOpenAIApiChatModel": ("langchain_azure_ai.chat_models", _azure_ai),
    "ChatGroq": ("langchain_groq", lambda url: {**_openai_compatible(url), "base_url": url}),
    "ChatOpenRouter": ("langchain_openrouter", _openai_compatible),
    "ChatFireworks": (
        "langchain_fireworks",
        lambda url: {**_openai_compatible(url), "base_url": url},
    ),
    "ChatSambaNova": ("langchain_sambanova", _openai_compatible),
    "ChatPerplexity": ("langchain_perplexity", _perplexity),
    "ChatNVIDIA": (
        "langchain_nvidia_ai_endpoints",
        lambda url: {"model": "model-a", "api_key": "none", "base_url": f"{url}/v1"},
    ),
    "ChatLiteLLM": ("langchain_litellm", _litellm),
    "ChatHuggingFace": ("langchain_huggingface", _huggingface),
    "ChatTongyi": ("langchain_community.chat_models", _tongyi),
    "ChatBedrock": ("langchain_aws", _bedrock_invoke),
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
    "ChatMistralAI": ("langchain_mistralai", _openai_compatible),
    "ChatOllama": ("langchain_ollama", lambda url: {"model": "model-a", "base_url": url}),
    "ChatBedrockConverse": ("langchain_aws", _bedrock),
    "ChatCohere": (
        "langchain_cohere",
        lambda url: {"model": "model-a", "cohere_api_key": "none", "base_url": url},
    ),
}


def build(client: dict[str, Any], url: str) -> BaseChatModel:
    """The chat model of a case's `client`; skips the test where there is none."""
    kwargs = json.dumps(client.get("kwargs", {})).replace("BASE", url)
    if client["class"] == "ChatFireworks":  # bound to an event loop
        return _built.__wrapped__(client["class"], kwargs, url)
    return _built(client["class"], kwargs, url)


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
