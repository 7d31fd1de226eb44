"""The judge: what kind of reply a message is. Pure; one judge for whole messages and for chunks.

It looks for something that a consumer can use. Finish reasons only tell apart the kinds of empty
reply. What it does not know counts as usable: nothing is thrown away that is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk

from langchain_retrying._judge.finish_reasons import End, end_of, normalise, reasons_in
from langchain_retrying._judge.visible_text import VisibleText


class ReplyKind(str, Enum):
    """What a chat model's reply amounts to.

    The four kinds other than `ANSWER` carry nothing that a consumer can use; they differ by why.
    """

    ANSWER = "answer"
    """Visible text, a tool call, a refusal in words, audio, an image, a paused turn ..."""
    BLANK = "blank"
    """Ended for no stated reason, for a normal one or for one that is not known."""
    TRUNCATED = "truncated"
    """The output budget was spent, mostly on reasoning."""
    BLOCKED = "blocked"
    """The provider withheld it: content filter, safety, refusal, guardrail."""
    MALFORMED = "malformed"
    """A tool call is missing: the provider dropped a malformed one, or announced one that did not
    come, or the policy requires a forced one and text came instead."""


KIND_OF_END = {
    End.MALFORMED: ReplyKind.MALFORMED,
    End.BLOCKED: ReplyKind.BLOCKED,
    End.TRUNCATED: ReplyKind.TRUNCATED,
}

_REASONING_BLOCKS = frozenset(
    {"thinking", "redacted_thinking", "reasoning", "reasoning_content", "thought"}
)
# Of tools that run at the provider.
_SERVER_TOOL_BLOCKS = re.compile(
    "server_tool_.*|.*_tool_result|.*search_call|code_interpreter_call|mcp_tool_use|mcp_call"
    "|mcp_list_tools|input_json_delta"  # arguments of a tool announced by a block before it
)
# Of these, what only looks something up or computes, by its name, or has none that tells: all
# others may have had an effect, which another attempt would have again.
_WITHOUT_EFFECT = re.compile(
    "^server_tool|^input_|executed_tool|list_tools|search|fetch|visit|browser|retriev|code_|python|bash"
    "|editor|calculat|wolfram"
)
_BLANK_LETTERS = "\u115f\u1160\u3164\uffa0"  # Hangul fillers, letters to Unicode, show nothing
_TEXT_BLOCKS = frozenset({"text", "output_text"})
# Keys of a typeless block that are bookkeeping, not output.
_BLOCK_BOOKKEEPING = frozenset({"type", "index", "id", "extras", "signature", "annotations"})

# What a key of `additional_kwargs` tells of its value; the first that is found in it decides.
_KWARGS = {
    kind: re.compile(words)
    for kind, words in {
        "output": r"\A(?:(?:tool|function)_calls?|refusal|parsed|(?:audio|image|video|file)s?)\Z",
        "envelope": r"\A(?:provider_specific_fields|extra_content|google)\Z",
        "notes": "signature|usage|token|logprob|(?:^|_)ids?_*$|(?:finish|stop)_reason"
        "|citation|(?<!re)s(?:ource|earch)|(?:^|_)(?:related|reference)|document|grounding"
        "|annotation",
        "reasoning": "think|thought|reasoning|^_*reasons?(?:_|$)|rationale|monologue|scratchpad",
        "executed tools": "executed_tool",
        "blocks": "^tool_outputs$",  # where langchain-openai's v0 format has server-side tools
    }.items()
}
_WORD_END = re.compile("(?<=[a-z0-9])(?=[A-Z])")


@lru_cache(maxsize=1024)
def _kind_of_kwarg(key: str) -> str | None:
    """What a key of `additional_kwargs` tells of its value, in any spelling; None: nothing."""
    name = _WORD_END.sub("_", key).lower()
    return next((kind for kind, words in _KWARGS.items() if words.search(name)), None)


@dataclass(frozen=True)
class Verdict:
    """A judgement and its evidence."""

    kind: ReplyKind
    finish_reason: str | None = None
    """The provider's own word that decided the kind, else the last one it gave; None if none."""
    finish_reason_key: str | None = None
    """Where in the metadata it stood, such as `stop_reason`."""
    seen: frozenset[str] = frozenset()
    """What the reply held: `text`, `blank text`, `reasoning`, `server tools`, `tool calls`, and
    types of blocks or keys of `additional_kwargs` that are usable as they are."""

    @property
    def is_answer(self) -> bool:
        """Whether the reply carries something that a consumer can use."""
        return self.kind is ReplyKind.ANSWER


