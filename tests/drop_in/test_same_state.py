"""What the inner model holds and what it is: state, parameters, identity, cache."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_debug, set_llm_cache, set_verbose
from langchain_core.load import dumpd, dumps
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, trim_messages
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.rate_limiters import BaseRateLimiter

from side_by_side import small_models as small
from side_by_side import uses
from side_by_side.listening import Recorder, Tracer
from side_by_side.rows import FILTERS, PROFILE, V1_OUTPUT, row
from side_by_side.small_models import (
    END,
    Parameters,
    SerializableModel,
    always,
    call,
    generic,
    script,
)
from side_by_side.uses import captured, error_of, four_ways, invoke, plainly

pytestmark = FILTERS

TOOLS = {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}
CODE = [{"type": "text", "text": "A", "index": 0}, {"type": "text", "text": "B", "index": 0}]
CHUNKS = [small.AIMessageChunk(content=[block]) for block in CODE] + [END]
PROMPTS: list[Any] = [
    "Hi",
    [("system", "Be brief."), ("human", "Hi")],
    [SystemMessage("Be brief."), HumanMessage("Hi", id="m1"), AIMessage("", name="bot")],
    [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    ChatPromptValue(messages=[HumanMessage("Hi")]),
]


class Limiter(BaseRateLimiter):
    """Keeps what is asked of it."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def acquire(self, *, blocking: bool = True) -> bool:
        self.heard.append(("acquire", blocking))
        return True

    async def aacquire(self, *, blocking: bool = True) -> bool:
        self.heard.append(("aacquire", blocking))
        return True


class Cache(InMemoryCache):
    """Keeps what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Any] = []

    def lookup(self, prompt: str, llm_string: str) -> Any:
        found = super().lookup(prompt, llm_string)
        self.heard.append(("lookup", prompt, llm_string, found))
        return found

    def update(self, prompt: str, llm_string: str, return_val: Any) -> None:
        self.heard.append(("update", prompt, llm_string, return_val))
        super().update(prompt, llm_string, return_val)


def told_and(name: str) -> Any:
    """All ways to call it, and what an object of the model's has heard meanwhile."""

    def use(model: Any) -> Any:
        return plainly(model), four_ways(model), getattr(model, name).heard

    return use


def with_config(**config: Any) -> Any:
    return lambda model: four_ways(model, config=config)


def with_arguments(**kwargs: Any) -> Any:
    return lambda model: four_ways(model, **kwargs)


def with_prompts(model: Any) -> Any:
    return [four_ways(model, prompt) for prompt in PROMPTS]


def cached(model: Any) -> Any:
    """Once asked, twice answered; whole messages only."""
    cache = model.cache if isinstance(model.cache, Cache) else None
    return four_ways(model), four_ways(model), four_ways(model, "Bye"), cache and cache.heard


def globally_cached(model: Any) -> Any:
    set_llm_cache(Cache())
    try:
        return cached(model)
    finally:
        set_llm_cache(None)


def globally(switch: Any) -> Any:
    """With a global switch on: what is printed on the side is compared, too."""

    def use(model: Any) -> Any:
        switch(True)
        try:
            return captured(plainly, model), captured(uses.in_a_chain, model)
        finally:
            switch(False)

    return use


def attribute(*names: str) -> Any:
    return lambda model: [getattr(model, name) for name in names]


def parameters(model: Any) -> Any:
    params = model._get_invocation_params(stop=["END"], extra=1)
    tracing = model._get_ls_params(stop=["END"])
    return model._llm_type, model._identifying_params, params, tracing


def as_data(model: Any) -> Any:
    """pydantic's and LangChain's own ways to see a model as data."""
    return [
        model.model_dump(),
        model.model_dump(exclude_defaults=True, include={"temperature", "replies"}),
        dict(model),
        model.model_fields_set,
        model.model_extra,
        type(model).model_fields.keys(),
        type(model).__name__,
        type(model).__doc__,
        type(model).__module__,
        type(model).__qualname__,
    ]


