"""A chat model that answers at once, so that what is around it is what is measured."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr

UNSEEN: dict[str, Callable[[], AIMessageChunk]] = {
    "reasoning": lambda: AIMessageChunk(
        content="", additional_kwargs={"reasoning_content": "Let me see. "}
    ),
    "block": lambda: AIMessageChunk(
        content=[{"type": "thinking", "thinking": "Let me see. ", "index": 0}]
    ),
    "whitespace": lambda: AIMessageChunk(content="\n"),
}
"""Chunks with nothing in them that a consumer can use, by what they hold instead."""


class FastChatModel(BaseChatModel):
    """Streams `unseen` chunks of a kind of `UNSEEN`, then `chunks` chunks of text."""

    unseen: int = 0
    kind: str = "reasoning"
    chunks: int = 1
    beforehand: bool = False
    """Whether all streams give the same chunks, made at the first, instead of new ones."""
    blank_first: bool = False
    """Whether the first, third, fifth ... request is answered without text."""

    _made: list[ChatGenerationChunk] = PrivateAttr(default_factory=list)
    _requests: int = PrivateAttr(default=0)

    @property
    def _llm_type(self) -> str:
        return "fast"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Bind tools, given in OpenAI's format."""
        return self.bind(tools=tools, **kwargs)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        message = AIMessage(content="" if self._is_blank() else "Hello")
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return self._generate(messages)

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        if self.beforehand:
            self._made = self._made or list(self._new_chunks())
            yield from self._made
        else:
            yield from self._new_chunks()

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages):
            yield chunk

    def _is_blank(self) -> bool:
        self._requests += 1
        return self.blank_first and self._requests % 2 == 1

    def _new_chunks(self) -> Iterator[ChatGenerationChunk]:
        unseen = UNSEEN[self.kind]
        for _ in range(self.unseen):
            yield ChatGenerationChunk(message=unseen())
        text: Any = "Hello"
        if self.kind == "block":
            text = [{"type": "text", "text": "Hello", "index": 1}]
        for _ in range(0 if self._is_blank() else self.chunks):
            yield ChatGenerationChunk(message=AIMessageChunk(content=text))
