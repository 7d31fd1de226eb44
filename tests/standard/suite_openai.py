from __future__ import annotations

from typing import Any, ClassVar

import pytest
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from standard.questions import believable
from standard.suites import IntegrationSuite, Suite
from wire.server import WireServer

SERVER = WireServer(believable)
DETAILS = ["cache_read_input", "reasoning_output"]


@pytest.fixture(scope="module", autouse=True)
def _server():
    with SERVER:
        yield


class TestUnit(Suite, ChatModelUnitTests):
    inner_class = ChatOpenAI
    chat_model_params: ClassVar = {"model": "model-a", "api_key": "none"}
    init_from_env_params = (
        {"OPENAI_API_KEY": "key", "OPENAI_ORG_ID": "org", "OPENAI_API_BASE": "http://base"},
        {"model": "model-a"},
        {"openai_api_key": "key", "openai_organization": "org", "openai_api_base": "http://base"},
    )


class TestIntegration(IntegrationSuite, ChatModelIntegrationTests):
    inner_class = ChatOpenAI
    supported_usage_metadata_details: ClassVar = {"invoke": DETAILS, "stream": DETAILS}

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {
            "model": "model-a",
            "api_key": "none",
            "base_url": f"{SERVER.url}/{self.mode}/v1",
            "max_retries": 0,
            "stream_usage": True,
        }
