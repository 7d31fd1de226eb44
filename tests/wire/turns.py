"""What a model says, and how it reads in each API.

The bodies are as plain as clients take them; replies recorded from providers are in `cases.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Turn:
    """Text, tool calls or both; neither is a blank."""

    text: str | None = ""
    calls: tuple[tuple[str, Any], ...] = ()
    """Names and arguments; a text stands for arguments as it is."""
    reasoning: str = ""
    finish: str | None = ""
    """The finish reason, in the words of the API; if it is "", the one that fits."""
    tokens: tuple[int, int] | None = (20, 3)
    """In and out; None if they are not told."""
    details: bool = False
    """Whether chat completions and Anthropic tell of a cache."""
    number: int = 0
    """What ids are made of: its place in the script, from 1, if it is 0."""

    @property
    def pieces(self) -> list[str]:
        """The text as it is streamed."""
        return pieces(self.text or "")

    def named(self, name: str, *more: int) -> str:
        """An id."""
        return "_".join(map(str, (name, self.number, *more)))

    def finished(self, usual: str) -> str | None:
        """The finish reason."""
        return usual if self.finish == "" else self.finish

    def counted(self, into: str, out: str, total: str = "") -> dict[str, Any]:
        """The tokens under the names of an API."""
        counts = self.tokens or (0, 0)
        return {into: counts[0], out: counts[1], **({total: sum(counts)} if total else {})}


def calls(name: str, **args: Any) -> Turn:
    """A turn that calls a tool."""
    return Turn(calls=((name, args),))


def arguments(args: Any) -> str:
    """Arguments as chat completions and responses have them."""
    return args if isinstance(args, str) else json.dumps(args)


def pieces(text: str) -> list[str]:
    """The words of a text, with the space before them."""
    return re.findall(r"\s?\S+|\s", text)


BLANK = Turn()
GOOD = Turn("Recovered.")
HELLO = Turn("Hello you.")  # streamed in two pieces

Asked = Mapping[str, Any]
"""The body of a request, or nothing."""


def body_of(turn: Turn, api: str, mode: str, asked: Asked = {}) -> Any:  # noqa: B006 -- not changed
    """The body of a reply that says it; of a stream, its events."""
    whole, stream = _WRITERS[api]
    return (stream if mode == "stream" else whole)(turn, asked)


# OpenAI's chat completions


def _chat_head(turn: Turn, asked: Asked, kind: str) -> dict[str, Any]:
    return {
        "id": turn.named("chatcmpl"),
        "object": kind,
        "created": 1700000000,
        "model": asked.get("model", "model-a"),
        "system_fingerprint": "fp",
    }


def _chat_message(turn: Turn, asked: Asked) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": turn.text, "refusal": None}
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if not turn.calls:
        return message
    message["content"] = turn.text or None
    functions = [{"name": name, "arguments": arguments(args)} for name, args in turn.calls]
    if "functions" in asked:
        (function,) = functions
        return {**message, "function_call": function}
    tool_calls = [
        {"id": turn.named("call", index), "type": "function", "function": function}
        for index, function in enumerate(functions)
    ]
    return {**message, "tool_calls": tool_calls}


def _chat_finish(turn: Turn, asked: Asked) -> str | None:
    called = "function_call" if "functions" in asked else "tool_calls"
    return turn.finished(called if turn.calls else "stop")


def _chat_usage(turn: Turn) -> dict[str, Any]:
    usage = turn.counted("prompt_tokens", "completion_tokens", "total_tokens")
    if turn.details:
        usage["prompt_tokens_details"] = {"cached_tokens": 2}
        usage["completion_tokens_details"] = {"reasoning_tokens": 0}
    return usage


def _chat(turn: Turn, asked: Asked) -> dict[str, Any]:
    choice = {"message": _chat_message(turn, asked), "finish_reason": _chat_finish(turn, asked)}
    return {
        **_chat_head(turn, asked, "chat.completion"),
        "choices": [{"index": index, **choice} for index in range(asked.get("n") or 1)],
        **({"usage": _chat_usage(turn)} if turn.tokens else {}),
    }


def _chat_stream(turn: Turn, asked: Asked) -> list[Any]:
    message = _chat_message(turn, asked)
    function_call, tool_calls = message.pop("function_call", None), message.pop("tool_calls", ())
    deltas = [{**message, "content": message["content"] and ""}]
    deltas += [{"content": piece} for piece in turn.pieces]
    if function_call:
        deltas.append({"function_call": {**function_call, "arguments": ""}})
        deltas += [
            {"function_call": {"arguments": piece}} for piece in pieces(function_call["arguments"])
        ]
    for index, call in enumerate(tool_calls):
        function = call["function"]
        begun = {"index": index, **call, "function": {**function, "arguments": ""}}
        deltas.append({"tool_calls": [begun]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in pieces(function["arguments"])
        ]
    head = _chat_head(turn, asked, "chat.completion.chunk")
    finishes = [None] * len(deltas) + [_chat_finish(turn, asked)]
    chunks: list[Any] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        for delta, finish in zip([*deltas, {}], finishes, strict=True)
    ]
    if turn.tokens and (asked.get("stream_options") or {}).get("include_usage"):
        chunks.append({**head, "choices": [], "usage": _chat_usage(turn)})
    return [*chunks, "[DONE]"]


# OpenAI's responses


def _response_items(turn: Turn) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if turn.reasoning:
        summary = [{"type": "summary_text", "text": turn.reasoning}]
        items.append({"id": turn.named("rs"), "type": "reasoning", "summary": summary})
    if turn.text:
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        message = {"id": turn.named("msg"), "type": "message", "role": "assistant"}
        items.append({**message, "status": "completed", "content": content})
    items += [
        {
            "id": turn.named("fc", index),
            "type": "function_call",
            "status": "completed",
            "call_id": turn.named("call", index),
            "name": name,
            "arguments": arguments(args),
        }
        for index, (name, args) in enumerate(turn.calls)
    ]
    return items


def response_of(turn: Turn, items: list[dict[str, Any]], asked: Asked) -> dict[str, Any]:
    """A response that holds the items."""
    return {
        "id": turn.named("resp"),
        "object": "response",
        "created_at": 1700000000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": asked.get("model", "model-a"),
        "output": items,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "text": asked.get("text") or {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            **turn.counted("input_tokens", "output_tokens", "total_tokens"),
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def response_events(response: dict[str, Any]) -> list[Any]:
    """A response as it is streamed."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(response["output"]):
        place = {"item_id": item["id"], "output_index": index}
        added, deltas = {**item, "status": "in_progress"}, []
        if item["type"] == "message":
            (part,) = item["content"]
            added["content"] = []
            place["content_index"] = 0
            begun_part = {**part, "text": ""}
            deltas = [{"type": "response.content_part.added", **place, "part": begun_part}]
            deltas += [
                {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
                for piece in pieces(part["text"])
            ]
        elif item["type"] == "function_call":
            added["arguments"] = ""
            kind = "response.function_call_arguments.delta"
            deltas = [
                {"type": kind, **place, "delta": piece} for piece in pieces(item["arguments"])
            ]
        events += [
            {"type": "response.output_item.added", "output_index": index, "item": added},
            *deltas,
            {"type": "response.output_item.done", "output_index": index, "item": item},
        ]
    events.append({"type": "response.completed", "response": response})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _response(turn: Turn, asked: Asked) -> dict[str, Any]:
    return response_of(turn, _response_items(turn), asked)


def _response_stream(turn: Turn, asked: Asked) -> list[Any]:
    return response_events(_response(turn, asked))


# Anthropic's messages


def _anthropic_blocks(turn: Turn) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if turn.reasoning:
        blocks.append({"type": "thinking", "thinking": turn.reasoning, "signature": "sig"})
    if turn.text:
        blocks.append({"type": "text", "text": turn.text})
    blocks += [
        {"type": "tool_use", "id": turn.named("toolu", index), "name": name, "input": args}
        for index, (name, args) in enumerate(turn.calls)
    ]
    return blocks


def anthropic_of(turn: Turn, blocks: list[dict[str, Any]], asked: Asked) -> dict[str, Any]:
    """A message that holds the blocks."""
    usage = turn.counted("input_tokens", "output_tokens")
    if turn.details:
        usage |= {"cache_read_input_tokens": 2, "cache_creation_input_tokens": 1}
    return {
        "id": turn.named("msg"),
        "type": "message",
        "role": "assistant",
        "model": asked.get("model", "claude-model-a"),
        "content": blocks,
        "stop_reason": turn.finished("tool_use" if turn.calls else "end_turn"),
        "stop_sequence": None,
        "usage": usage,
    }


def anthropic_events(message: dict[str, Any]) -> list[Any]:
    """A message as it is streamed."""
    begun = {**message, "content": [], "stop_reason": None}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(message["content"]):
        empty, deltas = _anthropic_deltas(block)
        events += [
            {"type": "content_block_start", "index": index, "content_block": {**block, **empty}},
            *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": index},
        ]
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    return [
        *events,
        {"type": "message_delta", "delta": ended, "usage": message["usage"]},
        {"type": "message_stop"},
    ]


def _anthropic_deltas(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What a block lacks at first, and how it comes."""
    if block["type"] == "text":
        parts = pieces(block["text"])
        return {"text": ""}, [{"type": "text_delta", "text": part} for part in parts]
    if block["type"] == "thinking":
        return {"thinking": "", "signature": ""}, [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    if block["type"] == "tool_use":
        parts = pieces(json.dumps(block["input"]))
        return {"input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in parts]
    return {}, []  # what the provider's own tools do comes at once


def _anthropic(turn: Turn, asked: Asked) -> dict[str, Any]:
    return anthropic_of(turn, _anthropic_blocks(turn), asked)


def _anthropic_stream(turn: Turn, asked: Asked) -> list[Any]:
    return anthropic_events(_anthropic(turn, asked))


# Gemini, Ollama


def _gemini(turn: Turn, asked: Asked, text: str | None = None) -> dict[str, Any]:
    text = turn.text if text is None else text
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    parts += [{"functionCall": {"name": name, "args": args}} for name, args in turn.calls]
    content = {"role": "model", **({"parts": parts} if parts else {})}
    candidate = {"index": 0, "content": content, "finishReason": turn.finished("STOP")}
    return {
        "candidates": [candidate],
        "usageMetadata": turn.counted(
            "promptTokenCount", "candidatesTokenCount", "totalTokenCount"
        ),
        "modelVersion": "gemini-2.5-flash",
        "responseId": turn.named("resp"),
    }


def _gemini_stream(turn: Turn, asked: Asked) -> list[Any]:
    return [_gemini(turn, asked, piece) for piece in turn.pieces or [""]]


def _ollama(turn: Turn, asked: Asked) -> dict[str, Any]:
    (*before, last) = _ollama_stream(turn, asked)
    text = "".join(part["message"]["content"] for part in before)
    return {**last, "message": {**last["message"], "content": text}}


def _ollama_stream(turn: Turn, asked: Asked) -> list[Any]:
    head = {"model": asked.get("model", "model-a"), "created_at": "2025-01-01T00:00:00Z"}
    message = {"role": "assistant", "content": ""}
    tool_calls = [{"function": {"name": name, "arguments": args}} for name, args in turn.calls]
    last = {**message, **({"tool_calls": tool_calls} if tool_calls else {})}
    return [
        *({**head, "message": {**message, "content": p}, "done": False} for p in turn.pieces),
        {
            **head,
            "message": last,
            "done": True,
            "done_reason": turn.finished("stop"),
            **turn.counted("prompt_eval_count", "eval_count"),
        },
    ]


# Bedrock


def _bedrock_end(turn: Turn) -> dict[str, Any]:
    usage = turn.counted("inputTokens", "outputTokens", "totalTokens")
    return {"usage": usage, "metrics": {"latencyMs": 5}}


def _bedrock_finish(turn: Turn) -> dict[str, Any]:
    return {"stopReason": turn.finished("tool_use" if turn.calls else "end_turn")}


def _bedrock_tools(turn: Turn) -> list[dict[str, Any]]:
    return [
        {"toolUseId": turn.named("tooluse", index), "name": name, "input": args}
        for index, (name, args) in enumerate(turn.calls)
    ]


def _bedrock(turn: Turn, asked: Asked) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"text": turn.text}] if turn.text else []
    content += [{"toolUse": tool} for tool in _bedrock_tools(turn)]
    message = {"role": "assistant", "content": content}
    return {"output": {"message": message}, **_bedrock_finish(turn), **_bedrock_end(turn)}


def _bedrock_stream(turn: Turn, asked: Asked) -> list[Any]:
    events: list[Any] = [{"messageStart": {"role": "assistant"}}]
    blocks: list[list[dict[str, Any]]] = []
    if turn.text:
        blocks.append([{"contentBlockDelta": {"delta": {"text": p}}} for p in turn.pieces])
    for tool in _bedrock_tools(turn):
        arguments = json.dumps(tool.pop("input"))
        blocks.append(
            [
                {"contentBlockStart": {"start": {"toolUse": tool}}},
                {"contentBlockDelta": {"delta": {"toolUse": {"input": arguments}}}},
            ]
        )
    for index, block in enumerate(blocks):
        for event in [*block, {"contentBlockStop": {}}]:
            events += [{kind: {"contentBlockIndex": index, **what}} for kind, what in event.items()]
    return [*events, {"messageStop": _bedrock_finish(turn)}, {"metadata": _bedrock_end(turn)}]


def _bedrock_invoke(turn: Turn, asked: Asked) -> dict[str, Any]:
    """As Claude, Titan and Llama have it."""
    results = [{"outputText": turn.text, "completionReason": "FINISH"}]
    return {**_anthropic(turn, asked), "results": results, "generation": turn.text}


# DashScope, Cohere


def _dashscope(turn: Turn, asked: Asked) -> dict[str, Any]:
    message = {"role": "assistant", "content": turn.text}
    return {
        "request_id": turn.named("request"),
        "output": {"choices": [{"finish_reason": turn.finished("stop"), "message": message}]},
        "usage": turn.counted("input_tokens", "output_tokens", "total_tokens"),
    }


def _cohere_end(turn: Turn) -> dict[str, Any]:
    tokens = turn.counted("input_tokens", "output_tokens")
    finish_reason = turn.finished("TOOL_CALL" if turn.calls else "COMPLETE")
    return {"finish_reason": finish_reason, "usage": {"billed_units": tokens, "tokens": tokens}}


def _cohere(turn: Turn, asked: Asked) -> dict[str, Any]:
    tool_calls = [
        {
            "id": turn.named(name, index),
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(args)},
        }
        for index, (name, args) in enumerate(turn.calls)
    ]
    content = [{"type": "text", "text": turn.text}] if turn.text else []
    message = {"role": "assistant", "content": content, "tool_calls": tool_calls}
    return {"id": turn.named("reply"), "message": message, **_cohere_end(turn)}


def _cohere_stream(turn: Turn, asked: Asked) -> list[Any]:
    def event(kind: str, index: int = 0, **message: Any) -> dict[str, Any]:
        return {"type": kind, "index": index, "delta": {"message": message}}

    start = event("message-start", role="assistant")
    events = [{**start, "id": turn.named("reply")}]
    if turn.text:
        events += [
            event("content-start", content={"type": "text", "text": ""}),
            *(event("content-delta", content={"text": piece}) for piece in turn.pieces),
            event("content-end"),
        ]
    for index, call in enumerate(_cohere(turn, asked)["message"]["tool_calls"]):
        function = call["function"]
        begun = {**call, "function": {**function, "arguments": ""}}
        rest = {"function": {"arguments": function["arguments"]}}
        events += [
            event("tool-call-start", index, tool_calls=begun),
            event("tool-call-delta", index, tool_calls=rest),
            event("tool-call-end", index),
        ]
    return [*events, {"type": "message-end", "delta": _cohere_end(turn)}]


Writer = Callable[[Turn, Asked], Any]
_WRITERS: dict[str, tuple[Writer, Writer]] = {
    "openai-chat": (_chat, _chat_stream),
    "openai-responses": (_response, _response_stream),
    "anthropic-messages": (_anthropic, _anthropic_stream),
    "gemini": (_gemini, _gemini_stream),
    "ollama": (_ollama, _ollama_stream),
    "bedrock-converse": (_bedrock, _bedrock_stream),
    "bedrock-invoke": (_bedrock_invoke, _anthropic_stream),
    "dashscope": (_dashscope, lambda turn, asked: [_dashscope(turn, asked)]),
    "other": (_cohere, _cohere_stream),
}
