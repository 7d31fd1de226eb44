"""A server on this machine that speaks OpenAI's chat completions and is blank at times."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING, Any

from werkzeug import Request, Response
from werkzeug.serving import WSGIRequestHandler, make_server

if TYPE_CHECKING:
    from typing_extensions import Self

_FIRST_TOKEN_SECONDS = 0.004
_NEXT_TOKEN_SECONDS = 0.0005
_USAGE = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
_BLANKS = (None, "", "\n")  # only a role; empty text; white space


class BlankingServer:
    """An agent's model: it calls a tool if it has one, and tells the result, or is blank.

    A context manager, listening on a free port of 127.0.0.1 while entered. Whether the n-th answer
    to a user's message is blank depends only on the message, n and the seed: bare and wrapped
    models have the same luck, in whatever order requests come.

    Args:
        blank_rate: Share of blank answers in text, from 0 to 1. A tool call is never blank:
            models fall silent mostly after a tool's result.
        seed: Decides which ones.

    """

    def __init__(self, blank_rate: float, seed: str) -> None:
        self.requests = 0
        """Received so far."""
        self._blank_rate = blank_rate
        self._seed = seed
        self._answers: Counter[str] = Counter()
        self._lock = threading.Lock()  # each connection is served by a thread of its own

    def __enter__(self) -> Self:
        app = Request.application(self._respond)
        self._server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=_Handler)
        self.base_url = f"http://127.0.0.1:{self._server.port}/v1"
        poll_seconds = 0.01  # how soon a shutdown is noticed
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(poll_seconds,), daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _respond(self, request: Request) -> Response:
        body = request.get_json()
        with self._lock:
            self.requests += 1
            message = self._next_message(body)
        if body.get("stream"):
            return Response(_events(message), content_type="text/event-stream")
        time.sleep(_FIRST_TOKEN_SECONDS)
        choice = {"index": 0, "message": message, "finish_reason": _finish_reason(message)}
        completion = _completion("chat.completion", [choice], usage=_USAGE)
        return Response(completion, content_type="application/json")

    def _next_message(self, body: dict[str, Any]) -> dict[str, Any]:
        first_said = {said["role"]: said["content"] for said in reversed(body["messages"])}
        result = first_said.get("tool")
        if body.get("tools") and result is None:
            name = body["tools"][0]["function"]["name"]
            function = {"name": name, "arguments": json.dumps({"city": "Paris"})}
            call = {"id": "call_1", "type": "function", "function": function}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        prompt = first_said["user"].partition("\n\n")[0]  # a retry may add to it
        self._answers[prompt] += 1
        random = Random(f"{self._seed} {prompt} {self._answers[prompt]}")  # noqa: S311 -- no secret
        if random.random() < self._blank_rate:
            return {"role": "assistant", "content": random.choice(_BLANKS)}
        return {"role": "assistant", "content": f"It is {result}" if result else "Yes, I am."}


class _Handler(WSGIRequestHandler):
    disable_nagle_algorithm = True  # it holds a token back until the one before is acknowledged

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Nothing: it would be printed amid the progress."""


def _events(message: dict[str, Any]) -> Iterator[str]:
    """The message as server-sent events, word by word."""
    time.sleep(_FIRST_TOKEN_SECONDS)
    text = message["content"]
    yield _event({"role": "assistant"} if text is None else {"role": "assistant", "content": ""})
    for word in re.findall(r"\s*\S+|\s+", text or ""):
        yield _event({"content": word})
        time.sleep(_NEXT_TOKEN_SECONDS)
    for index, call in enumerate(message.get("tool_calls", [])):
        yield _event({"tool_calls": [{"index": index, **call}]})
    yield _event({}, _finish_reason(message))
    yield f"data: {_completion('chat.completion.chunk', [], usage=_USAGE)}\n\n"
    yield "data: [DONE]\n\n"


def _event(delta: dict[str, Any], finish_reason: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return f"data: {_completion('chat.completion.chunk', [choice])}\n\n"


def _completion(kind: str, choices: list[dict[str, Any]], **more: Any) -> str:
    fixed = {"id": "chatcmpl-demo", "object": kind, "created": 0, "model": "demo"}
    return json.dumps({**fixed, "choices": choices, **more})


def _finish_reason(message: dict[str, Any]) -> str:
    return "tool_calls" if "tool_calls" in message else "stop"
