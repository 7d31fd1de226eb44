"""Chunks of a stream: made of messages, put together, measured, and parted. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    message_chunk_to_message,
)
from langchain_core.outputs import ChatGenerationChunk, ChatResult

_WHITE_SPACE = 16
"""How many times white space alone counts: endless runs of it are a fault of JSON modes, and as
long as reasoning may be no reply is that begins with it."""

_TOLD: dict[str, Any] = {"usage_metadata": None, "response_metadata": {}, "chunk_position": None}
"""What a chunk tells of a whole reply, and what it is where it tells nothing."""

Message = TypeVar("Message", bound=BaseMessage)


def with_account(message: Message, account: dict[str, Any]) -> Message:
    """A copy of the message that tells of the attempts made."""
    metadata = {**message.response_metadata, "empty_retry": account}
    return message.model_copy(update={"response_metadata": metadata})


def _as_ai_message(message: BaseMessage, outer: Any, inner: Any = None) -> AIMessage:
    """A copy of a reply with the metadata that LangChain merges into it only later."""
    metadata = {**(outer or {}), **(inner or {}), **message.response_metadata}
    if not isinstance(message, AIMessage):
        return AIMessage(content=message.content, response_metadata=metadata)
    return message.model_copy(update={"response_metadata": metadata})


def message_in(result: ChatResult) -> AIMessage | None:
    """The reply that `invoke` gives for a result; None: it has none."""
    if not result.generations:
        return None
    first = result.generations[0]
    return _as_ai_message(first.message, result.llm_output, first.generation_info)


def chunk_of(message: AIMessage) -> ChatGenerationChunk:
    """A whole message as the only chunk of a stream."""
    if isinstance(message, AIMessageChunk):
        return ChatGenerationChunk(message=message)
    names = ("content", "additional_kwargs", "response_metadata", "id", "name", "usage_metadata")
    calls: list[Any] = [
        {**call, "args": json.dumps(call["args"], default=str)} for call in message.tool_calls
    ]
    calls += [
        {k: v for k, v in call.items() if k != "error"} for call in message.invalid_tool_calls
    ]
    tool_call_chunks: list[Any] = [
        {**call, "index": index, "type": "tool_call_chunk"} for index, call in enumerate(calls)
    ]
    fields = {name: getattr(message, name) for name in names}
    return ChatGenerationChunk(message=AIMessageChunk(**fields, tool_call_chunks=tool_call_chunks))


def merged(chunks: Sequence[ChatGenerationChunk]) -> ChatGenerationChunk:
    """The chunks, at least one, as one."""
    first, *rest = chunks
    return first + rest if rest else first


def message_of(chunks: Sequence[ChatGenerationChunk]) -> AIMessage:
    """What a stream has brought as one message."""
    if not chunks:
        return AIMessage(content="")
    whole = merged(chunks)
    return _as_ai_message(message_chunk_to_message(whole.message), whole.generation_info)


def live_part(chunk: ChatGenerationChunk) -> tuple[ChatGenerationChunk, ChatGenerationChunk | None]:
    """The reasoning of a chunk, and what else it tells, which is so only of an answer."""
    message = chunk.message
    told = [name for name in _TOLD if getattr(message, name, None)]
    if not (told or chunk.generation_info):
        return chunk, None
    live = message.model_copy(update={name: _TOLD[name] for name in told})
    nothing: dict[str, Any] = {"content": type(message.content)(), "additional_kwargs": {}}
    rest = message.model_copy(update=nothing)
    return (
        ChatGenerationChunk(message=live),
        ChatGenerationChunk(message=rest, generation_info=chunk.generation_info),
    )


def blocks_used(content: Any) -> int:
    """How many indexes of content blocks, from 0, a chunk's content may have used."""
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


def size_of(value: Any) -> int:
    """How much a part of a chunk counts: the characters of all text in it."""
    if isinstance(value, str):
        return len(value) * _WHITE_SPACE if value.isspace() else len(value)
    size = 0
    if isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            if part:
                size += size_of(part)
    return size
