"""What the suites share: each test runs in every mode, and everything that can be asked is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage

from langchain_retrying import RetryingChatModel, RetryPolicy
from standard.answers import NUDGE

MODES = ("bare", "wrapped", "blanked")
"""`blanked`: wrapped, by a provider whose replies are blank until it is nudged."""


@cache
def wrapping(inner_class: type[BaseChatModel]) -> type[BaseChatModel]:
    """A class of wrapped models, as the suites want one."""

    class Wrapping(inner_class):  # type: ignore[misc,valid-type]  # a class all the same
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            return RetryingChatModel(inner_class(*args, **kwargs), RetryPolicy(nudge=NUDGE))

    return Wrapping


class Suite:
    """A mixin for the unit tests."""

    inner_class: type[BaseChatModel]
    mode = "bare"

    @pytest.fixture(autouse=True, params=MODES)
    def _mode(self, request: pytest.FixtureRequest) -> None:
        self.mode = request.param

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return self.inner_class if self.mode == "bare" else wrapping(self.inner_class)

    @pytest.fixture
    def snapshot(self) -> Callable[..., Any]:
        """In place of the snapshot on disk: the bare model, serialised."""
        params = {**self.standard_chat_model_params, **self.chat_model_params}  # type: ignore[attr-defined]
        serialized = dumpd(self.inner_class(**params))
        return lambda name: serialized

    def test_mode(self, model: Any) -> None:
        """That the modes are what they are said to be."""
        assert isinstance(model, self.inner_class)
        assert isinstance(model, RetryingChatModel) is (self.mode != "bare")


class IntegrationSuite(Suite):
    """A mixin for the integration tests."""

    supports_json_mode = True
    supports_image_inputs = True
    supports_image_urls = True
    supports_image_tool_message = True
    supports_pdf_inputs = True
    supports_pdf_tool_message = True
    supports_anthropic_inputs = True
    supports_audio_inputs = True
    enable_vcr_tests = True
    model_override_value = "model-b"

    @pytest.fixture
    def vcr(self) -> Any:
        """In place of a cassette: the provider is on loopback."""
        return SimpleNamespace(responses=["believed"])

    @pytest.fixture(autouse=True)
    def _no_downloads(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Give a picture out for those that the tests fetch from the web."""
        monkeypatch.setenv("LANGCHAIN_TESTS_USER_AGENT", "none")
        monkeypatch.setattr(httpx, "get", lambda *_, **__: SimpleNamespace(content=b"picture"))

    def test_blank_first(self, model: Any) -> None:
        asked = getattr(model, "inner_model", model)
        assert bool(asked.invoke("Hello").content) is (self.mode != "blanked")

    def _ask(self, *, stream: bool = False) -> AIMessage:
        """A reply, whose usage the tests look at."""
        model: Any = self.chat_model_class(**self.chat_model_params)  # type: ignore[attr-defined]
        if not stream:
            return model.invoke("Hello")
        first, *rest = model.stream("Hello")
        return first + rest

    invoke_with_cache_read_input = _ask
    invoke_with_cache_creation_input = _ask
    invoke_with_reasoning_output = _ask
