"""What is held, and for how long: reasoning let through live, and the bound in seconds."""

from __future__ import annotations

import asyncio
import contextvars
import sys

import pytest
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk

from conftest import ask, chunks_of, take
from langchain_retrying import RetryingChatModel, RetryPolicy
from langchain_retrying._call import clock
from langchain_retrying._call.replies import StreamedReply
from langchain_retrying.testing import ScriptedChatModel

LIVE = RetryPolicy(hold_reasoning=False, wait=None)


def thought(text, **fields):
    return AIMessageChunk([{"type": "thinking", "thinking": text, "index": 0}], **fields)


def field(text, **fields):
    return AIMessageChunk("", additional_kwargs={"reasoning_content": text}, **fields)


def said(text):
    return AIMessageChunk([{"type": "text", "text": text, "index": 1}])


def usage(tokens):
    return {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}


def shapes(chunks):
    return [chunk.content or chunk.additional_kwargs for chunk in chunks]


# Live reasoning


@pytest.mark.parametrize("piece", [thought, field])
def test_reasoning_goes_out_as_it_comes(piece):
    model = RetryingChatModel(ScriptedChatModel([[piece("a"), piece("b"), said("Hello.")]]), LIVE)
    stream = model.stream("Hi")
    came = [next(stream), next(stream)]
    assert shapes(came) == shapes([piece("a"), piece("b")])
    assert model.streams_open == 1


async def test_so_it_does_async():
    script = [[thought("a"), thought("b"), said("Hello.")]]
    stream = RetryingChatModel(ScriptedChatModel(script), LIVE).astream("Hi")
    assert shapes(await take(stream, 2)) == shapes([thought("a"), thought("b")])
    await stream.aclose()


def test_by_default_it_is_held():
    reply = StreamedReply(RetryPolicy(), text_counts=True)
    assert not reply.add(ChatGenerationChunk(message=thought("a")))
    assert not reply.live


def test_a_stream_that_is_not_empty_adds_up_to_the_bare_one(streaming_way):
    """Reasoning comes ahead of what tells nothing by itself; where it tells of usage, apart."""
    pieces = [
        AIMessageChunk([], usage_metadata=usage(7), id="msg-1"),
        thought("a"),
        thought("b", usage_metadata=usage(1)),
        thought("c", response_metadata={"a": 1}),
        said("Hello."),
        AIMessageChunk([], response_metadata={"stop_reason": "end_turn"}),
    ]
    bare = ask(streaming_way, ScriptedChatModel([pieces]))
    live = ask(streaming_way, RetryingChatModel(ScriptedChatModel([pieces]), LIVE))
    told = {"exclude": {"content", "id"}}  # older releases take the id of the first chunk
    assert live.model_dump(**told) == bare.model_dump(**told)
    assert [block for block in live.content if block] == [block for block in bare.content if block]


def test_a_retry_leaves_the_reasoning_of_the_rejected_attempt_and_nothing_else(streaming_way):
    rejected = [
        AIMessageChunk("", usage_metadata=usage(7)),
        thought("one ", usage_metadata=usage(1)),
        AIMessageChunk("", response_metadata={"stop_reason": "end_turn"}),
    ]
    accepted = [
        AIMessageChunk("", usage_metadata=usage(5)),
        thought("two"),
        said("Hello."),
        AIMessageChunk("", response_metadata={"stop_reason": "stop"}),
    ]
    model = RetryingChatModel(ScriptedChatModel([rejected, accepted]), LIVE)
    reply = ask(streaming_way, model)
    assert [block.get("thinking", block.get("text")) for block in reply.content if block] == [
        "one ",
        "two",
        "Hello.",
    ]
    assert reply.usage_metadata == usage(5)
    assert reply.response_metadata["stop_reason"] == "stop"
    (attempt,) = reply.response_metadata["empty_retry"]["rejected"]
    assert attempt["rejected_input_tokens"] == 8


@pytest.mark.parametrize(
    ("index", "then"), [(0, 1), ("lc_rs_0", "lc_rs_0_1")], ids=["numbers", "names"]
)
def test_blocks_of_an_accepted_attempt_are_no_parts_of_those_gone_out_before(
    streaming_way, index, then
):
    """LangChain adds up blocks of the same index, and each attempt counts from 0."""
    think = AIMessageChunk([{"type": "thinking", "thinking": "one", "index": index}])
    if len((think + think).content) > 1:
        pytest.skip("this langchain-core adds up no blocks by name")
    text = AIMessageChunk([{"type": "text", "text": "Hello.", "index": index}])
    more = AIMessageChunk([{"type": "text", "text": " Bye.", "index": index}])
    model = ScriptedChatModel([[think], [think, text], [text, more]][::2])
    reply = ask(streaming_way, RetryingChatModel(model, LIVE))
    assert reply.content == [
        {"type": "thinking", "thinking": "one", "index": index},
        {"type": "text", "text": "Hello. Bye.", "index": then},
    ]


