"""The beginning of a reply, held back until the reply is known not to be empty."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    message_chunk_to_message,
)
from langchain_core.outputs import ChatGenerationChunk

from langchain_retrying._call import clock
from langchain_retrying._call.attempts import with_account
from langchain_retrying._call.run_managers import Token
from langchain_retrying._judge.reply import NOTHING, ReplyJudge, Verdict, examine, is_plain_text

_RUN = 64
"""Held chunks beyond this many are merged in runs of it, and so are the runs: 100,000 take less
than 1 MB instead of 190."""

_WHITE_SPACE = 16
"""How many times white space alone counts: endless runs of it are a fault of JSON modes, and as
long as reasoning may be no reply is that begins with it."""


class Opening:
    """The first chunks of one streamed attempt, and the tokens it reported meanwhile, in order."""

    committed = False
    """Whether the reply is known to be an answer, so that it may flow."""
    has_come = False
    """Whether a chunk has come that did not commit."""
    until: float | None = None
    """When holding ends, by the clock of `clock.monotonic`; None: there is no such bound."""
    holds_reasoning = True
    """False: chunks of reasoning are to go out as they come."""
    live: Sequence[Any] = ()
    """Those that are to go out now."""
    blocks_sent = 0
    """How many indexes of content blocks, from 0, those that have gone out may have used."""
    _paused: float | None = None
    judge: ReplyJudge | None = None
    """None is needed for text at once."""
    _run_type: type | None = None  # of the content of the chunks that are merged

    def __init__(self, max_held_bytes: int) -> None:
        self._held: list[Any] = []
        # How many chunks at the end of `_held` are not merged; before them, how many are of one
        # run, of a run of runs ...
        self._runs = [0]
        self._bytes_left = max_held_bytes

    def add(self, chunk: Any) -> bool:
        """Hold a chunk; True to stop reading: at the commit, at a bound, or to `take_live`."""
        if self.judge is None and is_plain_text(chunk.message.content):
            self._held.append(chunk)
            self.committed = True
            return True
        return self._hold(chunk, chunk, merge=True)

    def _hold(self, item: Any, said: Any, *, merge: bool) -> bool:
        message = said.message
        judge = self.judge
        if judge is None:
            judge = self.judge = ReplyJudge()
        if judge.add(message, said.generation_info):
            self._held.append(item)
            self.committed = True
            return True
        self.has_come = True
        late = self.until is not None and clock.monotonic() >= self.until
        if not (self.holds_reasoning or late) and merge and _is_reasoning(message):
            live, item = _apart(item)
            self.live = [*self.live, live]
            self.blocks_sent = max(self.blocks_sent, _blocks_used(live.message.content))
            if item is None:
                return True
            message = item.message
        content = message.content
        if merge:
            # Text and blocks do not add up the same in any order, so a run is of one of them.
            if type(content) is not self._run_type:
                self._run_type = type(content)
                self._runs = [0]
            elif self._runs[0] >= _RUN:
                self._merge_runs()
        self._held.append(item)
        self._runs[0] += 1
        size = 1  # nothing at all, for ever, must come to an end too
        for part in (content, message.additional_kwargs, said.generation_info):
            if part:
                size += _size(part)
        self._bytes_left -= size
        return late or self._bytes_left < 0 or bool(self.live)

    def take_live(self) -> Iterable[Any]:
        """Take what is in `live`; the time until `resume` is the consumer's."""
        self._paused = clock.monotonic()
        live, self.live = self.live, ()
        return live

    def resume(self) -> None:
        """Read on after `take_live`."""
        if self._paused is not None and self.until is not None:
            self.until += clock.monotonic() - self._paused
            self._paused = None

    def let_through(self, token: Token, said: Any) -> Iterable[Token]:
        """Hold a token in its place among the chunks; after the commit it goes through."""
        if self.committed:
            return (token,)
        self._held.append(token)
        self._runs = [0]  # a run ends at a token
        return ()

    def is_empty(self) -> bool:
        """Whether what has come is not an answer, as far as can be told now."""
        return self.judge is None or not self.judge.verdict().is_answer

    def end(self) -> Verdict:
        """The verdict, when the stream has ended or a bound is reached."""
        verdict = NOTHING if self.judge is None else self.judge.verdict()
        self.committed = verdict.is_answer
        return verdict

    def release(self, account: dict[str, Any] | None) -> Iterable[Any]:
        """All that was held, in order, with the account of earlier attempts on the first chunk."""
        self.committed = True
        held, self._held = self._held, []
        if account is not None:
            for position, item in enumerate(held):
                if isinstance(item, ChatGenerationChunk):
                    message = with_account(item.message, account)
                    held[position] = item.model_copy(update={"message": message})
                    break
        return held

    def drop(self) -> None:
        """Forget all that was held, before the next attempt brings more."""
        self._held.clear()
        self._runs = [0]

    @property
    def nothing_is_held(self) -> bool:
        """Whether no chunk is held."""
        return all(isinstance(item, Token) for item in self._held)

    def items_of(self, message: AIMessage) -> Iterable[Any]:
        """A whole message as a stream has it."""
        return (chunk_of(message),)

    def message(self) -> AIMessage:
        """What was held as one message."""
        chunks = [item for item in self._held if isinstance(item, ChatGenerationChunk)]
        if not chunks:
            return AIMessage(content="")
        merged = _merge(chunks)
        message = message_chunk_to_message(merged.message)
        metadata = {**(merged.generation_info or {}), **message.response_metadata}
        if not isinstance(message, AIMessage):
            return AIMessage(content=message.content, response_metadata=metadata)
        message.response_metadata = metadata
        return message

    def _merge_runs(self) -> None:
        """Merge the run at the end, the run of runs if that has become full, and so on."""
        for level, count in enumerate(self._runs):
            if count < _RUN:
                break
            self._held[-_RUN:] = [_merge(self._held[-_RUN:])]
            self._runs[level] = 0
            if level + 1 == len(self._runs):
                self._runs.append(0)
            self._runs[level + 1] += 1


