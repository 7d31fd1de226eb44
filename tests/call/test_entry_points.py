"""The four entry points behave alike on the same script of replies."""

from __future__ import annotations

import logging

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from tenacity import retry_if_exception_type, stop_after_delay, wait_fixed

from conftest import ask, chunks_of
from langchain_retrying import EmptyCompletionError, ReplyKind, RetryingChatModel, RetryPolicy
from langchain_retrying.testing import RecordingSleep, ScriptedChatModel

TOOL_CALL = {"name": "look_up", "args": {"key": "a"}, "id": "call-1", "type": "tool_call"}
USAGE = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}


def blank(reason: str = "stop", **kwargs) -> AIMessage:
    return AIMessage(content="", response_metadata={"finish_reason": reason}, **kwargs)


def without_id(message):
    return message.model_copy(update={"id": None})


def test_an_answer_at_once_is_that_of_the_bare_model(way):
    """Chunk for chunk, with no key added."""
    script = [
        ["Hel", "lo", AIMessageChunk(content="", response_metadata={"finish_reason": "stop"})]
    ]
    model = ScriptedChatModel(script)
    wrapped = chunks_of(way, RetryingChatModel(model))
    bare = chunks_of(way, ScriptedChatModel(script))
    assert list(map(without_id, wrapped)) == list(map(without_id, bare))
    assert len(model.requests) == 1


def test_a_blank_is_retried_and_the_answer_tells_of_it(way):
    model = ScriptedChatModel([blank(usage_metadata=USAGE), "Hello."])
    reply = ask(way, RetryingChatModel(model))
    assert reply.content == "Hello."
    account = reply.response_metadata["empty_retry"]
    (rejected,) = account["rejected"]
    assert rejected.pop("elapsed_seconds") >= 0
    assert account == {
        "attempts": 2,
        "rejected": [
            {
                "kind": "blank",
                "finish_reason": "stop",
                "rejected_input_tokens": 7,
                "rejected_output_tokens": 3,
                "saw_reasoning": False,
                "saw_text": False,
            }
        ],
        "rejected_input_tokens": 7,
        "rejected_output_tokens": 3,
    }


def test_usage_is_that_of_the_accepted_attempt(way):
    answer = AIMessage(content="Hello.", usage_metadata=USAGE)
    reply = ask(way, RetryingChatModel(ScriptedChatModel([blank(usage_metadata=USAGE), answer])))
    assert reply.usage_metadata == USAGE


def test_a_rejected_attempt_shows_nowhere_in_the_stream(streaming_way):
    rejected = ["  ", AIMessageChunk(content="", additional_kwargs={"reasoning_content": "Hm"})]
    chunks = chunks_of(
        streaming_way, RetryingChatModel(ScriptedChatModel([rejected, ["Hel", "lo"]]))
    )
    assert [chunk.content for chunk in chunks if chunk.content] == ["Hel", "lo"]
    assert not any(chunk.additional_kwargs for chunk in chunks)


def test_exhausted_returns_the_last_reply_as_it_came(way):
    model = ScriptedChatModel([blank(), blank(), blank("eos", usage_metadata=USAGE)])
    reply = ask(way, RetryingChatModel(model))
    assert reply.content == ""
    assert reply.response_metadata["finish_reason"] == "eos"
    assert reply.usage_metadata == USAGE
    assert reply.response_metadata["empty_retry"]["attempts"] == 3
    assert len(model.requests) == 3


def test_exhausted_raises_what_tells_of_all_attempts(way):
    model = ScriptedChatModel([blank(usage_metadata=USAGE)] * 3)
    with pytest.raises(EmptyCompletionError) as caught:
        ask(way, RetryingChatModel(model, RetryPolicy(on_exhausted="raise")))
    error = caught.value
    assert (error.kind, error.attempts) == (ReplyKind.BLANK, 3)
    assert error.finish_reasons == ("stop", "stop", "stop")
    assert (error.input_tokens, error.output_tokens) == (21, 9)
    assert error.last_message.content == ""


def test_exhausted_with_a_text_keeps_id_usage_and_metadata(way):
    model = ScriptedChatModel([blank(), blank(id="msg-1", usage_metadata=USAGE)])
    policy = RetryPolicy(max_retries=1, on_exhausted="Nothing came.")
    reply = ask(way, RetryingChatModel(model, policy))
    assert reply.content == "Nothing came."
    assert (reply.id, reply.usage_metadata) == ("msg-1", USAGE)
    assert reply.response_metadata["finish_reason"] == "stop"
    assert reply.response_metadata["empty_retry"]["stand_in"] is True


