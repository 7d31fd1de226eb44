"""One call is one run; `on_retry` for each retry; tokens of rejected attempts are held back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.callbacks.manager import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.rate_limiters import BaseRateLimiter
from langchain_core.tracers.base import BaseTracer
from tenacity import RetryCallState

from conftest import WAYS, ask, chunks_of
from langchain_retrying import EmptyCompletionError, RetryingChatModel, RetryPolicy
from langchain_retrying.testing import ScriptedChatModel


class Recorder(BaseCallbackHandler):
    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []
        self.runs: set[Any] = set()

    def _note(self, name: str, value: Any, run_id: Any) -> None:
        self.events.append((name, value))
        self.runs.add(run_id)

    def on_chat_model_start(self, serialized, messages, *, run_id, **kwargs):
        self._note("start", None, run_id)

    def on_llm_new_token(self, token, *, run_id, **kwargs):
        self._note("token", token, run_id)

    def on_retry(self, retry_state, *, run_id, **kwargs):
        assert isinstance(retry_state, RetryCallState)
        error = retry_state.outcome.exception()
        assert isinstance(error, EmptyCompletionError)
        self._note("retry", (retry_state.attempt_number, str(error.kind.value)), run_id)

    def on_llm_end(self, response, *, run_id, **kwargs):
        self._note("end", response.generations[0][0].message.content, run_id)

    def on_llm_error(self, error, *, run_id, **kwargs):
        self._note("error", type(error), run_id)


class AsyncRecorder(AsyncCallbackHandler):
    """The same events, from async handlers."""

    def __init__(self) -> None:
        self._recorder = Recorder()
        self.events = self._recorder.events
        self.runs = self._recorder.runs

    async def on_chat_model_start(self, *args, **kwargs):
        self._recorder.on_chat_model_start(*args, **kwargs)

    async def on_llm_new_token(self, token, *, chunk=None, run_id, **kwargs):
        self._recorder.on_llm_new_token(token, run_id=run_id)

    async def on_retry(self, retry_state, *, run_id, **kwargs):
        self._recorder.on_retry(retry_state, run_id=run_id)

    async def on_llm_end(self, response, *, run_id, **kwargs):
        self._recorder.on_llm_end(response, run_id=run_id)

    async def on_llm_error(self, error, *, run_id, **kwargs):
        self._recorder.on_llm_error(error, run_id=run_id)


def recorded(way: str, model: Any, recorder: Any = None) -> list[tuple[str, Any]]:
    recorder = recorder or Recorder()
    chunks_of(way, model, config={"callbacks": [recorder]})
    assert len(recorder.runs) == 1
    return recorder.events


def without_last(events):
    """Newer releases end a stream with an empty chunk that says that it is the last."""
    return [event for event in events if event != ("token", "")]


@pytest.mark.parametrize(
    ("way", "handler"),
    [*((way, Recorder) for way in WAYS), ("ainvoke", AsyncRecorder), ("astream", AsyncRecorder)],
)
def test_a_retry_is_reported_within_the_one_run(way, handler):
    script = [["", " "], ["", ""], ["Hel", "lo"]]
    events = recorded(way, RetryingChatModel(ScriptedChatModel(script)), handler())
    tokens = [("token", "Hel"), ("token", "lo")] if "stream" in way else []
    retries = [("retry", (1, "blank")), ("retry", (2, "blank"))]
    assert without_last(events) == [("start", None), *retries, *tokens, ("end", "Hello")]


def test_nothing_is_reported_beyond_the_bare_model_when_nothing_is_empty(way):
    script = [["", "Hel", "lo"]]
    bare = recorded(way, ScriptedChatModel(script))
    assert recorded(way, RetryingChatModel(ScriptedChatModel(script))) == bare


def test_exhaustion_that_raises_ends_the_run_with_the_error(way):
    model = RetryingChatModel(
        ScriptedChatModel([""] * 2), RetryPolicy(max_retries=1, on_exhausted="raise")
    )
    recorder = Recorder()
    with pytest.raises(EmptyCompletionError):
        ask(way, model, config={"callbacks": [recorder]})
    assert recorder.events == [
        ("start", None),
        ("retry", (1, "blank")),
        ("error", EmptyCompletionError),
    ]


class Tracer(BaseTracer):
    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Any] = []

    def _persist_run(self, run: Any) -> None:
        self.runs.append(run)


def test_tracers_survive_a_retry_and_note_it_without_content(way):
    tracer = Tracer()
    model = RetryingChatModel(ScriptedChatModel([" ", "Hello."]))
    chunks_of(way, model, config={"callbacks": [tracer]})
    (run,) = tracer.runs
    (retry,) = [event for event in run.events if event["name"] == "retry"]
    assert retry["kwargs"]["outcome"] == "failed"
    assert "Empty completion (blank)" in retry["kwargs"]["exception"]
    assert run.error is None


@pytest.mark.filterwarnings("ignore:astream_events version='v1' is deprecated")
async def test_astream_events_show_only_the_accepted_attempt():
    model = RetryingChatModel(ScriptedChatModel([[" ", ""], ["Hel", "lo"]]))
    for version in ("v1", "v2"):
        model.inner_model.requests.clear()
        events = [event async for event in model.astream_events("Hi", version=version)]
        texts = [
            event["data"]["chunk"].content
            for event in events
            if event["event"] == "on_chat_model_stream"
        ]
        assert [text for text in texts if text] == ["Hel", "lo"]


class Reporting(ScriptedChatModel):
    """Reports tokens to the run manager itself, whole and streamed, as LiteLLM's model does."""

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        chunks = list(self._stream(messages, stop, run_manager, **kwargs))
        message = chunks[0].message
        for chunk in chunks[1:]:
            message += chunk.message
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=message.content))])

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        chunks = [c async for c in self._astream(messages, stop, run_manager, **kwargs)]
        text = "".join(chunk.message.content for chunk in chunks)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=text))])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        for chunk in super()._stream(messages, stop, **kwargs):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        async for chunk in super()._astream(messages, stop, **kwargs):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text)
            yield chunk