def test_each_attempts_reasoning_is_a_block_of_its_own(streaming_way):
    signed = AIMessageChunk([{"type": "thinking", "signature": "S", "index": 0}])
    script = [[thought("a"), signed], [thought("b"), signed, said("Hello.")]]
    reply = ask(streaming_way, RetryingChatModel(ScriptedChatModel(script), LIVE))
    assert [block["index"] for block in reply.content] == [0, 1, 2]
    assert [block.get("signature") for block in reply.content] == ["S", "S", None]


def test_a_chunk_that_is_the_last_of_its_attempt_does_not_say_so_live():
    if "chunk_position" not in AIMessageChunk.model_fields:
        pytest.skip("this langchain-core has no chunk_position")
    reply = StreamedReply(LIVE, text_counts=True)
    last = thought("a", chunk_position="last")
    assert reply.add(ChatGenerationChunk(message=last))
    (live,) = reply.take_live()
    (held,) = reply.as_it_came(None)
    assert (live.message.chunk_position, held.message.chunk_position) == (None, "last")
    assert (live.message.content, held.message.content) == (last.content, [])


def test_inline_tags_are_held(streaming_way):
    model = ScriptedChatModel([["<think>", "Hm", "</think>"], "Hello."])
    chunks = chunks_of(streaming_way, RetryingChatModel(model, LIVE))
    assert [chunk.content for chunk in chunks if chunk.content] == ["Hello."]


def test_reasoning_that_ends_without_a_word_is_a_stream_all_the_same(streaming_way):
    policy = RetryPolicy(hold_reasoning=False, max_retries=0)
    bare = ask(streaming_way, ScriptedChatModel([[thought("a")]]))
    live = ask(streaming_way, RetryingChatModel(ScriptedChatModel([[thought("a")]]), policy))
    assert live.content == bare.content


def test_what_a_consumer_throws_in_meanwhile_is_no_failure_of_the_model():
    model = ScriptedChatModel([[thought("a"), said("Hello.")]])
    policy = RetryPolicy(hold_reasoning=False, retry=lambda state: True)
    stream = RetryingChatModel(model, policy)._stream([])
    next(stream)
    with pytest.raises(LookupError):
        stream.throw(LookupError())
    assert (len(model.requests), model.streams_open) == (1, 0)


def test_an_error_after_live_reasoning_is_no_blank(streaming_way):
    """A torn stream of Bedrock's counts as blank only where no chunk has come."""
    model = ScriptedChatModel([[thought("a"), ConnectionError("torn")], "never"])
    with pytest.raises(ConnectionError, match="torn"):
        ask(streaming_way, RetryingChatModel(model, LIVE))


def test_whole_replies_do_not_change():
    model = RetryingChatModel(ScriptedChatModel([thought("a"), "Hello."]), LIVE)
    assert model.invoke("Hi").content == "Hello."


# The bound in seconds


class Timed(ScriptedChatModel):
    """Each chunk takes a second of the recorded time."""

    def _stream(self, *args, **kwargs):
        for chunk in super()._stream(*args, **kwargs):
            self.metadata["slept"].advance(1)
            yield chunk


@pytest.mark.parametrize(("seconds", "attempts"), [(3, 2), (3.5, 1)])
def test_at_the_bound_the_attempt_is_closed_and_judged(slept, seconds, attempts):
    model = Timed([[" ", " ", " ", "Late."], [" ", "Hello."]], metadata={"slept": slept})
    policy = RetryPolicy(max_held_seconds=seconds, wait=None)
    reply = ask("stream", RetryingChatModel(model, policy))
    assert (reply.content.strip(), len(model.requests)) == (
        "Late." if attempts == 1 else "Hello.",
        attempts,
    )
    assert model.streams_open == 0


def test_it_counts_from_the_beginning_of_each_attempt(slept):
    model = Timed([[" ", " "], [" ", "Hello."]], metadata={"slept": slept})
    policy = RetryPolicy(max_held_seconds=2.5, wait=lambda state: 60)
    assert ask("stream", RetryingChatModel(model, policy)).content.strip() == "Hello."


def test_live_reasoning_does_not_put_it_off(slept):
    model = Timed([[thought("a")] * 9, "Hello."], metadata={"slept": slept})
    policy = RetryPolicy(max_held_seconds=3, hold_reasoning=False, wait=None)
    chunks = chunks_of("stream", RetryingChatModel(model, policy))
    assert sum(bool(chunk.content and "thinking" in chunk.content[0]) for chunk in chunks[:-1]) == 2
    assert len(model.requests) == 2


class Silent(ScriptedChatModel):
    """Its first stream says nothing, for ever, after some chunks."""

    closed: int = 0

    async def _astream(self, *args, **kwargs):
        async for chunk in super()._astream(*args, **kwargs):
            yield chunk
        if len(self.requests) == 1:
            try:
                await asyncio.Event().wait()
            finally:
                self.closed += 1


