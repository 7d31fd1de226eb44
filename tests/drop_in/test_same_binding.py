"""`bind_tools`, `with_structured_output` and the other ways to make a runnable of a model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.tools import tool
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from side_by_side import small_models as small
from side_by_side.rows import FILTERS, Unordered, row
from side_by_side.small_models import Journal, Parameters, always, call, script
from side_by_side.uses import error_of, four_ways

pytestmark = FILTERS


class Answer(BaseModel):
    """An answer."""

    text: str = Field(description="What to say.")
    certain: bool = True


class AnswerDict(TypedDict):
    """An answer."""

    text: str


JSON_SCHEMA = {
    "title": "Answer",
    "description": "An answer.",
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
}
SCHEMAS = {"pydantic": Answer, "typed dict": AnswerDict, "JSON schema": JSON_SCHEMA}


@tool
def look_up(key: str) -> str:
    """Look up a value."""
    return f"{key} is 42"


def add(a: int, b: int = 0) -> int:
    """Add numbers."""
    return a + b


def with_tools(*tools: Any, **kwargs: Any) -> Any:
    """Tools in all forms; the requests show in which format they were bound."""

    def use(model: Any) -> Any:
        bound = model.bind_tools(tools or [look_up, add, Answer, JSON_SCHEMA], **kwargs)
        return four_ways(bound), shape(bound)

    return use


def shape(runnable: Any) -> Any:
    """What a binding consists of; the model in it is told by its class."""
    if not hasattr(runnable, "bound"):
        return type(runnable).__name__
    names = [type(runnable).__name__, runnable.get_name(), runnable.kwargs, runnable.config]
    return [*names, runnable.config_factories, shape(runnable.bound)]


def structured(schema: Any, **kwargs: Any) -> Any:
    def use(model: Any) -> Any:
        runnable = model.with_structured_output(schema, **kwargs)
        return four_ways(runnable), asyncio.run(_events(runnable)), runnable.batch(["a"])

    return use


def structured_raw(schema: Any, **kwargs: Any) -> Any:
    """With the raw message; parts of it are run at once, so only the model's events have order."""

    def use(model: Any) -> Any:
        runnable = model.with_structured_output(schema, include_raw=True, **kwargs)
        return [
            runnable.invoke("Hi"),
            asyncio.run(runnable.ainvoke("Hi")),
            Unordered(runnable.stream("Hi")),
            asyncio.run(_events(runnable, include_types=["chat_model"])),
        ]

    return use


async def _events(runnable: Any, **kwargs: Any) -> Any:
    return [event async for event in runnable.astream_events("Hi", version="v2", **kwargs)]


def unsupported(model: Any) -> Any:
    return [
        error_of(model.bind_tools, [look_up]),
        error_of(model.with_structured_output, Answer),
        error_of(model.with_structured_output, Answer, unknown=1),
    ]


def unsupported_arguments(model: Any) -> Any:
    return [
        error_of(model.with_structured_output, Answer, unknown=1),
        error_of(model.bind_tools, [5]),
    ]


def layers(model: Any) -> Any:
    bound = model.bind_tools([look_up]).bind(a=1).with_config(tags=["x"]).bind(stop=["END"])
    listened = bound.with_listeners(on_start=lambda run: None, on_end=lambda run: None)
    return four_ways(bound), shape(bound), four_ways(listened.with_types(output_type=AIMessage))


def retried(model: Any) -> Any:
    """`with_retry` on exceptions of the model's, which go through the wrapper untouched."""
    retrying = model.with_retry(
        retry_if_exception_type=(ConnectionError,),
        wait_exponential_jitter=False,
        stop_after_attempt=3,
    )
    return retrying.invoke("Hi"), asyncio.run(retrying.ainvoke("Hi")), retrying.batch(["Hi"])


