"""Whether saying nothing is a proper end, because a tool has said or done it all. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from langchain_core.messages import AIMessage, BaseMessage, FunctionMessage, ToolMessage


def follows_terminal_tool(messages: Sequence[BaseMessage], names: Collection[str]) -> bool:
    """Whether the last turn holds the result of a tool of one of these names.

    A turn may hold the results of several calls made at once, in any order. A result that tells
    of an error does not count: the model has reason to speak.
    """
    ids = set()
    for message in reversed(messages):
        if not isinstance(message, (ToolMessage, FunctionMessage)):
            # Not every agent loop names its results.
            calls = message.tool_calls if isinstance(message, AIMessage) else []
            return any(call["id"] in ids and call["name"] in names for call in calls)
        if getattr(message, "status", "success") != "error":
            if message.name in names:
                return True
            ids.add(getattr(message, "tool_call_id", None))
    return False
