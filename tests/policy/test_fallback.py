"""`FallbackModel`: another model answers, with the tools bound to it anew, however it streams."""

from __future__ import annotations

import pickle

import pytest
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.rate_limiters import InMemoryRateLimiter
from langchain_core.runnables import RunnableBinding, RunnableLambda

from conftest import ask, chunks_of, named
from langchain_retrying import (
    EmptyCompletionError,
    FallbackModel,
    Nudge,
    ReplyKind,
    RetryingChatModel,
    RetryPolicy,
    WithParams,
)
from langchain_retrying._policy.remedies import Request
from langchain_retrying.testing import ScriptedChatModel
from wire.clients import build, lookup
from wire.turns import BLANK, GOOD


class Other(ScriptedChatModel):
    """A model of another class, whose tools have another format."""

    def bind_tools(self, tools, *, tool_choice=None, **kwargs):
        return self.bind(tools=[tool["function"]["name"] for tool in tools], choice=tool_choice)


class Whole(BaseChatModel):
    """A model that can't stream."""

    reply: str = "Hello."

    @property
    def _llm_type(self):
        return "whole"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        message = AIMessage(self.reply, response_metadata={"by": "whole"})
        return ChatResult(generations=[ChatGeneration(message=message)])


def falling_back(inner, *ladder, max_retries=1, **policy):
    remedies = {ReplyKind.BLANK: list(ladder)}
    return RetryingChatModel(
        inner, RetryPolicy(max_retries=max_retries, wait=None, remedies=remedies, **policy)
    )


def test_the_other_model_answers(way):
    inner, other = ScriptedChatModel([""]), ScriptedChatModel(["Hello."])
    assert ask(way, falling_back(inner, FallbackModel(other))).content == "Hello."
    assert other.requests[0].messages == inner.requests[0].messages
    assert other.requests[0].streamed is ("stream" in way)


def test_it_is_a_rung_like_others(way):
    inner, other = ScriptedChatModel(["", " "]), ScriptedChatModel(["", "Hello."])
    ladder = [Nudge("Go on."), (FallbackModel(other), WithParams(a=1))]
    assert ask(way, falling_back(inner, *ladder, max_retries=3)).content == "Hello."
    assert (len(inner.requests), len(other.requests)) == (2, 2)
    assert other.requests[0].kwargs == {"a": 1}
    assert len(other.requests[0].messages) == 1


def test_what_it_leaves_empty_counts_as_any_other(way, caplog):
    inner, other = ScriptedChatModel([""]), Other([""])
    with pytest.raises(EmptyCompletionError) as caught:
        ask(way, falling_back(inner, FallbackModel(other), on_exhausted="raise"))
    assert caught.value.attempts == 2
    assert "from Other" in str(caught.value)
    assert "attempt 1 of ScriptedChatModel" in caplog.text


def test_a_model_that_cannot_stream_gives_its_reply_whole(way):
    chunks = chunks_of(way, falling_back(ScriptedChatModel([""]), FallbackModel(Whole())))
    assert [chunk.content for chunk in chunks if chunk.content] == ["Hello."]
    assert chunks[0].response_metadata["by"] == "whole"
    assert chunks[0].response_metadata["empty_retry"]["attempts"] == 2


class WithDetails(Whole):
    """Tells its finish reason and usage where LangChain merges them only later."""

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
        message = AIMessage(self.reply, usage_metadata=usage)
        generation = ChatGeneration(message=message, generation_info={"finish_reason": "length"})
        return ChatResult(generations=[generation], llm_output={"model_name": "w"})


def test_what_a_whole_reply_tells_is_kept(way):
    model = falling_back(ScriptedChatModel([""]), FallbackModel(WithDetails()))
    reply = ask(way, model)
    assert reply.response_metadata["finish_reason"] == "length"
    assert reply.response_metadata["model_name"] == "w"
    assert reply.usage_metadata["output_tokens"] == 2
    cut = falling_back(ScriptedChatModel([""]), FallbackModel(WithDetails(reply="")))
    account = ask(way, cut).response_metadata["empty_retry"]
    assert [one["kind"] for one in account["rejected"]] == ["blank", "truncated"]


@pytest.mark.parametrize("way_", ["invoke", "stream"])
def test_a_model_without_a_run_manager_is_given_none(way_):
    class Without(Whole):
        def _generate(self, messages, stop=None, **kwargs):
            assert not kwargs
            return super()._generate(messages)

    model = falling_back(ScriptedChatModel([""]), FallbackModel(Without()))
    assert ask(way_, model).content == "Hello."


def test_a_model_told_not_to_stream_does_not(streaming_way):
    other = ScriptedChatModel(["Hello."], disable_streaming=True)
    assert ask(streaming_way, falling_back(ScriptedChatModel([""]), FallbackModel(other)))
    assert [request.streamed for request in other.requests] == [False]