def test_exhausted_with_a_message_gives_a_copy_of_it(way):
    stand_in = AIMessage(content="", tool_calls=[TOOL_CALL])
    model = ScriptedChatModel([blank()] * 2)
    policy = RetryPolicy(max_retries=0, on_exhausted=stand_in)
    for _ in range(2):
        reply = ask(way, RetryingChatModel(model, policy))
        assert reply.tool_calls == [TOOL_CALL]
        assert reply.response_metadata["empty_retry"]["stand_in"] is True
    assert stand_in == AIMessage(content="", tool_calls=[TOOL_CALL])


def test_exhausted_with_a_callable_gives_what_it_makes_of_the_error(way):
    def outcome(error):
        return AIMessage(content=f"{error.attempts} x {error.kind.value}")

    model = ScriptedChatModel([blank()] * 3)
    reply = ask(way, RetryingChatModel(model, RetryPolicy(on_exhausted=outcome)))
    assert reply.content == "3 x blank"


def test_exhausted_with_a_callable_that_returns_no_message_says_so(way):
    policy = RetryPolicy(max_retries=0, on_exhausted=lambda error: "text")
    with pytest.raises(TypeError, match="on_exhausted must return an AIMessage, not str"):
        ask(way, RetryingChatModel(ScriptedChatModel([blank()]), policy))


def test_a_tool_call_is_an_answer(way):
    model = ScriptedChatModel([AIMessage(content="", tool_calls=[TOOL_CALL])])
    reply = ask(way, RetryingChatModel(model))
    assert reply.tool_calls == [TOOL_CALL]
    assert "empty_retry" not in reply.response_metadata


def test_reasoning_then_text_is_an_answer(way):
    script = [[AIMessageChunk(content=[{"type": "thinking", "thinking": "Hm", "index": 0}]), "4"]]
    wrapped = chunks_of(way, RetryingChatModel(ScriptedChatModel(script)))
    bare = chunks_of(way, ScriptedChatModel(script))
    assert list(map(without_id, wrapped)) == list(map(without_id, bare))


def test_white_space_then_text_is_an_answer(way):
    script = [["", "\n", "  ", "Hello."]]
    wrapped = chunks_of(way, RetryingChatModel(ScriptedChatModel(script)))
    bare = chunks_of(way, ScriptedChatModel(script))
    assert list(map(without_id, wrapped)) == list(map(without_id, bare))


def test_nothing_at_all_is_a_blank(way):
    """No chunk, or no candidate: LangChain raises for the one and stumbles over the other."""
    model = ScriptedChatModel([[], "Hello."])
    assert ask(way, RetryingChatModel(model)).content == "Hello."
    assert len(model.requests) == 2


@pytest.mark.parametrize("kwargs", [{}, {"stream": True}], ids=str)
def test_nothing_at_all_to_the_end_is_what_the_bare_model_makes_of_it(way, kwargs):
    """Also where LangChain streams underneath `invoke`."""

    def made_of(model):
        with pytest.raises((ValueError, IndexError)) as caught:
            ask(way, model, **kwargs)
        return caught.value

    bare = made_of(ScriptedChatModel([[]]))
    for retries in (0, 1):
        model = ScriptedChatModel([[]] * 2)
        raised = made_of(RetryingChatModel(model, RetryPolicy(max_retries=retries)))
        assert (type(raised), str(raised)) == (type(bare), str(bare))
        assert len(model.requests) == retries + 1


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_truncated_and_blocked_are_not_retried(way, reason):
    model = ScriptedChatModel([blank(reason)])
    reply = ask(way, RetryingChatModel(model))
    assert without_id(reply).response_metadata == {"finish_reason": reason}
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("reason", "kind"),
    [("length", ReplyKind.TRUNCATED), ("content_filter", ReplyKind.BLOCKED)],
)
def test_truncated_and_blocked_raise_at_once_if_exhaustion_does(way, reason, kind):
    model = ScriptedChatModel([blank(reason)])
    with pytest.raises(EmptyCompletionError) as caught:
        ask(way, RetryingChatModel(model, RetryPolicy(on_exhausted="raise")))
    assert (caught.value.kind, caught.value.attempts) == (kind, 1)


