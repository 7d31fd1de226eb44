"""What is loud stays loud: an exception that stood for an empty reply is raised when it lasts."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from tenacity import stop_when_event_set, wait_fixed

from conftest import SetsWhenRetrying, ask, chunks_of
from langchain_retrying import EmptyCompletionError, RetryingChatModel, RetryPolicy
from langchain_retrying.testing import ScriptedChatModel
from wire.clients import bound, build
from wire.replies import encode
from wire.turns import GOOD

CASES = [
    case
    for case in json.loads(
        Path(__file__).parents[1].joinpath("wire").joinpath("cases.json").read_text("utf-8")
    )
    if case["expected"] == "empty-retryable" and case["langchain_outcome"] == "raises"
]
WAYS = {"invoke": ("invoke", "ainvoke"), "stream": ("stream", "astream")}
OTHER = ScriptedChatModel(lambda messages: "From the other.")


def raised(way: str, model: Any, case: dict[str, Any]) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 -- which one is asserted
        ask(way, bound(case["client"], model), **case["client"].get("call_kwargs", {}))
    return caught.value


@pytest.mark.parametrize(
    ("case", "way"),
    [
        pytest.param(case, way, id=f"{case['id']}-{way}")
        for case in CASES
        for way in WAYS[case["mode"]]
    ],
)
def test_what_the_bare_model_raises_is_raised_when_it_lasts(server, case, way):
    server.play(encode(case["api"], case["mode"], case["body"], case.get("content_type")))
    model = build(case["client"], server.url)
    bare = raised(way, model, case)
    if type(bare).__name__ != case["observed"]["type"]:
        pytest.skip("this version of the integration makes something else of it")
    for retries in (0, 2):
        server.requests.clear()
        wrapped = RetryingChatModel(model, RetryPolicy(retries, wait=None))
        lasting = raised(way, wrapped, case)
        assert (type(lasting), str(lasting)) == (type(bare), str(bare))
        assert len(server.requests) == retries + 1
        notes = getattr(lasting, "__notes__", [])
        if retries and not isinstance(lasting, IndexError):  # which LangChain raises after the call
            assert "Raised in attempt 3" in notes[0]
            assert "empty replies rejected before: 2 (blank, blank)" in notes[0]
        else:
            assert notes == []
        falling_back = wrapped.with_fallbacks([OTHER])
        assert ask(way, falling_back, **case["client"].get("call_kwargs", {})).content == (
            "From the other."
        )


@pytest.mark.parametrize("case_id", ["openai-chat-choices-null", "ollama-stream-load"])
@pytest.mark.parametrize("is_async", [False, True])
def test_another_outcome_that_the_policy_asks_for_is_as_for_any_blank(server, case_id, is_async):
    case = next(case for case in CASES if case["id"] == case_id)
    way = WAYS[case["mode"]][is_async]
    server.play(encode(case["api"], case["mode"], case["body"]))
    model = build(case["client"], server.url)

    def wrapped(outcome: Any) -> RetryingChatModel:
        return RetryingChatModel(model, RetryPolicy(1, wait=None, on_exhausted=outcome))

    with pytest.raises(EmptyCompletionError):
        ask(way, wrapped("raise"))
    assert ask(way, wrapped("There is no answer.")).content == "There is no answer."
    assert ask(way, wrapped(AIMessage("Sorry."))).content == "Sorry."
    assert ask(way, wrapped(lambda error: AIMessage(error.kind.value))).content == "blank"


class Disguised(ScriptedChatModel):
    """Raises what LangChain makes of a stream without a chunk, where a reply is None."""

    def _next(self, messages, stop, kwargs, *, streamed):
        (reply,) = super()._next(messages, stop, kwargs, streamed=streamed)
        if reply is None:
            ScriptedChatModel([[]]).stream("Hi").__next__()
        return (reply,)


def test_a_later_reply_takes_the_place_of_the_exception(way):
    """That it came once does not make the end loud."""
    wrapped = RetryingChatModel(Disguised([None, ""]), RetryPolicy(1, wait=None))
    assert ask(way, wrapped).content == ""
    with pytest.raises(ValueError, match="No generation chunks") as caught:
        ask(way, RetryingChatModel(Disguised(["", None]), RetryPolicy(1, wait=None)))
    assert "attempt 2" in caught.value.__notes__[0]


class RefusedError(Exception):
    status_code = 400


def test_a_refused_nudge_leaves_the_exception_that_came_before(way):
    for script in ([None, RefusedError()], [[], RefusedError()]):
        model = RetryingChatModel(Refusing(script), RetryPolicy(1, wait=None))
        with pytest.raises((ValueError, IndexError)):
            ask(way, model)


class Refusing(Disguised):
    def _next(self, messages, stop, kwargs, *, streamed):
        position = len(self.requests)
        if self.replies[position] == []:
            ScriptedChatModel._next(self, messages, stop, kwargs, streamed=streamed)
            return ()
        return super()._next(messages, stop, kwargs, streamed=streamed)


def test_so_does_a_wait_that_is_ended(way, slept):
    event = threading.Event()
    policy = RetryPolicy(wait=wait_fixed(9), stop=stop_when_event_set(event))
    model = RetryingChatModel(Disguised([None, "never"]), policy)
    with pytest.raises(ValueError, match="No generation chunks"):
        ask(way, model, config={"callbacks": [SetsWhenRetrying(event)]})


def test_an_accepted_silence_is_no_exception(way):
    policy = RetryPolicy(accept=lambda messages, reply: True)
    for script in ([None], [[]]):
        assert ask(way, RetryingChatModel(Refusing(script), policy)).content == ""


# A stream that breaks while it is held


def thought(text: str, **fields: Any) -> AIMessageChunk:
    return AIMessageChunk([{"type": "thinking", "thinking": text, "index": 0}], **fields)


USAGE = {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13}


def test_a_fallback_takes_over_a_stream_that_breaks_while_it_is_held(streaming_way):
    """Bare it can't, once reasoning is out; wrapped nothing of it is out."""
    script = [[thought("Let me"), thought(" see"), ConnectionError("cut")]]
    bare = ScriptedChatModel(script).with_fallbacks([OTHER])
    with pytest.raises(ConnectionError):
        ask(streaming_way, bare)
    wrapped = RetryingChatModel(ScriptedChatModel(script)).with_fallbacks([OTHER])
    first, *_ = chunks_of(streaming_way, wrapped)
    assert first.content == "From the other."


