"""A believable provider on loopback: chat completions of OpenAI's, messages of Anthropic's."""

from __future__ import annotations

from typing import Any

from werkzeug import Request, Response

from standard.answers import Answer, Question, Tool, answer
from wire.server import WireServer, encode


class Provider(WireServer):
    """Answers each request in the format of its path; below `/blanked` only what is nudged."""

    def _answer(self, request: Request) -> Response:
        body = request.get_json()
        mode = "stream" if body.get("stream") else "invoke"
        if request.path.endswith("/chat/completions"):
            api, reader, writers = "openai-chat", _openai_question, _OPENAI
        else:
            api, reader, writers = "anthropic-messages", _anthropic_question, _ANTHROPIC
        blanked = request.path.startswith("/blanked/")
        said = answer(reader(body), blank_until_nudged=blanked)
        reply = encode(api, mode, writers[mode](said, body))
        return Response(reply.body, content_type=reply.content_type)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content or [])


# --- OpenAI: https://platform.openai.com/docs/api-reference/chat ---


def _openai_question(body: dict[str, Any]) -> Question:
    choice = body.get("tool_choice")
    response_format = body.get("response_format", {"type": "text"})
    schema = response_format.get("json_schema", {}).get("schema", {})
    return Question(
        turns=[(message["role"], _text(message["content"])) for message in body["messages"]],
        tools=[
            Tool(function["name"], function["parameters"])
            for function in (tool["function"] for tool in body.get("tools", []))
        ],
        choice=choice["function"]["name"] if isinstance(choice, dict) else choice,
        schema=None if response_format["type"] == "text" else schema,
        stop=body.get("stop") or [],
    )


def _openai_usage(reply: Answer) -> dict[str, Any]:
    tokens = len(reply.pieces)
    return {
        "prompt_tokens": 20,
        "completion_tokens": tokens,
        "total_tokens": 20 + tokens,
        "prompt_tokens_details": {"cached_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _openai_finish(reply: Answer) -> str:
    return "stop" if reply.tool is None else "tool_calls"


def _openai_whole(reply: Answer, body: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
    if reply.tool is not None:
        function = {"name": reply.tool, "arguments": "".join(reply.pieces)}
        message["content"] = None
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": _openai_finish(reply)}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": body["model"],
        "choices": [choice],
        "usage": _openai_usage(reply),
    }


def _openai_stream(reply: Answer, body: dict[str, Any]) -> list[Any]:
    def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        return {
            **common,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
        }

    common = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": body["model"],
    }
    if reply.tool is None:
        chunks = [chunk({"role": "assistant", "content": ""})]
        chunks += [chunk({"content": piece}) for piece in reply.pieces]
    else:
        head = {"name": reply.tool, "arguments": ""}
        call = {"index": 0, "id": "call_1", "type": "function", "function": head}
        chunks = [chunk({"role": "assistant", "content": None, "tool_calls": [call]})]
        chunks += [
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
            for piece in reply.pieces
        ]
    chunks.append(chunk({}, _openai_finish(reply)))
    if (body.get("stream_options") or {}).get("include_usage"):
        chunks.append({**common, "choices": [], "usage": _openai_usage(reply)})
    return [*chunks, "[DONE]"]


_OPENAI = {"invoke": _openai_whole, "stream": _openai_stream}


# --- Anthropic: https://docs.claude.com/en/api/messages ---


def _anthropic_question(body: dict[str, Any]) -> Question:
    choice = body.get("tool_choice", {"type": "auto"})
    output = body.get("output_config", {}).get("format")
    return Question(
        turns=[turn for message in body["messages"] for turn in _anthropic_turns(message)],
        tools=[Tool(tool["name"], tool["input_schema"]) for tool in body.get("tools", [])],
        choice=choice.get("name", choice["type"]),
        schema=output["schema"] if output else None,
        stop=body.get("stop_sequences") or [],
    )


def _anthropic_turns(message: dict[str, Any]) -> list[tuple[str, str]]:
    """One for each block: a message may hold a tool's result and what the user adds to it."""
    if isinstance(message["content"], str):
        return [(message["role"], message["content"])]
    return [
        ("tool" if block["type"] == "tool_result" else message["role"], block.get("text", ""))
        for block in message["content"]
    ]


def _anthropic_whole(reply: Answer, body: dict[str, Any]) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if reply.tool is not None:
        content.append(
            {"type": "tool_use", "id": "toolu_1", "name": reply.tool, "input": reply.arguments}
        )
    elif reply.text:
        content.append({"type": "text", "text": reply.text})
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": "end_turn" if reply.tool is None else "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 20,
            "cache_read_input_tokens": 2,
            "cache_creation_input_tokens": 1,
            "output_tokens": len(reply.pieces),
        },
    }


def _anthropic_stream(reply: Answer, body: dict[str, Any]) -> list[Any]:
    whole = _anthropic_whole(reply, body)
    start = {**whole, "content": [], "stop_reason": None}
    events: list[Any] = [{"type": "message_start", "message": start}]
    for block in whole["content"]:  # one, or none
        if reply.tool is None:
            opened: dict[str, Any] = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in reply.pieces]
        else:
            opened = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in reply.pieces]
        events += [
            {"type": "content_block_start", "index": 0, "content_block": opened},
            *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": 0},
        ]
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    return [
        *events,
        {"type": "message_delta", "delta": ending, "usage": whole["usage"]},
        {"type": "message_stop"},
    ]


_ANTHROPIC = {"invoke": _anthropic_whole, "stream": _anthropic_stream}