def test_malformed_is_retried(way):
    model = ScriptedChatModel([blank("MALFORMED_FUNCTION_CALL"), "Hello."])
    assert ask(way, RetryingChatModel(model)).content == "Hello."


def test_an_exception_goes_through_at_once(way):
    broken = ConnectionError("down")
    model = ScriptedChatModel([broken, "never"])
    with pytest.raises(ConnectionError) as caught:
        ask(way, RetryingChatModel(model))
    assert caught.value is broken
    assert not getattr(broken, "__notes__", [])
    assert len(model.requests) == 1


def test_an_exception_before_the_commit_shows_nothing(streaming_way):
    seen = []
    model = ScriptedChatModel([["  ", ConnectionError("down")]])
    with pytest.raises(ConnectionError):
        for chunk in chunks_of(streaming_way, RetryingChatModel(model)):
            seen.append(chunk)
    assert seen == []
    assert len(model.requests) == 1


async def test_an_exception_after_the_commit_goes_through():
    script = [["Hel", ConnectionError("down")], "never"]
    seen = []
    model = ScriptedChatModel(script)
    with pytest.raises(ConnectionError):
        async for chunk in RetryingChatModel(model).astream("Hi"):
            seen.append(chunk.content)
    with pytest.raises(ConnectionError):
        for chunk in RetryingChatModel(ScriptedChatModel(script)).stream("Hi"):
            seen.append(chunk.content)
    assert seen == ["Hel", "Hel"]
    assert len(model.requests) == 1


def test_an_exception_in_a_retry_says_what_came_before(way):
    model = ScriptedChatModel([blank(), ConnectionError("down")])
    with pytest.raises(ConnectionError) as caught:
        ask(way, RetryingChatModel(model))
    (note,) = caught.value.__notes__
    assert note == (
        "Raised in attempt 2 of a call to ScriptedChatModel; "
        "empty replies rejected before: 1 (blank)."
    )


def test_exceptions_are_retried_if_the_policy_says_so(way):
    model = ScriptedChatModel([TimeoutError(), blank(), TimeoutError(), "Hello."])
    policy = RetryPolicy(max_retries=3, wait=None, retry=retry_if_exception_type(TimeoutError))
    reply = ask(way, RetryingChatModel(model, policy))
    assert reply.content == "Hello."
    assert reply.response_metadata["empty_retry"]["attempts"] == 4
    assert len(reply.response_metadata["empty_retry"]["rejected"]) == 1


def test_an_exception_before_the_first_chunk_is_one_of_the_attempt(streaming_way):
    """Also where a model's hook is no generator, and raises when it is called."""

    class Eager(ScriptedChatModel):
        def _stream(self, messages, stop=None, run_manager=None, **kwargs):
            self._next(messages, stop, kwargs, streamed=True)
            if len(self.requests) == 1:
                raise TimeoutError
            return iter(ScriptedChatModel(["Hello."])._stream(messages))

        def _astream(self, messages, stop=None, run_manager=None, **kwargs):
            self._next(messages, stop, kwargs, streamed=True)
            if len(self.requests) == 1:
                raise TimeoutError
            return ScriptedChatModel(["Hello."])._astream(messages)

    policy = RetryPolicy(retry=retry_if_exception_type(TimeoutError))
    reply = ask(streaming_way, RetryingChatModel(Eager(["", ""]), policy))
    assert reply.content == "Hello."


def test_a_retried_exception_that_lasts_is_raised_itself(way):
    model = ScriptedChatModel([TimeoutError("1"), TimeoutError("2"), TimeoutError("3")])
    policy = RetryPolicy(retry=retry_if_exception_type(TimeoutError))
    with pytest.raises(TimeoutError, match="3"):
        ask(way, RetryingChatModel(model, policy))
    assert len(model.requests) == 3


def test_a_graph_interrupt_is_not_an_error_to_retry(way):
    class GraphBubbleUp(Exception):  # noqa: N818 -- LangGraph's name
        pass

    class GraphInterrupt(GraphBubbleUp):
        pass

    model = ScriptedChatModel([GraphInterrupt(), "never"])
    policy = RetryPolicy(retry=retry_if_exception_type(Exception))
    with pytest.raises(GraphInterrupt):
        ask(way, RetryingChatModel(model, policy))