def falling_back(model: Any) -> Any:
    """`with_fallbacks` on exceptions; what is called on it reaches both models."""
    other = script(*["from the other"] * 20)()
    runnable = model.with_fallbacks([other], exceptions_to_handle=(ConnectionError,))
    return [
        four_ways(runnable),
        runnable.bind_tools([look_up]).invoke("Hi"),
        four_ways(runnable.bind(stop=["END"])),
        other.requests,
    ]


def fallen_back_to(model: Any) -> Any:
    """As the fallback of another."""
    broken = always(ConnectionError("lost"))()
    return four_ways(broken.with_fallbacks([model]))


def fallback_with_key(model: Any) -> Any:
    def tell(inputs: Any) -> Any:
        return inputs["exception"]

    chain = (RunnableLambda(lambda inputs: inputs["input"]) | model).with_fallbacks(
        [RunnableLambda(tell)], exception_key="exception"
    )
    return chain.invoke({"input": "Hi"})


def configured(model: Any) -> Any:
    runnable = model.configurable_fields(
        temperature=ConfigurableField(id="temperature", name="T", description="how hot"),
        model_name=ConfigurableField(id="name"),
    )
    specs = [(spec.id, spec.name, spec.annotation, spec.default) for spec in runnable.config_specs]
    config = {"configurable": {"temperature": 0.9, "name": "model-z"}}
    bound = runnable.bind_tools([look_up]) if hasattr(runnable, "bind_tools") else runnable
    return [
        specs,
        four_ways(runnable),
        four_ways(runnable, config=config),
        four_ways(runnable.with_config(configurable={"temperature": 0.1})),
        four_ways(bound, config=config),
        runnable.batch(["a"], config),
        error_of(model.configurable_fields, unknown=ConfigurableField(id="u")),
    ]


def configured_runs(model: Any) -> Any:
    """Their names in events and graphs, and what code finds that looks at the runnable."""
    runnable = model.configurable_fields(temperature=ConfigurableField(id="temperature"))
    return [
        asyncio.run(_events(runnable)),
        asyncio.run(_events(runnable.bind(stop=["END"]))),
        runnable.get_name(),
        type(runnable).__name__,
        runnable.lc_id(),
        runnable.get_graph().to_json(),
    ]


def configured_to_stream_not(model: Any) -> Any:
    runnable = model.configurable_fields(disable_streaming=ConfigurableField(id="off"))
    return four_ways(runnable, config={"configurable": {"off": True}})


def alternatives(model: Any) -> Any:
    other = always("from the other")()
    runnable = model.configurable_alternatives(
        ConfigurableField(id="which"), default_key="first", other=other, made=lambda: other
    )
    return [
        four_ways(runnable),
        four_ways(runnable, config={"configurable": {"which": "first"}}),
        four_ways(runnable, config={"configurable": {"which": "other"}}),
        four_ways(runnable, config={"configurable": {"which": "made"}}),
        error_of(runnable.invoke, "Hi", {"configurable": {"which": "none"}}),
        [spec.id for spec in runnable.config_specs],
    ]


def an_alternative(model: Any) -> Any:
    first = always("from the first")()
    runnable = first.configurable_alternatives(ConfigurableField(id="which"), other=model)
    return four_ways(runnable, config={"configurable": {"which": "other"}})


def fields_and_alternatives(model: Any) -> Any:
    runnable = model.configurable_fields(
        temperature=ConfigurableField(id="temperature")
    ).configurable_alternatives(ConfigurableField(id="which"), other=always("from the other")())
    return [
        four_ways(runnable, config={"configurable": {"temperature": 0.4}}),
        four_ways(runnable, config={"configurable": {"which": "other"}}),
    ]


def as_a_tool(model: Any) -> Any:
    chain = (
        RunnableLambda(lambda inputs: inputs["text"]) | model | (lambda message: message.content)
    )
    return chain.as_tool(name="ask", arg_types={"text": str}).invoke({"text": "Hi"})


