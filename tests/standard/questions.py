"""A believable provider: it reads the requests of two APIs, chat completions and messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from standard.answers import Question, Tool, answer
from wire.turns import Turn


def believable(asked: dict[str, Any]) -> Turn:
    """What a request is answered with; below `/blanked` only what is nudged is answered."""
    is_openai = asked["path"].endswith("/chat/completions")
    question = (_openai_question if is_openai else _anthropic_question)(asked["json"])
    turn = answer(question, blank_until_nudged=asked["path"].startswith("/blanked/"))
    return replace(turn, details=True)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content or [])


# OpenAI: https://platform.openai.com/docs/api-reference/chat


def _openai_question(body: dict[str, Any]) -> Question:
    choice = body.get("tool_choice")
    response_format = body.get("response_format", {"type": "text"})
    schema = response_format.get("json_schema", {}).get("schema", {})
    return Question(
        turns=[(message["role"], _text(message["content"])) for message in body["messages"]],
        tools=[
            Tool(function["name"], function["parameters"])
            for function in (tool["function"] for tool in body.get("tools", []))
        ],
        choice=choice["function"]["name"] if isinstance(choice, dict) else choice,
        schema=None if response_format["type"] == "text" else schema,
        stop=body.get("stop") or [],
    )


# Anthropic: https://docs.claude.com/en/api/messages


def _anthropic_question(body: dict[str, Any]) -> Question:
    choice = body.get("tool_choice", {"type": "auto"})
    output = body.get("output_config", {}).get("format")
    return Question(
        turns=[turn for message in body["messages"] for turn in _anthropic_turns(message)],
        tools=[Tool(tool["name"], tool["input_schema"]) for tool in body.get("tools", [])],
        choice=choice.get("name", choice["type"]),
        schema=output["schema"] if output else None,
        stop=body.get("stop_sequences") or [],
    )


def _anthropic_turns(message: dict[str, Any]) -> list[tuple[str, str]]:
    """One for each block: a message may hold a tool's result and what the user adds to it."""
    if isinstance(message["content"], str):
        return [(message["role"], message["content"])]
    return [
        ("tool" if block["type"] == "tool_result" else message["role"], block.get("text", ""))
        for block in message["content"]
    ]