def test_it_takes_over_from_a_model_that_cannot_stream(way):
    other = ScriptedChatModel([["Hel", "lo."]])
    model = falling_back(Whole(reply=""), FallbackModel(other))
    assert ask(way, model).content == "Hello."


@pytest.mark.filterwarnings("ignore:.*is in beta")
async def test_it_takes_over_in_native_events():
    bridge = pytest.importorskip("langchain_core.language_models._compat_bridge")
    message_to_events = bridge.message_to_events

    class Native(ScriptedChatModel):
        def _stream_chat_model_events(self, messages, **kwargs):
            yield from message_to_events(AIMessage(""))

        async def _astream_chat_model_events(self, messages, **kwargs):
            for event in message_to_events(AIMessage("")):
                yield event

    for other in (ScriptedChatModel([["Hel", "lo."]] * 2), Whole()):
        model = falling_back(Native(), FallbackModel(other))
        assert model.stream_events("Hi", version="v3").output.text == "Hello."
        stream = await model.astream_events("Hi", version="v3")
        assert (await stream.output).text == "Hello."


def test_tools_are_bound_to_a_model_of_another_class(way):
    inner, other = ScriptedChatModel([""]), Other(["Hello."])
    model = falling_back(inner, FallbackModel(other)).bind_tools(
        [lookup], tool_choice="any", temperature=0.5
    )
    assert ask(way, model).content == "Hello."
    assert other.requests[0].kwargs == {"tools": ["lookup"], "choice": "any"}


def test_a_model_of_the_same_class_gets_all_arguments(way):
    inner, other = ScriptedChatModel([""]), ScriptedChatModel(["Hello."])
    model = falling_back(inner, FallbackModel(other.bind(temperature=1.0, n=2)))
    ask(way, model.bind_tools([lookup], tool_choice="any"), temperature=0.5)
    kwargs = {"tools": inner.requests[0].kwargs["tools"], "tool_choice": "any"}
    assert inner.requests[0].kwargs == {**kwargs, "temperature": 0.5}
    assert other.requests[0].kwargs == {**kwargs, "temperature": 1.0, "n": 2}


@pytest.mark.parametrize(
    ("choice", "forced"),
    [(None, None), ("auto", None), ("any", "any"), ("lookup", "lookup")],
)
def test_a_forced_tool_choice_is_forced_again(choice, forced):
    def other_tool(key: str) -> str:
        """Another."""

    inner, other = ScriptedChatModel([""]), Other(["Hello."])
    model = falling_back(inner, FallbackModel(other))
    model.bind_tools([lookup, other_tool], tool_choice=choice).invoke("Hi")
    assert other.requests[0].kwargs == {"tools": ["lookup", "other_tool"], "choice": forced}


def test_several_that_are_forced_and_none_at_all():
    def of(choice):
        inner, other = ScriptedChatModel([""]), Other(["Hello."])
        tools = [{"type": "function", "function": {"name": name}} for name in "abc"]
        falling_back(inner, FallbackModel(other)).invoke("Hi", tools=tools, tool_choice=choice)
        return other.requests[0].kwargs

    assert of(["a", "b"]) == {"tools": ["a", "b", "c"], "choice": "any"}
    assert of("none") == {}


@pytest.mark.parametrize("name", ["model", "model_name", "model_id", "modelId"])
def test_the_callers_choice_of_a_model_does_not_hold_for_it(name):
    inner, other = ScriptedChatModel([""]), ScriptedChatModel(["Hello."])
    falling_back(inner, FallbackModel(other)).invoke("Hi", **{name: "a-mini"}, seed=1)
    assert other.requests[0].kwargs == {"seed": 1}


SCHEMA = {"type": "object", "properties": {"key": {"type": "string"}}}


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "function": {"name": "lookup", "parameters": SCHEMA}},
        {"type": "function", "name": "lookup", "parameters": SCHEMA},
        {"type": "function", "name": "lookup"},
        {"name": "lookup", "description": "Look a key up."},
        {"name": "lookup", "parameters": SCHEMA},
        {"name": "lookup", "input_schema": SCHEMA},
        {"type": "custom", "name": "lookup", "input_schema": SCHEMA},
        {"toolSpec": {"name": "lookup", "inputSchema": {"json": SCHEMA}, "description": "A."}},
        {**SCHEMA, "title": "lookup", "description": "Look a key up."},
        {"title": "lookup", "properties": {}, "description": "Look a key up."},
        lookup,
    ],
    ids=named,
)
def test_a_tool_in_the_format_of_any_integration_is_bound(tool):
    inner, other = ScriptedChatModel([""]), Other(["Hello."])
    falling_back(inner, FallbackModel(other)).invoke("Hi", tools=[tool])
    assert other.requests[0].kwargs == {"tools": ["lookup"], "choice": None}


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "bash_20250124", "name": "bash"},
        {"type": "custom", "name": "free_text"},
        {"type": "mcp", "server_label": "a", "server_url": "b"},
        {"type": "web_search"},
        {"type": "function"},
        {"google_search": {}},
        {"systemTool": {"name": "nova_grounding"}},
        {"cachePoint": {"type": "default"}},
    ],
    ids=named,
)
def test_tools_that_run_at_the_provider_are_left_out(tool):
    inner, other = ScriptedChatModel([""]), Other(["Hello."])
    falling_back(inner, FallbackModel(other)).invoke("Hi", tools=[tool])
    assert other.requests[0].kwargs == {}


