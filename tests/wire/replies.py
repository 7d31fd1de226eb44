"""A provider's reply as it goes over the wire: bytes, their type, and how they end."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, NamedTuple

EVENT_STREAM = "text/event-stream"
JSON = "application/json"


class Ending(Enum):
    """How a reply ends."""

    DONE = "done"
    CUT = "the connection is closed in the middle"
    RESET = "the connection is reset before anything has come"
    STALL = "nothing more comes until the client hangs up"


class Reply(NamedTuple):
    """What the server sends."""

    body: bytes
    content_type: str = JSON
    status: int = 200
    ending: Ending = Ending.DONE
    drips: bool = False
    """Whether the body comes in small parts, slowly."""


def failure(body: Any, status: int = 400) -> Reply:
    """An error, whose body is JSON."""
    return Reply(_json(body), status=status)


def encode(api: str, mode: str, body: Any, content_type: str | None = None) -> Reply:
    """A case's body as the provider sends it; a string is sent as it is."""
    usual_type, writer = _WIRE[api, mode]
    raw = body.encode() if isinstance(body, str) else writer(body)
    return Reply(raw, content_type or usual_type)


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
            (b":content-type", JSON.encode()),
            (b":message-type", b"event"),
        )
    )
    data = _json(payload)
    prelude = struct.pack(">II", 16 + len(headers) + len(data), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + data
    return message + struct.pack(">I", zlib.crc32(message))


_WIRE: dict[tuple[str, str], tuple[str, Callable[[Any], bytes]]] = {
    ("openai-chat", "invoke"): (JSON, _json),
    ("openai-chat", "stream"): (EVENT_STREAM, _sse),
    ("openai-responses", "invoke"): (JSON, _json),
    ("openai-responses", "stream"): (EVENT_STREAM, _named_sse),
    ("anthropic-messages", "invoke"): (JSON, _json),
    ("anthropic-messages", "stream"): (EVENT_STREAM, _named_sse),
    ("gemini", "invoke"): (JSON, _json),
    ("gemini", "stream"): (EVENT_STREAM, _sse),
    ("ollama", "invoke"): ("application/x-ndjson", lambda body: _ndjson([body])),
    ("ollama", "stream"): ("application/x-ndjson", _ndjson),
    ("bedrock-converse", "invoke"): (JSON, _json),
    ("bedrock-converse", "stream"): ("application/vnd.amazon.eventstream", _aws_events),
    ("other", "invoke"): (JSON, _json),  # Cohere
    ("other", "stream"): (EVENT_STREAM, _named_sse),
    ("bedrock-invoke", "invoke"): (JSON, _json),
    ("bedrock-invoke", "stream"): ("application/vnd.amazon.eventstream", _aws_invoke_events),
    ("dashscope", "invoke"): (JSON, _json),
    ("dashscope", "stream"): (EVENT_STREAM, _sse),
}
