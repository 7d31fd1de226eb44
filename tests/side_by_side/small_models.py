"""Chat models as small as can be, one for each way in which inner models differ."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from typing import Any, ClassVar, Literal

from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict, Field, PrivateAttr, SecretStr

from langchain_retrying.testing import ScriptedChatModel

USAGE: Any = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
END = AIMessageChunk(
    content="", response_metadata={"finish_reason": "stop"}, usage_metadata={**USAGE}
)
PIECES = ["", "Hel", "lo ", "you.", END]


def call(name: str, number: int = 1, **args: Any) -> AIMessage:
    """A message that calls a tool."""
    return AIMessage(content="", tool_calls=[{"name": name, "args": args, "id": f"call-{number}"}])


def always(*pieces: Any, cls: Any = ScriptedChatModel, **kwargs: Any) -> Callable[[], Any]:
    """Makes models that give the same answer to each request."""
    answer = list(pieces or PIECES)
    return lambda: cls(replies=lambda messages: answer, **fresh(kwargs))


def script(*replies: Any, cls: Any = ScriptedChatModel, **kwargs: Any) -> Callable[[], Any]:
    """Makes models that give one reply after the other."""
    return lambda: cls(replies=list(replies), **fresh(kwargs))


def fresh(kwargs: dict[str, Any]) -> dict[str, Any]:
    """A class among the arguments stands for an instance of it, one for each model."""
    return {
        key: [item() if isinstance(item, type) else item for item in value]
        if isinstance(value, list)
        else value()
        if isinstance(value, type)
        else value
        for key, value in kwargs.items()
    }


def generic(*messages: Any, **kwargs: Any) -> Callable[[], Any]:
    """Makes LangChain's own fake model, which takes its messages from an iterator."""
    return lambda: GenericFakeChatModel(messages=iter(copy.deepcopy(messages)), **kwargs)


class Whole(ScriptedChatModel):
    """Does not stream."""

    _stream = BaseChatModel._stream
    _astream = BaseChatModel._astream


class WholeSync(Whole):
    """Has nothing but `_generate`."""

    _agenerate = BaseChatModel._agenerate


class SyncStreaming(ScriptedChatModel):
    """Streams, but only synchronously."""

    _agenerate = BaseChatModel._agenerate
    _astream = BaseChatModel._astream


class Unvalidated(BaseChatModel):
    """Made by `model_construct` it lacks what it requires."""

    required: str
    replies: Any = None

    @property
    def _llm_type(self) -> str:
        return "unvalidated"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        message = AIMessage("".join(self.replies(messages)))
        return ChatResult(generations=[ChatGeneration(message=message)])


class AsyncOnly(ScriptedChatModel):
    """Has nothing for sync callers."""

    _stream = BaseChatModel._stream

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        raise NotImplementedError("async only")

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        return super()._generate(messages, stop, **kwargs)


class AsyncStreamOfWhole(Whole):
    """Its `_astream` alone is its own, and makes one chunk of the whole reply."""

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        result = await self._agenerate(messages, stop, **kwargs)
        message = result.generations[0].message
        yield ChatGenerationChunk(message=AIMessageChunk(content=message.content))


class NotStreamingAfterAll(ScriptedChatModel):
    """Has `_stream` and `_astream`, which raise NotImplementedError."""

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        raise NotImplementedError("no streaming")

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        raise NotImplementedError("no streaming")
        yield


class NoRunManager(ScriptedChatModel):
    """Its hooks have no parameter `run_manager`."""

    def _generate(self, messages, stop=None, **kwargs):
        assert "run_manager" not in kwargs
        return super()._generate(messages, stop, **kwargs)

    async def _agenerate(self, messages, stop=None, **kwargs):
        assert "run_manager" not in kwargs
        return super()._generate(messages, stop, **kwargs)

    def _stream(self, messages, stop=None, **kwargs):
        yield from super()._stream(messages, stop, **kwargs)


class KeywordOnly(ScriptedChatModel):
    """Keyword-only arguments in hooks, and one more of `invoke` and `stream`, as Gemini's."""

    def invoke(self, input, config=None, *, code_execution=None, stop=None, **kwargs):  # noqa: A002
        if code_execution:
            kwargs["tools"] = ["code_execution"]
        return super().invoke(input, config, stop=stop, **kwargs)

    def _generate(
        self, messages, stop=None, run_manager=None, *, tools=None, safety="none", **kwargs
    ):
        return super()._generate(messages, stop, tools=tools, safety=safety, **kwargs)

    def _stream(
        self, messages, stop=None, run_manager=None, *, tools=None, safety="none", **kwargs
    ):
        return super()._stream(messages, stop, tools=tools, safety=safety, **kwargs)


