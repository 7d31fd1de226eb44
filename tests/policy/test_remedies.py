"""Ladders of remedies: what each retry changes, and when there is nothing left to try."""

from __future__ import annotations

import dataclasses

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from conftest import ask
from langchain_retrying import (
    DEFAULT_NUDGE,
    Nudge,
    ReplyKind,
    RetryingChatModel,
    RetryPolicy,
    WithParams,
    repeat,
)
from langchain_retrying.testing import ScriptedChatModel

PROMPT = [SystemMessage("Be brief."), HumanMessage("Hi")]
CUT = AIMessage("", response_metadata={"finish_reason": "length"})
WITHHELD = AIMessage("", response_metadata={"finish_reason": "content_filter"})


MALFORMED = AIMessage("", response_metadata={"finish_reason": "MALFORMED_FUNCTION_CALL"})


def sent(way, *replies, remedies, max_retries=4, nudge=DEFAULT_NUDGE, **kwargs):
    """The requests that a script of replies draws."""
    model = ScriptedChatModel(replies)
    policy = RetryPolicy(max_retries=max_retries, wait=None, remedies=remedies, nudge=nudge)
    ask(way, RetryingChatModel(model, policy), PROMPT, **kwargs)
    return model.requests


def ends(requests):
    """What the last message of each request says."""
    return [request.messages[-1].content for request in requests]


def test_retry_k_uses_rung_k_and_the_last_one_repeats(way):
    ladder = [Nudge("One."), Nudge("Two."), WithParams(temperature=1.0)]
    # Each blank differs from the one before.
    blanks = [AIMessage("", response_metadata={"finish_reason": reason}) for reason in "abcd"]
    first, *retries = sent(way, *blanks, "Hello.", remedies={ReplyKind.BLANK: ladder})
    assert [request.messages[:-1] for request in retries] == [PROMPT[:-1]] * 4
    assert [request.messages[-1].content for request in retries] == [
        "Hi\n\nOne.",
        "Hi\n\nTwo.",
        "Hi",
        "Hi",
    ]
    assert [request.kwargs for request in (first, *retries)] == [
        *[{}] * 3,
        *[{"temperature": 1.0}] * 2,
    ]


def test_a_rung_may_hold_several_remedies(way):
    rung = (Nudge("Go on."), WithParams(temperature=1.0), WithParams(top_p=0.5))
    _, second = sent(
        way, "", "Hello.", remedies={ReplyKind.BLANK: [rung]}, temperature=0.0, tool_choice="auto"
    )
    assert second.messages == [*PROMPT[:-1], HumanMessage("Hi\n\nGo on.")]
    assert second.kwargs == {"temperature": 1.0, "top_p": 0.5, "tool_choice": "auto"}


@pytest.mark.parametrize(
    ("reply", "kind"), [(CUT, ReplyKind.TRUNCATED), (WITHHELD, ReplyKind.BLOCKED)]
)
def test_a_kind_with_a_ladder_is_retried_and_the_others_keep_their_default(way, reply, kind):
    """Of which the retry of a blank and of a malformed call is the nudge, others none."""
    assert len(sent(way, reply, "Hello.", remedies=None)) == 1
    assert len(sent(way, reply, "Hello.", remedies={kind: [repeat]})) == 2
    for empty in ("", MALFORMED):
        _, second = sent(way, empty, "Hello.", remedies={kind: [repeat]})
        assert second.messages[:-1] == PROMPT[:-1]
        assert second.messages[-1].content.startswith("Hi\n\n")
        _, second = sent(way, empty, "Hello.", remedies={kind: [repeat]}, nudge="Go on.")
        assert second.messages == [*PROMPT[:-1], HumanMessage("Hi\n\nGo on.")]


@pytest.mark.parametrize("off", [None, (), []])
def test_a_kind_without_a_ladder_is_not_retried(way, off):
    assert len(sent(way, "", "Hello.", remedies={ReplyKind.BLANK: off})) == 1
    assert len(sent(way, MALFORMED, "Hello.", remedies={ReplyKind.BLANK: off})) == 2
    assert len(sent(way, CUT, "Hello.", remedies={ReplyKind.TRUNCATED: off})) == 1