class SyncReporting(Reporting):
    """The same without hooks of its own for async calls."""

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        return await super(ScriptedChatModel, self)._agenerate(
            messages, stop, run_manager, **kwargs
        )


@pytest.mark.parametrize("model", [Reporting, SyncReporting])
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_tokens_an_attempt_reports_itself_are_those_of_the_accepted_one(way, model):
    accepted = ["", "Hel", "lo"]
    bare = recorded(way, model([accepted]))
    wrapped = recorded(way, RetryingChatModel(model([["", " "], accepted])))
    assert [event for event in wrapped if event[0] != "retry"] == bare
    assert ("token", " ") not in wrapped


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_tokens_of_a_reply_that_stands_in_are_dropped_and_of_one_returned_are_not(way):
    stand_in = RetryPolicy(max_retries=0, on_exhausted="Nothing came.")
    dropped = recorded(way, RetryingChatModel(Reporting([[" "]]), stand_in))
    assert [event for event in dropped if event[0] == "token"] == []
    returned = recorded(way, RetryingChatModel(Reporting([[" "]]), RetryPolicy(max_retries=0)))
    assert ("token", " ") in returned


def test_tokens_flow_as_they_come_once_one_shows_an_answer():
    seen_by_the_model = []
    recorder = Recorder()

    class Watching(Reporting):
        def _stream(self, messages, stop=None, run_manager=None, **kwargs):
            for chunk in super()._stream(messages, stop, run_manager, **kwargs):
                tokens = [value for name, value in recorder.events if name == "token"]
                seen_by_the_model.append(tokens)
                yield chunk

    RetryingChatModel(Watching([[" ", "a", "b"]])).invoke("Hi", {"callbacks": [recorder]})
    assert seen_by_the_model == [[], [" ", "a"], [" ", "a", "b"]]


def test_an_attempt_whose_tokens_were_shown_is_not_taken_back():
    """Its reply is accepted, and its exception goes through, even one that is a blank's."""

    class Forgetful(ScriptedChatModel):
        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            run_manager.on_llm_new_token("Hello")
            return super()._generate(messages, stop, **kwargs)

    config = {"callbacks": [Recorder()]}
    model = Forgetful(["", ValueError("No generations found in stream."), "never"])
    assert RetryingChatModel(model).invoke("Hi", config).content == ""
    with pytest.raises(ValueError, match="No generations"):
        RetryingChatModel(model).invoke("Hi", config)
    assert len(model.requests) == 2


@pytest.mark.parametrize("is_async", [False, True])
def test_tokens_reported_while_streaming_keep_their_place_among_the_chunks(is_async):
    """`_stream` gets a run manager from LangChain's event streams, and from other models."""
    order: list[Any] = []
    script = [["", ""], [" ", "a", "b"]]

    class Noting(BaseCallbackHandler):
        def on_llm_new_token(self, token, **kwargs):
            order.append(("token", token))

    def manager(cls):
        return cls(run_id=None, handlers=[Noting()], inheritable_handlers=[])

    async def run(model):
        if is_async:
            stream = model._astream([], run_manager=manager(AsyncCallbackManagerForLLMRun))
            async for chunk in stream:
                order.append(chunk.message.content)
        else:
            for chunk in model._stream([], run_manager=manager(CallbackManagerForLLMRun)):
                order.append(chunk.message.content)

    asyncio.run(run(RetryingChatModel(Reporting(script))))
    assert order == [("token", " "), " ", ("token", "a"), "a", ("token", "b"), "b"]


