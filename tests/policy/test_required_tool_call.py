"""A forced tool call that is answered in prose, where the policy takes that for an empty reply."""

from __future__ import annotations

import pydantic
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.tools import StructuredTool

from conftest import ask, chunks_of, named
from langchain_retrying import (
    EmptyCompletionError,
    ReplyKind,
    RetryingChatModel,
    RetryPolicy,
)
from langchain_retrying._policy.tool_choice import forbids_tools, forced_tools, offered_tools
from langchain_retrying.testing import ScriptedChatModel
from wire.clients import build, lookup

REQUIRED = RetryPolicy(require_tool_call=True, wait=None, on_exhausted="raise")
CALLING = AIMessage(
    "", tool_calls=[{"name": "lookup", "args": {"key": "a"}, "id": "call-1", "type": "tool_call"}]
)
PIECES = [
    AIMessageChunk("", tool_call_chunks=[{"name": "lookup", "args": "", "id": "1", "index": 0}]),
    AIMessageChunk("", tool_call_chunks=[{"name": None, "args": "{}", "id": None, "index": 0}]),
]


class Answer(pydantic.BaseModel):
    """An answer."""

    text: str


def other(key: str) -> str:
    """Another tool."""
    return key


def forced(model, choice="any", policy=REQUIRED, tools=(lookup,)):
    return RetryingChatModel(model, policy).bind_tools(tools, tool_choice=choice)


def test_prose_is_rejected_and_the_tool_call_goes_out(way):
    model = ScriptedChatModel(["Let me see.", CALLING])
    reply = ask(way, forced(model))
    assert [call["name"] for call in reply.tool_calls] == ["lookup"]
    assert reply.content == ""
    (rejected,) = reply.response_metadata["empty_retry"]["rejected"]
    assert (rejected["kind"], rejected["saw_text"]) == ("malformed", True)
    nudge = model.requests[1].messages[-1].content
    assert nudge == "Hi\n\nCall lookup now, with what you know."


def test_a_model_that_never_complies_ends_in_an_error_that_names_the_tools(way):
    model = ScriptedChatModel(["Let me see."] * 3)
    with pytest.raises(EmptyCompletionError) as caught:
        ask(way, forced(model, tools=[lookup, other]))
    error = caught.value
    assert (error.kind, error.attempts) == (ReplyKind.MALFORMED, 3)
    assert error.expected_tools == ("lookup", "other")
    assert "no call of lookup or other; 3 attempt(s)" in str(error)
    assert "Hint: the model answered in text; check that it supports a forced" in str(error)
    assert "Let me see" not in str(error)


@pytest.mark.parametrize(
    "reply", [CALLING, AIMessage("Let me see.", tool_calls=CALLING.tool_calls)]
)
def test_a_model_that_complies_is_untouched(way, reply):
    bare = chunks_of(way, ScriptedChatModel([reply]))
    wrapped = chunks_of(way, forced(ScriptedChatModel([reply])))
    assert [chunk.model_dump(exclude={"id"}) for chunk in wrapped] == [
        chunk.model_dump(exclude={"id"}) for chunk in bare
    ]


def test_a_stream_is_held_until_the_tool_call(streaming_way):
    chunks = chunks_of(streaming_way, forced(ScriptedChatModel([["Let ", "me ", *PIECES]])))
    texts = [chunk.content for chunk in chunks if chunk.content]
    assert texts == ["Let ", "me "]


@pytest.mark.parametrize(
    "reply",
    [
        AIMessage("", additional_kwargs={"refusal": "I can't."}),
        AIMessage("", additional_kwargs={"parsed": {"text": "a"}}),
        AIMessage([{"type": "refusal", "refusal": "I can't."}]),
        AIMessage(
            "",
            invalid_tool_calls=[
                {"name": "f", "args": "{", "id": "1", "error": None, "type": "invalid_tool_call"}
            ],
        ),
    ],
    ids=["refusal", "parsed", "refusal block", "broken call"],
)
def test_what_is_more_than_text_is_an_answer(way, reply):
    model = ScriptedChatModel([reply])
    ask(way, forced(model))
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("", ReplyKind.BLANK),
        ("<think>Hm</think>", ReplyKind.BLANK),
        (AIMessage("Let", response_metadata={"finish_reason": "length"}), ReplyKind.TRUNCATED),
        (AIMessage("No", response_metadata={"finish_reason": "refusal"}), ReplyKind.BLOCKED),
    ],
)
def test_the_kind_is_that_of_the_finish_reason(way, reply, kind):
    policy = RetryPolicy(require_tool_call=True, max_retries=0, on_exhausted="raise")
    with pytest.raises(EmptyCompletionError) as caught:
        ask(way, forced(ScriptedChatModel([reply]), policy=policy))
    assert caught.value.kind is kind
    assert caught.value.expected_tools == ("lookup",)