def test_a_nudge_is_that_of_the_kind_without_a_ladder_of_its_own(way):
    remedies = {ReplyKind.BLANK: [WithParams(a=1)]}
    _, second = sent(way, "", "Hello.", remedies=remedies, nudge="Go on.")
    assert (second.messages, second.kwargs) == (PROMPT, {"a": 1})
    _, second = sent(way, MALFORMED, "Hello.", remedies=remedies, nudge="Go on.")
    assert second.messages == [*PROMPT[:-1], HumanMessage("Hi\n\nGo on.")]


def test_the_ladder_is_that_of_the_last_reply(way):
    ladders = {
        ReplyKind.BLANK: [Nudge("Blank.")],
        ReplyKind.TRUNCATED: [WithParams(max_tokens=1), WithParams(max_tokens=2)],
    }
    _, second, third = sent(way, "", CUT, "Hello.", remedies=ladders)
    assert second.messages[-1].content == "Hi\n\nBlank."
    assert (third.messages, third.kwargs) == (PROMPT, {"max_tokens": 2})


def test_the_same_blank_twice_skips_rungs_that_would_change_nothing(way):
    """Where the blanks differ, they are climbed one by one."""
    ladder = {ReplyKind.BLANK: [repeat, repeat, repeat, Nudge("Go on.")]}
    same = sent(way, "", "", "Hello.", remedies=ladder)
    assert ends(same) == ["Hi", "Hi", "Hi\n\nGo on."]
    other = AIMessage("", response_metadata={"finish_reason": "other"})
    differing = sent(way, "", other, "Hello.", remedies=ladder)
    assert ends(differing) == ["Hi", "Hi", "Hi"]
    with_output = AIMessage(
        "", usage_metadata={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    )
    by_chance = sent(way, with_output, with_output, "Hello.", remedies=ladder)
    assert ends(by_chance) == ["Hi", "Hi", "Hi"]


def test_the_rung_climbed_to_is_not_taken_twice(way):
    ladder = [Nudge("a"), Nudge("a"), WithParams(a=1), WithParams(b=1)]
    _, *retries = sent(way, "", "", "", "Hello.", remedies={ReplyKind.BLANK: ladder})
    assert [request.kwargs for request in retries] == [{}, {"a": 1}, {"b": 1}]


def test_params_may_hold_what_has_a_place_of_its_own(way):
    _, second = sent(
        way, "", "Hello.", remedies={ReplyKind.BLANK: [WithParams(stop=["b"])]}, stop=["a"]
    )
    assert second.kwargs == {"stop": ["b"]}


def test_a_nudge_given_as_a_message_is_sent_as_a_copy(way):
    given = HumanMessage("Go on.")

    class Writes(ScriptedChatModel):
        def _next(self, messages, *args, **kwargs):
            messages[-1].content += "!"
            return super()._next(messages, *args, **kwargs)

    ask(way, RetryingChatModel(Writes(["", "Hello."]), RetryPolicy(nudge=given)))
    assert given.content == "Go on."


def test_a_remedy_of_ones_own(way):
    def brief(request, error):
        assert request.model._llm_type == "scripted"
        question = HumanMessage(f"{error.kind.value}: {request.messages[-1].content}?")
        return dataclasses.replace(request, messages=[question])

    _, second = sent(way, "", "Hello.", remedies={ReplyKind.BLANK: [brief]})
    assert second.messages == [HumanMessage("blank: Hi?")]


def nothing_to_try(request, error):
    return None


def test_a_remedy_that_has_nothing_to_try_ends_the_call(way, caplog):
    requests = sent(way, "", "never", remedies={ReplyKind.BLANK: [nothing_to_try]})
    assert len(requests) == 1
    assert [record.getMessage()[:23] for record in caplog.records] == ["Empty completion (blank"]


def test_of_several_one_that_has_nothing_to_try_is_left_out(way):
    for rung in ((nothing_to_try, Nudge("Go on.")), (Nudge("Go on."), nothing_to_try)):
        _, second = sent(way, "", "Hello.", remedies={ReplyKind.BLANK: [rung]})
        assert second.messages[-1].content == "Hi\n\nGo on."
    both = (nothing_to_try, nothing_to_try)
    assert len(sent(way, "", "never", remedies={ReplyKind.BLANK: [both]})) == 1


def test_a_remedy_that_returns_no_request_is_an_error_of_the_callers(way):
    with pytest.raises(TypeError, match=r"^a remedy must return a Request or None, not list$"):
        sent(way, "", remedies={ReplyKind.BLANK: [lambda request, error: []]})


def test_a_wrapper_given_by_a_remedy_does_not_retry_by_itself(way):
    """Else it would be retried within each retry; this wrapper itself without an end."""
    inner = ScriptedChatModel(["", "", "Hello.", "never"])

    def itself(request, error):
        return dataclasses.replace(request, model=model)

    policy = RetryPolicy(wait=None, remedies={ReplyKind.BLANK: [itself]})
    model = RetryingChatModel(inner, policy)
    assert ask(way, model).content == "Hello."
    assert len(inner.requests) == 3


def test_a_remedys_model_is_a_chat_model_and_no_binding_of_one(way):
    def bound(request, error):
        return dataclasses.replace(request, model=request.model.bind(a=1))

    with pytest.raises(
        TypeError, match=r"a remedy's model must be a chat model, .* kwargs, not .*Binding"
    ):
        sent(way, "", remedies={ReplyKind.BLANK: [bound]})


def test_the_default_is_the_nudge_for_blank_and_malformed():
    policy = RetryPolicy()
    assert policy.ladders == {
        ReplyKind.BLANK: (DEFAULT_NUDGE,),
        ReplyKind.MALFORMED: (DEFAULT_NUDGE,),
    }


def test_a_policys_remedies_are_its_own():
    ladders = {"blank": [Nudge(), [repeat, WithParams(a=1)]]}
    policy = RetryPolicy(remedies=ladders)
    ladders["blank"].clear()
    assert policy.ladders[ReplyKind.BLANK] == (Nudge(), (repeat, WithParams(a=1)))


def test_params_are_shown_and_compared():
    assert repr(WithParams(temperature=1.0, stop=["a"])) == "WithParams(temperature=..., stop=...)"
    assert WithParams(a=1) == WithParams(a=1) != WithParams(a=2)
    for params in ({}, {"run_manager": None}):
        with pytest.raises(TypeError, match=r"WithParams needs call arguments, such as WithPara"):
            WithParams(**params)


CALL = {"name": "look_up", "args": {}, "id": "call-1", "type": "tool_call"}


class MistralLike(ScriptedChatModel):
    @property
    def _llm_type(self):
        return "mistralai-chat"


@pytest.mark.parametrize(
    ("result", "with_nudge"),
    [
        ("42", "42\n\nGo on."),
        ([{"type": "text", "text": "42"}], [{"type": "text", "text": t} for t in ("42", "Go on.")]),
    ],
)
def test_where_no_user_may_speak_after_a_tool_the_tools_result_says_it(way, result, with_nudge):
    model = MistralLike(["", "Hello."])
    tool_message = ToolMessage(result, tool_call_id="call-1")
    prompt = [HumanMessage("Hi"), AIMessage("", tool_calls=[CALL]), tool_message]
    ask(way, RetryingChatModel(model, RetryPolicy(nudge="Go on.")), prompt)
    second = model.requests[1].messages
    assert second[:2] == prompt[:2]
    assert second[2] == ToolMessage(with_nudge, tool_call_id="call-1")
    assert len(second) == 3
    assert tool_message.content == result


def test_elsewhere_the_user_says_it(way):
    called = [HumanMessage("Hi"), ToolMessage("42", tool_call_id="call-1")]
    for prompt, model, end in (
        (PROMPT, MistralLike(["", "Hello."]), [HumanMessage("Hi\n\nGo on.")]),
        (called, ScriptedChatModel(["", "Hello."]), [called[-1], HumanMessage("Go on.")]),
    ):
        ask(way, RetryingChatModel(model, RetryPolicy(nudge="Go on.")), prompt)
        assert model.requests[1].messages == [*prompt[:-1], *end]


def test_a_cut_off_reply_is_asked_to_be_brief(way):
    _, second = sent(way, CUT, "Hello.", remedies={ReplyKind.TRUNCATED: [Nudge()]})
    assert second.messages[-1].content.startswith("Hi\n\nBe brief. ")
