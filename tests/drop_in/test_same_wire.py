"""The real integrations, asked by their own clients over loopback."""

from __future__ import annotations

import asyncio
import copy
import importlib
import pickle
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import ConfigurableField
from pydantic import BaseModel
from test_same_binding import look_up, shape
from test_same_state import Limiter, as_langchain, parameters
from test_same_streams import V2_HANDLERS, V2Streaming, events_v3, under

from side_by_side import uses
from side_by_side.integrations import MODELS, anthropic, gemini, ollama, openai, responses
from side_by_side.listening import Recorder
from side_by_side.rows import FILTERS, PROFILE, V1_OUTPUT, V3_EVENTS, Unordered, normal, row
from side_by_side.uses import error_of, four_ways
from wire.turns import HELLO, Turn, calls

pytestmark = FILTERS


class Answer(BaseModel):
    """An answer."""

    text: str
    certain: bool = True


SCHEMA = {
    "title": "Answer",
    "description": "An answer.",
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
JSON = Turn('{"text": "42", "certain": false}')
CALL = calls("Answer", text="42", certain=False)
LOOK_UP = calls("look_up", key="a")
THINKING = Turn("Four.", reasoning="Hm.")
CONVERSATION = [
    SystemMessage("Be brief."),
    HumanMessage([{"type": "text", "text": "What is a?"}]),
    AIMessage("", tool_calls=[{"name": "look_up", "args": {"key": "a"}, "id": "call_1"}]),
    ToolMessage("a is 42", tool_call_id="call_1", name="look_up"),
]


def in_conversation(model: Any) -> Any:
    return four_ways(model.bind_tools([look_up]), CONVERSATION)


def with_tools(model: Any) -> Any:
    bound = model.bind_tools([look_up, Answer], tool_choice="look_up")
    return four_ways(bound), shape(bound)


def structured(**kwargs: Any) -> Any:
    def use(model: Any) -> Any:
        return [
            _asked(model.with_structured_output(schema, include_raw=raw, **kwargs))
            for schema in (Answer, SCHEMA)
            for raw in (False, True)
        ]

    return use


def _asked(runnable: Any) -> Any:
    whole = [runnable.invoke("Hi"), asyncio.run(runnable.ainvoke("Hi"))]
    return [*whole, _tried(lambda: Unordered(runnable.stream("Hi")))]


def unsupported(**kwargs: Any) -> Any:
    return lambda model: error_of(model.with_structured_output, Answer, **kwargs)


def batched(model: Any) -> Any:
    prompts = [[HumanMessage("a")], [HumanMessage("b")]]
    results = uses.batches(model), model.generate(prompts)
    return results, asyncio.run(model.agenerate(prompts[:1]))


def as_events(model: Any) -> Any:
    return uses.events_v1(model), uses.events_v2(model)


def state(model: Any) -> Any:
    """Fields, aliases, clients: all attributes are the model's own."""
    names = sorted(type(model).model_fields)
    return [
        {name: _told(getattr(model, name)) for name in names},
        model.model_fields_set,
        parameters(model),
        as_langchain(model),
        str(getattr(model, "profile", None)),
        getattr(model, "model", None),
        getattr(model, "lc_attributes", None),
    ]


def _told(value: Any) -> Any:
    plain = isinstance(value, (str, int, float, bool, dict, list, type(None)))
    return value if plain else type(value).__name__


def assigned(model: Any) -> Any:
    model.temperature = 0.75
    model.tags = ["set later"]
    return four_ways(model), model.temperature


def configured(model: Any) -> Any:
    runnable = model.configurable_fields(temperature=ConfigurableField(id="t"))
    config = {"configurable": {"t": 0.75}}
    bound = runnable.bind_tools([look_up])
    shaped = runnable.with_structured_output(Answer)
    return [
        four_ways(runnable, config=config),
        four_ways(bound, config=config),
        _tried(shaped.invoke, "Hi", config),
    ]


def falling_back(model: Any) -> Any:
    """`with_fallbacks(...)`, on which tools are bound and output is structured later."""
    runnable = model.with_fallbacks([model.bind(stop=["END"])])
    shaped = runnable.with_structured_output(Answer)
    return [
        four_ways(runnable.bind_tools([look_up])),
        four_ways(runnable),
        _tried(shaped.invoke, "Hi"),
    ]


def copies(model: Any) -> Any:
    other = model.model_copy(update={"temperature": 0.25})
    return four_ways(other), four_ways(copy.copy(model)), model.temperature


def pickled(model: Any) -> Any:
    try:
        data = pickle.dumps(model)
    except Exception as error:
        return type(error)
    return four_ways(pickle.loads(data))


def several(model: Any) -> Any:
    results = [model.generate([[HumanMessage("Hi")]]), model.invoke("Hi"), model.bind(n=2)]
    return [
        *results[:2],
        four_ways(results[2]),
        asyncio.run(model.agenerate([[HumanMessage("a")]])),
    ]


def metered(model: Any) -> Any:
    """`get_openai_callback`, wherever this release has it."""
    for module in ("langchain_community.callbacks", "langchain_classic.callbacks"):
        try:
            get_openai_callback = importlib.import_module(module).get_openai_callback
            break
        except (ImportError, AttributeError):
            continue
    else:
        pytest.skip("this release of LangChain has no get_openai_callback")
    with get_openai_callback() as meter:
        uses.plain_reads(model)
    assert meter.total_tokens
    return {name: value for name, value in vars(meter).items() if name != "_lock"}


def usage(model: Any) -> Any:
    callbacks = pytest.importorskip("langchain_core.callbacks")
    if not hasattr(callbacks, "get_usage_metadata_callback"):
        pytest.skip("this release of LangChain has no get_usage_metadata_callback")
    with callbacks.get_usage_metadata_callback() as meter:
        uses.plain_reads(model)
    assert meter.usage_metadata
    return meter.usage_metadata


def continued(model: Any) -> Any:
    """Only what is new is sent, with the id of the response before."""
    first = model.invoke("Hi")
    again = [HumanMessage("Hi"), first, HumanMessage("And?")]
    return four_ways(model, again)


def counted(model: Any) -> Any:
    return model.get_num_tokens_from_messages([HumanMessage("Hi")])


def cached(model: Any) -> Any:
    return model.invoke("Hi"), model.invoke("Hi"), asyncio.run(model.ainvoke("Hi"))


def limited(model: Any) -> Any:
    return four_ways(model), model.rate_limiter.heard


EACH: dict[str, Any] = {
    "four ways": (four_ways, [HELLO]),
    "a chain": (uses.in_a_chain, [HELLO]),
    "batches": (batched, [HELLO]),
    "events": (as_events, [HELLO]),
    "events v3": (events_v3, [HELLO], V3_EVENTS),
    "a v2 streaming handler": (under(V2Streaming), [HELLO], V2_HANDLERS),
    "a tool call": (with_tools, [LOOK_UP]),
    "events v3 of a tool call": (events_v3, [LOOK_UP], V3_EVENTS),
    "a conversation": (in_conversation, [HELLO]),
    "state": (state, [HELLO]),
    "assigned": (assigned, [HELLO]),
    "configured": (configured, [HELLO]),
    "with_fallbacks": (falling_back, [HELLO]),
    "copies": (copies, [HELLO]),
    "pickle": (pickled, [HELLO]),
    "usage": (usage, [HELLO]),
    "structured output": (structured(), [CALL]),
}
# Of those which are rarely installed beside this package.
BRIEFLY = ("four ways", "a chain", "events", "events v3", "a tool call", "state", "copies")
EACH_ROWS = [
    row(f"{name} of {model}", make(), use, *says, marks=marks)
    for model, make in MODELS.items()
    for name, (use, says, *marks) in EACH.items()
    if name != "structured output" or model == "ChatAnthropic"  # the others' default is JSON
    if model not in ("Gemini", "Ollama") or name in BRIEFLY
]
OPENAI = [
    row("function_calling of ChatOpenAI", openai(), structured(method="function_calling"), CALL),
    row("json_schema of ChatOpenAI", openai(), structured(method="json_schema"), JSON),
    row(
        "json_schema strict of ChatOpenAI",
        openai(),
        structured(method="json_schema", strict=True),
        JSON,
    ),
    row("json_mode of ChatOpenAI", openai(), structured(method="json_mode"), JSON),
    row("no such method of ChatOpenAI", openai(), unsupported(method="nonsense")),
    row("strict json_mode of ChatOpenAI", openai(), unsupported(method="json_mode", strict=True)),
    row("streaming of ChatOpenAI", openai(streaming=True), four_ways),
    row("streaming off of ChatOpenAI", openai(streaming=False), four_ways),
    row("disable_streaming of ChatOpenAI", openai(disable_streaming=True), four_ways),
    row(
        "disable_streaming tool_calling of ChatOpenAI",
        openai(disable_streaming="tool_calling"),
        with_tools,
        LOOK_UP,
    ),
    row("stream_usage of ChatOpenAI", openai(stream_usage=True), four_ways),
    row("n of ChatOpenAI", openai(n=2), several),
    row("get_openai_callback of ChatOpenAI", openai(), metered),
    row("get_openai_callback with stream usage of ChatOpenAI", openai(stream_usage=True), metered),
    row("output_version v1 of ChatOpenAI", openai(output_version="v1"), four_ways, marks=V1_OUTPUT),
    row(
        "callbacks tags metadata of ChatOpenAI",
        openai(callbacks=[Recorder], tags=["a"], metadata={"m": 1}),
        four_ways,
    ),
    row("rate limiter of ChatOpenAI", openai(rate_limiter=Limiter), limited),
    row("cache of ChatOpenAI", openai(cache=InMemoryCache), cached),
    row(
        "profile given of ChatOpenAI",
        openai(profile={"max_input_tokens": 9}),
        state,
        marks=PROFILE,
    ),
    row(
        "parameters of ChatOpenAI",
        openai(
            temperature=0.5,
            max_tokens=9,
            seed=1,
            top_p=0.5,
            logprobs=True,
            model_kwargs={"user": "u"},
            extra_body={"x": 1},
        ),
        four_ways,
    ),
    row("stop words of ChatOpenAI", openai(stop=["END"]), four_ways),
    row(
        "a model name of the call of ChatOpenAI",
        openai(),
        lambda model: four_ways(model.bind(model="model-b")),
    ),
]
RESPONSES = [
    row("function_calling of Responses", responses(), structured(method="function_calling"), CALL),
    row("json_schema of Responses", responses(), structured(method="json_schema"), JSON),
    row("json_mode of Responses", responses(), structured(method="json_mode"), JSON),
    row("reasoning of Responses", responses(), four_ways, THINKING),
    row(
        "output_version responses/v1 of Responses",
        responses(output_version="responses/v1"),
        four_ways,
        THINKING,
    ),
    row(
        "output_version v1 of Responses",
        responses(output_version="v1"),
        four_ways,
        THINKING,
        marks=V1_OUTPUT,
    ),
    row(
        "use_previous_response_id of Responses",
        responses(use_previous_response_id=True),
        continued,
        marks=V1_OUTPUT,
    ),
    row(
        "chosen by arguments of Responses",
        openai(),
        lambda model: four_ways(model.bind(previous_response_id="resp_0")),
        marks=V1_OUTPUT,
    ),
    row("get_openai_callback of Responses", responses(), metered),
]
ANTHROPIC = [
    row(
        "function_calling of ChatAnthropic",
        anthropic(),
        structured(method="function_calling"),
        CALL,
    ),
    row(
        "json_schema of ChatAnthropic",
        anthropic(),
        structured(method="json_schema"),
        JSON,
        marks=V3_EVENTS,
    ),
    row(
        "no such method of ChatAnthropic",
        anthropic(),
        lambda model: str(_tried(model.with_structured_output, Answer, method="nonsense")),
    ),
    row(
        "thinking of ChatAnthropic",
        anthropic(thinking={"type": "enabled", "budget_tokens": 1024}),
        four_ways,
        THINKING,
    ),
    row(
        "thinking under events of ChatAnthropic",
        anthropic(thinking={"type": "enabled", "budget_tokens": 1024}),
        as_events,
        THINKING,
    ),
    row(
        "thinking under v3 of ChatAnthropic",
        anthropic(thinking={"type": "enabled", "budget_tokens": 1024}),
        events_v3,
        THINKING,
        marks=V3_EVENTS,
    ),
    row(
        "text and a tool call of ChatAnthropic",
        anthropic(),
        with_tools,
        Turn("I look it up.", (("look_up", {"key": "a"}),)),
    ),
    row("streaming of ChatAnthropic", anthropic(streaming=True), four_ways),
    row("stream_usage off of ChatAnthropic", anthropic(stream_usage=False), four_ways),
    row(
        "output_version v1 of ChatAnthropic",
        anthropic(output_version="v1"),
        four_ways,
        THINKING,
        marks=V1_OUTPUT,
    ),
    row("rate limiter of ChatAnthropic", anthropic(rate_limiter=Limiter), limited),
]
COUNTING = [
    row("get_num_tokens_from_messages of ChatAnthropic", anthropic(), counted),
]
GEMINI = [
    row("json_schema of Gemini", gemini(), structured(method="json_schema"), JSON),
    row("function_calling of Gemini", gemini(), structured(method="function_calling"), CALL),
    row("json_mode of Gemini", gemini(), structured(method="json_mode"), JSON),
    row(
        "code_execution of Gemini", gemini(), lambda model: model.invoke("Hi", code_execution=True)
    ),
]
OLLAMA = [
    row("json_schema of Ollama", ollama(), structured(method="json_schema"), JSON),
    row("function_calling of Ollama", ollama(), structured(method="function_calling"), CALL),
    row("json_mode of Ollama", ollama(), structured(method="json_mode"), JSON),
]


def _tried(use: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return use(*args, **kwargs)
    except Exception as error:
        return normal(error)


@pytest.mark.parametrize("row", EACH_ROWS)
def test_each_integration(row, server):
    row.check(server)


@pytest.mark.parametrize("row", OPENAI)
def test_openai(row, server):
    row.check(server)


@pytest.mark.parametrize("row", RESPONSES)
def test_openai_responses(row, server):
    row.check(server)


@pytest.mark.parametrize("row", ANTHROPIC)
def test_anthropic(row, server):
    row.check(server)


@pytest.mark.parametrize("row", GEMINI)
def test_gemini(row, server):
    row.check(server)


@pytest.mark.parametrize("row", OLLAMA)
def test_ollama(row, server):
    row.check(server)


@pytest.mark.parametrize("row", COUNTING)
def test_counting_tokens(row, server):
    row.check(server)