class Reporting(ScriptedChatModel):
    """Reports tokens itself, whole and streamed, as LiteLLM's and Ollama's models do."""

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        chunks = list(self._stream(messages, stop, run_manager, **kwargs))
        return _whole(chunks)

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        return _whole([c async for c in self._astream(messages, stop, run_manager, **kwargs)])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        for chunk in super()._stream(messages, stop, **kwargs):
            if run_manager:
                run_manager.on_llm_new_token(chunk.message.content, chunk=chunk, verbose=True)
            yield chunk

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        async for chunk in super()._astream(messages, stop, **kwargs):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.message.content, verbose=True)
            yield chunk


def _whole(chunks: list[ChatGenerationChunk]) -> ChatResult:
    message = chunks[0].message
    for chunk in chunks[1:]:
        message += chunk.message
    return ChatResult(generations=[ChatGeneration(message=AIMessage(content=message.content))])


class Informing(ScriptedChatModel):
    """Finish reason, usage and model name stand in `generation_info` and `llm_output`."""

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        (generation,) = super()._generate(messages, stop, **kwargs).generations
        generation = ChatGeneration(
            message=generation.message, generation_info={"finish_reason": "stop"}
        )
        return ChatResult(
            generations=[generation], llm_output={"model_name": "m", "token_usage": {"n": 3}}
        )

    _agenerate = BaseChatModel._agenerate

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        for chunk in super()._stream(messages, stop, **kwargs):
            yield ChatGenerationChunk(message=chunk.message)
        yield ChatGenerationChunk(
            message=AIMessageChunk(content=""), generation_info={"finish_reason": "stop"}
        )

    _astream = BaseChatModel._astream

    def _combine_llm_outputs(self, llm_outputs):
        return {"combined": [output for output in llm_outputs if output]}


class Candidates(Whole):
    """Answers with as many candidates as the call's `n` says."""

    def _generate(self, messages, stop=None, run_manager=None, *, n=1, **kwargs):
        generations = super()._generate(messages, stop, **kwargs).generations
        more = [ChatGeneration(message=AIMessage(content=f"also {i}")) for i in range(1, n)]
        return ChatResult(generations=[*generations, *more], llm_output={"n": n})

    _agenerate = BaseChatModel._agenerate


class Editing(ScriptedChatModel):
    """Edits the message list it is given, as models do that merge or drop system messages."""

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        result = super()._generate(messages, stop, **kwargs)
        messages.clear()
        return result


class Structured(ScriptedChatModel):
    """`with_structured_output` is a closure over the model."""

    def with_structured_output(self, schema, *, include_raw=False, **kwargs):
        def ask(prompt: Any) -> Any:
            raw = self.invoke(prompt)
            return {"raw": raw, "parsed": raw.content} if include_raw else raw.content

        return RunnableLambda(ask)


class NestedBinding(ScriptedChatModel):
    """`bind_tools` returns a binding of a binding, with config."""

    def bind_tools(self, tools, *, tool_choice=None, **kwargs):
        bound = super().bind_tools(tools, tool_choice=tool_choice, **kwargs)
        return bound.with_config(tags=["tools"]).bind(parallel=False)


class CopyBinding(ScriptedChatModel):
    """`bind_tools` returns a binding around a changed copy, as some integrations do."""

    mode: str = "chat"

    def bind_tools(self, tools, *, tool_choice=None, **kwargs):
        changed = self.model_copy(update={"mode": "tools"})
        return changed.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return super()._generate(messages, stop, mode=self.mode, **kwargs)


class Unbindable(ScriptedChatModel):
    """Supports neither tools nor structured output."""

    bind_tools = BaseChatModel.bind_tools


class Overriding(ScriptedChatModel):
    """Overrides public methods to change what goes in and comes out."""

    def invoke(self, input, config=None, **kwargs):  # noqa: A002
        reply = super().invoke(f"{input}!", config, **kwargs)
        return reply.model_copy(update={"name": "overridden"})

    def stream(self, input, config=None, **kwargs):  # noqa: A002
        for chunk in super().stream(f"{input}!", config, **kwargs):
            yield chunk.model_copy(update={"name": "overridden"})