def as_langchain(model: Any) -> Any:
    return [
        model.lc_id(),
        model.is_lc_serializable(),
        model.get_lc_namespace(),
        model.lc_secrets,
        model.lc_attributes,
        {key: value for key, value in dumpd(model).items() if key != "repr"},
        dumps(model) if model.is_lc_serializable() else None,
        model.to_json() if model.is_lc_serializable() else None,
    ]


def as_runnable(model: Any) -> Any:
    return [
        model.get_name(),
        model.name,
        model.InputType,
        model.OutputType,
        model.get_input_jsonschema(),
        model.get_output_jsonschema(),
        model.get_graph().to_json(),
        model.config_specs,
        [type(step).__name__ for step in (model | str).steps],
    ]


def counted(model: Any) -> Any:
    messages = [SystemMessage("Be brief."), HumanMessage("one two three"), AIMessage("four five")]
    return [
        model.get_token_ids("a b c"),
        model.get_num_tokens("a b c"),
        model.get_num_tokens_from_messages(messages),
        trim_messages(messages, max_tokens=6, token_counter=model),
        trim_messages(messages, max_tokens=7, token_counter=model, strategy="first"),
    ]


def profiled_later(model: Any) -> Any:
    before = model.profile
    model.profile = {"max_input_tokens": 5}
    return before, model.profile, model.model_dump()


def assigned(model: Any) -> Any:
    """Attributes set after wrapping count from the next call on."""
    model.tags = ["set later"]
    model.metadata = {**(model.metadata or {}), "set": "later"}
    model.callbacks = [Recorder()]
    model.temperature = 0.75
    model.disable_streaming = True
    return plainly(model), four_ways(model), model.temperature, model.model_fields_set


def copied(copying: Any) -> Any:
    """A copy has the state of the original, and shares none of it that is set later."""

    def use(model: Any) -> Any:
        other = copying(model)
        other.tags = ["other"]
        return four_ways(other), four_ways(model), other.model_fields_set, other == model

    return use


def made_anew(model: Any) -> Any:
    """By the class of the model, in each way that pydantic has, and by a subclass of it."""
    cls: Any = type(model)
    fields = {"replies": model.replies, "temperature": 0.5}

    class Own(cls):
        extra: int = 1

        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**{"temperature": 0.25, **kwargs})

        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return super().bind_tools(tools, own=self.extra, **kwargs)

    class Derived(Own):
        pass

    own = Own(replies=model.replies, extra=2)
    made = [
        cls(**fields),
        cls(model.replies),
        cls.model_construct(**fields),
        cls.model_validate(fields),
        own,
        own.model_copy(),
        type(own)(**fields),
        Derived(**fields),
        Own.model_validate(fields),
    ]
    told = [(four_ways(one), one.temperature, one.model_fields_set) for one in made]
    bound = [four_ways(one.bind_tools([])) for one in (own, Derived(**fields))]
    return told, bound, isinstance(own, Own), issubclass(type(own), Own), own.extra


def made_of_text(model: Any) -> Any:
    cls = type(model)
    made = [
        cls(),
        cls.model_validate_json('{"answer": "Bye."}'),
        cls.model_validate_strings({"answer": "Bye."}),
        cls.model_validate(model),
        pickle.loads(pickle.dumps(cls))(answer="Bye."),
        copy.deepcopy(cls)(),
    ]
    return [four_ways(one) for one in made], cls.model_validate(model) is model


def pickled_class(model: Any) -> Any:
    cls = type(model)
    return [pickle.loads(pickle.dumps(cls, protocol)) is cls for protocol in (0, 2, 5)]


def compared(model: Any) -> Any:
    others = [copy.copy(model), model.model_copy(update={"model_name": "other"}), None, model]
    return [(model == other, other == model, model != other) for other in others]


