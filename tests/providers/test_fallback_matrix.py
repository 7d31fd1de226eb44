"""Every integration with every other as its `FallbackModel`, over the wire."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import LLMResult

from conftest import ask
from langchain_retrying import FallbackModel, ReplyKind, RetryingChatModel, RetryPolicy
from langchain_retrying.testing import ScriptedChatModel
from wire.asked import read
from wire.clients import build, lookup
from wire.server import WireServer
from wire.turns import BLANK, GOOD, Turn


class Kind(NamedTuple):
    """An integration, and the API that it speaks."""

    api: str
    client: dict[str, Any]
    choices: dict[str, Any]
    """How a forced choice reads on the wire: of any tool, of `lookup`."""


def _kind(api: str, name: str, forced: Any = None, by_name: Any = None, **kwargs: Any) -> Kind:
    choices = {"any": forced, "lookup": by_name}
    return Kind(api, {"class": name, "kwargs": kwargs}, choices)


_BY_NAME = {"type": "function", "function": {"name": "lookup"}}
_CLAUDE = "anthropic.claude-3-5-sonnet-20240620-v1:0"
KINDS = {
    "chat": _kind("openai-chat", "ChatOpenAI", "required", _BY_NAME),
    "responses": _kind(
        "openai-responses",
        "ChatOpenAI",
        "required",
        {"type": "function", "name": "lookup"},
        use_responses_api=True,
    ),
    "anthropic": _kind(
        "anthropic-messages", "ChatAnthropic", {"type": "any"}, {"type": "tool", "name": "lookup"}
    ),
    "gemini": _kind(
        "gemini",
        "ChatGoogleGenerativeAI",
        {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["lookup", "other"]}},
        {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["lookup"]}},
    ),
    "mistral": _kind("openai-chat", "ChatMistralAI", "any", _BY_NAME),
    "ollama": _kind("ollama", "ChatOllama"),  # can't force
    # Its streaming is known only of some models.
    "bedrock": _kind(
        "bedrock-converse",
        "ChatBedrockConverse",
        {"any": {}},
        {"tool": {"name": "lookup"}},
        model=_CLAUDE,
    ),
    "cohere": _kind("other", "ChatCohere"),
}
PAIRS = [(first, other) for first in KINDS for other in KINDS]
# They are compared from different places in a script, so they have ids of their own.
WHAT = {
    "call": Turn(calls=(("lookup", {"key": "a"}),), number=1),
    "text": replace(GOOD, number=1),
}
TOTAL = sum(GOOD.tokens)
pairs = pytest.mark.parametrize(("first", "other"), PAIRS, ids=lambda name: name)


def other(key: str) -> str:
    """Another tool."""
    return key


@cache
def _model(name: str, url: str) -> BaseChatModel:
    return build(KINDS[name].client, url)


@cache
def _fallback(name: str, url: str) -> BaseChatModel:
    """An instance of its own, even where the first model is of the same kind."""
    return build(KINDS[name].client, url).model_copy()


def falling_back(first: str, other: str, url: str) -> RetryingChatModel:
    remedies = {ReplyKind.BLANK: [FallbackModel(_fallback(other, url))]}
    policy = RetryPolicy(max_retries=1, wait=None, remedies=remedies)
    return RetryingChatModel(_model(first, url), policy)


def with_tools(name: str, model: Any, choice: str | None) -> Any:
    """The model with two tools, forced or not, in the words of its integration."""
    if choice is None:
        return model.bind_tools([lookup, other])
    if name == "cohere":  # which can't force one of several
        choice = "REQUIRED"
    return model.bind_tools([lookup, other], tool_choice=choice)


_histories: dict[str, list[Any]] = {}
_bare: dict[tuple[str, str, str], Any] = {}


def history(name: str, server: WireServer) -> list[Any]:
    """A call of a tool in the integration's own words, and what the tool has said."""
    if name not in _histories:
        server.play(WHAT["call"])
        message = with_tools(name, _model(name, server.url), None).invoke("Hi")
        (one,) = message.tool_calls
        result = ToolMessage("the result", tool_call_id=one["id"])
        _histories[name] = [HumanMessage("Hi"), message, result]
    return _histories[name]


