"""Which tools a request offers, and which it forces, in the formats of all integrations. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.runnables.base import Runnable

_ANY = ("any", "required")
_MODES = (*_ANY, "auto", "none", "validated")
"""Words for a choice; any other is a tool's name."""
_CHOICES = ("tool_choice", "toolChoice", "function_call", "tool_config")
TOOL_ARGUMENTS = ("tools", "functions", "toolConfig", *_CHOICES)
"""Call arguments that offer or force tools."""
# Where a choice stands inside another: OpenAI's, Bedrock's, Gemini's; and so for a tool's name.
_INSIDE_CHOICE = ("function", "custom", "allowed_tools", "tool", "function_calling_config")
_INSIDE_TOOL = ("function", "toolSpec", "function_declarations", "functionDeclarations")


def tools_of(kwargs: Mapping[str, Any]) -> list[Any]:
    """The tools in a request's call arguments; those that are pydantic objects as mappings."""
    arguments = _arguments(kwargs)
    given = (arguments.get("tools"), arguments.get("functions"))
    # An iterator would be used up.
    lists = [tools for tools in given if isinstance(tools, (list, tuple))]
    return [_as_mapping(tool) for tools in lists for tool in tools]


def offered_tools(kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the tools in a request's call arguments."""
    return tuple(name for tool in tools_of(kwargs) for name in _names_of(tool))


def forced_tools(kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the tools of which a request says that one must be called; empty: none must."""
    choices = _choices(kwargs)
    return _forced(choices[0], offered_tools(kwargs)) if choices else ()


def forbids_tools(kwargs: Mapping[str, Any]) -> bool:
    """Whether a request offers tools and says that none may be called."""
    return any(_mode(_read(choice)) == "none" for choice in _choices(kwargs))


def _choices(kwargs: Mapping[str, Any]) -> list[Any]:
    arguments = _arguments(kwargs)
    return [arguments[key] for key in _CHOICES if arguments.get(key)]


def _arguments(kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Call arguments, with Bedrock's that may stand one step further in."""
    config = kwargs.get("toolConfig")
    return {**config, **kwargs} if isinstance(config, Mapping) else kwargs


def _as_mapping(tool: Any) -> Any:
    """A pydantic object, such as Cohere's, as a mapping; LangChain's own are left as they are."""
    if isinstance(tool, (type, Runnable)) or not hasattr(tool, "model_dump"):
        return tool
    return tool.model_dump(exclude_none=True)


def _forced(choice: Any, offered: tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(choice, list):
        return tuple(name for one in choice for name in _forced(one, offered))
    choice = _read(choice)
    if _mode(choice) in _ANY:
        return tuple(choice.get("allowed_function_names") or offered)
    return (choice["name"],) if isinstance(choice.get("name"), str) else ()


def _read(choice: Any) -> Mapping[str, Any]:
    """A choice in any format as the mapping that has its mode, or the name of the tool."""
    if choice is True:
        return {"mode": "any"}
    if isinstance(choice, str):
        return {"mode": choice} if choice.lower() in _MODES else {"name": choice}
    choice = _as_mapping(choice)  # Gemini has objects
    if not isinstance(choice, Mapping):
        return {}
    inner = [choice[key] for key in _INSIDE_CHOICE if isinstance(choice.get(key), Mapping)]
    return _read(inner[0]) if inner else choice


def _mode(choice: Mapping[str, Any]) -> str:
    """The word for a choice, in lower case; empty: it is none."""
    word = "any" if "any" in choice else choice.get("mode") or choice.get("type")
    word = getattr(word, "value", word)
    return word.lower() if isinstance(word, str) else ""


def _names_of(tool: Any) -> Iterator[str]:
    if isinstance(tool, Mapping):
        tool = next((tool[key] for key in _INSIDE_TOOL if key in tool), tool)
    for one in tool if isinstance(tool, list) else [tool]:
        if isinstance(one, Mapping):
            name = one.get("name")
        else:
            name = getattr(one, "name", None) or getattr(one, "__name__", None)
        if isinstance(name, str):
            yield name
