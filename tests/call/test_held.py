"""What is held of a reply that may yet be empty: chunks and tokens, in order, up to a bound."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, ChatMessageChunk
from langchain_core.outputs import ChatGenerationChunk

from langchain_retrying import ReplyKind, RetryPolicy
from langchain_retrying._call.chunks import chunk_of
from langchain_retrying._call.events import EventReply
from langchain_retrying._call.replies import StreamedReply, WholeReply
from langchain_retrying._call.run_managers import Token
from langchain_retrying._judge.kinds import NOTHING

THINKING = [{"type": "thinking", "thinking": "Hm", "index": 0}]
USAGE = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}


def chunk(content: Any = "", info: Any = None, **fields: Any) -> ChatGenerationChunk:
    message = AIMessageChunk(content=content, **fields)
    return ChatGenerationChunk(message=message, generation_info=info)


def token(*said: Any) -> Token:
    return Token(print, *said)


def streamed(*held: Any, bound: int = 2**20) -> StreamedReply:
    """A reply of which is held what is given, none of which shows an answer."""
    reply = StreamedReply(RetryPolicy(max_held_bytes=bound), text_counts=True)
    for item in held:
        if isinstance(item, Token):
            assert reply.hold_token(item) == ()
        else:
            assert not reply.add(item)
    return reply


def texts(reply: StreamedReply) -> list[Any]:
    return [
        "token" if isinstance(item, Token) else item.message.content
        for item in reply.as_it_came(None)
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
    reply = streamed(*before)
    assert reply.add(chunk_) is last
    assert reply.is_shown is last
    assert texts(reply) == contents


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
    reply = streamed(chunk_, chunk_, bound=2 * cost)
    assert reply.add(chunk_)
    assert not reply.is_shown
    assert cost == 1 or streamed(bound=cost - 1).add(chunk_)


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
    reply = streamed(*(token() if item == "token" else chunk(item) for item in held))
    assert texts(reply) == goes_out


def test_events_are_held_one_by_one():
    delta = {"type": "reasoning-delta", "reasoning": "Hm"}
    events = [{"event": "content-block-delta", "index": 0, "delta": delta} for _ in range(70)]
    reply = EventReply(RetryPolicy(), text_counts=True)
    assert not any(map(reply.add, events))
    assert list(reply.as_it_came(None)) == events


def test_tokens_go_through_after_the_commit():
    reply = streamed(chunk(" "))
    reply.add(chunk("a"))
    late = token()
    assert reply.hold_token(late) == (late,)
    assert texts(reply) == [" ", "a"]


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
    reply = streamed(*held)
    verdict = reply.verdict()
    assert verdict.kind is kind
    assert reply.is_shown is (kind is ReplyKind.ANSWER)
    assert (verdict == NOTHING) is (held == [])


def test_the_account_goes_out_with_the_first_chunk():
    first, last = token(), token()
    held = [first, chunk(" ", response_metadata={"a": 1}), chunk(" "), last]
    reply = streamed(*held)
    items = list(reply.as_it_came({"attempts": 2}))
    assert (items[0], items[3]) == (first, last)
    assert items[1].message.response_metadata == {"a": 1, "empty_retry": {"attempts": 2}}
    assert items[2] is held[2]
    assert held[1].message.response_metadata == {"a": 1}
    assert list(reply.as_it_came(None)) == []


def test_without_an_account_chunks_go_out_as_they_came():
    held = [chunk(" "), chunk(" ")]
    assert all(
        out is came for out, came in zip(streamed(*held).as_it_came(None), held, strict=True)
    )


@pytest.mark.parametrize(
    ("held", "nothing_is_held"),
    [([], True), ([token()], True), ([chunk("")], False), ([token(), chunk("")], False)],
    ids=["nothing", "a token", "a chunk", "both"],
)
def test_a_token_is_no_chunk(held, nothing_is_held):
    reply = streamed(*held)
    assert (reply.message() is None) is nothing_is_held
    assert list(reply.as_it_came(None)) == held


def test_what_is_held_makes_one_message():
    reply = streamed(
        chunk(" ", {"finish_reason": "stop", "a": 1}, id="msg-1"),
        token(),
        chunk("\n", response_metadata={"finish_reason": "eos"}, usage_metadata=USAGE),
    )
    message = reply.message()
    assert type(message) is AIMessage
    assert (message.content, message.id, message.usage_metadata) == (" \n", "msg-1", USAGE)
    assert message.response_metadata == {"finish_reason": "eos", "a": 1}
    assert streamed(token()).message() is None
    assert streamed(chunk(" ")).message().content == " "


def test_a_message_of_another_class_is_made_an_ai_message():
    other = ChatMessageChunk(content=" ", role="model", response_metadata={"a": 1})
    reply = streamed(ChatGenerationChunk(message=other, generation_info={"a": 2, "b": 3}))
    assert reply.message() == AIMessage(" ", response_metadata={"a": 1, "b": 3})


@pytest.mark.parametrize("wrap", [chunk, lambda text: text], ids=["chunks", "text"])
def test_tokens_are_held_until_what_they_say_shows_an_answer(wrap):
    reply = WholeReply(RetryPolicy(), text_counts=True)
    blank, first, next_ = (token(wrap(text)) for text in (" ", "a", "</think>"))
    assert list(reply.hold_token(blank)) == []
    assert not reply.is_shown
    assert list(reply.hold_token(first)) == [blank, first]
    assert reply.is_shown
    assert list(reply.hold_token(next_)) == [next_]
    assert list(reply.as_it_came(None)) == [reply.result]


def test_tokens_that_say_blanks_together_are_held_together():
    reply = WholeReply(RetryPolicy(), text_counts=True)
    held = [token(said) for said in ("<think>", "a")]
    assert [list(reply.hold_token(one)) for one in held] == [[], []]
    assert list(reply.as_it_came(None)) == [*held, reply.result]


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
