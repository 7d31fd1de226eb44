"""What the matrix of fallbacks needs of each API: a blank, a tool call, and how a request reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from wire.server import Reply, encode

BLANK: dict[str, tuple[Any, Any]] = {}
"""A reply of nothing, whole and streamed, of each API."""
CALL: dict[str, tuple[Any, Any]] = {}
"""A call of `lookup` with the key "a", whole and streamed; usage: 20 tokens in, 3 out."""

_USAGE = {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23}


def _chat(message: dict[str, Any], finish_reason: str) -> tuple[Any, Any]:
    def body(kind: str, **choice: Any) -> dict[str, Any]:
        return {
            "id": "chatcmpl-1",
            "object": kind,
            "created": 1700000000,
            "model": "model-a",
            "choices": [{"index": 0, **choice}],
        }

    delta = {**message}
    if "tool_calls" in message:
        delta["tool_calls"] = [{"index": 0, **call} for call in message["tool_calls"]]
    chunk = "chat.completion.chunk"
    return (
        {
            **body("chat.completion", message=message, finish_reason=finish_reason),
            "usage": {
                **_USAGE,
                "prompt_tokens_details": None,
                "completion_tokens_details": {"reasoning_tokens": 0},
            },
        },
        [
            body(chunk, delta=delta, finish_reason=None),
            {**body(chunk, delta={}, finish_reason=finish_reason), "usage": _USAGE},
            "[DONE]",
        ],
    )


BLANK["openai-chat"] = _chat({"role": "assistant", "content": ""}, "stop")
CALL["openai-chat"] = _chat(
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "lookup", "arguments": '{"key": "a"}'},
            }
        ],
    },
    "tool_calls",
)


def _responses(*items: dict[str, Any]) -> tuple[Any, Any]:
    response = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1700000000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "model": "model-a",
        "output": [*items],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": 20,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 3,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 23,
        },
    }
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    events = [{"type": "response.created", "response": begun}]
    for item in items:
        item_begun = {**item, "status": "in_progress", "arguments": ""}
        events += [
            {"type": "response.output_item.added", "output_index": 0, "item": item_begun},
            {
                "type": "response.function_call_arguments.delta",
                "item_id": item["id"],
                "output_index": 0,
                "delta": item["arguments"],
            },
            {"type": "response.output_item.done", "output_index": 0, "item": item},
        ]
    events.append({"type": "response.completed", "response": response})
    return response, [{**event, "sequence_number": n} for n, event in enumerate(events)]


BLANK["openai-responses"] = _responses()
CALL["openai-responses"] = _responses(
    {
        "id": "fc_1",
        "type": "function_call",
        "status": "completed",
        "call_id": "call_1",
        "name": "lookup",
        "arguments": '{"key": "a"}',
    }
)


def _anthropic(stop_reason: str, *blocks: dict[str, Any]) -> tuple[Any, Any]:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-model-a",
        "content": [*blocks],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 20,
            "output_tokens": 3,
            "cache_creation": None,
            "service_tier": "standard",
        },
    }
    events: list[Any] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    ]
    for block in blocks:
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            {"type": "content_block_start", "index": 0, "content_block": {**block, "input": {}}},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
        ]
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    events += [
        {
            "type": "message_delta",
            "delta": delta,
            "usage": {"input_tokens": 20, "output_tokens": 3},
        },
        {"type": "message_stop"},
    ]
    return message, events


BLANK["anthropic-messages"] = _anthropic("end_turn")
CALL["anthropic-messages"] = _anthropic(
    "tool_use", {"type": "tool_use", "id": "toolu_1", "name": "lookup", "input": {"key": "a"}}
)


def _gemini(*parts: dict[str, Any]) -> tuple[Any, Any]:
    body = {
        "candidates": [
            {"index": 0, "content": {"role": "model", "parts": [*parts]}, "finishReason": "STOP"}
        ],
        "usageMetadata": {"promptTokenCount": 20, "candidatesTokenCount": 3, "totalTokenCount": 23},
        "modelVersion": "gemini-2.5-flash",
        "responseId": "resp-1",
    }
    return body, [body]


BLANK["gemini"] = _gemini()
CALL["gemini"] = _gemini({"functionCall": {"name": "lookup", "args": {"key": "a"}}})


def _ollama(**message: Any) -> tuple[Any, Any]:
    body = {
        "model": "model-a",
        "created_at": "2025-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": "", **message},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 20,
        "eval_count": 3,
    }
    return body, [body]


BLANK["ollama"] = _ollama()
CALL["ollama"] = _ollama(tool_calls=[{"function": {"name": "lookup", "arguments": {"key": "a"}}}])


def _bedrock(stop_reason: str, *blocks: dict[str, Any]) -> tuple[Any, Any]:
    end = {
        "usage": {"inputTokens": 20, "outputTokens": 3, "totalTokens": 23},
        "metrics": {"latencyMs": 5},
    }
    events: list[Any] = [{"messageStart": {"role": "assistant"}}]
    for block in blocks:
        tool = block["toolUse"]
        begun = {"toolUseId": tool["toolUseId"], "name": tool["name"]}
        events += [
            {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": begun}}},
            {
                "contentBlockDelta": {
                    "contentBlockIndex": 0,
                    "delta": {"toolUse": {"input": json.dumps(tool["input"])}},
                }
            },
            {"contentBlockStop": {"contentBlockIndex": 0}},
        ]
    events += [{"messageStop": {"stopReason": stop_reason}}, {"metadata": end}]
    message = {"role": "assistant", "content": [*blocks]}
    return {"output": {"message": message}, "stopReason": stop_reason, **end}, events


BLANK["bedrock-converse"] = _bedrock("end_turn")
CALL["bedrock-converse"] = _bedrock(
    "tool_use", {"toolUse": {"toolUseId": "tooluse_1", "name": "lookup", "input": {"key": "a"}}}
)


def _cohere(finish_reason: str, *calls: dict[str, Any]) -> tuple[Any, Any]:
    tokens = {"input_tokens": 20, "output_tokens": 3}
    usage = {"billed_units": tokens, "tokens": tokens}
    message = {"role": "assistant", "content": [], "tool_calls": [*calls]}
    events: list[Any] = [
        {"type": "message-start", "id": "1", "delta": {"message": {"role": "assistant"}}}
    ]
    for call in calls:
        begun = {**call, "function": {**call["function"], "arguments": ""}}
        arguments = {"function": {"arguments": call["function"]["arguments"]}}
        events += [
            {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": begun}}},
            {
                "type": "tool-call-delta",
                "index": 0,
                "delta": {"message": {"tool_calls": arguments}},
            },
            {"type": "tool-call-end", "index": 0},
        ]
    end = {"finish_reason": finish_reason, "usage": usage}
    events.append({"type": "message-end", "delta": end})
    return {"id": "1", "finish_reason": finish_reason, "message": message, "usage": usage}, events


BLANK["other"] = _cohere("COMPLETE")
CALL["other"] = _cohere(
    "TOOL_CALL",
    {
        "id": "lookup_1",
        "type": "function",
        "function": {"name": "lookup", "arguments": '{"key": "a"}'},
    },
)


def reply(kind: dict[str, tuple[Any, Any]], api: str, way: str) -> Reply:
    """A blank or a call, as it comes to the way in which a model is called."""
    streamed = "stream" in way
    return encode(api, "stream" if streamed else "invoke", kind[api][streamed])


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
