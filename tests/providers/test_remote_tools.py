"""A turn in which the provider has run a tool that may have acted is never asked for again."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from conftest import ask
from langchain_retrying import RetryingChatModel
from wire.clients import build
from wire.replies import Reply, encode
from wire.turns import BLANK, GOOD, anthropic_events, anthropic_of, response_events, response_of

SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
CALL = {
    "type": "mcp_call",
    "id": "mcp_1",
    "name": "send_mail",
    "arguments": "{}",
    "output": "Sent.",
    "server_label": "mail",
}
TOOLS = {
    "type": "mcp_list_tools",
    "id": "mcpl_1",
    "server_label": "mail",
    "tools": [],
}


def responses(way: str, item: dict[str, Any]) -> Reply:
    response = response_of(BLANK, [item], {})
    if "stream" not in way:
        return encode("openai-responses", "invoke", response)
    return encode("openai-responses", "stream", response_events(response))


def anthropic(way: str, *blocks: dict[str, Any]) -> Reply:
    message = anthropic_of(BLANK, [*blocks], {})
    if "stream" not in way:
        return encode("anthropic-messages", "invoke", message)
    return encode("anthropic-messages", "stream", anthropic_events(message))


def used(kind: str, name: str, result: str) -> tuple[dict[str, Any], dict[str, Any]]:
    use = {"type": kind, "id": "toolu_1", "name": name, "input": {}}
    if kind == "mcp_tool_use":
        use["server_name"] = "mail"
    done = {"type": result, "tool_use_id": "toolu_1", "content": []}
    return use, {**done, "is_error": False} if kind == "mcp_tool_use" else done


@pytest.mark.parametrize("output_version", ["v0", "responses/v1", "v1"])
@pytest.mark.parametrize(("item", "requests"), [(CALL, 1), (SEARCH, 2), (TOOLS, 2)])
def test_an_item_of_openais_responses(server, way, item, requests, output_version):
    kwargs = {"use_responses_api": True, "output_version": output_version}
    if output_version == "v1" and not hasattr(AIMessage, "content_blocks"):
        pytest.skip("this release of LangChain has no such output version")
    model = build({"class": "ChatOpenAI", "kwargs": kwargs}, server.url)
    server.play(responses(way, item), GOOD)
    ask(way, RetryingChatModel(model))
    assert len(server.requests) == requests


@pytest.mark.filterwarnings(
    # Of the integration's own, to which the blocks are new.
    "ignore:Received unexpected tool content block:UserWarning",
    "ignore:Pydantic serializer warnings:UserWarning",
)
@pytest.mark.parametrize("output_version", ["v0", "v1"])
@pytest.mark.parametrize(
    ("blocks", "requests"),
    [
        (used("mcp_tool_use", "send_mail", "mcp_tool_result"), 1),
        (used("server_tool_use", "web_search", "web_search_tool_result"), 2),
    ],
    ids=["mcp", "search"],
)
def test_a_block_of_anthropics(server, way, blocks, requests, output_version):
    kwargs = {"output_version": output_version}
    model = build({"class": "ChatAnthropic", "kwargs": kwargs}, server.url)
    server.play(anthropic(way, *blocks), GOOD)
    ask(way, RetryingChatModel(model))
    assert len(server.requests) == requests