def told(message: AIMessage) -> dict[str, Any]:
    """What a reply says, but for what differs from call to call."""
    left_out = ("empty_retry", "token_usage", "model_name", "ResponseMetadata", "metrics")
    return {
        "content": message.content,
        "calls": [(call["name"], call["args"]) for call in message.tool_calls],
        "usage": message.usage_metadata,
        "metadata": {
            key: value for key, value in message.response_metadata.items() if key not in left_out
        },
    }


def bare(name: str, way: str, what: str, server: WireServer) -> dict[str, Any]:
    """What the fallback says when it is asked by itself."""
    key = name, way, what
    if key not in _bare:
        server.play(WHAT[what])
        _bare[key] = told(ask(way, with_tools(name, _fallback(name, server.url), None)))
    return _bare[key]


@pytest.mark.parametrize(
    "how",
    [
        ("invoke", "call", "any"),
        ("ainvoke", "call", "lookup"),
        ("stream", "call", "lookup"),
        ("astream", "call", None),
        ("stream", "text", None),
    ],
    ids=lambda how: f"{how[0]}-{how[1]}-{how[2]}",
)
@pairs
def test_the_reply_is_the_others_own(server, first, other, how):
    """Whole and streamed, with its usage and metadata; and it is asked in its own words."""
    way, what, choice = how
    expected = bare(other, way, what, server)
    messages = history(first, server)
    server.play(BLANK, WHAT[what])
    model = with_tools(first, falling_back(first, other, server.url), choice)
    message = ask(way, model, messages)
    assert told(message) == expected
    assert message.response_metadata["empty_retry"]["attempts"] == 2
    asked = read(KINDS[other].api, server.requests[1]["json"])
    assert asked.tools == ["lookup", "other"]
    assert asked.choice in ((None, "auto") if choice is None else (forced(first, other, choice),))
    assert asked.called == asked.answered
    assert len(asked.called) == 1


def forced(first: str, other: str, choice: str) -> Any:
    """How what was forced of the first is forced of the other."""
    if first == "ollama":  # where the choice is dropped when it is bound
        return None
    if first == "cohere":
        return "REQUIRED" if other == "cohere" else KINDS[other].choices["any"]
    return KINDS[other].choices[choice]


class UsageReader(BaseCallbackHandler):
    """Reads `llm_output` as code written for OpenAI and Mistral does."""

    raise_error = True

    def __init__(self):
        self.total = 0

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        self.total += response.llm_output["token_usage"]["total_tokens"]


@pairs
def test_several_prompts_of_which_one_falls_back(server, first, other):
    """What the first model combines is all in its own words."""
    server.play(GOOD, BLANK, GOOD)
    reader = UsageReader()
    is_read = first in ("chat", "mistral")
    model = falling_back(first, other, server.url)
    prompts = [[HumanMessage("Hi")]] * 3
    result = model.generate(prompts, callbacks=[reader] if is_read else [])
    assert all("Recovered." in str(one[0].message.content) for one in result.generations)
    if is_read:
        assert reader.total == 3 * TOTAL
        assert result.llm_output["token_usage"]["total_tokens"] == reader.total


@pytest.mark.parametrize("other", KINDS)
@pytest.mark.parametrize("first", ["chat", "mistral"])
async def test_several_prompts_at_once_that_all_fall_back(server, first, other):
    server.play(BLANK, GOOD)
    model, reader = falling_back(first, other, server.url), UsageReader()
    for _ in range(2):
        server.play(BLANK, GOOD)
        result = await model.agenerate([[HumanMessage("Hi")]], callbacks=[reader])
        assert result.llm_output["token_usage"]["total_tokens"] == TOTAL
    assert reader.total == 2 * TOTAL


def test_a_batch_of_which_one_falls_back(server):
    server.play(GOOD, BLANK, GOOD)
    model = falling_back("mistral", "chat", server.url)
    replies = model.batch(["Hi"] * 2, config={"max_concurrency": 1})
    assert [reply.content for reply in replies] == ["Recovered."] * 2


# What has been said before