def test_keyboard_interrupt_passes(way):
    model = ScriptedChatModel([KeyboardInterrupt(), "never"])
    policy = RetryPolicy(retry=lambda state: True)
    with pytest.raises(KeyboardInterrupt):
        ask(way, RetryingChatModel(model, policy))
    assert len(model.requests) == 1


def test_no_retries_means_one_request_returned_as_it_came(way):
    model = ScriptedChatModel([blank()])
    reply = ask(way, RetryingChatModel(model, RetryPolicy(max_retries=0)))
    assert reply.response_metadata == {"finish_reason": "stop"}
    assert len(model.requests) == 1


def test_waits_are_those_of_the_strategy_and_none_follows_the_last(way, slept):
    model = ScriptedChatModel([blank()] * 3)
    ask(way, RetryingChatModel(model, RetryPolicy(wait=wait_fixed(2))))
    assert slept.seconds == [2.0, 2.0]


def test_the_first_default_wait_is_none_and_the_next_at_most_half_a_second(way, slept):
    model = ScriptedChatModel([blank()] * 7)
    ask(way, RetryingChatModel(model, RetryPolicy(max_retries=6)))
    assert len(slept.seconds) == 5
    assert all(0 <= wait <= cap for wait, cap in zip(slept.seconds, (0.5, 1, 2, 4, 8), strict=True))


def test_no_wait_strategy_means_no_wait(way, slept):
    ask(way, RetryingChatModel(ScriptedChatModel([blank(), blank(), "Hi"]), RetryPolicy(wait=None)))
    assert slept.seconds == []


def test_a_deadline_counts_waits_and_attempts(way, slept: RecordingSleep):
    def slow(messages):
        slept.advance(3)
        return blank()

    model = ScriptedChatModel(slow)
    policy = RetryPolicy(
        max_retries=9, wait=wait_fixed(2), stop=stop_after_delay(12), on_exhausted="raise"
    )
    with pytest.raises(EmptyCompletionError) as caught:
        ask(way, RetryingChatModel(model, policy))
    # 3 s, wait 2, 3 s, wait 2, 3 s: 13 seconds are over, at the end of the third attempt.
    assert caught.value.attempts == 3
    assert caught.value.elapsed_seconds == 13
    assert [attempt.elapsed_seconds for attempt in caught.value.rejected] == [3, 3, 3]


def test_each_call_counts_for_itself(way):
    model = ScriptedChatModel([blank(), "one", blank(), "two"])
    wrapped = RetryingChatModel(model, RetryPolicy(max_retries=1))
    assert [ask(way, wrapped).content for _ in range(2)] == ["one", "two"]


def test_the_callers_messages_are_what_they_were(way):
    """Object by object, although each attempt's list may be edited by the inner model."""

    class Editing(ScriptedChatModel):
        def _next(self, messages, stop, kwargs, *, streamed):
            pieces = super()._next(messages, stop, kwargs, streamed=streamed)
            messages.clear()
            return pieces

    prompt = [HumanMessage("Hi", id="1"), AIMessage("Yes?", id="2"), HumanMessage("Well", id="3")]
    before = list(prompt)
    copies = [message.model_copy(deep=True) for message in prompt]
    model = Editing([blank(), blank(), "Hello."])
    ask(way, RetryingChatModel(model), prompt)
    assert [id(message) for message in prompt] == [id(message) for message in before]
    assert prompt == copies
    first, *retries = (request.messages for request in model.requests)
    assert first == copies
    for messages in retries:
        assert messages[:2] == copies[:2]
        assert messages[2].content.startswith("Well\n\n")


def test_one_warning_for_each_retry_and_for_the_end(way, caplog):
    model = ScriptedChatModel([blank()] * 3)
    with caplog.at_level(logging.WARNING, logger="langchain_retrying"):
        ask(way, RetryingChatModel(model, RetryPolicy(wait=None)))
    first, second, end = (record.getMessage() for record in caplog.records)
    assert first == (
        "blank reply, finish reason stop in attempt 1 of ScriptedChatModel: trying again in 0.00 s"
    )
    assert "attempt 2" in second
    assert end.startswith("Empty completion (blank) from ScriptedChatModel: 3 attempt(s)")


def test_call_arguments_reach_every_attempt(way):
    model = ScriptedChatModel([blank(), "Hello."])
    ask(way, RetryingChatModel(model).bind(stop=["."], temperature=0.5))
    assert [request.kwargs for request in model.requests] == [
        {"stop": ["."], "temperature": 0.5}
    ] * 2
