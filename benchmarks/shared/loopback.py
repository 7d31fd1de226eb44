"""A provider in another process, which streams in OpenAI's format as fast as it is read.

Its paths say what it streams: `/0/100` is a hundred chunks of text, `/900/100` as many after 900 of
reasoning, as DeepSeek sends it. Each event leaves in a packet of its own, as a provider's do.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@contextmanager
def provider() -> Iterator[str]:
    """Run the provider in a process of its own; gives its address."""
    with subprocess.Popen(  # noqa: S603 -- this file
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"


@cache
def packets(path: str) -> list[bytes]:
    """What is sent for a path, in the parts that a chunked body has."""
    reasoning, text = map(int, path.split("/")[1:3])
    deltas: list[dict[str, str]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": "Let me see. "}] * reasoning + [{"content": "Hello "}] * text
    events = [json.dumps(_event(delta)) for delta in deltas]
    events += [json.dumps(_event({}, "stop")), "[DONE]"]
    bodies = [f"data: {event}\n\n".encode() for event in events]
    return [f"{len(body):x}\r\n".encode() + body + b"\r\n" for body in [*bodies, b""]]


def _event(delta: dict[str, str], finish_reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {
        "id": "loopback-1",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "loopback",
        "choices": [choice],
    }


class Handler(BaseHTTPRequestHandler):
    """Answers each request with the stream of its path."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for packet in packets(self.path):
            self.wfile.write(packet)

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()  # until the process that has started this one closes it, or is gone
