"""What the model is asked: the built-in prompts, or a file of the user's own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, convert_to_messages

from langchain_retrying._probe.errors import BadInputError


@dataclass(frozen=True)
class Prompt:
    """One request."""

    messages: Sequence[BaseMessage]
    tools: Sequence[Mapping[str, Any]] = ()
    """In OpenAI's format, which `bind_tools` of each integration takes."""


def read_prompts(path: Path) -> list[Prompt]:
    """Read a JSONL file. Each line is a text, a list of messages, or an object with `messages`.

    A message is an object with `role` and `content`, as OpenAI has it. An object may also have
    `tools`, so the body of a request to OpenAI is such a line. Lines of white space are skipped.

    Raises:
        BadInputError: It can't be read, holds no prompt, or a line is none.

    """
    try:
        lines = path.read_text("utf-8").split("\n")
    except OSError as error:
        raise BadInputError(f"{path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path}: not UTF-8 ({error.reason} at byte {error.start}).") from error
    prompts = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                prompts.append(parse_prompt(json.loads(line)))
            except ValueError as error:
                raise BadInputError(f"{path}, line {number}: {error}.") from error
            except RecursionError as error:
                raise BadInputError(f"{path}, line {number}: it is nested too deeply.") from error
    if not prompts:
        raise BadInputError(f"{path}: there is no prompt in it.")
    return prompts


def parse_prompt(value: Any) -> Prompt:
    """Make a prompt of what a line holds.

    Raises:
        ValueError: It is not a prompt. Nothing of its content is in the text.

    """
    if isinstance(value, str):
        if not value.strip():
            raise ValueError("the text is empty")
        return Prompt([HumanMessage(value)])
    body = {"messages": value} if isinstance(value, list) else value
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list):
        raise ValueError('must be a text, a list of messages or {"messages": [...]}')  # noqa: TRY004 -- of a file
    if not messages:
        raise ValueError("there are no messages in it")
    tools = body.get("tools", [])
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise ValueError("its tools must be a list of objects")
    return Prompt([_message(number, item) for number, item in enumerate(messages, start=1)], tools)


def _message(number: int, value: Any) -> BaseMessage:
    try:
        if not isinstance(value, dict):
            raise TypeError  # noqa: TRY301 -- as the conversion reports the rest
        (message,) = convert_to_messages([value])
    except Exception:  # of many types, and with the message in the text
        raise ValueError(
            f'message {number} is not a {{"role": ..., "content": ...}} that LangChain knows'
        ) from None
    return message


def _after_tool_calls(question: str, calls: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    """An agent's conversation in which each tool has been called and has given its result."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    for number, (tool, argument, result) in enumerate(calls, start=1):
        function = {"name": tool, "arguments": json.dumps({"key": argument})}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": result},
        ]
    parameters = {
        "type": "object",
        "properties": {"key": {"type": "string"}},
        "required": ["key"],
    }
    names = dict.fromkeys(tool for tool, _, _ in calls)
    functions = [
        {"name": name, "description": f"{name.replace('_', ' ')}.", "parameters": parameters}
        for name in names
    ]
    tools = [{"type": "function", "function": function} for function in functions]
    return {"messages": messages, "tools": tools}


# Short answers cost little. Models fall silent mostly where there is little left to say: after
# tool calls, whose results say it all, and at the end of a conversation.
BUILT_IN = [
    parse_prompt(value)
    for value in (
        "What is the capital of France? Answer in one word.",
        "A train leaves at 9:40 and takes 2 hours and 35 minutes. When does it arrive?",
        _after_tool_calls(
            "What is the weather in Paris?", [("get_weather", "Paris", "18 °C, light rain")]
        ),
        'Give me a JSON object with the keys "name" and "age" for an invented person.',
        _after_tool_calls(
            "Which of my three orders is still on its way?",
            [
                ("get_order", "A-1", "delivered on Monday"),
                ("get_order", "A-2", "delivered on Tuesday"),
                ("get_order", "A-3", "in transit, expected on Friday"),
            ],
        ),
        [
            {"role": "user", "content": "Remind me: how many minutes are in a day?"},
            {"role": "assistant", "content": "There are 1,440 minutes in a day."},
            {"role": "user", "content": "Thanks, that is all."},
        ],
        _after_tool_calls(
            "Close ticket 17 and tell me when it is done.",
            [
                ("find_ticket", "17", '{"id": 17, "status": "open"}'),
                ("close_ticket", "17", "done"),
                ("find_ticket", "17", '{"id": 17, "status": "closed"}'),
            ],
        ),
        "Translate into German: The library is open until six o'clock.",
    )
]
