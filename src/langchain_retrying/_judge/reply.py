"""The judge: what kind of reply a message is. Pure; one judge for whole messages and for chunks.

It looks for something that a consumer can use. Finish reasons only tell apart the kinds of empty
reply. What it does not know counts as usable: nothing is thrown away that is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk

from langchain_retrying._judge.finish_reasons import kind_of_end, reasons_in
from langchain_retrying._judge.kinds import ReplyKind, Verdict
from langchain_retrying._judge.visible_text import VisibleText, is_plain_text

# What a block of content is, by its type, or by a key of it where it has none.
_BLOCK = (
    "(?P<text>(?:output_)?text)"
    "|(?P<reasoning>(?:redacted_)?(?:thinking|thought|reasoning).*)"
    # Of tools that run at the provider; the last are arguments of a call announced before.
    "|(?P<server_tool>server_tool_.*|.*(?:_tool_result|search_call)|code_interpreter_call"
    "|mcp_(?:tool_use|call|list_tools)|input_json_delta)"
    "|(?P<envelope>non_standard)"  # LangChain's v1, for a provider's own block
    "|(?P<tool_call>(?:invalid_)?(?:tool|function)_(?:call|use)(?:_chunk)?)"
)
# Keys of a typeless block that are bookkeeping, not output.
_BLOCK_BOOKKEEPING = frozenset({"type", "index", "id", "extras", "signature", "annotations"})
# What a value in `additional_kwargs` is, by its key.
_KWARG = (
    "(?P<tool_call>(?:tool|function)_calls?)"
    "|(?P<output>refusal|parsed|(?:audio|image|video|file)s?)"
    "|(?P<envelope>provider_specific_fields|extra_content|google)"
    "|(?P<notes>.*(?:signature|usage|token|logprob|(?:finish|stop)_reason|citation|document"
    "|(?<!re)s(?:ource|earch)|grounding|annotation).*|(?:.*_)?(?:related|reference).*"
    "|(?:.*_)?ids?_*)"
    "|(?P<reasoning>.*(?:think|thought|reasoning|rationale|monologue|scratchpad).*"
    "|_*reasons?(?:_.*)?)"
    "|(?P<executed_tools>.*executed_tool.*)"
    "|(?P<blocks>tool_outputs)"  # where langchain-openai's v0 format has server-side tools
)
# Of tools that run at the provider, those that only look something up or compute, by name, or
# have none that tells: all others may have had an effect, which another attempt would have again.
_WITHOUT_EFFECT = re.compile(
    "^server_tool|^input_|executed_tool|list_tools|search|fetch|visit|browser|retriev|code_|python"
    "|bash|editor|calculat|wolfram"
)
_WORD_END = re.compile("(?<=[a-z0-9])(?=[A-Z])")

_TEXT, _BLANK_TEXT, _REASONING = "text", "blank text", "reasoning"
_SERVER_TOOLS, _TOOL_CALLS = "server tools", "tool calls"
INVALID_CALLS = "invalid tool calls"
"""Of tool calls: their arguments are no JSON, so nothing can be called."""
LEAKED_CALL = "leaked tool call"
"""A tool call that was printed as text."""
# Of several reasons the one that says most decides, else the last one.
_RANKS = {ReplyKind.MALFORMED: 0, ReplyKind.BLOCKED: 1, ReplyKind.TRUNCATED: 2}


@lru_cache(maxsize=1024)
def _meaning(words: str, name: str) -> str | None:
    """Which group of these words a name in any spelling belongs to; None: it is not known."""
    known = re.fullmatch(words, _WORD_END.sub("_", name).lower())
    return known and known.lastgroup


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
        self._plain = False  # text has come that needs no closer look
        self._text: VisibleText | None = None  # None: no other text has come
        self._usable = False  # something other than text has come
        self._seen: set[str] = set()  # but text
        self._reasons: list[tuple[str, str]] = []

    def add(self, message: Any, generation_info: Mapping[str, Any] | None = None) -> bool:
        """Take the next chunk or the whole message; True once something usable has come.

        A stream may flow from then on. (Text that a closing `</think>` makes reasoning after all
        has been shown by then; the verdict on the whole takes it for what it is.)
        """
        content = message.content
        if getattr(message, "tool_calls", None):
            self._see_usable(_TOOL_CALLS)
        elif getattr(message, "invalid_tool_calls", None) or (
            isinstance(message, AIMessageChunk) and message.tool_call_chunks
        ):
            self._seen.add(INVALID_CALLS)
        if content:
            if self._text is None and is_plain_text(content):
                self._plain = True
            else:
                self._take(content)
        if message.additional_kwargs:
            self._take_kwargs(message.additional_kwargs)
        if generation_info:
            self.note(generation_info)
        if message.response_metadata:
            self.note(message.response_metadata)
        return self._is_usable

    def add_content(self, content: Any) -> bool:
        """Take content alone, as a token reports it; gives what `add` gives."""
        self._take(content)
        return self._is_usable

    def note(self, metadata: Mapping[str, Any]) -> None:
        """Take the finish reasons in metadata, wherever it stands."""
        self._reasons.extend(reasons_in(metadata))

    def verdict(self) -> Verdict:
        """The verdict on all that was added, taking it for the whole reply."""
        text, seen = self._text, set(self._seen)
        visible = self._plain if text is None else text.at_end()
        if visible or text is not None:
            seen.add(_TEXT if visible else _BLANK_TEXT)
        if text is not None and text.saw_reasoning:
            seen.add(_REASONING)
        if self._usable or (visible and self._text_counts):
            key, word = self._reasons[-1] if self._reasons else (None, None)
            return Verdict(ReplyKind.ANSWER, word, key, frozenset(seen))
        ends = [(kind_of_end(key, word), word, key) for key, word in reversed(self._reasons)]
        ends.sort(key=lambda end: _RANKS.get(end[0], 3))
        kind, word, key = ends[0] if ends else (ReplyKind.BLANK, None, None)
        if kind is ReplyKind.BLANK and (visible or INVALID_CALLS in seen):
            kind = ReplyKind.MALFORMED
        return Verdict(kind, word, key, frozenset(seen))

    @property
    def _is_usable(self) -> bool:
        if self._usable or not self._text_counts:
            return self._usable
        return self._plain if self._text is None else self._text.visible

    def _see_usable(self, what: str) -> None:
        self._seen.add(what)
        self._usable = True

    def _take(self, content: Any) -> None:
        if isinstance(content, dict):
            if (kind := content.get("type")) is not None:
                self._take_block(str(kind), content)
            else:
                for key in content.keys() - _BLOCK_BOOKKEEPING:
                    if content[key]:
                        self._take_block(str(key), content)
        elif isinstance(content, list):
            for block in content:
                self._take(block)
        elif isinstance(content, str):
            if self._text is None:
                self._text = VisibleText(visible=self._plain)
            self._text.add(content)
        elif content:
            self._see_usable(type(content).__name__)

    def _take_block(self, name: str, block: Mapping[str, Any]) -> None:
        kind = _meaning(_BLOCK, name)
        if kind == "reasoning":
            self._seen.add(_REASONING)
        elif kind == "text":
            self._take(block.get("text"))
        elif kind == "server_tool":
            self._take_server_tool(name if name.startswith("mcp") else block.get("name") or name)
        elif kind == "envelope":
            self._take(block.get("value"))
        elif name == "invalid_tool_call":
            self._seen.add(INVALID_CALLS)
        elif kind != "tool_call" or INVALID_CALLS not in self._seen:
            self._see_usable(name)

    def _take_kwargs(self, additional_kwargs: Mapping[str, Any]) -> None:
        for key, value in additional_kwargs.items():
            if not value:
                continue  # `refusal: None` is there in every reply of ChatOpenAI
            kind = _meaning(_KWARG, str(key))
            if kind == "tool_call" and INVALID_CALLS in self._seen:
                continue  # the same, as it came
            if kind == "reasoning":
                self._seen.add(_REASONING)
            elif kind == "envelope" and isinstance(value, Mapping):
                self._take_kwargs(value)
            elif kind == "executed_tools" and isinstance(value, list):
                for tool in value:
                    named = isinstance(tool, Mapping) and (tool.get("name") or tool.get("type"))
                    self._take_server_tool(named or key)
            elif kind == "blocks" and isinstance(value, list):
                self._take(value)
            elif kind in ("output", "tool_call") or (
                kind != "notes" and not isinstance(value, (str, int, float))
            ):
                self._see_usable(str(key))

    def _take_server_tool(self, name: Any) -> None:
        if _WITHOUT_EFFECT.search(str(name).lower()):
            self._seen.add(_SERVER_TOOLS)
        else:
            self._see_usable(str(name))


def examine(message: Any, generation_info: Mapping[str, Any] | None = None) -> Verdict:
    """The verdict on a whole message, with its evidence."""
    reply = ReplyJudge()
    reply.add(message, generation_info)
    return reply.verdict()


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
