"""`reject`, `hold_tool_calls` and `leaked_tool_calls`: what is held in doubt, and until when."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk

from conftest import WAYS, ask, chunks_of
from langchain_retrying import EmptyCompletionError, RetryingChatModel, RetryPolicy
from langchain_retrying.testing import ScriptedChatModel

PLACEHOLDER = "(no content)"


def says_nothing(messages, reply):
    return str(reply.content).strip() == PLACEHOLDER


REJECTING = RetryPolicy(reject=says_nothing, wait=None)


def words(*texts):
    return [AIMessageChunk(text) for text in texts]


def wrapped(script, policy=REJECTING):
    return RetryingChatModel(ScriptedChatModel(script), policy)


# reject


def test_what_the_policy_rejects_is_a_blank(way):
    reply = ask(way, wrapped([words("(no ", "content)"), "Hello."]))
    assert reply.content == "Hello."
    (rejected,) = reply.response_metadata["empty_retry"]["rejected"]
    assert (rejected["kind"], rejected["saw_text"]) == ("blank", True)


def test_it_is_asked_with_the_messages_and_the_whole_reply(way):
    asked = []

    def reject(messages, reply):
        asked.append((messages[0].content, type(reply), reply.content))
        return False

    policy = RetryPolicy(reject=reject)
    assert ask(way, wrapped([words("Hello", " you.")], policy), "Hi").content == "Hello you."
    assert asked == [("Hi", AIMessage, "Hello you.")]


def test_what_is_rejected_to_the_end_goes_out_as_it_came(way):
    reply = ask(way, wrapped([PLACEHOLDER] * 3))
    assert reply.content == PLACEHOLDER
    assert reply.response_metadata["empty_retry"]["attempts"] == 3


def test_or_is_raised(way):
    policy = RetryPolicy(max_retries=0, reject=says_nothing, on_exhausted="raise")
    with pytest.raises(EmptyCompletionError, match="allow more retries or another nudge"):
        ask(way, wrapped([PLACEHOLDER], policy))


def test_a_longer_text_flows_and_is_not_asked_about(streaming_way):
    policy = RetryPolicy(reject=lambda messages, reply: True, reject_within=5)
    chunks = chunks_of(streaming_way, wrapped([words("12", "345", "6", "7")], policy))
    texts = [chunk.content for chunk in chunks if chunk.content]
    assert texts == ["12", "345", "6", "7"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "reply",
    [
        AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}]),
        AIMessage([{"type": "image", "base64": "AAAA"}]),
        AIMessage("12345678901"),
    ],
    ids=["a tool call", "an image", "a long text"],
)
def test_not_about_other_answers(way, reply):
    policy = RetryPolicy(reject=lambda messages, reply: True, reject_within=10)
    model = wrapped([reply], policy)
    assert ask(way, model).content == reply.content
    assert len(model.requests) == 1


def test_what_it_returns_is_checked(way):
    class Later:
        def __await__(self):
            yield

    policy = RetryPolicy(reject=lambda messages, reply: Later())
    with pytest.raises(TypeError, match="reject must not be async, but has returned Later"):
        ask(way, wrapped(["Hello."], policy))


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"reject": "no"}, TypeError, "reject must be a callable"),
        ({"reject_within": 0}, ValueError, "reject_within must be at least 1"),
        ({"hold_tool_calls": 1}, TypeError, "hold_tool_calls must be True or False"),
        ({"leaked_tool_calls": None}, TypeError, "leaked_tool_calls must be True or False"),
    ],
)
def test_bad_arguments_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        RetryPolicy(**arguments)


# What is held in doubt ends at the bounds, and is let out there


def test_a_text_in_doubt_is_not_cut_at_the_bound_in_bytes(streaming_way):
    policy = RetryPolicy(reject=says_nothing, max_held_bytes=8)
    chunks = chunks_of(streaming_way, wrapped([words("1234", "5678", "9", "0")], policy))
    assert "".join(chunk.content for chunk in chunks) == "1234567890"
    assert all("empty_retry" not in chunk.response_metadata for chunk in chunks)


def test_nor_at_the_bound_in_seconds(streaming_way, slept):
    class Slow(ScriptedChatModel):
        def _stream(self, *args, **kwargs):
            for chunk in super()._stream(*args, **kwargs):
                slept.advance(2)
                yield chunk

        async def _astream(self, *args, **kwargs):
            for chunk in super()._stream(*args, **kwargs):
                slept.advance(2)
                yield chunk

    policy = RetryPolicy(reject=says_nothing, max_held_seconds=3)
    model = RetryingChatModel(Slow([words("1", "2", "3", "4")]), policy)
    pieces = []
    for chunk in chunks_of(streaming_way, model):
        pieces.append(chunk.content)
    assert "".join(pieces) == "1234"
    assert len(model.requests) == 1


def call_chunk(args, index=0, name=None):
    chunk = {"name": name, "args": args, "id": name and f"call-{index}", "index": index}
    return AIMessageChunk("", tool_call_chunks=[{**chunk, "type": "tool_call_chunk"}])


def test_a_call_in_doubt_is_not_cut_either(streaming_way):
    script = [
        [call_chunk("", name="f"), *(call_chunk(piece) for piece in ('{"a": "', "b" * 9, '"}'))]
    ]
    policy = RetryPolicy(hold_tool_calls=True, max_held_bytes=1)
    model = wrapped(script, policy)
    first, *rest = chunks_of(streaming_way, model)
    assert (first + rest).tool_calls[0]["args"] == {"a": "b" * 9}
    assert len(model.requests) == 1


@pytest.mark.parametrize("pieces", [["{"], ["[1]"], ['{"a": 1', "}}"], ["nothing"]], ids=repr)
def test_calls_that_do_not_parse_as_they_came_are_malformed(streaming_way, pieces):
    broken = [call_chunk("", name="f"), *map(call_chunk, pieces)]
    model = wrapped([broken, "Hello."], RetryPolicy(hold_tool_calls=True, wait=None))
    reply = ask(streaming_way, model)
    assert reply.content == "Hello."
    assert reply.response_metadata["empty_retry"]["rejected"][0]["kind"] == "malformed"


def test_one_that_does_not_parse_beside_one_that_does_would_be_called_with_what_was_cut(
    streaming_way,
):
    cut = [
        call_chunk('{"a": 1}', name="f"),
        call_chunk('{"a": 1', 1, name="g"),
        AIMessageChunk("", response_metadata={"finish_reason": "length"}),
    ]
    model = wrapped([cut], RetryPolicy(hold_tool_calls=True))
    reply = ask(streaming_way, model)
    kind = reply.response_metadata.get("empty_retry")
    assert kind is None  # truncated, which is not retried by default
    assert len(model.requests) == 1


@pytest.mark.parametrize("pieces", [["{}"], [""], ['{"a":', ' "b\n"}']], ids=repr)
def test_calls_that_parse_go_out_chunk_for_chunk(streaming_way, pieces):
    good = [call_chunk("", name="f"), *map(call_chunk, pieces)]
    model = wrapped([good], RetryPolicy(hold_tool_calls=True))
    chunks = chunks_of(streaming_way, model)
    args = [part["args"] for chunk in chunks for part in chunk.tool_call_chunks]
    assert args == ["", *pieces]
    assert len(model.requests) == 1


def test_without_doubts_calls_flow_as_they_come(streaming_way):
    broken = [call_chunk("", name="f"), call_chunk("nothing")]
    model = wrapped([broken], RetryPolicy())
    assert len(chunks_of(streaming_way, model)) >= 2
    assert len(model.requests) == 1


# Leaked calls, in streams

LEAK = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
LEAKED = RetryPolicy(leaked_tool_calls=True, wait=None)


def with_tool(script, policy=LEAKED, **choice):
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    return RetryingChatModel(ScriptedChatModel(script), policy).bind_tools([tool], **choice)


@pytest.mark.parametrize("cut", [1, 5, 11, 30, len(LEAK)])
@pytest.mark.parametrize("before", ["", "\n", "<think>I need f.</think>\n"])
def test_a_leaked_call_is_malformed(way, cut, before):
    text = before + LEAK
    pieces = [text[i : i + cut] for i in range(0, len(text), cut)]
    reply = ask(way, with_tool([words(*pieces), "Hello."]))
    assert reply.content == "Hello."
    (rejected,) = reply.response_metadata["empty_retry"]["rejected"]
    assert (rejected["kind"], rejected["saw_leaked_call"]) == ("malformed", True)


def test_its_nudge_is_its_own_and_so_is_the_hint(way):
    policy = RetryPolicy(1, leaked_tool_calls=True, wait=None, on_exhausted="raise")
    model = with_tool([LEAK] * 2, policy)
    with pytest.raises(EmptyCompletionError, match="set its tool call parser"):
        ask(way, model)
    (asked,) = model.bound.inner_model.requests[1].messages
    assert asked.content.endswith("Make the tool call again, as a tool call and not as text.")


@pytest.mark.parametrize(
    ("policy", "choice"),
    [(RetryPolicy(), {}), (LEAKED, {"tool_choice": "none"})],
    ids=["off", "no tool may be called"],
)
def test_elsewhere_it_is_an_answer(way, policy, choice):
    assert ask(way, with_tool([words(LEAK)], policy, **choice)).content == LEAK


def test_without_tools_too(way):
    assert ask(way, wrapped([words(LEAK)], LEAKED)).content == LEAK


def test_after_prose_that_has_been_seen_it_stays(streaming_way):
    pieces = ["Let me see. ", LEAK]
    assert ask(streaming_way, with_tool([words(*pieces)])).content == "".join(pieces)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_after_prose_of_a_whole_reply_it_is_seen(way):
    assert ask(way, with_tool([f"Let me see. {LEAK}", "Hello."])).content == "Hello."


def test_prose_flows_at_once(streaming_way):
    texts = ["It", " is", " so."]
    chunks = chunks_of(streaming_way, with_tool([words(*texts)]))
    assert [chunk.content for chunk in chunks if chunk.content] == texts