def test_what_had_come_is_told_in_a_note(streaming_way):
    def torn():
        return [thought("Let me", usage_metadata=USAGE), AIMessageChunk(" "), ConnectionError()]

    with pytest.raises(ConnectionError) as caught:
        ask(streaming_way, RetryingChatModel(ScriptedChatModel([torn()])))
    (note,) = caught.value.__notes__
    assert note == (
        "What had come of the stream was held back: blank text, reasoning; "
        "9 input and 4 output tokens."
    )
    after_a_blank = RetryingChatModel(ScriptedChatModel(["", torn()]), RetryPolicy(wait=None))
    with pytest.raises(ConnectionError) as caught:
        ask(streaming_way, after_a_blank)
    first, second = caught.value.__notes__
    assert "Raised in attempt 2" in first
    assert second == note


@pytest.mark.parametrize(
    ("script", "policy"),
    [
        ([ConnectionError("cut")], RetryPolicy()),  # nothing had come
        (["Hello.", ConnectionError("cut")], RetryPolicy()),  # it was let out
        ([" ", "Hello.", ConnectionError("cut")], RetryPolicy()),
        ([thought("Let me"), ConnectionError("cut")], RetryPolicy(hold_reasoning=False)),
    ],
    ids=["nothing", "an answer", "an answer after a space", "live reasoning"],
)
def test_what_was_not_held_needs_no_note(streaming_way, script, policy):
    with pytest.raises(ConnectionError) as caught:
        ask(streaming_way, RetryingChatModel(ScriptedChatModel([script]), policy))
    assert not hasattr(caught.value, "__notes__")


class Errors(BaseCallbackHandler):
    def __init__(self):
        self.errors = []

    def on_llm_error(self, error, **kwargs):
        self.errors.append(error)


ANTHROPIC = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-model-a",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 25, "output_tokens": 1},
        },
    },
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "thinking", "thinking": "", "signature": ""},
    },
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "thinking_delta", "thinking": "Let me see"},
    },
    {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
]


def test_a_providers_stream_that_breaks_in_its_thinking(server, streaming_way):
    """Anthropic's error event: traces see the note, and a fallback takes over."""
    server.play(encode("anthropic-messages", "stream", ANTHROPIC))
    kwargs = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    model = RetryingChatModel(build({"class": "ChatAnthropic", "kwargs": kwargs}, server.url))
    handler = Errors()
    with pytest.raises(Exception) as bare:  # noqa: PT011 -- the provider's, whichever it is
        ask(streaming_way, model.inner_model)
    if "Overloaded" not in str(bare.value):
        pytest.skip("this release of LangChain stumbles over the exception itself")
    with pytest.raises(type(bare.value)) as caught:
        ask(streaming_way, model, config={"callbacks": [handler]})
    assert handler.errors == [caught.value]
    assert "held back: reasoning; " in caught.value.__notes__[0]
    server.play(encode("anthropic-messages", "stream", ANTHROPIC), GOOD)
    assert "From the other." in str(
        ask(streaming_way, model.with_fallbacks([OTHER]), [HumanMessage("Hi")]).content
    )