def kwargs_of(other, **kwargs):
    """With which arguments the other model is called."""
    falling_back(ScriptedChatModel([""]), FallbackModel(other)).invoke("Hi", **kwargs)
    model = getattr(other, "bound", other)
    return model.requests[0].kwargs


def test_a_choice_of_a_tool_that_is_left_out_forces_nothing():
    tools = [{"type": "web_search_20250305", "name": "web_search"}, {"name": "a"}, {"name": "b"}]
    choice = {"type": "tool", "name": "web_search"}
    asked = kwargs_of(Other(["Hello."]), tools=tools, tool_choice=choice)
    assert asked == {"tools": ["a", "b"], "choice": None}


@pytest.mark.parametrize("choice", ["NONE", {"type": "none"}])
def test_tools_that_may_not_be_called_are_not_offered(choice):
    assert kwargs_of(Other(["Hello."]), tools=[{"name": "a"}], tool_choice=choice) == {}


def test_tools_of_its_own_take_the_place_of_all_that_is_said_of_tools():
    said = {"tools": [{"name": "a"}], "tool_choice": "a", "seed": 1}
    own = [{"name": "own"}]
    config = {"toolConfig": {"tools": [{"toolSpec": {"name": "a"}}]}}
    assert kwargs_of(ScriptedChatModel(["Hello."]).bind(tools=own), **config) == {"tools": own}
    assert kwargs_of(ScriptedChatModel(["Hello."]).bind(tools=own), **said) == {
        "tools": own,
        "seed": 1,
    }
    assert kwargs_of(Other(["Hello."]).bind(tools=own), **said) == {"tools": own}
    assert kwargs_of(ScriptedChatModel(["Hello."]).bind(n=1), **said) == {**said, "n": 1}


def test_of_a_binding_of_a_binding_the_outer_argument_holds():
    other = ScriptedChatModel(["Hello."])
    nested = RunnableBinding(bound=other.bind(n=1, seed=1), kwargs={"n": 2})
    falling_back(ScriptedChatModel([""]), FallbackModel(nested)).invoke("Hi")
    assert other.requests[0].kwargs == {"n": 2, "seed": 1}


def test_messages_that_all_understand_stay_as_they_are():
    said = [HumanMessage([{"type": "text", "text": "Hi"}]), AIMessage("Hello.")]
    request = Request(said, {}, ScriptedChatModel([]))
    assert FallbackModel(Other([]))(request, None).messages == said


def test_models_that_take_no_tools_are_not_of_one_integration_for_that():
    class First(Whole):
        reply: str = ""

    class Second(Whole):
        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            assert not kwargs
            return super()._generate(messages)

    model = falling_back(First(), FallbackModel(Second()))
    assert model.invoke("Hi", temperature=0.5).content == "Hello."

    class Subclass(ScriptedChatModel):
        pass

    assert kwargs_of(Subclass(["Hello."]), seed=1) == {"seed": 1}


def test_a_model_that_can_have_no_tools_is_not_asked(way, caplog):
    """As without it: the blank is returned, and nothing is raised."""
    inner = ScriptedChatModel([""])
    model = falling_back(inner, FallbackModel(Whole())).bind_tools([lookup])
    assert ask(way, model).content == ""
    assert "Whole can't stand in, it does not take the tools (NotImplementedError)" in caplog.text


def test_where_nothing_can_be_forced_the_tools_are_bound_all_the_same(server):
    client = {"class": "ChatBedrockConverse", "kwargs": {"model": "meta.llama3-1-8b-instruct-v1:0"}}
    other = build(client, server.url)
    server.play(GOOD)
    model = falling_back(ScriptedChatModel([""]), FallbackModel(other))
    assert "Recovered." in str(
        model.bind_tools([lookup, noop], tool_choice="any").invoke("Hi").content
    )
    config = server.requests[0]["json"]["toolConfig"]
    assert [tool["toolSpec"]["name"] for tool in config["tools"]] == ["lookup", "noop"]
    assert "toolChoice" not in config
    (schema, empty) = [tool["toolSpec"]["inputSchema"]["json"] for tool in config["tools"]]
    assert schema["properties"]["key"]["type"] == "string"
    assert empty["type"] == "object"