NOTHING = Verdict(ReplyKind.BLANK)
"""The verdict on a reply that did not come at all."""

ANSWER = Verdict(ReplyKind.ANSWER)
"""The verdict on an answer that needs no evidence."""

_TEXT, _BLANK_TEXT, _REASONING = "text", "blank text", "reasoning"
_SERVER_TOOLS, _TOOL_CALLS = "server tools", "tool calls"
_NOT_USABLE = frozenset({_BLANK_TEXT, _REASONING, _SERVER_TOOLS})


class ReplyJudge:
    """Judges one reply that comes as chunks, or as one whole message.

    However the reply is cut, the verdict is the same. The time taken is linear in the length.
    """

    __slots__ = ("_plain", "_reasons", "_seen", "_text", "_text_counts", "_usable")

    def __init__(self, *, text_counts: bool = True) -> None:
        """Begin a judgement.

        Args:
            text_counts: False: text is not usable, since a tool call is required.

        """
        self._text_counts = text_counts
        self._usable = False  # something other than text has come
        self._plain = False  # text has come that needs no closer look
        self._text: VisibleText | None = None
        self._reasons: list[tuple[str, str]] = []
        self._seen: set[str] = set()  # but text

    def add(self, message: Any, generation_info: Mapping[str, Any] | None = None) -> bool:
        """Take the next chunk or the whole message; True once something usable has come.

        A stream may flow from then on. (Text that a closing `</think>` makes reasoning after all
        has been shown by then; the verdict on the whole takes it for what it is.)
        """
        content = message.content
        if self._text is None and is_plain_text(content):
            self._plain = True
        elif content:
            self.add_content(content)
        if _has_tool_call(message):
            self._see(_TOOL_CALLS)
        if message.additional_kwargs:
            self._add_kwargs(message.additional_kwargs)
        if generation_info:
            self.note(generation_info)
        if message.response_metadata:
            self.note(message.response_metadata)
        return self._usable or self._visible

    def add_content(self, content: Any) -> bool:
        """Take content alone, as a token reports it; gives what `add` gives."""
        for block in content if isinstance(content, list) else [content]:
            self._add_block(block)
        return self._usable or self._visible

    def note(self, metadata: Mapping[str, Any]) -> None:
        """Take the finish reasons in metadata, wherever it stands."""
        self._reasons.extend(reasons_in(metadata))

    def verdict(self) -> Verdict:
        """The verdict on all that was added, taking it for the whole reply."""
        text = self._text
        visible = self._plain if text is None else text.at_end()
        seen = set(self._seen)
        if text is not None and text.saw_reasoning:
            seen.add(_REASONING)
        if visible or text is not None:
            seen.add(_TEXT if visible else _BLANK_TEXT)
        if (visible and self._text_counts) or self._usable:
            return Verdict(ReplyKind.ANSWER, *self._last_reason(), frozenset(seen))
        kind, word, key = self._kind_of_empty()
        if visible and kind is ReplyKind.BLANK:
            kind = ReplyKind.MALFORMED
        return Verdict(kind, word, key, frozenset(seen))

    def _kind_of_empty(self) -> tuple[ReplyKind, str | None, str | None]:
        ends = {end_of(key, word): (word, key) for key, word in self._reasons}
        for end, kind in KIND_OF_END.items():  # in the order of what says more
            if end in ends:
                return kind, *ends[end]
        word, key = self._last_reason()
        if word is not None and normalise(word) is End.PAUSED:
            return ReplyKind.ANSWER, word, key
        return ReplyKind.BLANK, word, key

    def _last_reason(self) -> tuple[str | None, str | None]:
        if not self._reasons:
            return None, None
        key, word = self._reasons[-1]
        return word, key

    @property
    def _visible(self) -> bool:
        if not self._text_counts:
            return False
        return self._plain if self._text is None else self._text.visible

    def _see(self, what: str) -> None:
        self._seen.add(what)
        self._usable = self._usable or what not in _NOT_USABLE

    def _add_text(self, text: str) -> None:
        if self._text is None:
            self._text = VisibleText(visible=self._plain)
        self._text.add(text)

    def _add_block(self, block: Any) -> None:
        if isinstance(block, str):
            self._add_text(block)
        elif not isinstance(block, (dict, Mapping)):  # the first is told at once
            if block:
                self._see(type(block).__name__)
        elif block.get("type") is None:
            self._add_typeless(block)
        else:
            self._add_typed(str(block["type"]), block)

    def _add_typed(self, kind: str, block: Mapping[str, Any]) -> None:
        if kind in _TEXT_BLOCKS and isinstance(block.get("text"), (str, type(None))):
            self._add_text(block.get("text") or "")
        elif kind in _REASONING_BLOCKS:
            self._seen.add(_REASONING)
        elif _SERVER_TOOL_BLOCKS.fullmatch(kind):
            self._add_server_tool(kind if kind.startswith("mcp") else block.get("name") or kind)
        elif kind == "non_standard":  # LangChain's v1 envelope for a provider's own block
            self._add_block(block.get("value"))
        else:
            self._see(kind)

    def _add_typeless(self, block: Mapping[str, Any]) -> None:
        for key, value in block.items():
            if key in _REASONING_BLOCKS:
                self._see(_REASONING)
            elif key == "text" and isinstance(value, str):
                self._add_text(value)
            elif value and key not in _BLOCK_BOOKKEEPING:
                self._see(str(key))

    def _add_kwargs(self, additional_kwargs: Mapping[str, Any]) -> None:
        for key, value in additional_kwargs.items():
            if not value:
                continue  # `refusal: None` is there in every reply of ChatOpenAI
            kind = _kind_of_kwarg(str(key))
            if kind == "reasoning":
                self._seen.add(_REASONING)
            elif kind == "output":
                self._see(str(key))
            elif kind == "notes" or isinstance(value, (str, int, float)):
                pass  # bookkeeping
            elif kind == "envelope" and isinstance(value, Mapping):
                self._add_kwargs(value)
            elif kind == "executed tools" and isinstance(value, list):
                for tool in value:
                    named = isinstance(tool, Mapping) and (tool.get("name") or tool.get("type"))
                    self._add_server_tool(named or key)
            elif kind == "blocks" and isinstance(value, list):
                self.add_content(value)
            else:
                self._see(str(key))

    def _add_server_tool(self, name: Any) -> None:
        self._see(_SERVER_TOOLS if _WITHOUT_EFFECT.search(str(name).lower()) else str(name))


