"""Which tools a request offers, and which it forces, in the formats of all integrations. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_ANY = frozenset({"any", "required"})
_NOT_FORCED = frozenset({"auto", "none", "validated"})
# Where a choice stands inside another: OpenAI's, Bedrock's, Gemini's.
_INSIDE = ("function", "custom", "allowed_tools", "tool", "function_calling_config")


def offered_tools(kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the tools in a request's call arguments."""
    return tuple(
        name
        for key in ("tools", "functions")
        if isinstance(kwargs.get(key), (list, tuple))  # an iterator would be used up
        for tool in kwargs[key]
        for name in _names_of(tool)
    )


def forced_tools(kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the tools of which a request says that one must be called; empty: none must."""
    for key in ("tool_choice", "function_call", "tool_config"):
        if kwargs.get(key):
            return _forced(kwargs[key], offered_tools(kwargs))
    return ()


def _forced(choice: Any, offered: tuple[str, ...]) -> tuple[str, ...]:
    if choice is True:
        return offered
    if isinstance(choice, str):
        word = choice.lower()
        if word in _ANY:
            return offered
        return () if word in _NOT_FORCED else (choice,)
    if isinstance(choice, list):
        return tuple(name for one in choice for name in _forced(one, offered))
    if hasattr(choice, "model_dump"):  # an object of Gemini's
        choice = choice.model_dump()
    if not isinstance(choice, Mapping):
        return ()
    for key in _INSIDE:
        if isinstance(choice.get(key), Mapping):
            return _forced(choice[key], offered)
    if isinstance(choice.get("name"), str):
        return (choice["name"],)
    mode = "any" if "any" in choice else choice.get("mode") or choice.get("type") or ""
    if str(getattr(mode, "value", mode)).lower() not in _ANY:
        return ()
    return tuple(choice.get("allowed_function_names") or offered)


def _names_of(tool: Any) -> Iterator[str]:
    if not isinstance(tool, Mapping):
        tool = {"name": getattr(tool, "name", None) or getattr(tool, "__name__", None)}
    for key in ("function", "toolSpec"):  # OpenAI's, Bedrock's
        if isinstance(tool.get(key), Mapping):
            tool = tool[key]
    declared = tool.get("function_declarations") or tool.get("functionDeclarations")
    for named in declared or [tool]:  # Gemini's
        name = named.get("name") if isinstance(named, Mapping) else getattr(named, "name", None)
        if isinstance(name, str):
            yield name
