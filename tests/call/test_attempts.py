"""One call's attempts, without a model: what is rejected, retried, told and given out."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, ChatMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from tenacity import retry_if_exception_type, wait_fixed

from conftest import named
from driven import Driven
from langchain_retrying import EmptyCompletionError, ReplyKind, RetryPolicy
from langchain_retrying._call.call import describe
from langchain_retrying._call.chunks import with_account
from langchain_retrying._call.replies import StreamedReply, WholeReply
from langchain_retrying._call.run_managers import Token
from langchain_retrying._judge.kinds import NOTHING
from langchain_retrying.testing import ScriptedChatModel

PROMPT = [HumanMessage("Hi")]
MODEL = ScriptedChatModel()
REJECTED = {
    "kind": "blank",
    "finish_reason": None,
    "elapsed_seconds": 0.0,
    "rejected_input_tokens": 0,
    "rejected_output_tokens": 0,
    "saw_reasoning": False,
    "saw_text": False,
}


def whole(max_retries: int = 1, kwargs: Any = None, **policy: Any) -> Driven:
    policy = {"wait": None, **policy}
    return Driven(RetryPolicy(max_retries, **policy), PROMPT, kwargs or {}, MODEL, WholeReply)


def streamed(max_retries: int = 1, **policy: Any) -> Driven:
    policy = RetryPolicy(max_retries, wait=None, **policy)
    return Driven(policy, PROMPT, {}, MODEL, StreamedReply)


def result(*messages: Any, infos: Any = (None,) * 9, **fields: Any) -> ChatResult:
    generations = [
        ChatGeneration(
            message=AIMessage(message) if isinstance(message, str) else message,
            generation_info=info,
        )
        for message, info in zip(messages, infos, strict=False)
    ]
    return ChatResult(generations=generations, **fields)


def blank(**metadata: Any) -> AIMessage:
    return AIMessage("", response_metadata=metadata)


def account(*, attempts: int, rejected: int, **more: Any) -> dict[str, Any]:
    tokens = {"rejected_input_tokens": 0, "rejected_output_tokens": 0}
    return {"attempts": attempts, "rejected": [REJECTED] * rejected, **tokens, **more}


def chunk(content: str = "", **fields: Any) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(content=content, **fields))


def contents(given: ChatResult) -> list[Any]:
    return [generation.message.content for generation in given.generations]


# What an attempt is rejected with


def test_a_rejected_reply_is_accounted_for(slept):
    slept.advance(100)
    call = whole(wait=wait_fixed(2))
    assert call.attempt_number == 1
    slept.advance(3)
    usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    thought = AIMessage([{"type": "thinking"}], response_metadata={"stop_reason": "x" * 65})
    assert call.answer(result(thought.model_copy(update={"usage_metadata": usage}))) is None
    assert call.rejected[0].as_dict() == {
        "kind": "blank",
        "finish_reason": "x" * 64,
        "elapsed_seconds": 3,
        "rejected_input_tokens": 7,
        "rejected_output_tokens": 3,
        "saw_reasoning": True,
        "saw_text": False,
    }
    assert (call.step.seconds, call.is_over, call.attempt_number) == (2.0, False, 1)
    slept.advance(call.step.seconds)
    call.again()
    assert call.attempt_number == 2
    slept.advance(1)
    call.answer(result(""))
    assert call.rejected[1].as_dict() == {**REJECTED, "elapsed_seconds": 1}
    assert (call.error.elapsed_seconds, call.error.model) == (6, "ScriptedChatModel")
    assert (call.is_over, call.attempt_number) == (True, 2)


def test_a_reply_without_usage_or_reason_is_accounted_for(slept):
    call = whole(0)
    call.answer(result(""))
    assert [attempt.as_dict() for attempt in call.rejected] == [REJECTED]


def test_the_next_attempt_sends_the_original_request_and_a_nudge():
    call = whole(2, {"a": 1})
    assert (call.messages, call.kwargs) == (PROMPT, {"a": 1})
    for _ in range(2):
        call.answer(result(""))
        call.again()
        (asked,) = call.messages
        assert asked.content.startswith("Hi\n\n")
        assert call.kwargs == {"a": 1}
    assert call.messages is not PROMPT


def test_an_attempt_after_an_exception_sends_what_the_one_before_did():
    call = whole(3, retry=retry_if_exception_type(TimeoutError))
    assert call.raises(TimeoutError())
    call.again()
    assert call.messages is PROMPT
    call.answer(result(""))
    call.again()
    nudged = call.messages
    assert call.raises(TimeoutError())
    call.again()
    assert call.messages == nudged


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (blank(), "blank reply, finish reason none"),
        (blank(finish_reason="eos"), "blank reply, finish reason eos"),
        (blank(finish_reason="tool_use"), "malformed reply, finish reason tool_use"),
    ],
    ids=["none", "eos", "tool_use"],
)
def test_a_retry_is_logged_with_kind_and_reason(message, says, caplog):
    whole(wait=wait_fixed(2)).answer(result(message))
    assert caplog.messages == [f"{says} in attempt 1 of ScriptedChatModel: trying again in 2.00 s"]


def test_a_later_retry_is_logged_with_its_own_reason(caplog):
    call = whole(2)
    call.answer(result(blank(finish_reason="stop")))
    call.again()
    call.answer(result(blank(finish_reason="eos")))
    assert caplog.messages[1] == (
        "blank reply, finish reason eos in attempt 2 of ScriptedChatModel: trying again in 0.00 s"
    )


def test_the_end_is_logged_as_text(caplog):
    """A record may live long, and the error would hold the reply."""
    call = whole(0)
    call.answer(result(""))
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("langchain_retrying", logging.WARNING)
    assert record.getMessage() == str(call.error)
    assert record.args == (str(call.error),)


# Exceptions


def test_a_retried_exception_is_logged_by_name_and_counts_as_an_attempt(caplog):
    asked = []

    def retry(state):
        asked.append((state.attempt_number, type(state.outcome.exception()), state.start_time))
        return True

    call = whole(1, retry=retry)
    assert call.raises(TimeoutError("hunter2"))
    assert caplog.messages == [
        "TimeoutError in attempt 1 of ScriptedChatModel: trying again in 0.00 s"
    ]
    assert call.outcome() is None
    assert not call.rejected
    call.again()
    last = TimeoutError()
    assert not call.raises(last)
    assert not hasattr(last, "__notes__")  # no empty reply came before it
    assert [ask[:2] for ask in asked] == [(1, TimeoutError), (2, TimeoutError)]
    assert len({ask[2] for ask in asked}) == 1


def disguised() -> Exception:
    with pytest.raises(ValueError, match="No generations found in stream") as caught:
        generate_from_stream(iter([]))
    return caught.value


def torn() -> Exception:
    return ConnectionError("Incomplete response stream")


def test_a_blank_in_disguise_is_a_reply_that_did_not_come(slept):
    call = whole()
    assert call.raises(disguised()) is True
    assert [attempt.as_dict() for attempt in call.rejected] == [REJECTED]
    assert call.error.last_message == AIMessage("")
    assert call.outcome() is None
    call.again()
    assert call.messages[0].content.startswith("Hi\n\n")
    last = disguised()
    assert call.raises(last) is True  # taken, though none follows
    with pytest.raises(ValueError, match="No generations found in stream") as caught:
        call.outcome()
    assert caught.value is last
    (note,) = last.__notes__
    assert note == (
        "Raised in attempt 2 of a call to ScriptedChatModel; "
        "empty replies rejected before: 1 (blank)."
    )


def test_a_torn_stream_is_a_blank_only_if_nothing_of_it_has_come(monkeypatch):
    def judged(error, model, *, without_chunks):
        return NOTHING if without_chunks else None

    monkeypatch.setattr("langchain_retrying._call.call.verdict_on", judged)
    call = streamed()
    call.reply.hold_token(Token(print, ""))
    assert call.raises(torn()) is True
    assert len(call.rejected) == 1
    assert whole().raises(torn()) is True
    call = streamed()
    call.reply.add(chunk(" "))
    assert call.raises(torn()) is False
    assert not call.rejected


def test_an_attempt_whose_tokens_were_shown_is_not_taken_back():
    call = whole()
    call.reply.hold_token(Token(print, "a"))
    assert call.raises(disguised()) is False
    given = result("")
    assert call.answer(given) is given
    assert not call.rejected
    call = whole()
    call.answer(result(""))
    call.again()
    call.reply.hold_token(Token(print, "a"))
    assert call.answer(result()) == result()


def test_an_exception_that_the_policy_does_not_name_is_raised_after_a_blank_too():
    call = whole(3, retry=retry_if_exception_type(TimeoutError))
    call.answer(result(""))
    call.again()
    assert call.raises(ConnectionError()) is False


def test_an_exception_after_empty_replies_gets_a_note_of_all_of_them():
    call = whole(3)
    for message in (blank(), blank(finish_reason="tool_use")):
        call.answer(result(message))
        call.again()
    error = ConnectionError()
    assert call.raises(error) is False
    (note,) = error.__notes__
    assert note == (
        "Raised in attempt 3 of a call to ScriptedChatModel; "
        "empty replies rejected before: 2 (blank, malformed)."
    )


def test_an_error_of_a_wrapper_below_is_an_exception_like_others():
    below = whole(0)
    below.answer(result(""))
    assert not whole().raises(below.error)
    retrying = whole(retry=retry_if_exception_type(EmptyCompletionError))
    assert retrying.raises(below.error)
    assert not retrying.rejected


def test_an_interrupt_of_langgraph_is_not_retried():
    bubble = type("GraphInterrupt", (type("GraphBubbleUp", (Exception,), {}),), {})
    assert not whole(retry=lambda state: True).raises(bubble())


class RefusedError(Exception):
    status_code = 400


def refused(max_retries: int = 3, **policy: Any) -> Driven:
    """A call whose first reply was a blank and whose nudge is about to be refused."""
    call = whole(max_retries, **policy)
    call.answer(result(blank(finish_reason="stop")))
    call.again()
    return call


def test_a_refused_nudge_is_left_out_from_then_on(slept, caplog):
    call = refused(wait=wait_fixed(2))
    assert call.raises(RefusedError()) is True
    assert caplog.messages[1] == (
        "Nudge refused in attempt 2 of ScriptedChatModel: trying again in 2.00 s"
    )
    assert (call.outcome(), len(call.rejected)) == (None, 1)
    for attempt in (3, 4):
        call.again()
        assert (call.attempt_number, call.messages) == (attempt, PROMPT)
        call.answer(result(""))


def test_a_refused_nudge_at_the_bound_ends_the_call_as_the_blank_before(slept, caplog):
    call = refused(1)
    assert call.raises(RefusedError()) is True
    assert call.is_over
    assert "Nudge refused" not in caplog.text  # no attempt follows
    reason = {"finish_reason": "stop"}
    told = {**account(attempts=2, rejected=1), "rejected": [{**REJECTED, **reason}]}
    assert call.outcome() == result(blank(**reason, empty_retry=told))


def test_what_was_not_changed_cannot_be_refused():
    call = whole()
    assert call.raises(RefusedError()) is False
    call = refused()
    assert call.raises(RefusedError()) is True
    call.again()
    assert call.raises(RefusedError()) is False
    assert refused(nudge=None).raises(RefusedError()) is False


def test_a_refused_nudge_has_no_other_exception_retried():
    call = refused(9, retry=retry_if_exception_type(TimeoutError))
    assert call.raises(RefusedError()) is True
    call.again()
    assert call.raises(TimeoutError()) is True
    call.again()
    assert call.raises(ConnectionError()) is False


def test_a_call_lasts_from_its_beginning_by_the_clock_of_waits(slept):
    slept.advance(100)
    states = []
    call = whole(retry=lambda state: not states.append(state))
    slept.advance(3)
    call.raises(TimeoutError())
    assert (states[0].start_time, states[0].seconds_since_start) == (100, 3)


# What goes out


def test_an_answer_goes_out_as_it_came():
    for message in ("Hello", "…", AIMessage("", additional_kwargs={"audio": {"id": "a"}})):
        given = result(message)
        assert whole().answer(given) is given


def test_an_answer_after_a_retry_has_the_account_on_the_first_candidate(slept):
    for text in ("Hello", "…"):
        call = whole()
        call.answer(result(""))
        call.again()
        first, second = call.answer(result(text, "Other")).generations
        assert first.message.content == text
        assert first.message.response_metadata == {"empty_retry": account(attempts=2, rejected=1)}
        assert second.message == AIMessage("Other")


@pytest.mark.parametrize(
    ("given", "out"),
    [
        (["", "b", "c"], ["b", "", "c"]),
        (["", " ", "…"], ["…", "", " "]),
        (["…", "", "c"], ["…", "", "c"]),
    ],
    ids=named,
)
def test_the_first_usable_candidate_comes_first(given, out):
    before = result(*given)
    assert contents(whole().answer(before)) == out
    assert contents(before) == given


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (result("", infos=[{"finish_reason": "length"}]), ReplyKind.TRUNCATED),
        (result("", llm_output={"stop_reason": "refusal"}), ReplyKind.BLOCKED),
        (result(blank(finish_reason="length"), blank(finish_reason="SAFETY")), "truncated"),
        (result(" ", " "), ReplyKind.BLANK),
        (result(), ReplyKind.BLANK),
    ],
    ids=["generation_info", "llm_output", "the first decides", "blanks", "no candidate"],
)
def test_an_empty_result_is_judged_by_all_that_it_says(given, kind):
    call = whole()
    retried = kind is ReplyKind.BLANK
    assert (call.answer(given) is None) is retried
    assert call.error.kind == kind
    assert call.is_over is not retried


def test_the_last_message_has_the_metadata_of_the_result():
    def last_message(given):
        call = whole(0)
        call.answer(given)
        return call.error.last_message

    told = {"llm_output": {"a": 1, "b": 1, "c": 1}, "infos": [{"b": 2, "c": 2}]}
    merged = {"a": 1, "b": 2, "c": 3}
    assert last_message(result(blank(c=3), **told)) == blank(**merged)
    other = ChatMessage(" ", role="model", response_metadata={"c": 3})
    assert last_message(result(other, **told)) == AIMessage(" ", response_metadata=merged)
    assert last_message(result()) == AIMessage("")


def test_an_exhausted_reply_goes_out_as_it_came(slept):
    given = result(blank(a=1), "", llm_output={"b": 2})
    assert whole(0).answer(given) is given
    call = whole(1)
    call.answer(given)
    call.again()
    out = call.answer(given)
    assert out.llm_output == {"b": 2}
    assert [generation.message for generation in out.generations] == [
        blank(a=1, empty_retry=account(attempts=2, rejected=2)),
        AIMessage(""),
    ]


def test_no_candidate_goes_out_as_it_came(slept):
    given = result(llm_output={"b": 2})
    assert whole(0).answer(given) is given
    call = whole(1)
    call.answer(given)
    call.again()
    assert call.answer(given) is given
    accepted = whole(accept=lambda messages, reply: True).answer(given)
    assert accepted == result("", llm_output={"b": 2})


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ("So sorry.", AIMessage("So sorry.", response_metadata={"a": 1}, id="msg-1")),
        (AIMessage("Sorry.", name="me"), AIMessage("Sorry.", name="me")),
        (lambda error: AIMessage(f"{error.attempts}"), AIMessage("1")),
    ],
    ids=["text", "message", "callable"],
)
def test_what_stands_in_goes_out_alone_with_the_account(outcome, message, slept):
    last = AIMessage("", response_metadata={"a": 1}, id="msg-1")
    told = {"empty_retry": account(attempts=1, rejected=1, stand_in=True)}
    metadata = {**message.response_metadata, **told}
    expected = message.model_copy(update={"response_metadata": metadata})

    call = whole(0, on_exhausted=outcome)
    call.reply.hold_token(Token(print, " "))
    out = call.answer(result(last, "", llm_output={"a": 1}))
    assert out.llm_output == {"a": 1}
    assert [generation.message for generation in out.generations] == [expected]
    (sent,) = call.out(call.step)
    assert sent == out

    call = streamed(0, on_exhausted=outcome)
    call.reply.add(chunk(response_metadata={"a": 1}, id="msg-1"))
    (out,) = call.answer()
    assert out.message.content == expected.content
    assert out.message.response_metadata == expected.response_metadata


def test_a_message_that_stands_in_is_copied_to_its_depth():
    stand_in = AIMessage("Sorry.", additional_kwargs={"a": []})
    out = whole(0, on_exhausted=stand_in).answer(result(""))
    out.generations[0].message.additional_kwargs["a"].append(1)
    assert stand_in.additional_kwargs == {"a": []}


def test_what_a_callable_gives_is_checked():
    with pytest.raises(TypeError, match=r"^on_exhausted must return an AIMessage, not str$"):
        whole(0, on_exhausted=lambda error: "Sorry.").answer(result(""))


def test_raising_leaves_nothing_behind():
    call = whole(0, on_exhausted="raise")
    with pytest.raises(EmptyCompletionError, match=r"Empty completion \(blank\)"):
        call.answer(result(""))
    assert call.error is None
    assert call.retry_state is None


# Streams


def test_a_stream_is_retried_and_its_answer_has_the_account(slept):
    call = streamed()
    call.reply.add(chunk(" "))
    assert call.answer() is None
    call.again()
    call.reply.add(chunk("Hello"))
    (out,) = call.answer()
    assert out.message.response_metadata == {"empty_retry": account(attempts=2, rejected=1)}


def test_an_exhausted_stream_goes_out_as_it_came(slept):
    call = streamed()
    call.answer()
    call.again()
    for _ in range(2):
        call.reply.add(chunk(" "))
    first, second = call.answer()
    assert first.message.response_metadata == {"empty_retry": account(attempts=2, rejected=2)}
    assert (second.message.content, second.message.response_metadata) == (" ", {})
    assert list(streamed(0).answer()) == []


def test_an_exception_that_was_caught_ends_the_attempt_without_a_verdict():
    call = streamed(2, retry=retry_if_exception_type(TimeoutError))
    call.reply.add(chunk(" "))
    assert call.raises(TimeoutError())
    assert call.outcome() is None
    assert not call.rejected
    call.again()
    call.reply.add(chunk(" "))
    assert call.answer() is None
    assert len(call.rejected) == 1


def test_an_exception_that_is_raised_is_no_attempt():
    call = streamed()
    call.reply.add(chunk(" "))
    assert call.raises(ConnectionError()) is False
    assert not call.rejected


def test_an_answer_that_shows_at_the_end_is_not_rejected():
    call = streamed()
    call.reply.add(chunk("<"))
    (out,) = call.answer()
    assert (out.message.content, out.message.response_metadata) == ("<", {})
    assert not call.rejected


# For people


@pytest.mark.parametrize(
    ("fields", "described"),
    [
        ({}, "SimpleNamespace"),
        ({"model_name": "gpt"}, "SimpleNamespace gpt"),
        ({"model": "claude"}, "SimpleNamespace claude"),
        ({"model_name": "", "model": "claude"}, "SimpleNamespace claude"),
        ({"model_name": "gpt", "model": "claude"}, "SimpleNamespace gpt"),
        ({"model": object()}, "SimpleNamespace"),
    ],
    ids=named,
)
def test_a_model_is_described_by_class_and_name(fields, described):
    assert describe(SimpleNamespace(**fields)) == described


def test_the_account_is_put_on_a_copy():
    message = AIMessage("a", response_metadata={"a": 1})
    assert with_account(message, {"b": 2}).response_metadata == {"a": 1, "empty_retry": {"b": 2}}
    assert message.response_metadata == {"a": 1}
