from __future__ import annotations

from typing import Any, ClassVar

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from standard.questions import believable
from standard.suites import IntegrationSuite, Suite
from wire.server import WireServer

SERVER = WireServer(believable)
DETAILS = ["cache_read_input", "cache_creation_input"]


@pytest.fixture(scope="module", autouse=True)
def _server():
    with SERVER:
        yield


class TestUnit(Suite, ChatModelUnitTests):
    inner_class = ChatAnthropic
    chat_model_params: ClassVar = {"model": "model-a"}
    init_from_env_params = (
        {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_API_URL": "http://base"},
        {"model": "model-a"},
        {"anthropic_api_key": "key", "anthropic_api_url": "http://base"},
    )


class TestIntegration(IntegrationSuite, ChatModelIntegrationTests):
    inner_class = ChatAnthropic
    supports_audio_inputs = False
    supported_usage_metadata_details: ClassVar = {"invoke": DETAILS, "stream": DETAILS}

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {
            "model": "model-a",
            "api_key": "none",
            "base_url": f"{SERVER.url}/{self.mode}",
            "max_retries": 0,
        }
