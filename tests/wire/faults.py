"""A loopback server of chat completions in OpenAI's format that fails as real ones do.

What becomes of a request stands in its prompt: `call 17: nothing, cut, answer` has the first
request of call 17 answered with nothing, the second cut off, and the third and all others answered.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from typing_extensions import Self
from werkzeug import Request, Response
from werkzeug.serving import WSGIRequestHandler, make_server

DRIP_SECONDS = 0.002
HANG_UP_SECONDS = 60  # how long a stalled request is held for a client that does not hang up


class Ending(Enum):
    """How a response's body ends."""

    DONE = "done"
    CUT = "the connection is closed in the middle"
    RESET = "the connection is reset before anything has come"
    STALL = "nothing more comes until the client hangs up"
    GARBAGE = "what comes is no JSON"
    ERROR = "the provider reports an error in a response of status 200"


@dataclass(frozen=True)
class Fault:
    """What a request is answered with."""

    pieces: tuple[str, ...] = ()
    """The content; of a whole reply, their sum. `@` stands for call and request, as in `17.0`."""
    visible: bool = False
    """Whether a consumer can use the pieces."""
    finish_reason: str | None = "stop"
    ending: Ending = Ending.DONE
    status: int = 200
    whole: str | None = None
    """A body of a request that is not streamed, in place of what the pieces make."""
    events: tuple[str, ...] | None = None
    """The same of a streamed one, as lines."""
    drips: bool = False
    """Whether the body comes in small parts, slowly."""


_ANSWER = ("Reply", " @", " is", " seen.")
_THOUGHTS = ("<think>", "@ is", " not seen</think>", "\n")

FAULTS = {
    # Answers.
    "answer": Fault(_ANSWER, visible=True),
    "answer-at-once": Fault(("Reply @.",), visible=True),
    "answer-dripping": Fault(_ANSWER, visible=True, drips=True),
    "answer-after-thoughts": Fault((*_THOUGHTS, *_ANSWER), visible=True, drips=True),
    "answer-cut-short": Fault(_ANSWER, visible=True, finish_reason="length"),
    # Blanks.
    "null": Fault(),
    "empty": Fault(("",)),
    "white-space": Fault((" ", "\n", "\u200b"), drips=True),
    "thoughts": Fault(_THOUGHTS),
    "unclosed-thoughts": Fault(("<think>", "@ is not seen"), drips=True),
    "unfinished": Fault(finish_reason=None),
    "no-choice": Fault(whole='{"choices": []}', events=("data: [DONE]",)),
    "null-message": Fault(
        whole='{"choices": [{"index": 0, "message": null}]}',
        events=('data: {"choices": [{"index": 0, "delta": null}]}', "data: [DONE]"),
    ),
    "nothing": Fault(whole="", events=()),
    "kept-alive": Fault(whole="\n\n\n", events=(": kept alive", ": kept alive"), drips=True),
    "missing-tool-call": Fault(finish_reason="tool_calls"),
    # Empty, and not to be asked for again.
    "truncated": Fault(_THOUGHTS, finish_reason="length"),
    "blocked": Fault(finish_reason="content_filter"),
    # Errors.
    "rate-limit": Fault(status=429),
    "server-error": Fault(status=500),
    "overloaded": Fault(status=503),
    "refused": Fault(status=400),
    "reset": Fault(ending=Ending.RESET),
    "cut": Fault(ending=Ending.CUT),
    "cut-in-thoughts": Fault(_THOUGHTS, ending=Ending.CUT),
    "cut-in-answer": Fault(_ANSWER, visible=True, ending=Ending.CUT, drips=True),
    "stall": Fault(ending=Ending.STALL),
    "stall-in-thoughts": Fault(_THOUGHTS, ending=Ending.STALL),
    "stall-in-answer": Fault(_ANSWER, visible=True, ending=Ending.STALL),
    "garbage": Fault(ending=Ending.GARBAGE),
    "garbage-in-answer": Fault(_ANSWER, visible=True, ending=Ending.GARBAGE),
    "page": Fault(whole="<html>Bad gateway</html>", events=("data: <html>Bad gateway</html>",)),
    "error-event": Fault(_THOUGHTS, ending=Ending.ERROR),
    "error-event-in-answer": Fault(_ANSWER, visible=True, ending=Ending.ERROR),
}


@dataclass(frozen=True)
class Served:
    """A request, and what it was answered with."""

    fault: str
    pieces: tuple[str, ...]
    """The content, as it was sent."""
    streamed: bool
    nudged: bool
    """Whether something had been added to the messages of the call."""
    calls_tool: bool
    """Whether the answer was a tool call, made in place of the pieces."""


