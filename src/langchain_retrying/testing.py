"""For testing agents against empty replies: a scripted chat model, and a sleep that does not wait.

model = ScriptedChatModel(["", "Hello."])      # a blank first, then an answer
with RecordingSleep() as slept:
    reply = RetryingChatModel(model).invoke("Hi")
assert reply.content == "Hello."
assert len(model.requests) == 2
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable  # LangChain evaluates `bind_tools`' annotations
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr

from langchain_retrying._call import clock
from langchain_retrying._call.chunks import chunk_of

if TYPE_CHECKING:
    from typing_extensions import Self

Piece = str | AIMessageChunk | BaseException
Reply = str | AIMessage | BaseException | Sequence[Piece] | Callable[[list[BaseMessage]], Any]
"""What one request is answered with: text; a message; an exception, which is raised; a sequence of
text, chunks and exceptions, which come one by one when streamed and added up otherwise (none at
all is a stream without a chunk, or a result without a candidate); or a callable that takes the
messages sent and returns one of these."""


@dataclass(frozen=True)
class ScriptedRequest:
    """A request that a scripted model has received."""

    messages: list[BaseMessage]
    kwargs: dict[str, Any]
    """`stop` and the call arguments, such as `tools`."""
    streamed: bool


class ScriptedChatModel(BaseChatModel):
    """A chat model that answers each request with the next reply of a script.

    It works under `invoke`, `ainvoke`, `stream` and `astream`, and may be used from several
    threads and tasks at once.

    Args:
        replies: One reply for each request, in order; or a callable that takes the messages sent
            and returns the reply.

    Raises:
        AssertionError: When a request finds the script at its end.

    """

    replies: Any
    requests: list[ScriptedRequest] = Field(default_factory=list, repr=False)
    """The requests received so far, in order."""
    streams_open: int = 0
    """Streams begun and neither read to their end nor closed."""

    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    def __init__(self, replies: Sequence[Reply] | Reply = (), **kwargs: Any) -> None:
        super().__init__(**{"replies": replies, **kwargs})

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        """Bind tools in OpenAI's format; the script decides whether they are called."""
        formatted = [convert_to_openai_tool(tool) for tool in tools]
        if tool_choice is not None:
            kwargs["tool_choice"] = tool_choice
        return self.bind(tools=formatted, **kwargs)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        chunks = [_chunk(piece) for piece in self._next(messages, stop, kwargs, streamed=False)]
        if not chunks:
            return ChatResult(generations=[])
        merged = chunks[0] + chunks[1:] if len(chunks) > 1 else chunks[0]
        message = message_chunk_to_message(merged.message)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        await asyncio.sleep(0)
        return self._generate(messages, stop, **kwargs)

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        self._count_stream(1)
        try:
            for piece in self._next(messages, stop, kwargs, streamed=True):
                yield _chunk(piece)
        finally:
            self._count_stream(-1)

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        self._count_stream(1)
        try:
            for piece in self._next(messages, stop, kwargs, streamed=True):
                await asyncio.sleep(0)
                yield _chunk(piece)
        finally:
            self._count_stream(-1)

    def _next(
        self, messages: list[BaseMessage], stop: Any, kwargs: dict[str, Any], *, streamed: bool
    ) -> Sequence[Any]:
        with self._lock:
            position = len(self.requests)
            kwargs = kwargs if stop is None else {"stop": stop, **kwargs}
            self.requests.append(ScriptedRequest(list(messages), kwargs, streamed))
        reply = self.replies
        if not callable(reply):
            assert position < len(reply), (
                f"request {position + 1} of a script with {len(reply)} replies"
            )
            reply = reply[position]
        if callable(reply):
            reply = reply(list(messages))
        return reply if isinstance(reply, (list, tuple)) else (reply,)

    def _count_stream(self, change: int) -> None:
        with self._lock:
            self.streams_open += change


def _chunk(piece: Any) -> ChatGenerationChunk:
    if isinstance(piece, BaseException):
        raise piece
    if isinstance(piece, str):
        piece = AIMessageChunk(content=piece)
    # A copy: LangChain writes into the messages that it is given.
    return chunk_of(piece.model_copy(deep=True))


class RecordingSleep:
    """Takes the place of the waits between attempts: records their length and does not wait.

    A context manager, for the whole process while it is entered. Time passes only by what is
    slept and by `advance`, so deadlines such as tenacity's `stop_after_delay` are met exactly.
    """

    def __init__(self) -> None:
        self.seconds: list[float] = []
        """The waits so far, in order."""
        self._now = 0.0

    def advance(self, seconds: float) -> None:
        """Let time pass, as if a request had taken so long."""
        self._now += seconds

    def __enter__(self) -> Self:
        self._before = clock.monotonic, clock.sleep, clock.asleep
        clock.monotonic = lambda: self._now
        clock.sleep = self._sleep
        clock.asleep = self._asleep
        return self

    def __exit__(self, *exc_info: object) -> None:
        clock.monotonic, clock.sleep, clock.asleep = self._before

    def _sleep(self, seconds: float, event: threading.Event | None = None) -> None:
        self.seconds.append(seconds)
        self.advance(seconds)

    async def _asleep(self, seconds: float) -> None:
        self._sleep(seconds)
