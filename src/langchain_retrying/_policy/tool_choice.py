"""Which tools a request offers, and which it forces, in the formats of all integrations. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.tools import BaseTool

_ANY = frozenset({"any", "required"})
_NOT_FORCED = frozenset({"auto", "none", "validated"})
_TOOLS = ("tools", "functions")
_CHOICES = ("tool_choice", "toolChoice", "function_call", "tool_config")
TOOL_ARGUMENTS = (*_TOOLS, *_CHOICES, "toolConfig")
"""Call arguments that offer or force tools."""
# Where a choice stands inside another: OpenAI's, Bedrock's, Gemini's.
_INSIDE = ("function", "custom", "allowed_tools", "tool", "function_calling_config")


def tools_of(kwargs: Mapping[str, Any]) -> list[Any]:
    """The tools in a request's call arguments; those that are pydantic objects as mappings."""
    return [
        _as_mapping(tool)
        for source in _sources(kwargs)
        for key in _TOOLS
        if isinstance(source.get(key), (list, tuple))  # an iterator would be used up
        for tool in source[key]
    ]


def offered_tools(kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the tools in a request's call arguments."""
    return tuple(name for tool in tools_of(kwargs) for name in _names_of(tool))


def forced_tools(kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the tools of which a request says that one must be called; empty: none must."""
    for choice in _choices(kwargs):
        return _forced(choice, offered_tools(kwargs))
    return ()


def forbids_tools(kwargs: Mapping[str, Any]) -> bool:
    """Whether a request offers tools and says that none may be called."""
    return any(_mode(_innermost(choice)) == "none" for choice in _choices(kwargs))


def _choices(kwargs: Mapping[str, Any]) -> Iterator[Any]:
    for source in _sources(kwargs):
        yield from (source[key] for key in _CHOICES if source.get(key))


def _sources(kwargs: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Where tools and a choice may stand: Bedrock's may be one step further in."""
    config = kwargs.get("toolConfig")
    return (kwargs, config) if isinstance(config, Mapping) else (kwargs,)


def _as_mapping(tool: Any) -> Any:
    """A pydantic object, such as Cohere's, as a mapping; LangChain's own are left as they are."""
    if isinstance(tool, (type, BaseTool)) or not hasattr(tool, "model_dump"):
        return tool
    return tool.model_dump(exclude_none=True)


def _forced(choice: Any, offered: tuple[str, ...]) -> tuple[str, ...]:
    if choice is True:
        return offered
    if isinstance(choice, list):
        return tuple(name for one in choice for name in _forced(one, offered))
    choice = _innermost(choice)
    mode = _mode(choice)
    if isinstance(choice, str):
        return offered if mode in _ANY else () if mode in _NOT_FORCED else (choice,)
    if not isinstance(choice, Mapping):
        return ()
    if mode in _ANY:
        return tuple(choice.get("allowed_function_names") or offered)
    return (choice["name"],) if isinstance(choice.get("name"), str) else ()


def _innermost(choice: Any) -> Any:
    choice = _as_mapping(choice)  # Gemini has objects
    if isinstance(choice, Mapping):
        for key in _INSIDE:
            if isinstance(choice.get(key), Mapping):
                return _innermost(choice[key])
    return choice


def _mode(choice: Any) -> str:
    """The word for a choice, in lower case; empty: it is none."""
    if isinstance(choice, Mapping):
        choice = "any" if "any" in choice else choice.get("mode") or choice.get("type")
    choice = getattr(choice, "value", choice)
    return choice.lower() if isinstance(choice, str) else ""


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
