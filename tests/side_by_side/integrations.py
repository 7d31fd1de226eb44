"""The real integrations, pointed at the server of the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from side_by_side.small_models import fresh


def openai(**kwargs: Any) -> Callable[[str], Any]:
    return _client(
        "langchain_openai", "ChatOpenAI", lambda url: {"base_url": f"{url}/v1"}, **kwargs
    )


def responses(**kwargs: Any) -> Callable[[str], Any]:
    return openai(use_responses_api=True, **kwargs)


def anthropic(**kwargs: Any) -> Callable[[str], Any]:
    kwargs = {"model": "claude-model-a", "max_tokens": 4096, **kwargs}
    return _client("langchain_anthropic", "ChatAnthropic", lambda url: {"base_url": url}, **kwargs)


def gemini(**kwargs: Any) -> Callable[[str], Any]:
    kwargs = {"model": "gemini-2.5-flash", "max_retries": 1, **kwargs}
    package = "langchain_google_genai"
    return _client(package, "ChatGoogleGenerativeAI", lambda url: {"base_url": url}, **kwargs)


def ollama(**kwargs: Any) -> Callable[[str], Any]:
    def make(url: str) -> Any:
        chat = pytest.importorskip("langchain_ollama").ChatOllama
        return chat(model="model-a", base_url=url, **fresh(kwargs))

    return make


def _client(
    package: str, name: str, place: Callable[[str], dict[str, Any]], **kwargs: Any
) -> Callable[[str], Any]:
    arguments = {"model": "model-a", "api_key": "sk-secret", "max_retries": 0, **kwargs}

    def make(url: str) -> Any:
        chat_model = getattr(pytest.importorskip(package), name)
        for argument in arguments.keys() & {"use_responses_api", "use_previous_response_id"}:
            if argument not in chat_model.model_fields:
                pytest.skip(f"this release of {package} has no {argument}")
        return chat_model(**place(url), **fresh(arguments))

    return make


MODELS = {
    "ChatOpenAI": openai,
    "Responses": responses,
    "ChatAnthropic": anthropic,
    "Gemini": gemini,
    "Ollama": ollama,
}