def as_pydantic_had_it(model: Any) -> Any:
    """Methods that are deprecated, and still there."""
    return model.copy() == model, model.copy(update={"answer": "Bye."}), model.json(), model.dict()


def rejected_assignments(model: Any) -> Any:
    model.limit = 5
    return [
        error_of(setattr, model, "limit", 0),
        error_of(setattr, model, "unknown", 1),
        error_of(setattr, model, "limit", "many"),
        model.limit,
        four_ways(model),
        model._count,
        model._log,
    ]


def private_attributes(model: Any) -> Any:
    model._count = 10
    invoke(model)
    return model._count, model._log, error_of(getattr, model, "_unknown")


def extra_attributes(model: Any) -> Any:
    model.undeclared = 1
    model.another = 2
    return model.undeclared, model.given, model.model_extra, model.model_dump(), four_ways(model)


def unknown_attributes(model: Any) -> Any:
    errors = [error_of(getattr, model, "unknown"), error_of(setattr, model, "unknown", 1)]
    return errors, error_of(delattr, model, "unknown"), hasattr(model, "unknown")


def name_detection(model: Any) -> Any:
    """How code around a model finds out whose it is."""
    cls = type(model)
    return [
        isinstance(model, Parameters),
        issubclass(cls, Parameters),
        cls.__name__,
        model._llm_type,
        model._get_ls_params()["ls_provider"],
        getattr(model, "model_name", None) or getattr(model, "model", None),
        getattr(model, "profile", None),
        model.__class__ is cls,
        cls.bind_tools is Parameters.bind_tools,
        cls.with_structured_output is Parameters.with_structured_output,
    ]


def run_names(model: Any) -> Any:
    """`run_name` and `run_id` are respected, and the class's name is the default."""
    import uuid  # noqa: PLC0415

    names = []
    for config in ({}, {"run_name": "Mine"}, {"run_id": uuid.UUID(int=1)}, {"tags": ["t"]}):
        for way in uses.WAYS:
            _, (run,) = uses.told_by(way, model, config=config)
            names.append((run.name, run.id == uuid.UUID(int=1), run.tags, run.extra))
    return names


def environment_tracing(model: Any) -> Any:
    """Handlers that only LangChain's `configure` knows: hooks registered by context variables."""
    from langchain_core.tracers.context import collect_runs  # noqa: PLC0415

    with collect_runs() as collected:
        outcome = plainly(model)
    assert collected.traced_runs
    return outcome, collected.traced_runs


def metered(model: Any) -> Any:
    """Token accounting by callbacks counts each reply once."""
    callbacks = pytest.importorskip("langchain_core.callbacks")
    handler_of_usage = getattr(callbacks, "UsageMetadataCallbackHandler", None)
    if handler_of_usage is None:
        pytest.skip("this release of LangChain has no UsageMetadataCallbackHandler")
    handler = handler_of_usage()
    told = four_ways(model, config={"callbacks": [handler]})
    with callbacks.get_usage_metadata_callback() as meter:
        plainly(model)
    assert handler.usage_metadata
    assert meter.usage_metadata
    return told, handler.usage_metadata, meter.usage_metadata


def without_validation() -> Any:
    """A model that lacks a field, and private state, as releases of pydantic leave it at times."""
    model = small.Unvalidated.model_construct(replies=lambda messages: ["Hel", "lo"])
    object.__delattr__(model, "__pydantic_private__")
    assert "required" not in vars(model)
    return model


FUNCTION_CALL = AIMessage("", additional_kwargs={"function_call": {"name": "f", "arguments": "{}"}})
PARAMETERS = {"model": "model-b", "temperature": 0.5, "max_tokens": 9, "model_kwargs": {"a": 1}}
METERED = small.AIMessageChunk(
    content="Hi", usage_metadata=small.USAGE, response_metadata={"model_name": "model-a"}
)