ANSWER = call("Answer", text="42", certain=False)
KINDS = {
    "the base class": always(ANSWER),
    "a nested binding": always(ANSWER, cls=small.NestedBinding),
    "a binding of a copy": always(ANSWER, cls=small.CopyBinding),
}
BINDING = [
    row("tools of all forms", always(), with_tools()),
    row("a tool choice", always(), with_tools(look_up, tool_choice="look_up")),
    row("nested bindings", always(cls=small.NestedBinding), with_tools(look_up)),
    row("a binding around a copy", always(cls=small.CopyBinding), with_tools(look_up)),
    row(
        "bound twice around copies",
        always(cls=small.CopyBinding),
        lambda model: [
            with_tools(look_up)(model),
            with_tools(add)(model),
            four_ways(model),
            model.mode,
        ],
    ),
    row("tools that are called", always(call("look_up", key="a")), with_tools(look_up)),
    row(
        "keyword-only arguments",
        always(cls=small.KeywordOnly),
        lambda model: four_ways(model.bind(safety="high"), tools=["t"]),
    ),
    row(
        "an argument of invoke itself",
        always(cls=small.KeywordOnly),
        lambda model: model.invoke("Hi", code_execution=True),
    ),
    row("public methods overridden", always(cls=small.Overriding), with_tools(look_up)),
    row("what it does not support", always(cls=small.Unbindable), unsupported),
    row("arguments it does not support", always(), unsupported_arguments),
    row("layers of bindings", always(), layers),
    row("as a tool", always(), as_a_tool),
]
STRUCTURED = [
    row(f"{kind} to {name}{way}", model, use(schema))
    for kind, model in KINDS.items()
    for name, schema in SCHEMAS.items()
    for way, use in (("", structured), (" raw", structured_raw))
] + [
    row("a closure over the model", always("42", cls=small.Structured), structured(Answer)),
    row("a closure with raw", always("42", cls=small.Structured), structured_raw(Answer)),
    row("what can't be parsed", always(call("Answer", wrong=1)), structured_raw(Answer)),
    row(
        "an error of the parser's",
        always(call("Answer", wrong=1)),
        lambda model: error_of(model.with_structured_output(Answer).invoke, "Hi"),
    ),
    row(
        "a stream of it",
        always(ANSWER),
        lambda model: list(model.with_structured_output(JSON_SCHEMA).stream("Hi")),
    ),
]
CONFIGURABLE = [
    row("configurable_fields", always(cls=Parameters), configured),
    row("configurable disable_streaming", always(cls=Parameters), configured_to_stream_not),
    row(
        "configurable_fields of a binding around a copy",
        always(cls=small.CopyBinding),
        lambda m: four_ways(
            m.configurable_fields(mode=ConfigurableField(id="mode")),
            config={"configurable": {"mode": "configured"}},
        ),
    ),
    row("runs of configurable_fields", always(cls=Parameters), configured_runs),
    row("configurable_alternatives", always(), alternatives),
    row("as an alternative", always(), an_alternative),
    row("fields and alternatives", always(cls=Parameters), fields_and_alternatives),
]
LAYERS = [
    row("with_retry on exceptions", script(*[ConnectionError("lost"), "a"] * 3), retried),
    row("with_fallbacks on exceptions", always(ConnectionError("lost")), falling_back),
    row("with_fallbacks not needed", always(), falling_back),
    row("as a fallback", always(), fallen_back_to),
    row("with_fallbacks with the exception", always(KeyError("k")), fallback_with_key),
    row("a failing stream falls back", always("a", "b", cls=Journal, fails_before=0), falling_back),
]


@pytest.mark.parametrize("row", BINDING)
def test_binding(row):
    row.check()


@pytest.mark.parametrize("row", STRUCTURED)
def test_structured_output(row):
    row.check()


@pytest.mark.parametrize("row", CONFIGURABLE)
def test_configurable(row):
    row.check()


@pytest.mark.parametrize("row", LAYERS)
def test_layers(row):
    row.check()
