"""The second look, where a policy asks for one: what looks like an answer may yet be none. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, message_chunk_to_message

from langchain_retrying._judge.finish_reasons import kind_of_end
from langchain_retrying._judge.kinds import ReplyKind, Verdict
from langchain_retrying._judge.leaked_calls import leaks_call, may_become_leak
from langchain_retrying._judge.reply import INVALID_CALLS, LEAKED_CALL
from langchain_retrying._judge.visible_text import text_in
from langchain_retrying._policy.checks import returned
from langchain_retrying._policy.policy import RetryPolicy
from langchain_retrying._policy.tool_choice import forbids_tools, offered_tools

_CALLS = frozenset({"tool calls", "tool_call", "tool_call_chunk"})
_TEXT = frozenset({"text", "blank text", "reasoning", "server tools"})
# A server that leaves calls in the text often leaves the thinking before them there, too.
_THINKING = re.compile(r"\A.*</(?:\w+:)?think\w*>", re.DOTALL)


class Doubts:
    """What a policy doubts in the replies of one call."""

    def __init__(self, policy: RetryPolicy, messages: Sequence[BaseMessage], kwargs: Any) -> None:
        self._policy = policy
        self._messages = messages
        may_call = policy.leaked_tool_calls and not forbids_tools(kwargs)
        self._names = offered_tools(kwargs) if may_call else ()

    def remain(self, text: str, seen: AbstractSet[str]) -> bool:
        """Whether a streamed reply may yet turn out to be no answer.

        Args:
            text: All of its text so far.
            seen: What the judge has seen of it.

        """
        if seen & _CALLS:
            return self._policy.hold_tool_calls
        return seen <= _TEXT and (self._is_short(text) or may_become_leak(_said(text), self._names))

    def verdict_on(self, verdict: Verdict, message: Any) -> Verdict:
        """The verdict on a message, or the sum of its chunks, that looks like an answer."""
        if verdict.seen & _CALLS:
            if self._policy.hold_tool_calls and not _are_whole(message):
                kind = kind_of_end(verdict.finish_reason_key or "", verdict.finish_reason or "")
                kind = kind if kind is ReplyKind.TRUNCATED else ReplyKind.MALFORMED
                return replace(verdict, kind=kind, seen=verdict.seen | {INVALID_CALLS})
        elif verdict.seen <= _TEXT:
            text = text_in(message.content)
            if leaks_call(_said(text), self._names):
                seen = verdict.seen | {LEAKED_CALL}
                return replace(verdict, kind=ReplyKind.MALFORMED, seen=seen)
            if self._is_short(text) and self._rejects(message):
                return replace(verdict, kind=ReplyKind.BLANK)
        return verdict

    def _is_short(self, text: str) -> bool:
        return self._policy.reject is not None and len(text) <= self._policy.reject_within

    def _rejects(self, message: AIMessage) -> bool:
        assert self._policy.reject is not None  # asked before
        reply: Any = message_chunk_to_message(message)
        return bool(returned("reject", self._policy.reject([*self._messages], reply)))


def _said(text: str) -> str:
    return _THINKING.sub("", text)


def _are_whole(message: Any) -> bool:
    """Whether the arguments of all calls parse as they came: LangChain mends what was cut."""
    chunks = getattr(message, "tool_call_chunks", ())
    return not message.invalid_tool_calls and all(
        _parses(chunk["args"] or "{}") for chunk in chunks
    )


def _parses(arguments: str) -> bool:
    try:
        json.loads(arguments, strict=False)  # as LangChain parses a whole reply's
    except ValueError:
        return False
    return True
