"""Every Python snippet of the README runs, in order, as one session on a loopback server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wire.turns import GOOD

README = Path(__file__).parents[2] / "README.md"
SNIPPETS = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_there_are_snippets():
    assert len(SNIPPETS) >= 5


def test_the_snippets_run(server, monkeypatch):
    pytest.importorskip("langchain_classic", reason="the snippets are those of langchain 1.x")
    pytest.importorskip("opentelemetry.metrics")
    server.play(GOOD)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    names: dict[str, object] = {}
    for snippet in SNIPPETS:
        exec(compile(snippet, str(README), "exec"), names)  # noqa: S102 -- our own
    assert names["reply"].content == "Hello."