def noop() -> str:
    """Do nothing."""


@pytest.mark.parametrize("takes", [True, False])
async def test_a_run_manager_given_to_a_stream_reaches_who_takes_one(takes):
    given = []

    class Taking(Whole):
        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            given.append(run_manager)
            return super()._generate(messages)

        async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
            return self._generate(messages, stop, run_manager)

    class Without(Whole):
        def _generate(self, messages, stop=None, **kwargs):
            given.append(kwargs)
            return super()._generate(messages)

        async def _agenerate(self, messages, stop=None, **kwargs):
            return self._generate(messages, stop, **kwargs)

    manager = CallbackManagerForLLMRun.get_noop_manager()
    amanager = AsyncCallbackManagerForLLMRun.get_noop_manager()
    other = FallbackModel(Taking() if takes else Without())
    model = falling_back(ScriptedChatModel(["", ""]), other)
    messages = [HumanMessage("Hi")]
    assert [chunk async for chunk in model._astream(messages, run_manager=amanager, a=1)]
    assert list(model._stream(messages, run_manager=manager, a=1))
    assert given == ([amanager, manager] if takes else [{}, {}])


INTEGRATIONS = (
    "ChatOpenAI",
    "ChatAnthropic",
    "ChatGoogleGenerativeAI",
    "ChatOllama",
    "ChatBedrockConverse",
)


@pytest.mark.parametrize("name", INTEGRATIONS)
def test_tools_in_the_format_of_a_real_integration_reach_the_other(server, name):
    inner = build({"class": name}, server.url)
    server.play(BLANK)
    other = Other(["Hello."])
    model = falling_back(inner, FallbackModel(other)).bind_tools([lookup], tool_choice="any")
    assert model.invoke("Hi").content == "Hello."
    choice = None if name == "ChatOllama" else "any"  # Ollama can't force
    assert other.requests[0].kwargs == {"tools": ["lookup"], "choice": choice}


@pytest.mark.parametrize("name", INTEGRATIONS)
def test_a_real_integration_takes_over_with_tools(server, name):
    other = build({"class": name}, server.url)
    server.play(GOOD)
    model = falling_back(ScriptedChatModel([""]), FallbackModel(other))
    reply = model.bind_tools([lookup], tool_choice="any").invoke("Hi")
    assert "Recovered." in str(reply.content)
    assert "lookup" in str(server.requests[0]["json"])


def test_the_rate_limiter_that_counts_is_that_of_the_model_asked(way):
    class Counting(InMemoryRateLimiter):
        taken = 0

        def acquire(self, *, blocking=True):
            self.taken += 1
            return True

        async def aacquire(self, *, blocking=True):
            return self.acquire()

    inner = ScriptedChatModel([""], rate_limiter=Counting())
    other = ScriptedChatModel(["Hello."], rate_limiter=Counting())
    ask(way, falling_back(inner, FallbackModel(other)))
    assert (inner.rate_limiter.taken, other.rate_limiter.taken) == (1, 1)


def test_a_wrapped_model_does_not_retry_by_itself(way):
    """The retries are those of the call."""
    other = RetryingChatModel(ScriptedChatModel(["", "never"]))
    reply = ask(way, falling_back(ScriptedChatModel([""]), FallbackModel(other), max_retries=1))
    assert reply.content == ""
    assert len(other.requests) == 1


@pytest.mark.parametrize(
    "model",
    [
        "openai:gpt",
        RunnableLambda(str),
        RunnableLambda(str).bind(a=1),
        Whole().with_retry(),  # its retries would be lost
    ],
)
def test_what_is_no_chat_model_is_refused(model):
    with pytest.raises(
        TypeError, match="FallbackModel needs a chat model or a binding of one, not"
    ):
        FallbackModel(model)


def test_policies_with_other_models_differ_and_hide_their_keys():
    openai = pytest.importorskip("langchain_openai").ChatOpenAI
    policies = [
        RetryPolicy(remedies={ReplyKind.BLANK: [FallbackModel(model)]})
        for model in (
            openai(model="a", api_key="sk-secret"),
            openai(model="b", api_key="sk-secret"),
            openai(model="a", api_key="sk-secret"),
        )
    ]
    assert policies[0] == policies[2] != policies[1]
    assert "sk-secret" not in repr(policies[0])
    model = ScriptedChatModel(["Hello."])
    with pytest.raises(TypeError):  # a lock of the scripted model's
        pickle.dumps(FallbackModel(model))
