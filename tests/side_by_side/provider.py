"""A loopback provider that answers in the API and mode in which it is asked."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from typing_extensions import Self
from werkzeug import Request, Response

from side_by_side.rows import NUDGE
from side_by_side.small_models import fresh
from wire.server import WireServer, encode


@dataclass(frozen=True)
class Turn:
    """What the model says: text, tool calls or both; neither is a blank."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    reasoning: str = ""
    finish: str = ""


def calls(name: str, **args: Any) -> Turn:
    return Turn(calls=((name, args),))


BLANK = Turn()
HELLO = Turn("Hello you.")


@dataclass(frozen=True)
class Call:
    """A request, seen by one of the writers below."""

    turn: Turn
    body: dict[str, Any]
    number: int

    @property
    def halves(self) -> Iterator[str]:
        """The text as it is streamed."""
        return _halves(self.turn.text)

    def named(self, name: str) -> str:
        return f"{name}_{self.number}"


class Provider(WireServer):
    """Says one turn after the other, the last one again and again.

    With blanks it says each only when it is asked for again.
    """

    def __enter__(self) -> Self:
        # Nothing here speaks TLS, but each client loads the authorities for it, 40 ms each.
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)
        return super().__enter__()

    def __exit__(self, *exc_info: object) -> None:
        super().__exit__(*exc_info)
        self._patch.undo()

    def says(self, *turns: Turn, blanks: bool = False) -> None:
        self.requests = []
        self._turns = turns or (HELLO,)
        self._said = 0
        self._blanks = blanks

    def _answer(self, request: Request) -> Response:
        body = request.get_json(silent=True) or {}
        self.requests.append({"path": request.path, "query": dict(request.args), "json": body})
        call = Call(self._turn(request.get_data(as_text=True)), body, self._said)
        api, whole, stream = next(
            writers for path, writers in _WRITERS.items() if path in request.path
        )
        streamed = bool(body.get("stream")) or "stream" in request.path
        mode, writer = ("stream", stream) if streamed else ("invoke", whole)
        if api == "count":
            return Response(json.dumps({"input_tokens": 7}), content_type="application/json")
        reply = encode(api, mode, writer(call))
        return Response(reply.body, content_type=reply.content_type)

    def _turn(self, request: str) -> Turn:
        if self._blanks and NUDGE not in request:
            return BLANK
        self._said = min(self._said + 1, len(self._turns))
        return self._turns[self._said - 1]


def _halves(text: str) -> Iterator[str]:
    """Two pieces of a text, or none of an empty one."""
    middle = (len(text) + 1) // 2
    return (half for half in (text[:middle], text[middle:]) if half)


# --- OpenAI, chat completions ---


def _chat_message(call: Call) -> dict[str, Any]:
    turn = call.turn
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None, "refusal": None}
    if turn.calls and "functions" in call.body:
        ((name, args),) = turn.calls
        message["function_call"] = {"name": name, "arguments": json.dumps(args)}
    elif turn.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{call.number}_{index}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(args)},
            }
            for index, (name, args) in enumerate(turn.calls)
        ]
    return message


def _chat_finish(call: Call) -> str:
    if not call.turn.calls:
        return call.turn.finish or "stop"
    return "function_call" if "functions" in call.body else "tool_calls"


_CHAT_USAGE = {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23}


def _chat(call: Call) -> dict[str, Any]:
    message, finish_reason = _chat_message(call), _chat_finish(call)
    return {
        "id": call.named("chatcmpl"),
        "object": "chat.completion",
        "created": 1700000000,
        "model": call.body["model"],
        "system_fingerprint": "fp",
        "choices": [
            {"index": index, "message": message, "finish_reason": finish_reason}
            for index in range(call.body.get("n") or 1)
        ],
        "usage": _CHAT_USAGE,
    }


