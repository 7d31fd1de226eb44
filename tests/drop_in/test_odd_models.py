"""Inner models that are legal and unusual."""

from __future__ import annotations

import gc
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, ChatMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from pydantic import ConfigDict

from conftest import ask, chunks_of
from langchain_retrying import EmptyCompletionError, RetryingChatModel, RetryPolicy
from langchain_retrying.testing import ScriptedChatModel


class Streaming(ScriptedChatModel):
    """Streams what the replies make, as they are."""

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        reply = self._next(messages, stop, kwargs, streamed=True)
        yield from reply if isinstance(reply, list) else reply[0]

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        for chunk in self._stream(messages, stop, run_manager, **kwargs):
            yield chunk


def chunk(content: Any = "", info: Any = None, **kwargs: Any) -> ChatGenerationChunk:
    message = AIMessageChunk(content=content, **kwargs)
    return ChatGenerationChunk(message=message, generation_info=info)


def endless(**kwargs):
    def pieces(messages):
        while True:
            yield chunk(**kwargs)

    return pieces


@pytest.mark.parametrize(
    "endlessly",
    [{}, {"info": {"logprobs": ["x" * 1000]}}, {"additional_kwargs": {"reasoning": "Hm"}}],
    ids=["nothing", "log probabilities", "reasoning"],
)
def test_endless_chunks_without_use_come_to_an_end(streaming_way, endlessly):
    model = Streaming([endless(**endlessly), lambda messages: [chunk("Hello")]])
    policy = RetryPolicy(max_held_bytes=5000)
    assert ask(streaming_way, RetryingChatModel(model, policy)).content == "Hello"


@pytest.mark.parametrize("first", ["", "\n"])
def test_a_long_prefix_of_text_and_blocks_adds_up_to_the_same(streaming_way, first):
    def pieces(messages):
        thinking = [{"type": "thinking", "thinking": "t", "index": 0}]
        yield from (chunk(first) for _ in range(70))
        yield from (chunk(thinking) for _ in range(70))
        yield from (chunk(first) for _ in range(70))
        yield chunk([{"type": "text", "text": "Hello", "index": 1}])

    try:
        bare = ask(streaming_way, Streaming(pieces))
    except TypeError:
        pytest.skip("this release of LangChain can't add text and blocks up itself")
    wrapped = ask(streaming_way, RetryingChatModel(Streaming(pieces)))
    assert wrapped.content == bare.content


def test_chunks_of_another_class_are_judged_too(streaming_way):
    def pieces(content):
        message = ChatMessageChunk(content=content, role="model")
        return lambda messages: [ChatGenerationChunk(message=message)]

    model = Streaming([pieces(" "), pieces("Hello")])
    assert chunks_of(streaming_way, RetryingChatModel(model))[0].content == "Hello"


def test_an_async_iterator_may_have_a_sync_close_as_well():
    class Both:
        def __init__(self):
            self.chunks = iter([chunk("Hello")])

        def __aiter__(self):
            return self

        async def __anext__(self):
            try:
                return next(self.chunks)
            except StopIteration:
                raise StopAsyncIteration from None

        def close(self):
            raise RuntimeError("a sync close of an async stream")

        async def aclose(self):
            pass

    class Response(ScriptedChatModel):
        def _astream(self, messages, stop=None, run_manager=None, **kwargs):
            return Both()

    assert ask("astream", RetryingChatModel(Response())).content == "Hello"


def test_a_message_that_stands_in_is_no_ones_but_the_callers(way):
    stand_in = AIMessage("Sorry.", additional_kwargs={"a": 1})
    model = RetryingChatModel(
        ScriptedChatModel([""] * 2), RetryPolicy(max_retries=0, on_exhausted=stand_in)
    )
    ask(way, model).additional_kwargs["leak"] = 1
    assert ask(way, model).additional_kwargs == {"a": 1}


