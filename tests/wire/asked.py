"""How a request of each API reads: what the matrix of fallbacks asks of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Asked(NamedTuple):
    """What a request says of tools."""

    tools: list[str]
    choice: Any
    called: list[str]
    """What ties the calls in the history to their results: ids, or names."""
    answered: list[str]


def read(api: str, body: Any) -> Asked:
    """Read a request of an API."""
    return _READERS[api](body)


def _each(turns: Any, key: str, *inside: str) -> Iterator[Any]:
    """What stands under a key in turns or in the blocks of turns."""
    for turn in turns:
        blocks = [turn, *(turn[part] for part in inside if isinstance(turn.get(part), list))]
        for block in [blocks[0], *(one for part in blocks[1:] for one in part)]:
            if isinstance(block, dict) and key in block:
                yield block[key]


def _read_chat(body: Any) -> Asked:
    turns = body["messages"]
    return Asked(
        [tool["function"]["name"] for tool in body.get("tools", ())],
        body.get("tool_choice"),
        [call["id"] for calls in _each(turns, "tool_calls") for call in calls],
        [*_each(turns, "tool_call_id")],
    )


def _read_responses(body: Any) -> Asked:
    calls = [item["call_id"] for item in body["input"] if item.get("type") == "function_call"]
    results = [
        item["call_id"] for item in body["input"] if item.get("type") == "function_call_output"
    ]
    return Asked([tool["name"] for tool in body["tools"]], body.get("tool_choice"), calls, results)


def _read_anthropic(body: Any) -> Asked:
    blocks = [
        block
        for turn in body["messages"]
        if isinstance(turn["content"], list)
        for block in turn["content"]
    ]
    return Asked(
        [tool["name"] for tool in body["tools"]],
        body.get("tool_choice"),
        [block["id"] for block in blocks if block["type"] == "tool_use"],
        [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"],
    )


def _read_gemini(body: Any) -> Asked:
    (tools,) = body["tools"]
    turns = body["contents"]
    return Asked(
        [tool["name"] for tool in tools["functionDeclarations"]],
        body.get("toolConfig"),
        [call["name"] for call in _each(turns, "functionCall", "parts")],
        [result["name"] for result in _each(turns, "functionResponse", "parts")],
    )


def _read_ollama(body: Any) -> Asked:
    turns = body["messages"]
    calls = [call["function"]["name"] for calls in _each(turns, "tool_calls") for call in calls]
    results = [turn for turn in turns if turn["role"] == "tool"]
    tools = [tool["function"]["name"] for tool in body["tools"]]
    # It ties them by their order, as far as there are results.
    return Asked(tools, body.get("tool_choice"), calls, calls[: len(results)])


def _read_bedrock(body: Any) -> Asked:
    config, turns = body["toolConfig"], body["messages"]
    return Asked(
        [tool["toolSpec"]["name"] for tool in config["tools"]],
        config.get("toolChoice"),
        [call["toolUseId"] for call in _each(turns, "toolUse", "content")],
        [result["toolUseId"] for result in _each(turns, "toolResult", "content")],
    )


_READERS: dict[str, Callable[[Any], Asked]] = {
    "openai-chat": _read_chat,
    "openai-responses": _read_responses,
    "anthropic-messages": _read_anthropic,
    "gemini": _read_gemini,
    "ollama": _read_ollama,
    "bedrock-converse": _read_bedrock,
    "other": _read_chat,
}
