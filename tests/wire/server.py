"""A loopback server that answers with scripted bodies, in the wire format of each API."""

from __future__ import annotations

import base64
import json
import struct
import threading
import zlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from typing_extensions import Self
from werkzeug import Request, Response
from werkzeug.serving import WSGIRequestHandler, make_server

EVENT_STREAM = "text/event-stream"


class Reply(NamedTuple):
    """The body of a 200 and its type."""

    body: bytes
    content_type: str


class WireServer:
    """Answers requests one after the other from a script; the last reply repeats."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        """Path and JSON body of every request since `play`."""
        self._replies: tuple[Reply, ...] = ()
        self._server = make_server(
            "127.0.0.1", 0, Request.application(self._answer), True, request_handler=_Handler
        )
        self.url = f"http://127.0.0.1:{self._server.port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def play(self, *replies: Reply) -> None:
        """Start a new script."""
        self.requests = []
        self._replies = replies

    def _answer(self, request: Request) -> Response:
        self.requests.append({"path": request.path, "json": request.get_json(silent=True)})
        reply = self._replies[min(len(self.requests), len(self._replies)) - 1]
        return Response(reply.body, content_type=reply.content_type)


class _Handler(WSGIRequestHandler):
    """Silent, and without a clock: Bedrock's metadata hold the reply's headers."""

    def log(self, *_: Any) -> None:
        pass

    def date_time_string(self, _: Any = None) -> str:
        return "Thu, 01 Jan 1970 00:00:00 GMT"


def encode(api: str, mode: str, body: Any, content_type: str | None = None) -> Reply:
    """A case's body as the provider sends it; a string is sent as it is."""
    usual_type, writer = _WIRE[api, mode]
    raw = body.encode() if isinstance(body, str) else writer(body)
    return Reply(raw, content_type or usual_type)


def good(api: str, mode: str) -> Reply:
    """A reply of the text "Recovered."."""
    return encode(api, mode, _GOOD[api, mode])


def _json(body: Any) -> bytes:
    return json.dumps(body).encode()


def _ndjson(lines: Iterable[Any]) -> bytes:
    return b"".join(_json(line) + b"\n" for line in lines)


def _sse(events: Iterable[Any]) -> bytes:
    """Server-sent events without names, but where `__event__` gives one."""
    return "".join(map(_sse_event, events)).encode()


def _sse_event(event: Any) -> str:
    if isinstance(event, str):  # a comment, or the end
        return f"{event}\n\n" if event.startswith(":") else f"data: {event}\n\n"
    name = event.get("__event__")
    data = json.dumps({key: value for key, value in event.items() if key != "__event__"})
    return f"event: {name}\ndata: {data}\n\n" if name else f"data: {data}\n\n"


def _named_sse(events: Iterable[Any]) -> bytes:
    """Server-sent events named by their type."""
    return _sse({"__event__": event["type"], **event} for event in events)


def _aws_events(events: Iterable[Any]) -> bytes:
    """Amazon's binary event stream: each event is `{type: payload}`."""
    return b"".join(
        _aws_message(kind, payload) for event in events for kind, payload in event.items()
    )


def _aws_invoke_events(events: Iterable[Any]) -> bytes:
    """The same for a model's own events, which it holds in base64."""
    return b"".join(
        _aws_message("chunk", {"bytes": base64.b64encode(_json(event)).decode()})
        for event in events
    )


def _aws_message(kind: str, payload: Any) -> bytes:
    headers = b"".join(
        struct.pack(">B", len(name)) + name + struct.pack(">BH", 7, len(value)) + value
        for name, value in (
            (b":event-type", kind.encode()),
            (b":content-type", b"application/json"),
            (b":message-type", b"event"),
        )
    )
    data = _json(payload)
    prelude = struct.pack(">II", 16 + len(headers) + len(data), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + data
    return message + struct.pack(">I", zlib.crc32(message))


_WIRE: dict[tuple[str, str], tuple[str, Callable[[Any], bytes]]] = {
    ("openai-chat", "invoke"): ("application/json", _json),
    ("openai-chat", "stream"): (EVENT_STREAM, _sse),
    ("openai-responses", "invoke"): ("application/json", _json),
    ("openai-responses", "stream"): (EVENT_STREAM, _named_sse),
    ("anthropic-messages", "invoke"): ("application/json", _json),
    ("anthropic-messages", "stream"): (EVENT_STREAM, _named_sse),
    ("gemini", "invoke"): ("application/json", _json),
    ("gemini", "stream"): (EVENT_STREAM, _sse),
    ("ollama", "invoke"): ("application/x-ndjson", lambda body: _ndjson([body])),
    ("ollama", "stream"): ("application/x-ndjson", _ndjson),
    ("bedrock-converse", "invoke"): ("application/json", _json),
    ("bedrock-converse", "stream"): ("application/vnd.amazon.eventstream", _aws_events),
    ("other", "invoke"): ("application/json", _json),  # Cohere
    ("other", "stream"): (EVENT_STREAM, _named_sse),
    ("bedrock-invoke", "invoke"): ("application/json", _json),
    ("bedrock-invoke", "stream"): ("application/vnd.amazon.eventstream", _aws_invoke_events),
    ("dashscope", "invoke"): ("application/json", _json),
    ("dashscope", "stream"): (EVENT_STREAM, _sse),
}

_TEXT = "Recovered."


def _openai_chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-good",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "model-a",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    }


_OUTPUT_TEXT = {"type": "output_text", "text": _TEXT, "annotations": []}
_OUTPUT_ITEM = {
    "id": "msg_good",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [_OUTPUT_TEXT],
}
_RESPONSE = {
    "id": "resp_good",
    "object": "response",
    "created_at": 1700000000,
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "model": "model-a",
    "output": [_OUTPUT_ITEM],
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
_ANTHROPIC = {
    "id": "msg_good",
    "type": "message",
    "role": "assistant",
    "model": "claude-model-a",
    "content": [{"type": "text", "text": _TEXT}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 20, "output_tokens": 3},
}
_GEMINI = {
    "candidates": [
        {
            "index": 0,
            "content": {"role": "model", "parts": [{"text": _TEXT}]},
            "finishReason": "STOP",
        }
    ],
    "usageMetadata": {"promptTokenCount": 20, "candidatesTokenCount": 3, "totalTokenCount": 23},
    "modelVersion": "gemini-2.5-flash",
    "responseId": "resp-good",
}
_OLLAMA = {
    "model": "model-a",
    "created_at": "2025-01-01T00:00:00Z",
    "message": {"role": "assistant", "content": _TEXT},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 12,
    "eval_count": 3,
}
_BEDROCK_END = {
    "usage": {"inputTokens": 20, "outputTokens": 3, "totalTokens": 23},
    "metrics": {"latencyMs": 5},
}
_DASHSCOPE = {
    "request_id": "good",
    "output": {
        "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": _TEXT}}]
    },
    "usage": {"input_tokens": 20, "output_tokens": 3, "total_tokens": 23},
}
_COHERE_USAGE = {
    "billed_units": {"input_tokens": 20, "output_tokens": 3},
    "tokens": {"input_tokens": 20, "output_tokens": 3},
}