def test_after_a_blank_the_nudge_names_the_tool():
    model = ScriptedChatModel(["", CALLING])
    forced(model).invoke("Hi")
    nudge = model.requests[1].messages[-1].content
    assert nudge == "Hi\n\nCall lookup now, with what you know."


@pytest.mark.parametrize(
    ("policy", "choice"), [(REQUIRED, "auto"), (REQUIRED, None), (RetryPolicy(), "any")]
)
def test_elsewhere_prose_is_an_answer(way, policy, choice):
    model = ScriptedChatModel(["Hello."])
    assert ask(way, forced(model, choice, policy)).content == "Hello."
    assert len(model.requests) == 1


def test_what_stays_prose_is_returned_if_the_policy_says_so(way):
    policy = RetryPolicy(require_tool_call=True, max_retries=1)
    reply = ask(way, forced(ScriptedChatModel(["One.", "Two."]), policy=policy))
    assert reply.content == "Two."


# Formats


NAMED = {"tools": [{"type": "function", "function": {"name": "a"}}, {"name": "b"}]}


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("any", ("a", "b")),
        ("required", ("a", "b")),
        ("REQUIRED", ("a", "b")),
        (True, ("a", "b")),
        ("a", ("a",)),
        (["a"], ("a",)),
        ("auto", ()),
        ("none", ()),
        ("NONE", ()),
        ("validated", ()),
        ({"mode": "VALIDATED"}, ()),
        ({}, ()),
        (None, ()),
        (False, ()),
        (3, ()),
        ({"type": "function", "function": {"name": "a"}}, ("a",)),
        ({"type": "function", "name": "a"}, ("a",)),
        ({"type": "any"}, ("a", "b")),
        ({"type": "auto"}, ()),
        ({"type": "tool", "name": "a"}, ("a",)),
        ({"type": "custom", "custom": {"name": "a"}}, ("a",)),
        ({"type": "function", "name": 3}, ()),
        ({"any": {}}, ("a", "b")),
        ({"auto": {}}, ()),
        ({"tool": {"name": "a"}}, ("a",)),
        ({"mode": "ANY"}, ("a", "b")),
        ({"mode": "AUTO", "allowed_function_names": ["a"]}, ()),
        ({"function_calling_config": {"mode": "ANY", "allowed_function_names": ["a"]}}, ("a",)),
        ({"type": "allowed_tools", "mode": "required", "tools": [{"name": "a"}]}, ("a", "b")),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required"}}, ("a", "b")),
    ],
    ids=named,
)
def test_which_tools_a_choice_forces(choice, names):
    assert forced_tools({**NAMED, "tool_choice": choice}) == names


def test_older_and_other_keys_force_too():
    assert forced_tools({"functions": [{"name": "a"}], "function_call": "any"}) == ("a",)
    assert forced_tools({"functions": [{"name": "a"}], "function_call": {"name": "a"}}) == ("a",)
    config = {"function_calling_config": {"mode": "ANY"}}
    assert forced_tools({**NAMED, "tool_config": config}) == ("a", "b")
    assert forced_tools({**NAMED, "tool_choice": "auto", "tool_config": config}) == ()
    assert forced_tools({**NAMED, "toolChoice": {"any": {}}}) == ("a", "b")
    assert forced_tools({"tool_choice": "any"}) == ()
    assert forced_tools({}) == ()


