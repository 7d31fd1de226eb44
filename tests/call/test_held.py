"""What is held of a reply that may yet be empty: chunks and tokens, in order, up to a bound."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, ChatMessageChunk
from langchain_core.outputs import ChatGenerationChunk

from langchain_retrying import ReplyKind
from langchain_retrying._call.events import EventOpening
from langchain_retrying._call.held import HeldTokens, Opening, chunk_of
from langchain_retrying._call.run_managers import Token
from langchain_retrying._judge.reply import NOTHING

THINKING = [{"type": "thinking", "thinking": "Hm", "index": 0}]
USAGE = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}


def chunk(content: Any = "", info: Any = None, **fields: Any) -> ChatGenerationChunk:
    message = AIMessageChunk(content=content, **fields)
    return ChatGenerationChunk(message=message, generation_info=info)


def token() -> Token:
    return Token(print)


def opening(*held: Any, bound: int = 2**20) -> Opening:
    """An opening that holds what is given, none of which commits it."""
    gate = Opening(bound)
    for item in held:
        if isinstance(item, Token):
            assert gate.let_through(item, "") == ()
        else:
            assert not gate.add(item)
    return gate


def texts(gate: Opening) -> list[Any]:
    return [
        "token" if isinstance(item, Token) else item.message.content for item in gate.release(None)
    ]


@pytest.mark.parametrize(
    ("contents", "last"),
    [
        (["Hello"], True),
        ([" ", "Hello"], True),
        ([" ", "<think>", "Hello"], False),
        ([THINKING, "Hello"], True),
    ],
    ids=repr,
)
def test_the_first_chunk_of_an_answer_commits(contents, last):
    *before, chunk_ = map(chunk, contents)
    gate = opening(*before)
    assert gate.add(chunk_) is last
    assert gate.committed is last
    assert texts(gate) == contents
    assert gate.committed


@pytest.mark.parametrize(
    ("chunk_", "cost"),
    [
        (chunk(""), 1),
        (chunk("  "), 33),
        (chunk("<think>"), 8),
        (chunk("", additional_kwargs={"reasoning_content": "Hm"}), 3),
        (chunk("", {"logprobs": {"content": [{"token": "abc"}], "n": 3}}), 4),
        (chunk(THINKING), 1 + len("thinking") + len("Hm")),
    ],
    ids=["nothing", "white space", "text", "reasoning", "log probabilities", "blocks"],
)
def test_what_is_held_counts_up_to_the_bound(chunk_, cost):
    gate = opening(chunk_, chunk_, bound=2 * cost)
    assert gate.add(chunk_)
    assert not gate.committed
    assert Opening(cost - 1).add(chunk_)


@pytest.mark.parametrize(
    ("held", "goes_out"),
    [
        ([" "] * 64, [" "] * 64),
        ([" "] * (64 * 64 + 1), [" " * 64 * 64, " "]),
        ([" "] * (64 * 64 + 65), [" " * 64 * 64, " " * 64, " "]),
        ([" "] * 65, [" " * 64, " "]),
        ([" "] * 128, [" " * 64, *[" "] * 64]),
        ([" "] * 129, [" " * 64, " " * 64, " "]),
        ([*[" "] * 64, THINKING, *[" "] * 64], [*[" "] * 64, THINKING, *[" "] * 64]),
        ([*[" "] * 40, "token", *[" "] * 40], [*[" "] * 40, "token", *[" "] * 40]),
        (["token", *[" "] * 65], ["token", " " * 64, " "]),
        ([" ", "token", *[" "] * 65], [" ", "token", " " * 64, " "]),
    ],
    ids=[
        "64",
        "64 runs",
        "65 runs",
        "65",
        "128",
        "129",
        "text and blocks",
        "a token between",
        "first",
        "second",
    ],
)
def test_held_chunks_are_merged_in_runs_of_one_kind(held, goes_out):
    gate = opening(*(token() if item == "token" else chunk(item) for item in held))
    assert texts(gate) == goes_out


def test_events_are_held_one_by_one():
    delta = {"type": "reasoning-delta", "reasoning": "Hm"}
    events = [{"event": "content-block-delta", "index": 0, "delta": delta} for _ in range(70)]
    gate = EventOpening(2**20)
    assert not any(map(gate.add, events))
    assert list(gate.release(None)) == events


def test_an_opening_that_was_dropped_starts_anew():
    gate = opening(*map(chunk, [" "] * 40))
    gate.drop()
    assert gate.nothing_is_held
    for _ in range(65):
        gate.add(chunk(" "))
    assert texts(gate) == [" " * 64, " "]


def test_tokens_go_through_after_the_commit():
    gate = opening(chunk(" "))
    gate.add(chunk("a"))
    late = token()
    assert gate.let_through(late, "b") == (late,)
    assert texts(gate) == [" ", "a"]


@pytest.mark.parametrize(
    ("held", "kind"),
    [
        ([], ReplyKind.BLANK),
        ([chunk(" ")], ReplyKind.BLANK),
        ([chunk("", {"finish_reason": "length"})], ReplyKind.TRUNCATED),
        ([chunk("<")], ReplyKind.ANSWER),
        ([chunk("", response_metadata={"stop_reason": "pause_turn"})], ReplyKind.ANSWER),
    ],
    ids=["nothing", "blank", "truncated", "half a tag", "paused"],
)
def test_at_the_end_the_verdict_commits_an_answer(held, kind):
    gate = opening(*held)
    verdict = gate.end()
    assert verdict.kind is kind
    assert gate.committed is (kind is ReplyKind.ANSWER)
    assert (verdict == NOTHING) is (held == [])


def test_the_account_goes_out_with_the_first_chunk():
    first, last = token(), token()
    held = [first, chunk(" ", response_metadata={"a": 1}), chunk(" "), last]
    gate = opening(*held)
    items = list(gate.release({"attempts": 2}))
    assert (items[0], items[3]) == (first, last)
    assert items[1].message.response_metadata == {"a": 1, "empty_retry": {"attempts": 2}}
    assert items[2] is held[2]
    assert held[1].message.response_metadata == {"a": 1}
    assert list(gate.release({"attempts": 2})) == []


def test_without_an_account_chunks_go_out_as_they_came():
    held = [chunk(" "), chunk(" ")]
    assert all(out is came for out, came in zip(opening(*held).release(None), held, strict=True))


@pytest.mark.parametrize(
    ("held", "nothing_is_held"),
    [([], True), ([token()], True), ([chunk("")], False), ([token(), chunk("")], False)],
    ids=["nothing", "a token", "a chunk", "both"],
)
def test_a_token_is_no_chunk(held, nothing_is_held):
    gate = opening(*held)
    assert gate.nothing_is_held is nothing_is_held
    assert list(gate.release(None)) == held


def test_what_is_held_makes_one_message():
    gate = opening(
        chunk(" ", {"finish_reason": "stop", "a": 1}, id="msg-1"),
        token(),
        chunk("\n", response_metadata={"finish_reason": "eos"}, usage_metadata=USAGE),
    )
    message = gate.message()
    assert type(message) is AIMessage
    assert (message.content, message.id, message.usage_metadata) == (" \n", "msg-1", USAGE)
    assert message.response_metadata == {"finish_reason": "eos", "a": 1}
    assert opening(token()).message() == AIMessage("")
    assert opening(chunk(" ")).message().content == " "


def test_a_message_of_another_class_is_made_an_ai_message():
    other = ChatMessageChunk(content=" ", role="model", response_metadata={"a": 1})
    gate = opening(ChatGenerationChunk(message=other, generation_info={"a": 2, "b": 3}))
    assert gate.message() == AIMessage(" ", response_metadata={"a": 1, "b": 3})


@pytest.mark.parametrize("wrap", [chunk, lambda text: text], ids=["chunks", "text"])
def test_tokens_are_held_until_what_they_say_shows_an_answer(wrap):
    gate = HeldTokens()
    blank, first, next_ = token(), token(), token()
    assert list(gate.let_through(blank, wrap(" "))) == []
    assert not gate.committed
    assert list(gate.let_through(first, wrap("a"))) == [blank, first]
    assert gate.committed
    assert list(gate.let_through(next_, wrap("</think>"))) == [next_]
    assert list(gate.release()) == []


def test_tokens_that_say_blanks_together_are_held_together():
    gate = HeldTokens()
    assert [list(gate.let_through(token(), said)) for said in ("<think>", "a")] == [[], []]
    held = token()
    gate.drop()
    assert list(gate.let_through(held, " ")) == []
    assert list(gate.release()) == [held]
    assert gate.committed


def test_a_whole_message_as_a_chunk():
    good = {"name": "f", "args": {"day": date(2026, 1, 1)}, "id": "1", "type": "tool_call"}
    bad = {"name": "g", "args": "{", "id": "2", "error": "cut", "type": "invalid_tool_call"}
    message = AIMessage(
        "Hello",
        tool_calls=[good],
        invalid_tool_calls=[bad, {**bad, "id": "3"}],
        additional_kwargs={"a": 1},
        response_metadata={"b": 2},
        id="msg-1",
        name="me",
        usage_metadata=USAGE,
    )
    made = chunk_of(message).message
    for field in ("content", "additional_kwargs", "response_metadata", "id", "name"):
        assert getattr(made, field) == getattr(message, field)
    assert made.usage_metadata == USAGE
    kind = {"type": "tool_call_chunk"}
    assert made.tool_call_chunks == [
        {"name": "f", "args": '{"day": "2026-01-01"}', "id": "1", "index": 0, **kind},
        {"name": "g", "args": "{", "id": "2", "index": 1, **kind},
        {"name": "g", "args": "{", "id": "3", "index": 2, **kind},
    ]
    assert chunk_of(made).message is made