def test_a_message_that_stands_in_may_hold_any_tool_call(way):
    good = {"name": "f", "args": {"x": 1}, "id": "1", "type": "tool_call"}
    bad = {"name": "f", "args": "no json", "id": "2", "error": None, "type": "invalid_tool_call"}
    stand_in = AIMessage("", tool_calls=[good], invalid_tool_calls=[bad])
    policy = RetryPolicy(max_retries=0, on_exhausted=stand_in)
    reply = ask(way, RetryingChatModel(ScriptedChatModel([""]), policy))
    assert reply.tool_calls == [good]
    (invalid,) = reply.invalid_tool_calls
    assert (invalid["name"], invalid["args"]) == ("f", "no json")


def test_exhaustion_is_logged_also_if_it_raises(way, caplog):
    policy = RetryPolicy(max_retries=0, on_exhausted="raise")
    with caplog.at_level(logging.WARNING), pytest.raises(EmptyCompletionError):
        ask(way, RetryingChatModel(ScriptedChatModel([""]), policy))
    (record,) = caplog.records
    assert record.getMessage().startswith("Empty completion (blank)")


def test_threads_that_wrap_at_once_share_one_class():
    for _ in range(20):

        class Fresh(ScriptedChatModel):
            pass

        model = Fresh()
        with ThreadPoolExecutor(8) as pool:
            wrappers = list(pool.map(lambda _, model=model: RetryingChatModel(model), range(8)))
        assert len({type(wrapper) for wrapper in wrappers}) == 1


def test_the_class_of_a_local_model_is_freed():
    def classes():
        return sum("LocalChatModel" in cls.__name__ for cls in RetryingChatModel.__subclasses__())

    def wrap():
        class LocalChatModel(ScriptedChatModel):
            pass

        RetryingChatModel(LocalChatModel())

    wrap()
    gc.collect()
    assert classes() == 0


def test_retries_of_an_inner_wrapper_are_reported_in_streams_too(way):
    retries = []

    class Noting(BaseCallbackHandler):
        def on_retry(self, retry_state, **kwargs):
            retries.append(retry_state.attempt_number)

    inner = RetryingChatModel(ScriptedChatModel(["", "", "Hello"]), RetryPolicy(wait=None))
    ask(way, RetryingChatModel(inner), config={"callbacks": [Noting()]})
    assert retries == [1, 2]


class Validating(ScriptedChatModel):
    model_config = ConfigDict(validate_assignment=True)
    temperature: float = 0.0


def test_state_that_pydantic_replaces_is_followed():
    model = Validating()
    one, other = RetryingChatModel(model), RetryingChatModel(model)
    model.temperature = 1
    assert (one.temperature, other.temperature) == (1.0, 1.0)
    one.temperature = 2
    assert (model.temperature, other.temperature) == (2.0, 2.0)


def test_wrappers_are_equal_if_model_and_policy_are():
    model = ScriptedChatModel(["a"])
    assert RetryingChatModel(model) == RetryingChatModel(model)
    assert RetryingChatModel(model) != RetryingChatModel(model, RetryPolicy(max_retries=1))
    assert RetryingChatModel(model) != model


def test_the_class_of_a_wrapped_model_builds_wrapped_models():
    wrapped = type(RetryingChatModel(ScriptedChatModel()))(replies=["", "Hello"])
    assert isinstance(wrapped, RetryingChatModel)
    assert wrapped.invoke("Hi").content == "Hello"


@pytest.mark.filterwarnings("ignore:The `copy` method is deprecated")
def test_pydantics_old_copy():
    wrapped = RetryingChatModel(ScriptedChatModel(["", "Hello"])).copy()
    assert wrapped.invoke("Hi").content == "Hello"


def test_a_class_that_cannot_be_derived_from_is_named():
    class Slotted(ScriptedChatModel):
        __slots__ = ("extra",)

    with pytest.raises(TypeError, match="Slotted can't be wrapped"):
        RetryingChatModel(Slotted())