_GOOD: dict[tuple[str, str], Any] = {
    ("openai-chat", "invoke"): {
        "id": "chatcmpl-good",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "model-a",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": _TEXT},
                "finish_reason": "stop",
            }
        ],
        "system_fingerprint": "fp_good",
        "usage": {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23},
    },
    ("openai-chat", "stream"): [
        _openai_chunk({"role": "assistant", "content": _TEXT}),
        _openai_chunk({}, "stop"),
        "[DONE]",
    ],
    ("openai-responses", "invoke"): _RESPONSE,
    ("openai-responses", "stream"): [
        {
            "type": "response.created",
            "sequence_number": 0,
            "response": {**_RESPONSE, "status": "in_progress", "output": [], "usage": None},
        },
        {
            "type": "response.output_item.added",
            "sequence_number": 1,
            "output_index": 0,
            "item": {**_OUTPUT_ITEM, "status": "in_progress", "content": []},
        },
        {
            "type": "response.content_part.added",
            "sequence_number": 2,
            "item_id": "msg_good",
            "output_index": 0,
            "content_index": 0,
            "part": {**_OUTPUT_TEXT, "text": ""},
        },
        {
            "type": "response.output_text.delta",
            "sequence_number": 3,
            "item_id": "msg_good",
            "output_index": 0,
            "content_index": 0,
            "delta": _TEXT,
            "logprobs": [],
        },
        {
            "type": "response.output_item.done",
            "sequence_number": 4,
            "output_index": 0,
            "item": _OUTPUT_ITEM,
        },
        {"type": "response.completed", "sequence_number": 5, "response": _RESPONSE},
    ],
    ("anthropic-messages", "invoke"): _ANTHROPIC,
    ("anthropic-messages", "stream"): [
        {
            "type": "message_start",
            "message": {**_ANTHROPIC, "content": [], "stop_reason": None},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": _TEXT},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"input_tokens": 20, "output_tokens": 3},
        },
        {"type": "message_stop"},
    ],
    ("gemini", "invoke"): _GEMINI,
    ("gemini", "stream"): [_GEMINI],
    ("ollama", "invoke"): _OLLAMA,
    ("ollama", "stream"): [_OLLAMA],
    ("bedrock-converse", "invoke"): {
        "output": {"message": {"role": "assistant", "content": [{"text": _TEXT}]}},
        "stopReason": "end_turn",
        **_BEDROCK_END,
    },
    ("bedrock-converse", "stream"): [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": _TEXT}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "end_turn"}},
        {"metadata": _BEDROCK_END},
    ],
    ("bedrock-invoke", "invoke"): {  # as Claude, Titan and Llama have it
        **_ANTHROPIC,
        "results": [{"outputText": _TEXT, "completionReason": "FINISH"}],
        "generation": _TEXT,
    },
    ("dashscope", "invoke"): _DASHSCOPE,
    ("dashscope", "stream"): [_DASHSCOPE],
    ("other", "invoke"): {
        "id": "good",
        "finish_reason": "COMPLETE",
        "message": {"role": "assistant", "content": [{"type": "text", "text": _TEXT}]},
        "usage": _COHERE_USAGE,
    },
    ("other", "stream"): [
        {"type": "message-start", "id": "good", "delta": {"message": {"role": "assistant"}}},
        {
            "type": "content-start",
            "index": 0,
            "delta": {"message": {"content": {"type": "text", "text": ""}}},
        },
        {
            "type": "content-delta",
            "index": 0,
            "delta": {"message": {"content": {"text": _TEXT}}},
        },
        {"type": "content-end", "index": 0},
        {
            "type": "message-end",
            "delta": {"finish_reason": "COMPLETE", "usage": _COHERE_USAGE},
        },
    ],
}
_GOOD["bedrock-invoke", "stream"] = _GOOD["anthropic-messages", "stream"]