class Parameters(ScriptedChatModel):
    """Has what real models have: parameters, a key, tracing parameters, a serialized form."""

    model_name: str = Field(default="model-a", alias="model")
    temperature: float | None = None
    max_tokens: int | None = None
    api_key: SecretStr = SecretStr("sk-secret")
    streaming: bool = False
    model_kwargs: dict[str, Any] = Field(default_factory=dict)

    model_config = ConfigDict(populate_by_name=True, protected_namespaces=())

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model_name, "temperature": self.temperature}

    @property
    def _llm_type(self) -> str:
        return "parameters-chat"

    def _get_ls_params(self, stop=None, **kwargs):
        params = super()._get_ls_params(stop=stop, **kwargs)
        return {**params, "ls_provider": "somebody", "ls_model_name": self.model_name}


class SerializableModel(BaseChatModel):
    """Takes LangChain's other path to a cache key and to `serialized`."""

    model_name: str = "model-a"
    base_url: str | None = None
    api_key: SecretStr = SecretStr("sk-secret")
    answer: str = "Hello."

    model_config = ConfigDict(protected_namespaces=())

    @classmethod
    def is_lc_serializable(cls) -> bool:
        return True

    @property
    def lc_secrets(self) -> dict[str, str]:
        return {"api_key": "SOME_API_KEY"}

    @property
    def lc_attributes(self) -> dict[str, Any]:
        return {"base_url": self.base_url}

    @property
    def _llm_type(self) -> str:
        return "serializable"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        message = AIMessage(content=self.answer)
        return ChatResult(generations=[ChatGeneration(message=message)])


class Strict(ScriptedChatModel):
    """Forbids extra fields, validates assignments, and has private attributes and `__del__`."""

    ends: ClassVar[list[str]] = []
    limit: int = Field(default=3, ge=1)

    _count: int = PrivateAttr(default=0)
    _log: list[str] = PrivateAttr(default_factory=list)

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    def __del__(self) -> None:
        self.ends.append("end")

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self._count += 1
        self._log.append(f"call {self._count}")
        return super()._generate(messages, stop, **kwargs)


class Extra(ScriptedChatModel):
    """Allows fields that it does not declare."""

    model_config = ConfigDict(extra="allow")


class Namesakes(ScriptedChatModel):
    """Has fields and methods named as the wrapper's own could be."""

    policy: str = "my policy"
    inner_model_: str = "mine"
    error: str = "mine"
    gate: str = "mine"
    kind: Literal["a", "b"] = "a"

    def judge(self) -> str:
        return f"judged by {self.policy}"


class Native(ScriptedChatModel):
    """Emits native protocol events beside its chunks."""

    def _stream_chat_model_events(self, messages, *, stop=None, run_manager=None, **kwargs):
        pieces = [chunk.message for chunk in super()._stream(messages, stop, **kwargs)]
        yield from _events(pieces)

    async def _astream_chat_model_events(self, messages, *, stop=None, run_manager=None, **kwargs):
        pieces = [chunk.message async for chunk in super()._astream(messages, stop, **kwargs)]
        for event in _events(pieces):
            yield event


def _events(pieces: list[Any]) -> Any:
    yield {"event": "message-start", "role": "ai", "id": "msg-native"}
    block = {"type": "text", "text": ""}
    yield {"event": "content-block-start", "index": 0, "content": block}
    for piece in pieces:
        delta = {"type": "text-delta", "text": piece.content}
        yield {"event": "content-block-delta", "index": 0, "delta": delta}
    text = "".join(piece.content for piece in pieces)
    whole = {"type": "text", "text": text}
    yield {"event": "content-block-finish", "index": 0, "content": whole}
    yield {"event": "message-finish", "usage": USAGE, "metadata": {"finish_reason": "stop"}}


class NativeSync(Native):
    """Emits them synchronously only."""

    _astream_chat_model_events = None


class Journal(ScriptedChatModel):
    """Writes down what it makes and when its streams are closed; can wait between pieces."""

    journal: list[Any] = Field(default_factory=list)
    waits_before: int | None = None
    """Which piece never comes (async streams only)."""
    fails_before: int | None = None
    """At which piece it raises."""

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        try:
            for number, chunk in enumerate(super()._stream(messages, stop, **kwargs)):
                self._make(number)
                yield chunk
        except BaseException as error:
            self.journal.append(("stopped by", type(error).__name__))
            raise
        finally:
            self.journal.append("closed")

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        number = 0
        try:
            async for chunk in super()._astream(messages, stop, **kwargs):
                if number == self.waits_before:
                    self.journal.append("waits")
                    await asyncio.Event().wait()
                self._make(number)
                number += 1
                yield chunk
        except BaseException as error:
            self.journal.append(("stopped by", type(error).__name__))
            raise
        finally:
            self.journal.append("closed")

    def _make(self, number: int) -> None:
        if number == self.fails_before:
            raise ConnectionError("lost")
        self.journal.append(("makes", number))