def is_plain_text(content: Any) -> bool:
    """Whether content is text that begins with a letter or a digit and holds no tag.

    That is the commonest answer, and told in a fraction of a microsecond.
    """
    return (
        type(content) is str
        and content[:1].isalnum()
        and "<" not in content
        and content[0] not in _BLANK_LETTERS
        and "[" not in content
        and "◁" not in content
    )


def _has_tool_call(message: Any) -> bool:
    if isinstance(message, AIMessageChunk):
        return bool(message.tool_call_chunks or message.tool_calls or message.invalid_tool_calls)
    return bool(
        getattr(message, "tool_calls", None) or getattr(message, "invalid_tool_calls", None)
    )


def examine(message: Any, generation_info: Mapping[str, Any] | None = None) -> Verdict:
    """The verdict on a whole message, with its evidence."""
    judge_ = ReplyJudge()
    judge_.add(message, generation_info)
    return judge_.verdict()


def judge(message: AIMessage | AIMessageChunk) -> ReplyKind:
    """Tell what kind of reply a message is.

    Args:
        message: A whole reply, or the sum of its chunks. Anything with `content`,
            `additional_kwargs` and `response_metadata` like those of an `AIMessage` will do.

    Returns:
        `ReplyKind.ANSWER` if the message carries something that a consumer can use, whatever its
        finish reason; else the kind of emptiness.

    """
    return examine(message).kind


def is_empty_ai_message(message: AIMessage | AIMessageChunk) -> bool:
    """Tell whether a message carries nothing that a consumer can use.

    Args:
        message: As for `judge`.

    Returns:
        `judge(message) is not ReplyKind.ANSWER`.

    """
    return judge(message) is not ReplyKind.ANSWER
