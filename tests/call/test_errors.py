"""`EmptyCompletionError` tells what happened and nothing of what was said."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import logging
import pickle

import pytest
from langchain_core.exceptions import LangChainException
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from tenacity import retry_if_exception_type

from conftest import ask
from langchain_retrying import EmptyCompletionError, ReplyKind, RetryingChatModel, RetryPolicy
from langchain_retrying._errors import RejectedAttempt
from langchain_retrying._judge.kinds import NOTHING
from langchain_retrying.testing import ScriptedChatModel

SECRET = "hunter2"  # noqa: S105 -- planted


def raised(way="invoke", replies=("", ""), **policy) -> EmptyCompletionError:
    policy = RetryPolicy(max_retries=len(replies) - 1, on_exhausted="raise", **policy)
    with pytest.raises(EmptyCompletionError) as caught:
        ask(way, RetryingChatModel(ScriptedChatModel(replies), policy))
    return caught.value


def test_the_text_shows_kind_reasons_attempts_time_tokens_and_a_hint(slept):
    reply = AIMessage(
        content="",
        response_metadata={"finish_reason": "length"},
        usage_metadata={"input_tokens": 7, "output_tokens": 512, "total_tokens": 519},
    )
    assert str(raised(replies=[reply])) == (
        "Empty completion (truncated) from ScriptedChatModel: 1 attempt(s), "
        "finish reasons: length; 0.00 s, 7 input and 512 output tokens. Ended by: not_retried. "
        "Hint: raise the output token budget (RaiseOutputBudget) or lower the reasoning effort."
    )


@pytest.mark.parametrize(
    ("reason", "kind", "hint"),
    [
        ("stop", ReplyKind.BLANK, "allow more retries or another nudge"),
        (
            "length",
            ReplyKind.TRUNCATED,
            "raise the output token budget (RaiseOutputBudget) or lower the reasoning",
        ),
        ("SAFETY", ReplyKind.BLOCKED, "the provider withheld the reply; change the request"),
        ("tool_use", ReplyKind.MALFORMED, "simplify the tools' schemas, or allow more retries"),
    ],
)
def test_each_kind_has_its_hint(reason, kind, hint):
    error = raised(replies=[AIMessage(content="", response_metadata={"finish_reason": reason})])
    assert error.kind is kind
    assert f"Hint: {hint}" in str(error)


def test_the_account_is_that_of_all_attempts_and_the_kind_that_of_the_last():
    rejected = [
        RejectedAttempt(ReplyKind.MALFORMED, "tool_use", 1.0, 7, 3),
        RejectedAttempt(ReplyKind.BLANK, None, 2.0, 8, 4, saw_reasoning=True),
    ]
    last = AIMessage("")
    error = EmptyCompletionError(rejected, elapsed_seconds=4.567, last_message=last)
    assert vars(error) == {
        "rejected": tuple(rejected),
        "kind": ReplyKind.BLANK,
        "attempts": 2,
        "finish_reasons": ("tool_use", None),
        "elapsed_seconds": 4.567,
        "input_tokens": 15,
        "output_tokens": 7,
        "last_message": last,
        "model": "chat model",
        "expected_tools": (),
        "bound": None,
    }
    assert str(error) == (
        "Empty completion (blank) from chat model: 2 attempt(s), finish reasons: tool_use, none; "
        "4.57 s, 15 input and 7 output tokens. Hint: allow more retries or another nudge."
    )
    assert type(rejected[0].as_dict()["kind"]) is str
    assert rejected[0].as_dict() == {
        "kind": "malformed",
        "finish_reason": "tool_use",
        "elapsed_seconds": 1.0,
        "rejected_input_tokens": 7,
        "rejected_output_tokens": 3,
        "saw_reasoning": False,
        "saw_text": False,
    }


def test_what_is_told_of_an_attempt_does_not_change():
    attempt = RejectedAttempt(ReplyKind.BLANK, None, 0.0, 0, 0)
    for told in (attempt, NOTHING):
        with pytest.raises(dataclasses.FrozenInstanceError):
            told.kind = ReplyKind.ANSWER
        assert {told, copy.copy(told)} == {told}


def test_it_is_a_model_error_that_is_not_to_be_retried():
    error = raised()
    assert isinstance(error, LangChainException)
    assert error.is_retryable is False
    exceptions = pytest.importorskip("langchain_core.exceptions")
    assert isinstance(error, getattr(exceptions, "ModelError", LangChainException))


@pytest.mark.parametrize("way_back", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy])
def test_it_survives_pickling_and_copying(way_back):
    error = raised(replies=["", AIMessage(content=" ", id="msg-1")])
    again = way_back(error)
    assert vars(again) == vars(error)
    assert str(again) == str(error)
    assert type(again) is EmptyCompletionError


def test_attempts_are_those_of_the_account(way):
    """Of requests that raised and were made again, too."""
    script = ["", TimeoutError(), ""]
    common = {"wait": None, "retry": retry_if_exception_type(TimeoutError)}
    returned = RetryingChatModel(ScriptedChatModel(script), RetryPolicy(**common))
    account = ask(way, returned).response_metadata["empty_retry"]
    policy = RetryPolicy(on_exhausted="raise", **common)
    with pytest.raises(EmptyCompletionError) as caught:
        ask(way, RetryingChatModel(ScriptedChatModel(script), policy))
    assert caught.value.attempts == account["attempts"] == 3
    assert len(caught.value.rejected) == len(account["rejected"]) == 2


def test_a_providers_words_forge_no_line(way, caplog):
    reason = "stop\nWARNING all is well\x1b[2J\u2028Größe"
    reply = AIMessage("", response_metadata={"finish_reason": reason})
    error = raised(way, [reply] * 2)
    told = [str(error), *(record.getMessage() for record in caplog.records)]
    assert len(told) == 3
    for text in told:
        assert len(text.splitlines()) == 1
        assert r"stop\nWARNING all is well\x1b[2J\u2028Größe" in text
    assert error.finish_reasons == (reason, reason)  # as it was spelt


@pytest.mark.parametrize("is_async", [False, True])
def test_langgraphs_retry_policy_does_not_repeat_it(is_async):
    graph = pytest.importorskip("langgraph.graph")
    retry = pytest.importorskip("langgraph.types").RetryPolicy(initial_interval=0.001)
    inner = ScriptedChatModel(lambda messages: "")
    model = RetryingChatModel(inner, RetryPolicy(wait=None, on_exhausted="raise"))

    def respond(state):
        return {"messages": [model.invoke(state["messages"])]}

    builder = graph.StateGraph(graph.MessagesState)
    try:
        builder.add_node("respond", respond, retry_policy=retry)
    except TypeError:  # as it was called at first
        builder.add_node("respond", respond, retry=retry)
    builder.set_entry_point("respond")
    compiled = builder.compile()
    state = {"messages": [HumanMessage("Hi")]}
    with pytest.raises(EmptyCompletionError):
        asyncio.run(compiled.ainvoke(state)) if is_async else compiled.invoke(state)
    assert len(inner.requests) == 3


def test_a_long_finish_reason_is_cut():
    reply = AIMessage(content="", response_metadata={"finish_reason": "x" * 1000})
    assert raised(replies=[reply]).finish_reasons == ("x" * 64,)


def test_secrets_stay_where_they_are(way, caplog):
    """Planted in prompt, reasoning, key and answer, and looked for in error, log and account."""

    class Keyed(ScriptedChatModel):
        api_key: str = SECRET

    thinking = [{"type": "thinking", "thinking": SECRET, "signature": SECRET}]
    replies = [
        AIMessage(content=thinking, additional_kwargs={"reasoning_content": SECRET}),
        AIMessage(content=f"<think>{SECRET}", response_metadata={"finish_message": SECRET}),
    ]
    policy = RetryPolicy(max_retries=1, wait=None, on_exhausted="raise")
    with caplog.at_level(logging.DEBUG), pytest.raises(EmptyCompletionError) as caught:
        ask(way, RetryingChatModel(Keyed(replies), policy), [HumanMessage(SECRET)])
    told = [str(caught.value), repr(caught.value), str(caught.value.rejected), caplog.text]
    assert not any(SECRET in text for text in told)

    returned = RetryingChatModel(Keyed(replies), RetryPolicy(max_retries=1))
    reply = ask(way, returned, [HumanMessage(SECRET)])
    assert SECRET not in str(reply.response_metadata["empty_retry"])


def test_a_disguised_blank_that_lasts_does_not_show_the_exception_behind_it():
    class FromStream(ScriptedChatModel):
        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            return generate_from_stream(self._stream(messages, stop, **kwargs))

    with pytest.raises(ValueError, match="No generations found in stream"):
        FromStream([[]]).invoke("Hi")
    policy = RetryPolicy(max_retries=1, on_exhausted="raise")
    with pytest.raises(EmptyCompletionError) as caught:
        RetryingChatModel(FromStream([[], []]), policy).invoke("Hi")
    assert caught.value.__context__ is None


def test_fallbacks_take_over(way):
    blank = RetryingChatModel(ScriptedChatModel([""] * 3), RetryPolicy(on_exhausted="raise"))
    other = ScriptedChatModel(["Hello."])
    assert ask(way, blank.with_fallbacks([other])).content == "Hello."


def test_with_retry_on_top_does_not_take_it_for_a_passing_fault():
    """Named exceptions are what `with_retry` is for; it retries all others by default."""
    model = ScriptedChatModel([""] * 2)
    wrapped = RetryingChatModel(model, RetryPolicy(max_retries=1, on_exhausted="raise"))
    chain = wrapped.with_retry(retry_if_exception_type=(ConnectionError,)) | RunnableLambda(str)
    with pytest.raises(EmptyCompletionError):
        chain.invoke("Hi")
    assert len(model.requests) == 2