class HeldTokens:
    """The tokens of one attempt that is not streamed, until what they say shows an answer."""

    committed = False
    """Whether tokens have been let through, so that the attempt can't be taken back."""
    judge: ReplyJudge | None = None

    def __init__(self) -> None:
        self._held: list[Token] = []

    def let_through(self, token: Token, said: Any) -> Iterable[Token]:
        """Hold a token, or send all on."""
        if self.committed:
            return (token,)
        self._held.append(token)
        if self.judge is None:
            self.judge = ReplyJudge()
        message = getattr(said, "message", None)
        usable = self.judge.add_content(said) if message is None else self.judge.add(message)
        return self.release() if usable else ()

    def drop(self) -> None:
        """Forget all that was held."""
        self._held.clear()

    def release(self) -> Iterable[Token]:
        """All that was held; from now on tokens go straight through."""
        self.committed = True
        held, self._held = self._held, []
        return held


def chunk_of(message: AIMessage) -> ChatGenerationChunk:
    """A whole message as the only chunk of a stream."""
    if isinstance(message, AIMessageChunk):
        return ChatGenerationChunk(message=message)
    fields = {
        name: getattr(message, name)
        for name in ("content", "additional_kwargs", "response_metadata", "id", "name")
    }
    tool_call_chunks: list[Any] = [
        {**call, "args": json.dumps(call["args"], default=str), "index": index}
        for index, call in enumerate(message.tool_calls)
    ]
    tool_call_chunks += [
        {**call, "index": len(tool_call_chunks) + index}
        for index, call in enumerate(message.invalid_tool_calls)
    ]
    for call in tool_call_chunks:
        call["type"] = "tool_call_chunk"
        call.pop("error", None)
    return ChatGenerationChunk(
        message=AIMessageChunk(
            **fields, usage_metadata=message.usage_metadata, tool_call_chunks=tool_call_chunks
        )
    )


def _merge(chunks: list[ChatGenerationChunk]) -> ChatGenerationChunk:
    return chunks[0] + chunks[1:] if len(chunks) > 1 else chunks[0]


def _is_reasoning(message: Any) -> bool:
    return examine(message).seen == {"reasoning"}


def _apart(chunk: ChatGenerationChunk) -> tuple[ChatGenerationChunk, ChatGenerationChunk | None]:
    """The reasoning of a chunk, and what else it tells, which is so only of an answer."""
    message = chunk.message
    told: dict[str, Any] = {
        name: empty
        for name, empty in (
            ("usage_metadata", None),
            ("response_metadata", {}),
            ("chunk_position", None),
        )
        if getattr(message, name, None)
    }
    if not (told or chunk.generation_info):
        return chunk, None
    nothing: dict[str, Any] = {"content": type(message.content)(), "additional_kwargs": {}}
    live = ChatGenerationChunk(message=message.model_copy(update=told))
    rest = ChatGenerationChunk(
        message=message.model_copy(update=nothing), generation_info=chunk.generation_info
    )
    return live, rest


def _blocks_used(content: Any) -> int:
    blocks = content if isinstance(content, list) else []
    indexes = [block.get("index") for block in blocks if isinstance(block, dict)]
    return max((index + 1 for index in indexes if isinstance(index, int)), default=len(blocks))


def with_blocks_after(chunk: ChatGenerationChunk, number: int) -> ChatGenerationChunk:
    """A chunk whose content blocks come after so many others, and are not taken for parts of them.

    LangChain adds up blocks of the same index, which may also be a name.
    """
    content = chunk.message.content
    if not isinstance(content, list):
        return chunk
    blocks = [_after(block, number) for block in content]
    message = chunk.message.model_copy(update={"content": blocks})
    return ChatGenerationChunk(message=message, generation_info=chunk.generation_info)


def _after(block: Any, number: int) -> Any:
    index = block.get("index") if isinstance(block, dict) else None
    if isinstance(index, int):
        return {**block, "index": index + number}
    return {**block, "index": f"{index}_{number}"} if isinstance(index, str) else block


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value) * _WHITE_SPACE if value.isspace() else len(value)
    size = 0
    if isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            if part:
                size += _size(part)
    return size
