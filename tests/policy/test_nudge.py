"""What a retry sends: the original messages and one nudge."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from conftest import ask
from langchain_retrying import (
    DEFAULT_NUDGE,
    EmptyCompletionError,
    Nudge,
    ReplyKind,
    RetryingChatModel,
    RetryPolicy,
)
from langchain_retrying._errors import RejectedAttempt
from langchain_retrying._policy.remedies import Request
from langchain_retrying.testing import ScriptedChatModel
from wire.clients import build
from wire.turns import GOOD, Turn

MODEL = ScriptedChatModel()
PROMPT = [SystemMessage("Be brief."), HumanMessage("Hi")]


def sent(way, *replies, policy=None, **kwargs):
    model = ScriptedChatModel(replies)
    ask(way, RetryingChatModel(model, policy), PROMPT, **kwargs)
    return [request.messages for request in model.requests]


def test_nudges_do_not_pile_up_and_the_rejected_reply_is_left_out(way):
    first, second, third = sent(way, "", " ", "Hello.")
    assert first == PROMPT
    for retry in (second, third):
        assert retry[:-1] == PROMPT[:-1]
        assert retry[-1].type == "human"
        assert retry[-1].content.startswith("Hi\n\n")
    assert third != second  # the same request may meet the same end


def test_the_wording_fits_what_happened(way):
    reasoning = [AIMessageChunk(content=[{"type": "thinking", "thinking": "Hm", "index": 0}])]
    malformed = AIMessage("", response_metadata={"finish_reason": "MALFORMED_FUNCTION_CALL"})
    replies = ("", reasoning, malformed)
    tools = [{"type": "function"}]
    nudges = {sent(way, reply, "Hello.", tools=tools)[1][-1].content for reply in replies}
    assert len(nudges) == 3


def test_the_wording_speaks_of_tool_calls_only_if_tools_are_bound(way):
    without = sent(way, "", "Hello.")[1][-1].content
    with_tools = sent(way, "", "Hello.", tools=[{"type": "function"}])[1][-1].content
    assert "tool" not in without
    assert "tool call" in with_tools
    assert "in a sentence if that is enough" in with_tools


@pytest.mark.parametrize(
    ("nudge", "end"),
    [
        ("Go on.", [HumanMessage("Hi\n\nGo on.")]),
        (SystemMessage("Go on."), [HumanMessage("Hi"), SystemMessage("Go on.")]),
        (Nudge("Go on."), [HumanMessage("Hi\n\nGo on.")]),
        (
            lambda messages, error: f"{len(messages)} {error.kind.value}",
            [HumanMessage("Hi\n\n2 blank")],
        ),
        (
            lambda messages, error: HumanMessage("x", name="me"),
            [HumanMessage("Hi"), HumanMessage("x", name="me")],
        ),
        (lambda messages, error: None, [HumanMessage("Hi")]),
        (lambda messages, error: "", [HumanMessage("Hi")]),
        (None, [HumanMessage("Hi")]),
    ],
)
def test_a_nudge_of_ones_own(way, nudge, end):
    _, second = sent(way, "", "Hello.", policy=RetryPolicy(nudge=nudge))
    assert second == [*PROMPT[:-1], *end]


def test_a_nudge_that_is_no_message_is_an_error_of_the_callers(way):
    with pytest.raises(TypeError, match=r"^nudge must return a text, a message or None, not int$"):
        sent(way, "", policy=RetryPolicy(nudge=lambda messages, error: 5))


def test_the_first_retry_may_be_silent(way):
    def after_the_first(messages, error):
        return "Go on." if error.attempts > 1 else None

    _, second, third = sent(way, "", "", "Hello.", policy=RetryPolicy(nudge=after_the_first))
    assert second == PROMPT
    assert third == [*PROMPT[:-1], HumanMessage("Hi\n\nGo on.")]


ANSWER = "Tell me the answer to my request, in a sentence if that is enough."
OUTCOME = (
    "Tell me the answer to my request, in a sentence if that is enough, or make a tool call that "
    "is still needed; do not repeat one you have made."
)
THOUGHT = "You have thought enough. "
BRIEF = "Be brief. "
VALID = " Write a tool call's arguments as valid JSON."
BLANK, MALFORMED, TRUNCATED = ReplyKind.BLANK, ReplyKind.MALFORMED, ReplyKind.TRUNCATED


def default_wording(kinds, kwargs, *, saw_reasoning=False, saw_text=False, expected_tools=()):
    error = EmptyCompletionError(
        [RejectedAttempt(kind, None, 0.0, 0, 0, saw_reasoning, saw_text) for kind in kinds],
        elapsed_seconds=0.0,
        last_message=AIMessage(""),
        expected_tools=expected_tools,
    )
    nudged = DEFAULT_NUDGE(Request(PROMPT, kwargs, MODEL), error)
    assert nudged.messages[:-1] == PROMPT[:-1]
    assert nudged.kwargs is kwargs
    return nudged.messages[-1].content.removeprefix("Hi\n\n")


def once_more(wording):
    return wording.replace("Tell", "Please tell")


@pytest.mark.parametrize(
    ("kwargs", "wanted", "valid"),
    [
        ({}, ANSWER, ""),
        ({"tools": [], "functions": None}, ANSWER, ""),
        ({"tools": [{"name": "f"}]}, OUTCOME, VALID),
        ({"functions": [{"name": "f"}]}, OUTCOME, VALID),
    ],
    ids=["no tools", "none of them", "tools", "functions"],
)
def test_the_default_wording(kwargs, wanted, valid):
    assert default_wording([BLANK], kwargs) == wanted
    assert default_wording([BLANK], kwargs, saw_reasoning=True) == THOUGHT + wanted
    assert default_wording([MALFORMED], kwargs, saw_reasoning=True) == wanted + valid
    assert default_wording([MALFORMED, BLANK], kwargs) == once_more(wanted)
    assert default_wording([BLANK, MALFORMED], kwargs) == once_more(wanted) + valid
    assert default_wording([TRUNCATED], kwargs, saw_reasoning=True) == BRIEF + wanted


def test_the_default_wording_where_a_tool_call_is_required():
    kwargs, expected = {"tools": [{"name": "f"}]}, {"expected_tools": ["f", "g"]}
    call = "Call f or g now, with what you know."
    assert default_wording([BLANK], kwargs, **expected) == call
    assert default_wording([MALFORMED], kwargs, saw_text=True, **expected) == call
    assert default_wording([MALFORMED], kwargs, **expected) == call + VALID


@pytest.mark.parametrize("tools", [[], [{"name": "f"}]], ids=["no tools", "tools"])
@pytest.mark.parametrize("required", [(), ("f",)], ids=["free", "required"])
@pytest.mark.parametrize("kind", [BLANK, MALFORMED, TRUNCATED])
@pytest.mark.parametrize("saw_reasoning", [False, True])
def test_the_default_wording_never_repeats_the_last_nor_speaks_of_emptiness(
    tools, required, kind, saw_reasoning
):
    texts = [
        default_wording(
            [kind] * attempts,
            {"tools": tools},
            saw_reasoning=saw_reasoning,
            expected_tools=required,
        )
        for attempts in range(1, 5)
    ]
    for text, following in pairwise(texts):
        assert text != following
        assert not re.search(r"empty|blank|reply|response|lost|nothing|sorry", text.lower())


LOOK_UP = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}
CALLING = AIMessage("", tool_calls=[{"name": "look_up", "args": {"key": "a"}, "id": "call-1"}])
CHAIN = [HumanMessage("What is a?"), CALLING, ToolMessage("42", tool_call_id="call-1")]


def test_at_the_end_of_a_tool_chain_the_retry_shows_what_was_called_and_forces_no_call(way):
    model = ScriptedChatModel(["", "It is 42."])
    ask(way, RetryingChatModel(model), CHAIN, tools=[LOOK_UP])
    first, second = model.requests
    assert second.messages == [*first.messages, HumanMessage(OUTCOME)]
    assert second.messages[:-1] == CHAIN  # with the call and its result, and no reply left out
    assert second.kwargs == first.kwargs == {"tools": [LOOK_UP]}


def test_a_model_that_calls_again_only_what_it_is_told_to_calls_nothing_again(way):
    def literal(messages):
        """Repeats its call if that is asked for without a condition."""
        *_, last = messages
        if last.type == "tool":
            return ""
        conditions = ("still needed", "do not repeat", "the answer to my request")
        return "It is 42." if all(words in last.content for words in conditions) else CALLING

    reply = ask(way, RetryingChatModel(ScriptedChatModel(literal)), CHAIN, tools=[LOOK_UP])
    assert reply.content == "It is 42."
    assert not reply.tool_calls


@pytest.mark.parametrize("results", [1, 2])
def test_on_the_wire_the_nudge_is_a_users_turn_after_the_tools(server, results):
    calls = [{"name": "look_up", "args": {"key": "a"}, "id": f"call-{n}"} for n in range(results)]
    given = [ToolMessage("42", tool_call_id=call["id"]) for call in calls]
    prompt = [HumanMessage("What is a?"), AIMessage("", tool_calls=calls), *given]
    server.play(Turn(), GOOD)
    model = RetryingChatModel(build({"class": "ChatOpenAI"}, server.url))
    assert model.bind_tools([LOOK_UP]).invoke(prompt).content == "Recovered."
    first, second = (request["json"] for request in server.requests)
    assert second["messages"] == [*first["messages"], {"role": "user", "content": OUTCOME}]
    roles = ["user", "assistant", *["tool"] * results, "user"]
    assert [message["role"] for message in second["messages"]] == roles
    assert [call["id"] for call in second["messages"][1]["tool_calls"]] == [
        call["id"] for call in calls
    ]
    assert {**second, "messages": 0} == {**first, "messages": 0}  # tools and all else as they were
    assert "tool_choice" not in second
