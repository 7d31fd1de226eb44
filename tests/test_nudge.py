"""What a retry sends: the original messages and one nudge."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage

from conftest import ask
from langchain_retrying import (
    DEFAULT_NUDGE,
    EmptyCompletionError,
    Nudge,
    ReplyKind,
    RetryingChatModel,
    RetryPolicy,
)
from langchain_retrying.errors import RejectedAttempt
from langchain_retrying.remedies import Request
from langchain_retrying.testing import ScriptedChatModel

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
    nudges = {sent(way, reply, "Hello.")[1][-1].content for reply in ("", reasoning, malformed)}
    assert len(nudges) == 3


def test_the_wording_speaks_of_tool_calls_only_if_tools_are_bound(way):
    without = sent(way, "", "Hello.")[1][-1].content
    with_tools = sent(way, "", "Hello.", tools=[{"type": "function"}])[1][-1].content
    assert "tool" not in without
    assert "tool call" in with_tools
    assert "in one sentence" in with_tools


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
    with pytest.raises(TypeError, match=r"^nudge must return a text, a message or None, not 5$"):
        sent(way, "", policy=RetryPolicy(nudge=lambda messages, error: 5))


def test_the_first_retry_may_be_silent(way):
    def after_the_first(messages, error):
        return "Go on." if error.attempts > 1 else None

    _, second, third = sent(way, "", "", "Hello.", policy=RetryPolicy(nudge=after_the_first))
    assert second == PROMPT
    assert third == [*PROMPT[:-1], HumanMessage("Hi\n\nGo on.")]


EMPTY = "Your last reply was empty."
REASONING = "Your last reply held reasoning only, so nothing of it could be used."
LOST = "Your last reply was lost because its tool call was malformed."
WITH_TOOLS = (
    "Reply in plain text now, or make a tool call that is still needed. If the work is done, "
    "say so in one sentence; do not repeat a tool call you have made."
)


@pytest.mark.parametrize(
    ("kinds", "saw_reasoning", "happened"),
    [
        ([ReplyKind.BLANK], False, EMPTY),
        ([ReplyKind.BLANK], True, REASONING),
        ([ReplyKind.MALFORMED], True, LOST),
        ([ReplyKind.MALFORMED, ReplyKind.BLANK], False, EMPTY),
        ([ReplyKind.BLANK, ReplyKind.MALFORMED], False, LOST),
    ],
)
@pytest.mark.parametrize(
    ("kwargs", "what_next"),
    [
        (
            {},
            "Reply in plain text now. If there is nothing to add, say so in one sentence.",
        ),
        ({"tools": [], "functions": None}, "Reply in plain text now. If there is nothing"),
        ({"tools": [{"name": "f"}]}, WITH_TOOLS),
        ({"functions": [{"name": "f"}]}, WITH_TOOLS),
    ],
    ids=["no tools", "none of them", "tools", "functions"],
)
def test_the_default_wording(kinds, saw_reasoning, happened, kwargs, what_next):
    error = EmptyCompletionError(
        [RejectedAttempt(kind, None, 0.0, 0, 0, saw_reasoning) for kind in kinds],
        elapsed_seconds=0.0,
        last_message=AIMessage(""),
    )
    nudged = DEFAULT_NUDGE(Request(PROMPT, kwargs, MODEL), error)
    assert nudged.messages[:-1] == PROMPT[:-1]
    again = " Nothing usable has come 2 times now." if len(kinds) > 1 else ""
    assert nudged.messages[-1].content.startswith(f"Hi\n\n{happened}{again} {what_next}")
    assert nudged.kwargs is kwargs


def test_what_is_no_message_is_shown_cut():
    nudge = Nudge(lambda messages, error: ["x" * 99])
    with pytest.raises(TypeError, match=r"or None, not \['x{38}$"):
        nudge(Request(PROMPT, {}, MODEL), None)
