"""What the user gives to a probe: the model and the prompts; and what is asked by default."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
)
from pydantic import SecretStr


class BadInputError(Exception):
    """What the user gave can't be used. Its text is a sentence for the user."""


def own_words(error: Exception) -> str:
    """The class of an error and its text, on one line, shortened, and without keys."""
    errors = getattr(error, "errors", None)  # pydantic's, whose own text shows all that was given
    text = errors()[0]["msg"] if callable(errors) else str(error)
    for name, value in os.environ.items():
        if name.endswith(("_KEY", "_TOKEN")) and value:  # some servers repeat it
            text = text.replace(value, "***")
    return f"{type(error).__name__}: {shorten(text, 200, placeholder='...')!r}"


def build_model(name: str, base_url: str | None) -> BaseChatModel:
    """Build a chat model by name.

    Args:
        name: As for `init_chat_model`; of a model of the server, if `base_url` is given.
        base_url: Of an OpenAI-compatible server; None: that of the provider.

    Raises:
        BadInputError: The name is not known, a package or a key is missing.

    """
    options: dict[str, Any] = {}
    if base_url is not None:
        key = os.environ.get("OPENAI_API_KEY") or "not-needed"
        options = {"model_provider": "openai", "base_url": base_url, "api_key": key}
        options["stream_usage"] = True  # servers other than OpenAI's must be asked for it
    try:
        model: BaseChatModel = init_chat_model(name, **options)
    except Exception as error:
        raise BadInputError(
            f"Can't build the model {name!r} ({own_words(error)}). Name it as in "
            "openai:gpt-5-mini or ollama:qwen3, or give a server with --base-url."
        ) from error
    # Some are built without a key, and fail only when they are called.
    for field, variable in model.lc_secrets.items():
        secret = getattr(model, field, None)
        value = secret.get_secret_value() if isinstance(secret, SecretStr) else secret
        if variable.endswith("_API_KEY") and not value:
            raise BadInputError(f"No API key: the environment variable {variable} is not set.")
    return model


@dataclass(frozen=True)
class Prompt:
    """One request."""

    messages: Sequence[BaseMessage]
    tools: Sequence[Mapping[str, Any]] = ()
    """In OpenAI's format, which `bind_tools` of each integration takes."""


def read_prompts(path: Path) -> list[Prompt]:
    """Read a file of prompts, one a line. Lines of white space are skipped.

    Raises:
        BadInputError: It can't be read, holds no prompt, or a line is none. Nothing of its content
            is in the text.

    """
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"Can't read {path} ({own_words(error)}).") from error
    prompts = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                prompts.append(parse_prompt(line.strip()))
            except Exception:  # of many types, and with the content in the text
                raise BadInputError(
                    f"{path}, line {number}: begins like JSON, but is not JSON of a text, of a "
                    'list of messages, or of {"messages": [...]} as in a request to OpenAI.'
                ) from None
    if not prompts:
        raise BadInputError(f"{path}: there is no prompt in it.")
    return prompts


def parse_prompt(line: str) -> Prompt:
    """Make a prompt of a line, which is JSON if it begins like it, and a plain text otherwise.

    Raises:
        Exception: It is not a prompt.

    """
    value = json.loads(line) if line[0] in '"[{' else line
    if isinstance(value, str):
        return Prompt([HumanMessage(value)])
    body = value if isinstance(value, dict) else {"messages": value}
    messages = convert_to_messages(body["messages"])
    if not messages:
        raise ValueError
    return Prompt(messages, body.get("tools", ()))


_LOOK_UP = {
    "name": "look_up",
    "description": "Look something up.",
    "parameters": {
        "type": "object",
        "properties": {"key": {"type": "string"}},
        "required": ["key"],
    },
}


def _after_tools(question: str, results: Mapping[str, str]) -> Prompt:
    """An agent's conversation in which a tool has been called, and has given its results."""
    messages: list[BaseMessage] = [HumanMessage(question)]
    for number, (key, result) in enumerate(results.items(), start=1):
        call_id = f"call_{number}"
        call = {"name": "look_up", "args": {"key": key}, "id": call_id}
        messages += [AIMessage("", tool_calls=[call]), ToolMessage(result, tool_call_id=call_id)]
    return Prompt(messages, [{"type": "function", "function": _LOOK_UP}])


# Short answers cost little. Models fall silent mostly where there is little left to say: after
# tool calls, whose results say it all, and at the end of a conversation.
BUILT_IN = [
    Prompt([HumanMessage("What is the capital of France? Answer in one word.")]),
    _after_tools("What is the weather in Paris?", {"weather in Paris": "18 °C, light rain"}),
    Prompt(
        [
            HumanMessage("Remind me: how many minutes are in a day?"),
            AIMessage("There are 1,440 minutes in a day."),
            HumanMessage("Thanks, that is all."),
        ]
    ),
    _after_tools(
        "Which of my orders A-1, A-2 and A-3 is still on its way?",
        {
            "A-1": "delivered on Monday",
            "A-2": "delivered on Tuesday",
            "A-3": "in transit, expected on Friday",
        },
    ),
    Prompt([HumanMessage('Give me a JSON object with the keys "name" and "age".')]),
]
