"""What a believable model says: text, JSON of the schema asked for, or a call of a tool."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from wire.turns import BLANK, Turn, calls

NUDGE = "Do answer, please."

_TEXT = "Hello, how are you?"
_ANY_TOOL = ("any", "required")


@dataclass
class Tool:
    """A tool that may be called."""

    name: str
    schema: dict[str, Any]


@dataclass
class Question:
    """A request, whatever the format it came in."""

    turns: list[tuple[str, str]]
    """Role and text, in order; `tool` is the role of a result."""
    tools: list[Tool] = field(default_factory=list)
    choice: str | None = None
    """`any`, `required`, a tool's name, or something else that leaves it open."""
    schema: dict[str, Any] | None = None
    """Of the JSON that is asked for; `{}` if it is described in words only."""
    stop: list[str] = field(default_factory=list)


def answer(question: Question, *, blank_until_nudged: bool) -> Turn:
    """Answer a question, at once or only if the nudge stands at its end."""
    turns = question.turns
    if blank_until_nudged:
        *before, (role, prompt) = turns
        if not prompt.endswith(NUDGE):
            return BLANK
        prompt = prompt.removesuffix(NUDGE).rstrip()
        turns = [*before, (role, prompt)] if prompt else before
    role, prompt = turns[-1]
    tool = _called(question, role)
    if tool is not None:
        return calls(tool.name, **_example(tool.schema, prompt))
    if question.schema is not None:
        return Turn(json.dumps(_example(question.schema or _described(prompt), prompt)))
    text = _TEXT
    for stop in question.stop:
        text = text.partition(stop)[0]
    return Turn(text)


def _called(question: Question, role: str) -> Tool | None:
    for tool in question.tools:
        if tool.name == question.choice:
            return tool
    if question.tools and (question.choice in _ANY_TOOL or role != "tool"):
        return question.tools[0]
    return None


def _described(prompt: str) -> dict[str, Any]:
    """The schema of an object whose keys a prompt has in quotes."""
    keys = re.findall(r"'(\w+)'", prompt)
    return {"type": "object", "properties": {key: {"type": "string"} for key in keys}}


def _example(schema: dict[str, Any], prompt: str) -> Any:
    """A value of a JSON schema, as plain as those of the suites, with what the prompt has."""
    if "anyOf" in schema:
        return _example(schema["anyOf"][0], prompt)
    if schema["type"] == "object":
        properties = schema.get("properties", {})
        return {name: _example(each, prompt) for name, each in properties.items()}
    if schema["type"] == "integer":
        number = re.search(r"\d+", prompt)
        return int(number[0]) if number else 7
    assert schema["type"] == "string", schema
    quoted = re.search(r"'([^']+)'", prompt)
    return quoted[1] if quoted else "Of cats."