@pytest.mark.parametrize("is_async", [False, True])
def test_tokens_are_reported_just_as_the_model_has_done(is_async):
    """Some run managers are not LangChain's, and take what they know."""
    chunk = ChatGenerationChunk(message=AIMessageChunk(content="lo"))
    calls = [
        (("Hel",), {}),
        (("lo",), {"chunk": chunk, "verbose": True}),
        ((), {"token": "!", "chunk": None}),
    ]

    class Speaking(ScriptedChatModel):
        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            for args, named in calls:
                run_manager.on_llm_new_token(*args, **named)
            return super()._generate(messages, stop, **kwargs)

        async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
            for args, named in calls:
                await run_manager.on_llm_new_token(*args, **named)
            return super()._generate(messages, stop, **kwargs)

    reported = []

    class Manager(CallbackManagerForLLMRun):
        def on_llm_new_token(self, *args, **kwargs):
            reported.append((args, kwargs))

    class AsyncManager(AsyncCallbackManagerForLLMRun):
        async def on_llm_new_token(self, *args, **kwargs):
            reported.append((args, kwargs))

    model = RetryingChatModel(Speaking(["Hello!"]))
    manager = (AsyncManager if is_async else Manager)(
        run_id=None, handlers=[Recorder()], inheritable_handlers=[]
    )
    if is_async:
        asyncio.run(model._agenerate([], run_manager=manager))
    else:
        model._generate([], run_manager=manager)
    assert reported == calls


def test_an_inner_model_need_not_know_run_managers(way):
    class Simple(ScriptedChatModel):
        def _generate(self, messages, stop=None, **kwargs):
            assert "run_manager" not in kwargs
            return super()._generate(messages, stop, **kwargs)

        async def _agenerate(self, messages, stop=None, **kwargs):
            return self._generate(messages, stop, **kwargs)

        def _stream(self, messages, stop=None, **kwargs):
            yield from super()._stream(messages, stop, **kwargs)

        async def _astream(self, messages, stop=None, **kwargs):
            async for chunk in super()._astream(messages, stop, **kwargs):
                yield chunk

    assert ask(way, RetryingChatModel(Simple(["", "Hello."]))).content == "Hello."


@pytest.mark.parametrize("way", WAYS)
def test_the_rate_limiter_is_asked_once_for_each_attempt(way):
    class Limiter(BaseRateLimiter):
        acquired = 0

        def acquire(self, *, blocking=True):
            Limiter.acquired += 1
            return True

        async def aacquire(self, *, blocking=True):
            return self.acquire()

    Limiter.acquired = 0
    model = ScriptedChatModel(["", "", "Hello."], rate_limiter=Limiter())
    ask(way, RetryingChatModel(model))
    assert Limiter.acquired == 3


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_long_held_prefix_is_merged_and_adds_up_to_the_same(way):
    held = [
        AIMessageChunk(content="", additional_kwargs={"reasoning_content": f"{i} "})
        for i in range(1000)
    ]
    script = [[*held, "Hello"]]
    bare = chunks_of(way, ScriptedChatModel(script))
    wrapped = chunks_of(way, RetryingChatModel(ScriptedChatModel(script)))
    assert len(wrapped) < 90
    clean = {"id": None}
    total = wrapped[0] + wrapped[1:]
    assert total.model_copy(update=clean) == (bare[0] + bare[1:]).model_copy(update=clean)


@pytest.mark.parametrize("way", ["stream", "astream"])
@pytest.mark.parametrize("held", [64, 65])
def test_up_to_64_held_chunks_go_out_as_they_came(way, held):
    chunks = chunks_of(way, RetryingChatModel(ScriptedChatModel([[*[" "] * held, "Hello"]])))
    texts = [chunk.content for chunk in chunks if chunk.content]
    expected = [" "] * 64 + ["Hello"] if held == 64 else [" " * 64, " ", "Hello"]
    assert texts == expected


def endless():
    while True:
        yield " " * 100


class Endless(ScriptedChatModel):
    """Streams white space for ever, as JSON modes have been seen to, then an answer."""

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        self.requests.append(messages)
        pieces = endless() if len(self.requests) == 1 else ["Hello"]
        for piece in pieces:
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        for chunk in self._stream(messages):
            yield chunk


def test_an_endless_stream_of_white_space_is_a_blank(streaming_way):
    model = RetryingChatModel(Endless([]), RetryPolicy(max_held_bytes=160_000))
    assert ask(streaming_way, model).content == "Hello"
    at_the_bound = RetryingChatModel(Endless([]), RetryPolicy(0, max_held_bytes=160_000))
    assert ask(streaming_way, at_the_bound).content == " " * 10_000
