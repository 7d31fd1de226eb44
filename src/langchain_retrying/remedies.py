"""What the next attempt changes. Pure: a remedy takes a request and returns the next one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from langchain_retrying.errors import EmptyCompletionError
from langchain_retrying.reply import ReplyKind


@dataclass(frozen=True)
class Request:
    """What one attempt sends to the inner model."""

    messages: Sequence[BaseMessage]
    kwargs: Mapping[str, Any]
    """Call arguments but `stop` and `run_manager`: `tools`, `tool_choice`, `temperature` ..."""

    @property
    def has_tools(self) -> bool:
        """Whether the model may call a tool."""
        return bool(self.kwargs.get("tools") or self.kwargs.get("functions"))


Remedy = Callable[[Request, EmptyCompletionError], Request]
"""`(original request, account of what was rejected so far) -> request of the next attempt`."""

NudgeText = (
    str
    | BaseMessage
    | Callable[[Sequence[BaseMessage], EmptyCompletionError], str | BaseMessage | None]
)
"""A nudge: its text (sent as a `HumanMessage`), a message, or a callable `(messages, error)` that
returns either, or None to repeat silently."""


def repeat(request: Request, error: EmptyCompletionError) -> Request:
    """The remedy that changes nothing."""
    return request


@dataclass(frozen=True)
class Nudge:
    """The remedy that says, in one message at the end, that nothing has come.

    Args:
        nudge: What to say; None: a wording that fits the kind of emptiness, names tool calls only
            if tools are bound, and lets a model that has finished say so.

    """

    nudge: NudgeText | None = None

    def __call__(self, request: Request, error: EmptyCompletionError) -> Request:
        """The request with the nudge at the end; the messages given are not changed."""
        nudge: str | BaseMessage | None
        if self.nudge is None:
            nudge = _wording(request, error)
        elif isinstance(self.nudge, (str, BaseMessage)):
            nudge = self.nudge
        else:
            nudge = self.nudge(request.messages, error)
        if nudge is None:
            return request
        message = HumanMessage(content=nudge) if isinstance(nudge, str) else nudge
        if not isinstance(message, BaseMessage):
            raise TypeError(f"nudge must return a text, a message or None, not {message!r:.40}")
        return replace(request, messages=[*request.messages, message])


DEFAULT_NUDGE = Nudge()
"""The wording that fits what happened."""


def _wording(request: Request, error: EmptyCompletionError) -> str:
    last = error.rejected[-1]
    if last.kind is ReplyKind.MALFORMED:
        happened = "Your last reply was lost because its tool call was malformed."
    elif last.saw_reasoning:
        happened = "Your last reply held reasoning only, so nothing of it could be used."
    else:
        happened = "Your last reply was empty."
    if request.has_tools:
        return (
            f"{happened} Reply in plain text now, or make a tool call that is still needed. "
            "If the work is done, say so in one sentence; do not repeat a tool call you have made."
        )
    return (
        f"{happened} Reply in plain text now. If there is nothing to add, say so in one sentence."
    )