@pytest.mark.parametrize("policy", [{}, {"hold_reasoning": False}], ids=["held", "live"])
async def test_an_async_silence_ends_at_the_bound(policy):
    model = Silent([[" ", thought("a")], "Hello."])
    policy = RetryPolicy(max_held_seconds=0.3, wait=None, **policy)
    reply = await RetryingChatModel(model, policy).ainvoke("Hi", stream=True)
    assert "Hello." in str(reply.content)
    assert (model.closed, model.streams_open) == (1, 0)


async def test_an_async_stream_that_is_in_time_is_as_without_the_bound():
    policy = RetryPolicy(max_held_seconds=60)
    model = RetryingChatModel(ScriptedChatModel([[" ", "Hel", "lo."]]), policy)
    assert [chunk.content async for chunk in model.astream("Hi") if chunk.content] == [
        " ",
        "Hel",
        "lo.",
    ]


class Late(ScriptedChatModel):
    """Has its first chunk at once, and turns the loop before each of the others."""

    async def _astream(self, *args, **kwargs):
        for number, chunk in enumerate(super()._stream(*args, **kwargs)):
            for _ in range(5 * number):
                await asyncio.sleep(0)
            yield chunk


async def test_what_may_be_an_answer_at_the_bound_is_waited_for(slept):
    """A `<` may yet become a tag; if nothing followed it would be text.

    The recorded clock stands still, so only the loop's timer, due at once, tells of the bound.
    """
    model = Late([["<", "div>Hello.", "</div>"], "never"])
    policy = RetryPolicy(max_held_seconds=1e-9)
    reply = await RetryingChatModel(model, policy).ainvoke("Hi", stream=True)
    assert reply.content == "<div>Hello.</div>"


async def test_the_time_a_consumer_takes_for_live_reasoning_does_not_count(slept):
    model = ScriptedChatModel([[thought("a"), thought("b"), said("Hello.")]])
    policy = RetryPolicy(max_held_seconds=60, hold_reasoning=False)
    texts = []
    async for chunk in RetryingChatModel(model, policy).astream("Hi"):
        slept.advance(100)
        texts += [block.get("text") for block in chunk.content if block]
    assert "Hello." in texts
    assert len(model.requests) == 1


VARIABLE = contextvars.ContextVar("VARIABLE", default=None)


class Spanned(ScriptedChatModel):
    """Sets a variable of the context around its stream, as tracers do."""

    async def _astream(self, *args, **kwargs):
        token = VARIABLE.set("inside")
        try:
            async for chunk in super()._astream(*args, **kwargs):
                yield chunk
        finally:
            VARIABLE.reset(token)


async def test_the_stream_is_read_in_the_task_that_asked_for_it():
    policy = RetryPolicy(max_held_seconds=60)
    model = RetryingChatModel(Spanned([[" ", "Hello.", " Bye."]]), policy)
    assert "".join([chunk.content async for chunk in model.astream("Hi")]) == " Hello. Bye."


@pytest.mark.parametrize("policy", [{}, {"max_held_seconds": 60}], ids=["unbounded", "bounded"])
async def test_a_cancellation_from_within_the_model_is_not_taken_for_the_bound(policy):
    model = ScriptedChatModel([[" ", asyncio.CancelledError()], "never"])
    with pytest.raises(asyncio.CancelledError):
        await take(RetryingChatModel(model, RetryPolicy(**policy)).astream("Hi"), 1)
    assert len(model.requests) == 1


async def test_a_cancellation_at_the_bound_goes_through():
    """Both at once: who awaits the task is to see that it was cancelled."""
    if sys.version_info < (3, 11):
        pytest.skip("Python 3.10 can't tell two cancellations apart")
    task = asyncio.current_task()
    bound = clock.Cancelling(clock.monotonic(), lambda: bool(task.cancel()))
    with pytest.raises(asyncio.CancelledError), bound:
        await asyncio.Event().wait()
    assert task.uncancel() == 0


async def test_an_exception_within_the_bound_goes_through():
    policy = RetryPolicy(max_held_seconds=60)
    model = RetryingChatModel(ScriptedChatModel([[" ", LookupError("a")]]), policy)
    with pytest.raises(LookupError, match="a"):
        await model.ainvoke("Hi", stream=True)


async def test_cancellation_within_the_bound_closes_the_stream():
    model = Silent([[" "], "never"])
    policy = RetryPolicy(max_held_seconds=3600)
    task = asyncio.create_task(RetryingChatModel(model, policy).ainvoke("Hi", stream=True))
    while not model.requests or model.streams_open:
        await asyncio.sleep(0)
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (model.closed, model.streams_open, len(model.requests)) == (1, 0, 1)


def test_the_account_comes_where_all_else_has_gone_out_live(streaming_way):
    policy = RetryPolicy(1, hold_reasoning=False, wait=None)
    model = RetryingChatModel(ScriptedChatModel([[thought("a")], [thought("b")]]), policy)
    first, *rest = chunks_of(streaming_way, model)
    reply = first + rest
    assert reply.response_metadata["empty_retry"]["attempts"] == 2
    assert len(reply.content) == 2