class FaultServer:
    """Answers requests as their prompts say. A context manager, listening while it is entered."""

    def __init__(self) -> None:
        self.served: defaultdict[str, list[Served]] = defaultdict(list)
        """The requests of each call, in order; to be taken out by whoever has read them."""
        self.requests = 0
        self.bodies_open = 0
        """Responses that are being sent."""
        self._lock = threading.Lock()
        self._server = make_server(
            "127.0.0.1", 0, Request.application(self._answer), True, request_handler=_Handler
        )
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.port}/v1"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, request: Request) -> Response:
        body = request.get_json()
        messages = body["messages"]
        said = next(message["content"] for message in messages if message["role"] == "user")
        prompt, _, nudge = said.partition("\n\n")
        call, script = re.fullmatch(r"call (\S+): (.*)", prompt).groups()
        names = script.split(", ")
        streamed = body.get("stream", False)
        with self._lock:
            self.requests += 1
            served = self.served[call]
            name = names[min(len(served), len(names) - 1)]
            fault = FAULTS[name]
            mark = f"{call}.{len(served)}"
            pieces = tuple(piece.replace("@", mark) for piece in fault.pieces)
            has_result = any(message["role"] == "tool" for message in messages)
            calls_tool = fault.visible and "tools" in body and not has_result
            nudged = bool(nudge) or (has_result and messages[-1]["role"] == "user")
            served.append(Served(name, pieces, streamed, nudged, calls_tool))
        if fault.status != 200:
            error = {"error": {"message": f"{name} {mark}", "type": name, "code": None}}
            return Response(json.dumps(error), fault.status, content_type="application/json")
        deltas = [{"tool_calls": [_tool_call(mark)]}] if calls_tool else _contents(pieces)
        parts = _events(fault, deltas) if streamed else _whole(fault, deltas)
        kind = "text/event-stream" if streamed else "application/json"
        return Response(self._send(fault, parts, request.environ), content_type=kind)

    def _send(self, fault: Fault, parts: list[str], environ: dict[str, Any]) -> Iterator[bytes]:
        with self._lock:
            self.bodies_open += 1
        try:
            connection = environ["werkzeug.socket"]
            if fault.ending is Ending.RESET:
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                connection.shutdown(socket.SHUT_RD)  # so the handler looks for no other request
                raise ConnectionAbortedError
            for part in parts:
                yield from _drops(part) if fault.drips else (part.encode(),)
            if fault.ending is Ending.CUT:
                raise ConnectionAbortedError
            if fault.ending is Ending.STALL:
                connection.settimeout(HANG_UP_SECONDS)
                connection.recv(1)  # returns when the client has hung up
        finally:
            with self._lock:
                self.bodies_open -= 1


class _Handler(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        """Say nothing."""


def _contents(pieces: Iterable[str]) -> list[dict[str, Any]]:
    return [{"content": piece} for piece in pieces]


def _tool_call(mark: str) -> dict[str, Any]:
    function = {"name": "look_up", "arguments": json.dumps({"key": mark})}
    return {"index": 0, "id": f"call-{mark}", "type": "function", "function": function}


def _whole(fault: Fault, deltas: list[dict[str, Any]]) -> list[str]:
    """The body of a response that is not streamed."""
    if fault.whole is not None:
        return [fault.whole]
    if fault.ending is Ending.ERROR:
        return [json.dumps({"error": {"message": "failed", "code": "server_error"}})]
    message: dict[str, Any] = {"role": "assistant", "content": None}
    for delta in deltas:
        if "content" in delta:
            message["content"] = (message["content"] or "") + delta["content"]
        else:
            message |= delta
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(fault, deltas)}
    usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
    body = {**_head("chat.completion"), "choices": [choice], "usage": usage}
    text = json.dumps(body, ensure_ascii=False)
    return [text if fault.ending is Ending.DONE else text[: len(text) // 2]]


def _events(fault: Fault, deltas: list[dict[str, Any]]) -> list[str]:
    """The same of a streamed one, as server-sent events."""
    if fault.events is not None:
        return [f"{line}\n\n" for line in fault.events]
    events = [_event({"role": "assistant"}), *map(_event, deltas)]
    if fault.ending is Ending.DONE:
        return [*events, _event({}, _finish_reason(fault, deltas)), "data: [DONE]\n\n"]
    if fault.ending is Ending.GARBAGE:
        return [*events, 'data: {"choices": [{"delta\n\n']
    if fault.ending is Ending.ERROR:
        return [*events, 'data: {"error": {"message": "failed", "code": "server_error"}}\n\n']
    return events


def _event(delta: dict[str, Any], finish_reason: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    body = {**_head("chat.completion.chunk"), "choices": [choice]}
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n"


def _finish_reason(fault: Fault, deltas: list[dict[str, Any]]) -> str | None:
    return "tool_calls" if any("tool_calls" in delta for delta in deltas) else fault.finish_reason


def _head(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1700000000, "model": "model-a"}


def _drops(part: str) -> Iterator[bytes]:
    """The part in pieces that end anywhere, also within a character."""
    data = part.encode()
    third = len(data) // 3 + 1
    for start in range(0, len(data), third):
        yield data[start : start + third]
        time.sleep(DRIP_SECONDS)