def test_tools_beside_those_that_run_at_bedrock_are_one_step_further_in():
    pytest.importorskip("langchain_aws")
    client = {"class": "ChatBedrockConverse", "kwargs": {"model": "amazon.nova-pro-v1:0"}}
    model = build(client, "http://127.0.0.1:9")
    bound = model.bind_tools([lookup, "nova_grounding"], tool_choice="any")
    if "toolConfig" not in bound.kwargs:
        pytest.skip("this version of langchain_aws has no such tools")
    assert offered_tools(bound.kwargs) == ("lookup",)
    assert forced_tools(bound.kwargs) == ("lookup",)
    assert offered_tools({"toolConfig": None}) == ()


def test_a_choice_that_is_an_object_of_gemini():
    types = pytest.importorskip("google.genai.types")
    calling = types.FunctionCallingConfig(mode="ANY", allowed_function_names=["a"])
    config = types.ToolConfig(function_calling_config=calling)
    assert forced_tools({**NAMED, "tool_config": config}) == ("a",)


@pytest.mark.parametrize(
    ("choice", "forbidden"),
    [
        ("none", True),
        ("NONE", True),
        ({"type": "none"}, True),
        ({"function_calling_config": {"mode": "NONE"}}, True),
        ("auto", False),
        ({"type": "auto"}, False),
        ({"type": None}, False),
        (None, False),
        ([], False),
        (True, False),
    ],
    ids=named,
)
def test_whether_a_choice_forbids_tools(choice, forbidden):
    assert forbids_tools({**NAMED, "tool_choice": choice}) is forbidden
    assert forbids_tools({**NAMED, "tool_config": choice}) is forbidden


def test_tools_in_an_iterator_are_left_for_the_model():
    tools = iter([{"name": "a"}])
    assert offered_tools({"tools": tools}) == ()
    assert next(tools) == {"name": "a"}


@pytest.mark.parametrize(
    ("tool", "names"),
    [
        ({"toolSpec": {"name": "a"}}, ("a",)),
        ({"function_declarations": [{"name": "a"}, {"name": "b"}]}, ("a", "b")),
        ({"functionDeclarations": [{"name": "a"}]}, ("a",)),
        ({"google_search": {}}, ()),
        ({"name": 3}, ()),
        ({"toolSpec": {}, "name": "a"}, ()),
        (Answer, ("Answer",)),
        (StructuredTool.from_function(lookup), ("lookup",)),
        (lookup, ("lookup",)),
        (object(), ()),
    ],
    ids=named,
)
def test_the_names_of_offered_tools(tool, names):
    assert offered_tools({"tools": [tool]}) == names


@pytest.mark.parametrize(
    "name",
    [
        "ChatOpenAI",
        "ChatAnthropic",
        "ChatGoogleGenerativeAI",
        "ChatMistralAI",
        "ChatBedrockConverse",
    ],
)
@pytest.mark.parametrize("choice", ["any", "lookup"])
def test_a_choice_in_the_format_of_a_real_integration_is_understood(name, choice):
    bound = build({"class": name}, "http://127.0.0.1:9").bind_tools([lookup, Answer])
    assert forced_tools(bound.kwargs) == ()
    assert offered_tools(bound.kwargs) == ("lookup", "Answer")
    bound = bound.bound.bind_tools([lookup, Answer], tool_choice=choice)
    assert forced_tools(bound.kwargs) == (("lookup", "Answer") if choice == "any" else ("lookup",))


def test_the_tools_and_the_choice_of_cohere_are_understood():
    model = build({"class": "ChatCohere"}, "http://127.0.0.1:9")
    bound = model.bind_tools([lookup, other], tool_choice="REQUIRED")
    assert forced_tools(bound.kwargs) == offered_tools(bound.kwargs) == ("lookup", "other")


def test_a_schema_for_structured_output_is_a_forced_tool(way):
    """`with_structured_output` by function calling: bare it gives None."""
    openai = build({"class": "ChatOpenAI"}, "http://127.0.0.1:9")

    class Prose(ScriptedChatModel):
        def bind_tools(self, tools, **kwargs):
            return self.bind(**openai.bind_tools(tools, **kwargs).kwargs)

    model = RetryingChatModel(Prose(["The answer is 42."] * 3), REQUIRED)
    with pytest.raises(EmptyCompletionError, match="no call of Answer; 3 attempt"):
        ask(way, model.with_structured_output(Answer))
