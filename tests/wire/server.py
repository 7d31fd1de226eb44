"""The one server of the tests. It is on loopback, in this process, and plays a script.

with WireServer() as server:
    server.play(BLANK, Turn("Hello."))
    model = ChatOpenAI(model="a", api_key="none", base_url=f"{server.url}/v1")
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from typing_extensions import Self
from werkzeug import Request, Response
from werkzeug.serving import WSGIRequestHandler, make_server

from wire.replies import Ending, Reply, encode
from wire.turns import Turn, body_of

DRIP_SECONDS = 0.002
HANG_UP_SECONDS = 60  # how long a stalled request is held for a client that does not hang up

Asked = dict[str, Any]
"""A request: its `path`, its `query`, and its body as `json`."""
Said = Reply | Turn
"""What a request is answered with. A turn is told in the API and the mode of the request."""
Step = Said | Callable[[Asked], Said]
"""A function looks at the request first; it may be asked by several threads at once."""


class WireServer:
    """Answers each request with the next step of a script, and with the last again and again."""

    def __init__(self, *script: Step) -> None:
        self.open_bodies = 0
        """Replies that are being sent."""
        self._lock = threading.Lock()
        self.play(*script)
        self._server = make_server(
            "127.0.0.1", 0, Request.application(self._answer), True, request_handler=_Handler
        )
        self.url = f"http://127.0.0.1:{self._server.port}"

    def __enter__(self) -> Self:
        # Nothing here speaks TLS, but each client loads the authorities for it, 40 ms each.
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._patch.undo()

    def play(self, *script: Step, unless: Callable[[Asked], Said | None] | None = None) -> None:
        """Start a new script.

        Args:
            script: The steps, in order.
            unless: What a request is answered with in place of the next step, if not None: the
                step is kept for the next request.

        """
        self.requests: list[Asked] = []
        """Those that were answered from the script."""
        self.refused = 0
        """The number of the others."""
        self._unless = unless
        self._script = [
            replace(step, number=step.number or place) if isinstance(step, Turn) else step
            for place, step in enumerate(script, 1)
        ]

    def _answer(self, request: Request) -> Response:
        body = request.get_json(silent=True)
        asked = {"path": request.path, "query": dict(request.args), "json": body}
        said = self._unless(asked) if self._unless else None
        with self._lock:
            if said is None:
                self.requests.append(asked)
                step = self._script[min(len(self.requests), len(self._script)) - 1]
            else:
                self.refused += 1
        if said is None:
            said = step(asked) if callable(step) else step
        reply = told(said, request) if isinstance(said, Turn) else said
        whole = reply.ending is Ending.DONE and not reply.drips
        sent = reply.body if whole else self._send(reply, request.environ["werkzeug.socket"])
        # For the clients that would ask again by themselves.
        headers = {} if reply.status == 200 else {"x-should-retry": "false"}
        return Response(sent, reply.status, headers, content_type=reply.content_type)

    def _send(self, reply: Reply, connection: socket.socket) -> Iterator[bytes]:
        with self._lock:
            self.open_bodies += 1
        try:
            if reply.ending is Ending.RESET:
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                connection.shutdown(socket.SHUT_RD)  # so the handler looks for no other request
                raise ConnectionAbortedError
            for line in reply.body.splitlines(keepends=True):
                yield from _drops(line) if reply.drips else (line,)
            if reply.ending is Ending.CUT:
                raise ConnectionAbortedError
            if reply.ending is Ending.STALL:
                connection.settimeout(HANG_UP_SECONDS)
                connection.recv(1)  # returns when the client has hung up
        finally:
            with self._lock:
                self.open_bodies -= 1


class _Handler(WSGIRequestHandler):
    """Silent, and without a clock: Bedrock's metadata hold the reply's headers."""

    def log(self, *_: Any) -> None:
        pass

    def date_time_string(self, _: Any = None) -> str:
        return "Thu, 01 Jan 1970 00:00:00 GMT"


def _drops(line: bytes) -> Iterator[bytes]:
    """The line in pieces that end anywhere, also within a character."""
    third = len(line) // 3 + 1
    for start in range(0, len(line), third):
        yield line[start : start + third]
        time.sleep(DRIP_SECONDS)


_APIS = {
    "/chat/completions": "openai-chat",
    "/responses": "openai-responses",
    "/messages": "anthropic-messages",
    "enerateContent": "gemini",
    "/api/chat": "ollama",
    "/converse": "bedrock-converse",
    "/invoke": "bedrock-invoke",
    "/services/": "dashscope",
    "/v2/chat": "other",
}
"""What a path has in it."""


def told(turn: Turn, request: Request) -> Reply:
    """A turn in the API and the mode that a request asks for."""
    body = request.get_json(silent=True) or {}
    if "/count_tokens" in request.path:
        return encode("anthropic-messages", "invoke", {"input_tokens": 7})
    api = next(api for part, api in _APIS.items() if part in request.path)
    streamed = body.get("stream") or "stream" in f"{request.path} {request.headers.get('Accept')}"
    mode = "stream" if streamed else "invoke"
    return encode(api, mode, body_of(turn, api, mode, body))