TURNS = {
    "responses": [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}]},
        {"type": "text", "text": "Let me see.", "annotations": [], "id": "msg_1"},
        {"type": "function_call", "name": "lookup", "arguments": "{}", "call_id": "1", "id": "fc"},
    ],
    "anthropic": [
        {"type": "thinking", "thinking": "Hm", "signature": "c2ln"},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "Hm"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "text", "text": "Let me ", "citations": []},
        {"type": "text", "text": None},
        {"type": "text", "text": "see."},
        {"type": "tool_use", "id": "1", "name": "lookup", "input": {}},
    ],
    "gemini": ["Let me see.", {"type": "thinking", "thinking": "Hm"}],
    "mistral": [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]},
        {"type": "text", "text": "Let me see."},
    ],
    "bedrock": [
        {"type": "reasoning_content", "reasoning_content": {"text": "Hm", "signature": "c2ln"}},
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "1", "name": "lookup", "input": {}},
    ],
    "v1": [
        {"type": "reasoning", "reasoning": "Hm"},
        {"type": "text", "text": "Let me see."},
        {"type": "tool_call", "id": "1", "name": "lookup", "args": {}},
    ],
}


@pytest.mark.parametrize("other", KINDS)
@pytest.mark.parametrize("maker", TURNS)
def test_turns_in_anothers_format_are_retold(server, maker, other):
    """Bare, several raise at them, or send on what is refused, or lose the text."""
    turn = AIMessage(
        TURNS[maker],
        tool_calls=[{"name": "lookup", "args": {}, "id": "call12345", "type": "tool_call"}],
        response_metadata={"output_version": maker, "model_provider": maker},
    )
    messages = [HumanMessage("Hi"), turn, ToolMessage("done", tool_call_id="call12345")]
    before = turn.model_copy(deep=True)
    server.play(GOOD)
    remedies = {ReplyKind.BLANK: [FallbackModel(_fallback(other, server.url))]}
    policy = RetryPolicy(wait=None, remedies=remedies)
    model = RetryingChatModel(ScriptedChatModel([""]), policy).bind_tools([lookup])
    assert "Recovered." in str(model.invoke(messages).content)
    (request,) = server.requests
    asked = read(KINDS[other].api, request["json"])
    assert asked.called == asked.answered == [asked.called[0]]
    if other != "mistral":  # its integration sends no text with tool calls
        assert "Let me see." in str(request["json"])
    assert "Hm" not in str(request["json"])
    assert turn == before


# Events


@pytest.mark.parametrize(("first", "other"), [("chat", "anthropic"), ("anthropic", "chat")])
async def test_events_are_those_of_who_has_answered(server, first, other):
    server.play(BLANK, WHAT["text"])
    model = falling_back(first, other, server.url)
    events = [event async for event in model.astream_events("Hi", version="v2")]
    names = {event["name"] for event in events}
    assert names == {KINDS[first].client["class"]}
    assert [event["event"] for event in events if event["event"] != "on_chat_model_stream"] == [
        "on_chat_model_start",
        "on_chat_model_end",
    ]
    chunks = [event["data"]["chunk"] for event in events if "chunk" in event["data"]]
    total = chunks[0]
    for chunk in chunks[1:]:
        total += chunk
    output = events[-1]["data"]["output"]
    assert told(output) == told(total) == bare_text(other, server)


@pytest.mark.filterwarnings("ignore:.*is in beta")
@pytest.mark.parametrize(("first", "other"), [("chat", "anthropic"), ("anthropic", "chat")])
async def test_native_events_are_those_of_who_has_answered(server, first, other):
    pytest.importorskip("langchain_core.language_models._compat_bridge")
    model = falling_back(first, other, server.url)
    server.play(BLANK, GOOD)
    assert model.stream_events("Hi", version="v3").output.text == "Recovered."
    server.play(BLANK, GOOD)
    stream = await model.astream_events("Hi", version="v3")
    assert (await stream.output).text == "Recovered."
    assert len(server.requests) == 2


def bare_text(name: str, server: WireServer) -> dict[str, Any]:
    server.play(WHAT["text"])
    return told(ask("stream", _fallback(name, server.url)))