CONSTRUCTION = [
    row("a model with private attributes", always(cls=small.Strict), private_attributes),
    row("extra forbid and validate_assignment", always(cls=small.Strict), rejected_assignments),
    row("extra allow", always(cls=small.Extra, given=0), extra_attributes),
    row("made by its class", always(cls=Parameters), made_anew),
    row("made by its class of text", SerializableModel, made_of_text),
    row("its class pickled", SerializableModel, pickled_class),
    row("private attributes unset", without_validation, four_ways),
    row("a field named policy", always(cls=small.Namesakes), four_ways),
    row("a method that reads it", always(cls=small.Namesakes), lambda model: model.judge()),
    row("fields named as the wrapper's", always(cls=small.Namesakes), as_data),
    row("GenericFakeChatModel", generic(*["Hello you."] * 8), four_ways),
    row("its function_call in chunks", generic(*[FUNCTION_CALL] * 8), four_ways),
]
STATE = [
    row("callbacks of the model", always(callbacks=[Recorder, Recorder]), plainly),
    row("callbacks of the model and of the call", always(callbacks=[Recorder]), four_ways),
    row(
        "a tracer of the model",
        always(callbacks=[Tracer]),
        lambda model: (uses.plain_reads(model), model.callbacks[0].runs),
    ),
    row("tags and metadata", always(tags=["a"], metadata={"m": 1}), four_ways),
    row(
        "they add up with the call's",
        always(tags=["a"], metadata={"m": 1}),
        with_config(
            tags=["b"], metadata={"n": 2, "ls_provider": "x"}, run_name="Run", max_concurrency=2
        ),
    ),
    row("metadata lc_versions", always(), attribute("metadata")),
    row("rate limiter", always(rate_limiter=Limiter), told_and("rate_limiter")),
    row(
        "rate limiter under batch",
        always(rate_limiter=Limiter),
        lambda model: (uses.batches(model), sorted(map(str, model.rate_limiter.heard))),
    ),
    row("cache None", always(cache=None), cached),
    row("cache None with a global one", always(cache=None), globally_cached),
    row("cache False with a global one", always(cache=False), globally_cached),
    row("cache True with a global one", always(cache=True), globally_cached),
    row(
        "cache True without a global one",
        always(cache=True),
        lambda model: (error_of(invoke, model), list(model.stream("Hi"))),
    ),
    row("cache of its own", always(cache=Cache), cached),
    row("cache of its own and callbacks", always(cache=Cache, callbacks=[Recorder]), plainly),
    row("cache of its own and batch", always(cache=Cache), uses.batches),
    row(
        "cache and a blank's neighbour",
        script("a", "b", cache=Cache),
        lambda model: (
            [model.invoke("1"), model.invoke("2"), model.invoke("1")],
            model.cache.heard,
        ),
    ),
    row("disable_streaming True", always(disable_streaming=True), four_ways),
    row("disable_streaming True under events", always(disable_streaming=True), uses.events_v2),
    row("disable_streaming tool_calling", always(disable_streaming="tool_calling"), four_ways),
    row(
        "disable_streaming tool_calling with tools",
        always(disable_streaming="tool_calling"),
        with_arguments(**TOOLS),
    ),
    row("disable_streaming False", always(disable_streaming=False), with_arguments(**TOOLS)),
    row("streaming True", always(cls=Parameters, streaming=True), four_ways),
    row(
        "streaming True with callbacks",
        always(cls=Parameters, streaming=True, callbacks=[Recorder]),
        plainly,
    ),
    row("streaming False", always(cls=Parameters, streaming=False), four_ways),
    row("streaming False under events", always(cls=Parameters, streaming=False), uses.events_v2),
    row("stream True as an argument", always(), with_arguments(stream=True)),
    row("stream False as an argument", always(), with_arguments(stream=False)),
    row("output_version v1", always(output_version="v1"), four_ways, marks=V1_OUTPUT),
    row(
        "output_version v1 of blocks",
        always(*CHUNKS, output_version="v1"),
        four_ways,
        marks=V1_OUTPUT,
    ),
    row(
        "output_version v1 under events",
        always(*CHUNKS, output_version="v1"),
        uses.events_v2,
        marks=V1_OUTPUT,
    ),
    row("output_version v0", always(*CHUNKS, output_version="v0"), four_ways, marks=V1_OUTPUT),
    row(
        "custom_get_token_ids",
        always(custom_get_token_ids=lambda text: [len(word) for word in text.split()]),
        counted,
    ),
    row("verbose", always(verbose=True), lambda model: captured(plainly, model)),
    row("verbose in a chain", always(verbose=True), lambda m: captured(uses.in_a_chain, m)),
    row("set_verbose", always(), globally(set_verbose)),
    row("set_debug", always(), globally(set_debug)),
    row("profile", always(profile={"tool_calling": True}), attribute("profile"), marks=PROFILE),
    row("profile set later", always(profile=None), profiled_later, marks=PROFILE),
    row("attributes set later", always(cls=Parameters), assigned),
    row("unknown attributes", always(cls=Parameters), unknown_attributes),
    row("stop", always(), with_arguments(stop=["END", "STOP"])),
    row("other arguments", always(), with_arguments(temperature=0.1, tool_choice="any")),
    row("prompts of every kind", always(), with_prompts),
    row(
        "prompts that can't be",
        always(),
        lambda model: [error_of(model.invoke, 5), error_of(model.stream, 5)],
    ),
    row(
        "bind and with_config",
        always(),
        lambda model: four_ways(model.bind(stop=["END"]).with_config(tags=["b"], run_name="Bound")),
    ),
    row("model_copy", always(cls=Parameters), copied(lambda m: m.model_copy())),
    row(
        "model_copy update",
        always(cls=Parameters, tags=["a"]),
        copied(
            lambda model: model.model_copy(update={"temperature": 0.25, "model_name": "model-c"})
        ),
    ),
    row("model_copy deep", SerializableModel, copied(lambda model: model.model_copy(deep=True))),
    row("copy", always(cls=small.Strict), copied(copy.copy)),
    row("deepcopy", SerializableModel, copied(copy.deepcopy)),
    row("pickle", SerializableModel, copied(lambda model: pickle.loads(pickle.dumps(model)))),
]
IDENTITY = [
    row("parameters", always(cls=Parameters, **PARAMETERS), parameters),
    row("parameters in traces", always(cls=Parameters, **PARAMETERS), four_ways),
    row("what detection looks at", always(cls=Parameters, **PARAMETERS), name_detection),
    row("run_name and run_id", always(cls=Parameters), run_names),
    row("serialized of a serializable model", SerializableModel, four_ways),
    row("as pydantic has it", always(cls=Parameters, **PARAMETERS), as_data),
    row("as LangChain has it", lambda: SerializableModel(base_url="u"), as_langchain),
    row("as LangChain has it if not serializable", always(), as_langchain),
    row("as pydantic 1 had it", SerializableModel, as_pydantic_had_it),
    row("equality", SerializableModel, compared),
    row("as a runnable", always(cls=Parameters), as_runnable),
    row("registered handlers", always(), environment_tracing),
    row("usage counted once", always(METERED), metered),
    row("usage counted once with a cache", always(METERED, cache=Cache), metered),
    row("hash", always(), lambda model: error_of(hash, model)),
]
CACHE = [
    row("a serializable model", lambda: SerializableModel(cache=Cache()), cached),
    row("a tool call is stored", always(call("f", a=1), cache=Cache), cached),
]


@pytest.mark.parametrize("row", CONSTRUCTION)
def test_construction(row):
    row.check()


@pytest.mark.parametrize("row", STATE)
def test_state(row):
    row.check()


@pytest.mark.parametrize("row", IDENTITY)
def test_identity(row):
    row.check()


@pytest.mark.parametrize("row", CACHE)
def test_cache(row):
    row.check()
