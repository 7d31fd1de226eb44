"""A turn in which the provider has run a tool that may have acted is never asked for again."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from conftest import ask
from langchain_retrying import RetryingChatModel
from wire.clients import build
from wire.server import _ANTHROPIC, _RESPONSE, WireServer, encode, good

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


@pytest.fixture(scope="module")
def server():
    with WireServer() as server:
        yield server


def responses(way: str, item: dict[str, Any]) -> Any:
    response = {**_RESPONSE, "output": [item]}
    if "stream" not in way:
        return encode("openai-responses", "invoke", response)
    begun = {**_RESPONSE, "status": "in_progress", "output": [], "usage": None}
    events = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ]
    numbered = [{"sequence_number": number, **event} for number, event in enumerate(events)]
    return encode("openai-responses", "stream", numbered)


def anthropic(way: str, *blocks: dict[str, Any]) -> Any:
    if "stream" not in way:
        return encode("anthropic-messages", "invoke", {**_ANTHROPIC, "content": [*blocks]})
    events: list[Any] = [
        {"type": "message_start", "message": {**_ANTHROPIC, "content": [], "stop_reason": None}}
    ]
    for index, block in enumerate(blocks):
        events += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_stop", "index": index},
        ]
    usage = {"output_tokens": 3}
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    events += [
        {"type": "message_delta", "delta": delta, "usage": usage},
        {"type": "message_stop"},
    ]
    return encode("anthropic-messages", "stream", events)


def used(kind: str, name: str, result: str) -> tuple[dict[str, Any], dict[str, Any]]:
    use = {"type": kind, "id": "toolu_1", "name": name, "input": {}}
    if kind == "mcp_tool_use":
        use["server_name"] = "mail"
    done = {"type": result, "tool_use_id": "toolu_1", "content": []}
    return use, {**done, "is_error": False} if kind == "mcp_tool_use" else done


def mode(way: str) -> str:
    return "stream" if "stream" in way else "invoke"


@pytest.mark.parametrize("output_version", ["v0", "responses/v1", "v1"])
@pytest.mark.parametrize(("item", "requests"), [(CALL, 1), (SEARCH, 2), (TOOLS, 2)])
def test_an_item_of_openais_responses(server, way, item, requests, output_version):
    kwargs = {"use_responses_api": True, "output_version": output_version}
    if output_version == "v1" and not hasattr(AIMessage, "content_blocks"):
        pytest.skip("this release of LangChain has no such output version")
    model = build({"class": "ChatOpenAI", "kwargs": kwargs}, server.url)
    server.play(responses(way, item), good("openai-responses", mode(way)))
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
    server.play(anthropic(way, *blocks), good("anthropic-messages", mode(way)))
    ask(way, RetryingChatModel(model))
    assert len(server.requests) == requests
