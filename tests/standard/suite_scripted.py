from __future__ import annotations

import json
from typing import Any

from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from langchain_retrying.testing import ScriptedChatModel
from standard.answers import Question, Tool, answer
from standard.suites import IntegrationSuite, Suite
from wire.turns import Turn

ROLES = {"human": "user"}


class Scripted(ScriptedChatModel):
    """A scripted model whose script looks at the request."""

    model: str = "model-a"
    blank_until_nudged: bool = False

    def __init__(self, **kwargs: Any) -> None:
        # A bound method's repr has the model's in it, and that has its own.
        super().__init__(lambda messages: self._script(messages), **kwargs)  # noqa: PLW0108

    def _script(self, messages: list[BaseMessage]) -> list[AIMessageChunk]:
        request = self.requests[-1].kwargs
        functions = [tool["function"] for tool in request.get("tools", [])]
        question = Question(
            turns=[(ROLES.get(message.type, message.type), message.text) for message in messages],
            tools=[Tool(function["name"], function["parameters"]) for function in functions],
            choice=request.get("tool_choice"),
            stop=request.get("stop", []),
        )
        reply = answer(question, blank_until_nudged=self.blank_until_nudged)
        return [*_chunks(reply), _end(request.get("model", self.model))]


def _chunks(reply: Turn) -> list[AIMessageChunk]:
    texts = [AIMessageChunk(piece) for piece in reply.pieces]
    calls = [
        tool_call_chunk(name=name, args=json.dumps(args), id="call_1", index=0)
        for name, args in reply.calls
    ]
    return texts + [AIMessageChunk("", tool_call_chunks=[call]) for call in calls]


def _end(model: str) -> AIMessageChunk:
    return AIMessageChunk(
        "",
        response_metadata={"model_name": model},
        usage_metadata={"input_tokens": 20, "output_tokens": 3, "total_tokens": 23},
    )


class TestUnit(Suite, ChatModelUnitTests):
    inner_class = Scripted


class TestIntegration(IntegrationSuite, ChatModelIntegrationTests):
    inner_class = Scripted

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"blank_until_nudged": self.mode == "blanked"}
