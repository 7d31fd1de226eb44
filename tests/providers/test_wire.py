"""Real clients against a loopback server: what a retry sends, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from conftest import ask
from langchain_retrying import RetryingChatModel, RetryPolicy
from wire.clients import build
from wire.turns import BLANK, GOOD

PROMPT = [SystemMessage("Be brief."), HumanMessage("Hi")]
APIS = {"openai-chat": "ChatOpenAI", "anthropic-messages": "ChatAnthropic"}


@pytest.fixture(params=APIS)
def api(request):
    return request.param


def told(request: dict[str, Any]) -> list[tuple[str, str]]:
    """Who says what in a request; Anthropic's client joins turns of the user's into one."""
    body = request["json"]
    messages = [{"role": "system", "content": body["system"]}] if "system" in body else []
    return [
        (message["role"], text if isinstance(text, str) else text["text"])
        for message in [*messages, *body["messages"]]
        for text in (
            message["content"] if isinstance(message["content"], list) else [message["content"]]
        )
    ]


@pytest.mark.parametrize("blanks", [1, 2])
def test_a_retry_sends_the_original_messages_and_one_nudge(server, api, way, blanks):
    server.play(*[BLANK] * blanks, GOOD)
    model = build({"class": APIS[api], "kwargs": {"stream_usage": True}}, server.url)
    reply = ask(way, RetryingChatModel(model, RetryPolicy(wait=None, nudge="Go on.")), PROMPT)
    assert reply.content in ("Recovered.", [{"type": "text", "text": "Recovered.", "index": 0}])
    first, *retries = map(told, server.requests)
    assert first == [("system", "Be brief."), ("user", "Hi")]
    assert len(retries) == blanks
    for retry in retries:
        assert retry[:-1] == first[:-1]
        role, asked = retry[-1]
        assert role == "user"
        assert asked == "Hi\n\nGo on."
    account = reply.response_metadata["empty_retry"]
    assert account["attempts"] == blanks + 1
    server.play(BLANK, GOOD)
    usage = ask(way, model, PROMPT).usage_metadata  # as the integration counts it
    assert account["rejected_output_tokens"] == usage["output_tokens"] * blanks > 0
    assert account["rejected_input_tokens"] == usage["input_tokens"] * blanks > 0


def test_bare_the_reply_is_empty(server, api, way):
    server.play(BLANK, GOOD)
    reply = ask(way, build({"class": APIS[api]}, server.url), PROMPT)
    assert reply.content in ("", [])
    assert len(server.requests) == 1


def test_the_other_arguments_of_a_retry_are_those_of_the_first_request(server, api, way):
    server.play(BLANK, GOOD)
    model = RetryingChatModel(build({"class": APIS[api]}, server.url))
    ask(way, model.bind(temperature=0.25, stop=["END"]), PROMPT)
    first, second = (
        {key: value for key, value in request["json"].items() if key != "messages"}
        for request in server.requests
    )
    assert first == second
    assert first["temperature"] == 0.25