def _chat_stream(call: Call) -> list[Any]:
    message = _chat_message(call)
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": half} for half in call.halves]
    if "function_call" in message:
        name, arguments = message["function_call"].values()
        deltas.append({"function_call": {"name": name, "arguments": ""}})
        deltas += [{"function_call": {"arguments": half}} for half in _halves(arguments)]
    for index, tool_call in enumerate(message.get("tool_calls", ())):
        function = tool_call["function"]
        start = {**tool_call, "index": index, "function": {**function, "arguments": ""}}
        deltas.append({"tool_calls": [start]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": half}}]}
            for half in _halves(function["arguments"])
        ]
    head = {
        "id": call.named("chatcmpl"),
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": call.body["model"],
        "system_fingerprint": "fp",
    }
    finishes = [None] * len(deltas) + [_chat_finish(call)]
    chunks: list[Any] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        for delta, finish in zip([*deltas, {}], finishes, strict=True)
    ]
    if (call.body.get("stream_options") or {}).get("include_usage"):
        chunks.append({**head, "choices": [], "usage": _CHAT_USAGE})
    return [*chunks, "[DONE]"]


# --- OpenAI, responses ---


def _response_items(call: Call) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if call.turn.reasoning:
        summary = [{"type": "summary_text", "text": call.turn.reasoning}]
        items.append({"id": call.named("rs"), "type": "reasoning", "summary": summary})
    if call.turn.text:
        part = {"type": "output_text", "text": call.turn.text, "annotations": []}
        items.append(
            {
                "id": call.named("msg"),
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    items += [
        {
            "id": f"fc_{call.number}_{index}",
            "type": "function_call",
            "status": "completed",
            "call_id": f"call_{call.number}_{index}",
            "name": name,
            "arguments": json.dumps(args),
        }
        for index, (name, args) in enumerate(call.turn.calls)
    ]
    return items


def _response(call: Call) -> dict[str, Any]:
    return {
        "id": call.named("resp"),
        "object": "response",
        "created_at": 1700000000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": call.body["model"],
        "output": _response_items(call),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "text": call.body.get("text") or {"format": {"type": "text"}},
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


def _response_stream(call: Call) -> list[Any]:
    response = _response(call)
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(response["output"]):
        place = {"item_id": item["id"], "output_index": index}
        added = {**item, "status": "in_progress"}
        if item["type"] == "message":
            added["content"] = []
            (part,) = item["content"]
            place["content_index"] = 0
            deltas = [
                {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
                *(
                    {"type": "response.output_text.delta", **place, "delta": half, "logprobs": []}
                    for half in call.halves
                ),
            ]
        elif item["type"] == "function_call":
            added["arguments"] = ""
            kind = "response.function_call_arguments.delta"
            deltas = [{"type": kind, **place, "delta": half} for half in _halves(item["arguments"])]
        else:
            deltas = []
        events += [
            {"type": "response.output_item.added", "output_index": index, "item": added},
            *deltas,
            {"type": "response.output_item.done", "output_index": index, "item": item},
        ]
    events.append({"type": "response.completed", "response": response})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


# --- Anthropic ---


def _anthropic(call: Call) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if call.turn.reasoning:
        block = {"type": "thinking", "thinking": call.turn.reasoning, "signature": "sig"}
        content.append(block)
    if call.turn.text:
        content.append({"type": "text", "text": call.turn.text})
    content += [
        {
            "type": "tool_use",
            "id": f"toolu_{call.number}_{index}",
            "name": name,
            "input": args,
        }
        for index, (name, args) in enumerate(call.turn.calls)
    ]
    return {
        "id": call.named("msg"),
        "type": "message",
        "role": "assistant",
        "model": call.body["model"],
        "content": content,
        "stop_reason": "tool_use" if call.turn.calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 20, "output_tokens": 3},
    }


def _anthropic_stream(call: Call) -> list[Any]:
    message = _anthropic(call)
    begun = {**message, "content": [], "stop_reason": None}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            start = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": half} for half in _halves(block["text"])]
        elif block["type"] == "thinking":
            start = {**block, "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        else:
            start = {**block, "input": {}}
            deltas = [
                {"type": "input_json_delta", "partial_json": half}
                for half in _halves(json.dumps(block["input"]))
            ]
        events += [
            {"type": "content_block_start", "index": index, "content_block": start},
            *({"type": "content_block_delta", "index": index, "delta": d} for d in deltas),
            {"type": "content_block_stop", "index": index},
        ]
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    return [
        *events,
        {"type": "message_delta", "delta": delta, "usage": message["usage"]},
        {"type": "message_stop"},
    ]


# --- Gemini, Ollama ---


def _gemini(call: Call, text: str | None = None) -> dict[str, Any]:
    text = call.turn.text if text is None else text
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    parts += [{"functionCall": {"name": name, "args": args}} for name, args in call.turn.calls]
    content = {"role": "model", "parts": parts} if parts else {"role": "model"}
    return {
        "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 20, "candidatesTokenCount": 3, "totalTokenCount": 23},
        "modelVersion": "gemini-2.5-flash",
        "responseId": call.named("resp"),
    }


def _gemini_stream(call: Call) -> list[Any]:
    return [_gemini(call, half) for half in list(call.halves) or [""]]


def _ollama_stream(call: Call) -> list[Any]:
    head = {"model": call.body["model"], "created_at": "2025-01-01T00:00:00Z"}
    message = {"role": "assistant", "content": ""}
    tool_calls = [{"function": {"name": n, "arguments": a}} for n, a in call.turn.calls]
    last = {**message, **({"tool_calls": tool_calls} if tool_calls else {})}
    end = {"done": True, "done_reason": "stop", "prompt_eval_count": 12, "eval_count": 3}
    return [
        *({**head, "message": {**message, "content": half}, "done": False} for half in call.halves),
        {**head, "message": last, **end},
    ]


Writer = Callable[[Call], Any]
_WRITERS: dict[str, tuple[str, Writer, Writer]] = {
    "/chat/completions": ("openai-chat", _chat, _chat_stream),
    "/responses": ("openai-responses", _response, _response_stream),
    "/count_tokens": ("count", _anthropic, _anthropic),
    "/messages": ("anthropic-messages", _anthropic, _anthropic_stream),
    "generateContent": ("gemini", _gemini, _gemini_stream),
    "GenerateContent": ("gemini", _gemini, _gemini_stream),
    "/api/chat": ("ollama", lambda call: _ollama_stream(call)[-1], _ollama_stream),
}


# --- the real integrations, pointed at it ---


def openai(**kwargs: Any) -> Callable[[str], Any]:
    return _client(
        "langchain_openai", "ChatOpenAI", lambda url: {"base_url": f"{url}/v1"}, **kwargs
    )


def responses(**kwargs: Any) -> Callable[[str], Any]:
    return openai(use_responses_api=True, **kwargs)


def anthropic(**kwargs: Any) -> Callable[[str], Any]:
    kwargs = {"model": "claude-model-a", "max_tokens": 4096, **kwargs}
    return _client("langchain_anthropic", "ChatAnthropic", lambda url: {"base_url": url}, **kwargs)


def gemini(**kwargs: Any) -> Callable[[str], Any]:
    kwargs = {"model": "gemini-2.5-flash", "max_retries": 1, **kwargs}
    package = "langchain_google_genai"
    return _client(package, "ChatGoogleGenerativeAI", lambda url: {"base_url": url}, **kwargs)


def ollama(**kwargs: Any) -> Callable[[str], Any]:
    def make(url: str) -> Any:
        chat = pytest.importorskip("langchain_ollama").ChatOllama
        return chat(model="model-a", base_url=url, **fresh(kwargs))

    return make


def _client(
    package: str, name: str, place: Callable[[str], dict[str, Any]], **kwargs: Any
) -> Callable[[str], Any]:
    arguments = {"model": "model-a", "api_key": "sk-secret", "max_retries": 0, **kwargs}

    def make(url: str) -> Any:
        chat_model = getattr(pytest.importorskip(package), name)
        for argument in arguments.keys() & {"use_responses_api", "use_previous_response_id"}:
            if argument not in chat_model.model_fields:
                pytest.skip(f"this release of {package} has no {argument}")
        return chat_model(**place(url), **fresh(arguments))

    return make


MODELS = {
    "ChatOpenAI": openai,
    "Responses": responses,
    "ChatAnthropic": anthropic,
    "Gemini": gemini,
    "Ollama": ollama,
}
