"""What can't be told by comparing with the bare model: where a wrapper is to differ from it."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
from typing import Any, ClassVar

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.exceptions import LangChainException
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.load import dumps, load
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.rate_limiters import BaseRateLimiter
from langchain_core.runnables import ConfigurableField, RunnableLambda
from pydantic import BaseModel, ConfigDict, PrivateAttr, SecretStr, ValidationError

from conftest import WAYS, ask, chunks_of
from langchain_retrying import (
    EmptyCompletionError,
    FallbackModel,
    ReplyKind,
    RetryingChatModel,
    RetryPolicy,
    init_retrying_chat_model,
)
from langchain_retrying.testing import ScriptedChatModel
from side_by_side.integrations import MODELS, anthropic, gemini, ollama, openai, responses
from side_by_side.listening import Recorder
from side_by_side.small_models import (
    Candidates,
    CopyBinding,
    Editing,
    Informing,
    Journal,
    Native,
    NativeSync,
    NestedBinding,
    Parameters,
    SerializableModel,
    Strict,
    Structured,
    SyncStreaming,
    Whole,
    WholeSync,
    call,
)
from wire.turns import BLANK, HELLO, Turn, calls

RAISE = RetryPolicy(max_retries=2, wait=None, on_exhausted="raise")
BLANKS_THEN = ["", " ", "Hello."]


def wrapped(*replies: Any, policy: RetryPolicy = RAISE, cls: Any = ScriptedChatModel, **kwargs):
    return RetryingChatModel(cls(replies=list(replies), **kwargs), policy)


def whole(text: str) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=AIMessage(content=text))])


# --- construction ---


def test_arguments_go_by_position_or_by_name():
    model, policy = ScriptedChatModel(["a"]), RetryPolicy(max_retries=5)
    for made in (
        RetryingChatModel(model, policy),
        RetryingChatModel(model, policy=policy),
        RetryingChatModel(inner_model=model, policy=policy),
    ):
        assert made.inner_model is model
        assert made.retry_policy is policy
    assert RetryingChatModel(model).retry_policy == RetryPolicy()


def test_a_wrapper_is_one_of_the_inner_class_and_of_its_own():
    model = wrapped("a", cls=Parameters)
    assert isinstance(model, Parameters)
    assert isinstance(model, RetryingChatModel)
    assert type(model).__name__ == "Parameters"


@pytest.mark.parametrize("when", ["before", "after"])
def test_methods_patched_onto_the_inner_model_are_called_and_retried(way, when):
    """The instance given is the one that is asked, as a test's mock or a tracer's patch has it."""
    model = ScriptedChatModel([])
    replies = iter(BLANKS_THEN)

    def generate(messages, stop=None, run_manager=None, **kwargs):
        return whole(next(replies))

    async def agenerate(messages, stop=None, run_manager=None, **kwargs):
        return whole(next(replies))

    def stream(messages, stop=None, run_manager=None, **kwargs):
        yield ChatGenerationChunk(message=AIMessageChunk(content=next(replies)))

    async def astream(messages, stop=None, run_manager=None, **kwargs):
        yield ChatGenerationChunk(message=AIMessageChunk(content=next(replies)))

    def patch():
        for name, function in {
            "_generate": generate,
            "_agenerate": agenerate,
            "_stream": stream,
            "_astream": astream,
        }.items():
            object.__setattr__(model, name, function)

    if when == "before":
        patch()
    retrying = RetryingChatModel(model, RAISE)
    if when == "after":
        patch()
    assert ask(way, retrying).content == "Hello."
    assert model.requests == []


@pytest.mark.parametrize(
    ("thing", "says"),
    [
        (None, "missing"),
        ("openai:gpt-5", "init_retrying_chat_model"),
        (ScriptedChatModel, "class"),
        (RunnableLambda(str), "BaseChatModel"),
        (ScriptedChatModel(["a"]).with_fallbacks([ScriptedChatModel(["b"])]), "with_fallbacks"),
        (42, "BaseChatModel"),
    ],
)
def test_what_is_no_model_is_told_what_to_write(thing, says):
    with pytest.raises(TypeError, match=says):
        RetryingChatModel(thing)


def test_what_is_no_policy_is_told_what_to_write():
    with pytest.raises(TypeError, match="RetryPolicy"):
        RetryingChatModel(ScriptedChatModel(["a"]), 3)


@pytest.mark.parametrize(
    "around",
    [
        lambda model: model.bind(stop=["END"]),
        lambda model: model.bind_tools([add]),
        lambda model: model.with_config(tags=["t"]),
        lambda model: model.bind(stop=["END"]).with_config(tags=["t"]).bind(a=1),
        lambda model: model.with_retry(stop_after_attempt=2),
    ],
)
def test_what_holds_one_model_is_unwrapped_and_put_together_again(way, around):
    model = ScriptedChatModel(BLANKS_THEN)
    bare = around(model)
    retrying = RetryingChatModel(bare, RAISE)
    assert type(retrying) is type(bare)
    assert ask(way, retrying).content == "Hello."
    assert len(model.requests) == 3


def test_a_configurable_model_is_unwrapped_and_put_together_again():
    model = Parameters(replies=BLANKS_THEN)
    bare = model.configurable_fields(temperature=ConfigurableField(id="t"))
    retrying = RetryingChatModel(bare, RAISE)
    assert [spec.id for spec in retrying.config_specs] == ["t"]
    assert retrying.invoke("Hi", {"configurable": {"t": 0.5}}).content == "Hello."


@pytest.mark.parametrize("wrap", ["given", "made"])
def test_a_model_chosen_at_run_time_is_wrapped_when_it_is_made(server, wrap):
    init_chat_model = pytest.importorskip("langchain.chat_models").init_chat_model
    pytest.importorskip("langchain_openai")
    kwargs = {
        "configurable_fields": ("model", "model_provider", "temperature"),
        "base_url": f"{server.url}/v1",
        "api_key": "none",
    }
    if wrap == "given":
        model = RetryingChatModel(init_chat_model(**kwargs), RAISE)
    else:
        model = init_retrying_chat_model(**kwargs, policy=RAISE)
    config = {"configurable": {"model": "m", "model_provider": "openai", "temperature": 0.5}}
    for runnable in (model, model.bind_tools([add]), model.with_config(tags=["t"])):
        server.play(BLANK, HELLO)
        assert runnable.invoke("Hi", config).content == "Hello you."
        assert [request["json"]["temperature"] for request in server.requests] == [0.5, 0.5]


def test_a_model_made_by_name_is_wrapped():
    pytest.importorskip("langchain.chat_models")
    pytest.importorskip("langchain_openai")
    model = init_retrying_chat_model("openai:gpt-5", api_key="none", policy=RAISE)
    assert isinstance(model, RetryingChatModel)
    assert model.retry_policy is RAISE


def test_a_class_defined_in_a_function_works(way):
    def define(answer: str):
        class Local(ScriptedChatModel):
            kind: str = answer

        return Local

    first, second = define("a"), define("b")
    models = [RetryingChatModel(cls(BLANKS_THEN), RAISE) for cls in (first, second)]
    assert [ask(way, model).content for model in models] == ["Hello."] * 2
    assert [model.kind for model in models] == ["a", "b"]
    assert isinstance(models[0], first)
    assert not isinstance(models[0], second)


def test_private_attributes_strict_fields_and_own_dunders_work(way):
    model = wrapped(*BLANKS_THEN, cls=Strict)
    assert ask(way, model).content == "Hello."
    if "invoke" in way:
        assert model._log == model.inner_model._log != []


def test_the_inner_class_is_ended_once_and_not_for_wrappers():
    """`__del__` closes what the inner model holds; a wrapper, a copy or a twin must not do that."""
    ended: list[str] = []

    class Ending(ScriptedChatModel):
        def __del__(self) -> None:
            ended.append("end")

    model = Ending(["a"] * 4, cache=InMemoryCache())
    retrying = RetryingChatModel(model)
    retrying.invoke("Hi")
    again = RetryingChatModel(retrying)
    again.invoke("Hi")
    del retrying, again
    gc.collect()
    assert ended == []
    assert model.invoke("Bye").content == "a"
    del model
    gc.collect()
    assert ended == ["end"]


class Loud(RetryingChatModel):
    """A wrapper of one's own."""

    seen: ClassVar[list[Any]] = []

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        self.seen.append(tools)
        return super().bind_tools(tools, **kwargs)


def test_a_subclass_of_the_wrapper_is_one_in_all_it_makes():
    model = Loud(CopyBinding(["", "Hello."] * 3), RAISE)
    assert isinstance(model, (Loud, CopyBinding))
    assert model.bind_tools([add]).invoke("Hi").content == "Hello."
    assert Loud.seen == [[add]]
    for other in (copy.copy(model), model.model_copy(), model.bind_tools([add]).bound):
        assert isinstance(other, Loud)
    assert repr(model).startswith("Loud(")


def test_a_wrapper_wrapped_again_has_the_new_policy_and_does_not_multiply(way):
    model = ScriptedChatModel([""] * 9)
    inner = RetryingChatModel(model, RetryPolicy(max_retries=2, wait=None))
    outer = RetryingChatModel(inner, RAISE)
    assert type(outer) is type(inner)
    assert outer.inner_model is model
    assert inner.retry_policy.max_retries == 2
    with pytest.raises(EmptyCompletionError):
        ask(way, outer)
    assert len(model.requests) == 3


@pytest.mark.parametrize(
    "around",
    [
        lambda model: model.bind(stop=["END"]),
        lambda model: model.bind_tools([add]).with_config(tags=["t"]),
        lambda model: model.with_retry(stop_after_attempt=1),
        lambda model: model.configurable_fields(name=ConfigurableField(id="n")),
    ],
)
def test_nor_does_one_inside_a_binding(way, around):
    model = ScriptedChatModel([""] * 9)
    bound = around(RetryingChatModel(model, RetryPolicy(max_retries=2, wait=None)))
    with pytest.raises(EmptyCompletionError):
        ask(way, RetryingChatModel(bound, RAISE))
    assert len(model.requests) == 3


def test_nor_does_one_that_is_chosen_at_run_time(server):
    init_chat_model = pytest.importorskip("langchain.chat_models").init_chat_model
    pytest.importorskip("langchain_openai")
    kwargs = {"model_provider": "openai", "base_url": f"{server.url}/v1", "api_key": "none"}
    once = RetryingChatModel(init_chat_model(configurable_fields=("model",), **kwargs))
    twice = RetryingChatModel(once, RAISE)
    server.play(BLANK)
    with pytest.raises(EmptyCompletionError):
        twice.bind_tools([add]).invoke("Hi", {"configurable": {"model": "m"}})
    assert len(server.requests) == 3


@pytest.mark.parametrize("bind", [lambda m: m, lambda m: m.bind(stop=["END"])])
def test_nor_does_one_that_is_fallen_back_to(way, bind):
    """What is bound to it counts, and its own policy and bounds do not."""
    model = ScriptedChatModel([""] * 9)
    within = bind(RetryingChatModel(model, RetryPolicy(max_retries=2, on_exhausted="raise")))
    remedies = {ReplyKind.BLANK: [FallbackModel(within)]}
    policy = RetryPolicy(max_retries=2, wait=None, remedies=remedies)
    reply = ask(way, RetryingChatModel(ScriptedChatModel([""]), policy))
    assert reply.response_metadata["empty_retry"]["attempts"] == 3
    assert len(model.requests) == 2
    bare = ScriptedChatModel(["", "", ""])
    ask(way, bind(bare))
    assert model.requests[0].kwargs == bare.requests[0].kwargs


def test_wrapping_again_keeps_a_wrapper_of_ones_own():
    """It is a `RetryingChatModel`, as was asked for; the other way round the class asked for is."""
    own = Loud(ScriptedChatModel(["", "Hello."]), RetryPolicy(max_retries=0))
    again = RetryingChatModel(own, RAISE)
    assert isinstance(again, Loud)
    assert (again.inner_model, again.retry_policy) == (own.inner_model, RAISE)
    plain = RetryingChatModel(own.inner_model)
    assert isinstance(Loud(plain, RAISE), Loud)

    class Other(RetryingChatModel):
        pass

    other = Other(own, RAISE)
    assert isinstance(other, Other)
    assert not isinstance(other, Loud)
    assert other.invoke("Hi").content == "Hello."


@pytest.mark.parametrize(
    "make",
    [
        lambda cls: cls(replies=BLANKS_THEN),
        lambda cls: cls(BLANKS_THEN),
        lambda cls: cls.model_construct(replies=BLANKS_THEN),
        lambda cls: cls.model_validate({"replies": BLANKS_THEN}),
        lambda cls: type("Own", (cls,), {})(BLANKS_THEN),
        lambda cls: type("Own", (type("Own", (cls,), {}),), {})(BLANKS_THEN),
        lambda cls: type("Own", (cls,), {})(BLANKS_THEN).model_copy(),
        lambda cls: type(type("Own", (cls,), {})([]))(BLANKS_THEN),
    ],
)
def test_what_the_class_of_a_wrapper_makes_is_wrapped(way, make):
    made = make(type(wrapped()))
    assert isinstance(made, RetryingChatModel)
    assert made.retry_policy == RetryPolicy()
    assert not isinstance(made.inner_model, RetryingChatModel)
    assert ask(way, made).content == "Hello."


def test_a_subclass_of_it_makes_wrappers_of_the_class_that_was_wrapped_with():
    made = type("Own", (type(Loud(ScriptedChatModel())),), {})(["a"])
    assert isinstance(made, Loud)
    assert isinstance(made, ScriptedChatModel)


def test_a_subclasss_generation_is_below_the_retries(way):
    class Own(type(wrapped())):
        def _generate(self, *args, **kwargs):
            result = super()._generate(*args, **kwargs)
            result.generations[0].message.name = "own"
            return result

        async def _agenerate(self, *args, **kwargs):
            return self._generate(*args, **kwargs)

        _stream = BaseChatModel._stream
        _astream = BaseChatModel._astream

    model = Own(BLANKS_THEN)
    assert ask(way, model).name == "own"
    assert len(model.requests) == 3


class Own(type(RetryingChatModel(SerializableModel()))):  # type: ignore[misc]  # made at run time
    pass


def test_a_subclass_and_what_it_makes_can_be_pickled():
    assert pickle.loads(pickle.dumps(Own)) is Own
    model = Own(answer="Bye.")
    assert pickle.loads(pickle.dumps(type(model))) is type(model)
    again = pickle.loads(pickle.dumps(model))
    assert type(again) is type(model)
    assert again.invoke("Hi").content == "Bye."


def test_wrappers_classes_are_pickled_with_the_class_that_was_wrapped_with():
    cls = type(Loud(SerializableModel()))
    assert pickle.loads(pickle.dumps(cls)) is cls
    assert cls is not type(RetryingChatModel(SerializableModel()))


def test_a_wrappers_own_class_makes_none_of_fields():
    with pytest.raises(TypeError, match="takes a model and a policy, not replies"):
        RetryingChatModel(replies=["a"])
    with pytest.raises(TypeError, match="the model to wrap is missing"):
        RetryingChatModel.model_construct(replies=["a"])


def test_a_model_given_to_the_class_of_a_wrapper_is_wrapped():
    other = ScriptedChatModel(["a"])
    for made in (type(wrapped())(other, RAISE), type(wrapped())(inner_model=other, policy=RAISE)):
        assert (made.inner_model, made.retry_policy) == (other, RAISE)


def test_no_name_of_the_wrappers_own_shadows_a_field(way):
    """Code of the inner class runs on the wrapper, and must find its own."""

    class Named(ScriptedChatModel):
        policy: str = "mine"
        call: str = "mine"
        _twin: str = PrivateAttr(default="mine")

        @property
        def _identifying_params(self) -> dict[str, Any]:
            return {"policy": self.policy, "call": self.call}

    model = wrapped(*BLANKS_THEN, cls=Named)
    assert ask(way, model).content == "Hello."
    assert model._identifying_params == {"policy": "mine", "call": "mine"}
    model.policy = "other"
    assert model.inner_model.policy == "other"


@pytest.mark.filterwarnings("ignore:Field name")
@pytest.mark.parametrize("name", ["inner_model", "retry_policy"])
def test_a_field_that_is_named_as_an_attribute_of_the_wrapper_is_still_the_models(name):
    """The attribute is the wrapper's, by contract; the model's data and traces keep the field."""
    namespace = {
        "__annotations__": {name: str},
        name: "mine",
        "__module__": __name__,
        "_identifying_params": property(lambda self: {name: getattr(self, name)}),
    }
    cls = type("Namesake", (ScriptedChatModel,), namespace)
    model = RetryingChatModel(cls(BLANKS_THEN), RAISE)
    assert model.invoke("Hi").content == "Hello."
    assert model.model_dump()[name] == "mine"
    assert model.inner_model._identifying_params == {name: "mine"}
    assert model._identifying_params == {name: "mine"}


# --- state ---


def test_reads_and_writes_reach_the_inner_model():
    inner = Parameters(replies=["a"])
    model = RetryingChatModel(inner)
    model.temperature = 0.5
    model.tags = ["t"]
    assert (inner.temperature, inner.tags) == (0.5, ["t"])
    assert inner.model_fields_set == model.model_fields_set >= {"temperature", "tags"}
    inner.temperature = 0.75
    assert model.temperature == 0.75
    if "profile" in Parameters.model_fields:
        inner.profile = {"max_input_tokens": 5}
        assert model.profile == {"max_input_tokens": 5}


def test_assignments_are_validated_as_the_inner_class_has_it():
    model = wrapped("a", cls=Strict)
    with pytest.raises(ValidationError):
        model.limit = 0
    with pytest.raises((ValidationError, ValueError)):
        model.unknown = 1
    model.limit = 7
    assert (model.limit, model.inner_model.limit) == (7, 7)
    model.inner_model.limit = 9
    assert (model.limit, model.model_dump()["limit"]) == (9, 9)


@pytest.mark.parametrize("name", ["inner_model", "retry_policy"])
def test_what_is_wrapped_and_how_can_t_be_set(name):
    with pytest.raises(AttributeError, match="wrap the model again"):
        setattr(wrapped("a"), name, None)


def test_an_attribute_is_deleted_on_the_inner_model():
    class Extra(ScriptedChatModel):
        model_config = ConfigDict(extra="allow")

    model = wrapped("a", cls=Extra, given=1)
    del model.given
    assert not hasattr(model, "given")
    assert not hasattr(model.inner_model, "given")


def test_the_inner_model_keeps_working_by_itself(way):
    """Nothing of the wrapper's stays behind on it, not even what is computed once."""
    model = Parameters(replies=["", "Hello.", "", "Bye."])
    retrying = RetryingChatModel(model, RAISE)
    assert ask(way, retrying).content == "Hello."
    recorder = Recorder()
    assert ask(way, model, config={"callbacks": [recorder]}).content == ""
    _, (serialized, _), _ = recorder.heard[0]
    assert "RetryingChatModel" not in str(serialized)
    assert not [name for name in vars(model) if "retry" in name.lower()]


@pytest.mark.parametrize(
    "copying",
    [
        copy.copy,
        copy.deepcopy,
        lambda model: model.model_copy(),
        lambda model: model.model_copy(deep=True),
        lambda model: model.model_copy(update={"answer": " "}),
        lambda model: pickle.loads(pickle.dumps(model)),
    ],
)
def test_copies_wrap_again_with_a_state_of_their_own(copying):
    model = RetryingChatModel(SerializableModel(answer=" "), RAISE)
    other = copying(model)
    assert isinstance(other, RetryingChatModel)
    assert isinstance(other, SerializableModel)
    assert other.retry_policy == RAISE
    assert other.inner_model is not model.inner_model
    with pytest.raises(EmptyCompletionError) as caught:
        other.invoke("Hi")
    assert caught.value.attempts == 3
    other.answer = "Hello."
    assert other.invoke("Hi").content == "Hello."
    assert model.answer == " "


def test_model_copy_with_an_update_takes_effect():
    model = RetryingChatModel(SerializableModel(answer="Hello."), RAISE)
    other = model.model_copy(update={"answer": "Bye.", "model_name": "model-b"})
    assert other.invoke("Hi").content == "Bye."
    assert (other.model_name, other.inner_model.model_name) == ("model-b", "model-b")
    assert model.invoke("Hi").content == "Hello."


def test_what_was_dumped_by_langchain_is_loaded_bare():
    """A known limit: LangChain's own serialized form has no place for a wrapper."""
    model = RetryingChatModel(SerializableModel(base_url="u"))
    text = dumps(model)
    assert text == dumps(model.inner_model)
    assert "sk-secret" not in text
    assert callable(load)


def test_the_repr_says_that_it_is_wrapped_and_shows_no_secret():
    model = RetryingChatModel(
        Parameters(api_key=SecretStr("sk-hidden")), RetryPolicy(max_retries=5)
    )
    for text in (repr(model), str(model)):
        assert text.startswith("RetryingChatModel(Parameters(")
        assert "RetryPolicy(max_retries=5)" in text
        assert "sk-hidden" not in text


class Limiter(BaseRateLimiter):
    acquired = 0

    def acquire(self, *, blocking: bool = True) -> bool:
        self.acquired += 1
        return True

    async def aacquire(self, *, blocking: bool = True) -> bool:
        return self.acquire()


def test_the_rate_limiter_is_asked_once_for_each_attempt_whoever_listens(way):
    """Also where an attached handler makes `invoke` stream."""
    model = wrapped(*BLANKS_THEN, rate_limiter=Limiter())
    ask(way, model.bind(stream=True) if "invoke" in way else model)
    assert model.rate_limiter.acquired == 3


# --- binding ---


def add(a: int, b: int) -> int:
    """Add numbers."""
    return a + b


class Answer(BaseModel):
    """An answer."""

    text: str


SCHEMA = {
    "title": "Answer",
    "description": "An answer.",
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
BY_CALL, BY_TEXT = calls("Answer", text="42"), Turn('{"text": "42"}')


@pytest.mark.parametrize("cls", [ScriptedChatModel, NestedBinding, CopyBinding])
def test_tools_are_bound_over_the_retry(way, cls):
    requests: list[Any] = []
    model = wrapped(*BLANKS_THEN, cls=cls, requests=requests).bind_tools([add])
    assert ask(way, model).content == "Hello."
    assert [len(request.kwargs["tools"]) for request in model_requests(model)] == [1, 1, 1]


def model_requests(runnable: Any) -> list[Any]:
    while hasattr(runnable, "bound"):
        runnable = runnable.bound
    return runnable.requests


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("schema", [Answer, SCHEMA])
@pytest.mark.parametrize("cls", [ScriptedChatModel, NestedBinding, CopyBinding])
def test_structured_output_comes_after_a_blank(cls, schema, raw):
    model = wrapped("", call("Answer", text="42"), cls=cls)
    output = model.with_structured_output(schema, include_raw=raw).invoke("Hi")
    parsed = output["parsed"] if raw else output
    assert parsed == (Answer(text="42") if schema is Answer else {"text": "42"})
    if raw:
        assert output["raw"].response_metadata["empty_retry"]["attempts"] == 2


def test_structured_output_written_as_a_closure_comes_after_a_blank():
    assert wrapped("", "42", cls=Structured).with_structured_output(Answer).invoke("Hi") == "42"


METHODS = [
    ("ChatOpenAI", openai, "function_calling", BY_CALL),
    ("ChatOpenAI", openai, "json_schema", BY_TEXT),
    ("ChatOpenAI", openai, "json_mode", BY_TEXT),
    ("Responses", responses, "function_calling", BY_CALL),
    ("Responses", responses, "json_schema", BY_TEXT),
    ("Responses", responses, "json_mode", BY_TEXT),
    ("ChatAnthropic", anthropic, "function_calling", BY_CALL),
    ("ChatAnthropic", anthropic, "json_schema", BY_TEXT),
    ("Gemini", gemini, "function_calling", BY_CALL),
    ("Gemini", gemini, "json_schema", BY_TEXT),
    ("Gemini", gemini, "json_mode", BY_TEXT),
    ("Ollama", ollama, "function_calling", BY_CALL),
    ("Ollama", ollama, "json_schema", BY_TEXT),
    ("Ollama", ollama, "json_mode", BY_TEXT),
]


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")
@pytest.mark.parametrize(
    ("make", "method", "turn"),
    [pytest.param(*case, id=f"{name}-{case[1]}") for name, *case in METHODS],
)
def test_structured_output_of_an_integration_comes_after_a_blank(server, make, method, turn):
    """Bare, a blank is no output, or an error of the parser's."""
    model = make()(server.url)
    if method == "json_schema" and "ChatAnthropic" in type(model).__name__:
        signature = type(model).with_structured_output.__doc__ or ""
        if "json_schema" not in signature:
            pytest.skip("this release of langchain-anthropic has no json_schema")
    structured = RetryingChatModel(model, RAISE).with_structured_output(Answer, method=method)
    for answer in (
        lambda: structured.invoke("Hi"),
        lambda: asyncio.run(structured.ainvoke("Hi")),
        lambda: list(structured.stream("Hi"))[-1],
    ):
        server.play(BLANK, BLANK, turn)
        assert answer() == Answer(text="42")
        assert len(server.requests) == 3


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_repr_and_errors_of_an_integration_show_no_key(server, make):
    model = RetryingChatModel(make()(server.url), RAISE)
    server.play(BLANK)
    with pytest.raises(EmptyCompletionError) as caught:
        model.invoke("Hi")
    for text in (repr(model), str(caught.value), repr(caught.value)):
        assert "sk-secret" not in text
    assert len(server.requests) == 3


# --- configurable, fallbacks, layers ---


def test_configured_fields_hold_for_each_attempt(way):
    at: list[Any] = []

    class Speaking(Parameters):
        def _next(self, *args, **kwargs):
            at.append(self.temperature)
            return super()._next(*args, **kwargs)

    model = wrapped(*BLANKS_THEN, cls=Speaking)
    runnable = model.configurable_fields(temperature=ConfigurableField(id="t"))
    config = {"configurable": {"t": 0.5}}
    assert ask(way, runnable, config=config).content == "Hello."
    assert at == [0.5] * 3
    assert model.temperature is None


def test_configurable_fields_and_tools_go_together():
    model = wrapped(*BLANKS_THEN, cls=Parameters)
    runnable = model.configurable_fields(temperature=ConfigurableField(id="t")).bind_tools([add])
    assert runnable.invoke("Hi", {"configurable": {"t": 0.5}}).content == "Hello."


@pytest.mark.parametrize("which", ["first", "other", "made"])
def test_each_configurable_alternative_retries(way, which):
    runnable = wrapped(*BLANKS_THEN).configurable_alternatives(
        ConfigurableField(id="which"),
        default_key="first",
        other=wrapped(*BLANKS_THEN),
        made=lambda: wrapped(*BLANKS_THEN),
    )
    assert ask(way, runnable, config={"configurable": {"which": which}}).content == "Hello."


@pytest.mark.parametrize("bind", [lambda m: m, lambda m: m.bind(stop=["END"])])
def test_fallbacks_take_over_when_nothing_but_blanks_comes(way, bind):
    model = wrapped("", "", "").with_fallbacks(
        [ScriptedChatModel(["Hello."])], exceptions_to_handle=(EmptyCompletionError,)
    )
    assert ask(way, bind(model)).content == "Hello."


def test_tools_bound_to_a_model_with_fallbacks_reach_both():
    other = ScriptedChatModel(["Hello."])
    model = wrapped("", "", "")
    bound = model.with_fallbacks([other]).bind_tools([add])
    assert bound.invoke("Hi").content == "Hello."
    assert len(model.requests) == 3
    assert [len(m.requests[-1].kwargs["tools"]) for m in (model, other)] == [1, 1]


def test_with_retry_repeats_what_failed_after_all_retries():
    """Three attempts of three requests: why the error says that it is not to be retried."""
    model = wrapped(*[""] * 9)
    retrying = model.with_retry(wait_exponential_jitter=False, stop_after_attempt=3)
    with pytest.raises(EmptyCompletionError):
        retrying.invoke("Hi")
    assert len(model.requests) == 9


def test_with_retry_on_exceptions_of_the_model_is_what_it_was(way):
    model = ScriptedChatModel([ConnectionError("lost"), "", "Hello."])
    retrying = RetryingChatModel(model, RAISE).with_retry(
        retry_if_exception_type=(ConnectionError,), wait_exponential_jitter=False
    )
    if "stream" in way:
        with pytest.raises(ConnectionError):  # bare, too: `with_retry` retries no streams
            ask(way, retrying)
    else:
        assert ask(way, retrying).content == "Hello."


def test_model_retry_middleware_does_not_repeat_what_was_retried():
    middleware = pytest.importorskip("langchain.agents.middleware")
    exceptions = pytest.importorskip("langchain_core.exceptions")
    if not hasattr(middleware, "ModelRetryMiddleware") or not hasattr(exceptions, "ModelError"):
        pytest.skip("this release of LangChain knows no errors that are not to be retried")
    agents = pytest.importorskip("langchain.agents")
    model = wrapped(*[""] * 9)
    agent = agents.create_agent(
        model,
        middleware=[middleware.ModelRetryMiddleware(max_retries=2, on_failure="error")],
    )
    with pytest.raises(EmptyCompletionError):
        agent.invoke({"messages": "Hi"})
    assert len(model.requests) == 3


def test_the_error_is_one_of_langchains():
    assert issubclass(EmptyCompletionError, LangChainException)


# --- cache ---


class Cache(InMemoryCache):
    """Keeps its keys in order."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[str] = []

    def update(self, prompt: str, llm_string: str, return_val: Any) -> None:
        self.keys.append(llm_string)
        super().update(prompt, llm_string, return_val)


@pytest.fixture(params=["own", "global"])
def cache(request):
    """One for all models of a test: given to each, or set for all."""
    cache = Cache()
    if request.param == "global":
        set_llm_cache(cache)
    yield {"cache": cache if request.param == "own" else None}, cache
    set_llm_cache(None)


@pytest.mark.parametrize("whole_way", ["invoke", "ainvoke"])
def test_a_cache_serves_the_answer_and_not_the_account_of_its_retries(whole_way, cache):
    kwargs, _ = cache
    model = wrapped("", "Hello.", **kwargs)
    first, second = ask(whole_way, model), ask(whole_way, model)
    assert (first.content, second.content) == ("Hello.", "Hello.")
    assert first.response_metadata["empty_retry"]["attempts"] == 2
    assert "empty_retry" not in second.response_metadata
    assert len(model.requests) == 2


@pytest.mark.parametrize("whole_way", ["invoke", "ainvoke"])
def test_a_cache_stores_no_blank_and_no_stand_in(whole_way, cache):
    kwargs, stored = cache
    for on_exhausted in ("return", "Nothing came.", AIMessage(content="Nothing came.")):
        policy = RetryPolicy(max_retries=0, on_exhausted=on_exhausted)
        model = wrapped("", "", policy=policy, **kwargs)
        ask(whole_way, model)
        ask(whole_way, model)
        assert len(model.requests) == 2
    assert stored.keys == []


@pytest.mark.parametrize("whole_way", ["invoke", "ainvoke"])
def test_a_cache_stores_no_answer_of_another_model(whole_way, cache):
    """Its key is that of the model that did not answer."""
    kwargs, stored = cache
    remedies = {ReplyKind.BLANK: [FallbackModel(ScriptedChatModel(["From another."] * 2))]}
    model = wrapped("", "", "Hello.", policy=RetryPolicy(remedies=remedies), **kwargs)
    for _ in range(2):
        reply = ask(whole_way, model)
        assert reply.content == "From another."
        assert reply.response_metadata["empty_retry"]["model"] == "ScriptedChatModel"
    assert stored.keys == []
    assert ask(whole_way, model).content == "Hello."
    assert len(stored.keys) == 1


@pytest.mark.parametrize("told", [{"stand_in": True}, {"model": "Another"}])
@pytest.mark.parametrize("whole_way", ["invoke", "ainvoke"])
def test_a_cache_serves_nothing_that_was_said_for_the_model(whole_way, told):
    """Whoever has stored it."""

    class Remembering(Cache):
        def lookup(self, prompt: str, llm_string: str) -> Any:
            message = AIMessage("Sorry.", response_metadata={"empty_retry": told})
            return [ChatGeneration(message=message)]

    assert ask(whole_way, wrapped("Hello.", cache=Remembering())).content == "Hello."


@pytest.mark.parametrize("whole_way", ["invoke", "ainvoke"])
def test_an_answer_is_served_whatever_wraps_the_model_and_whatever_the_policy(whole_way, cache):
    """A cache stays warm when a model is wrapped, and when its policy is changed."""
    kwargs, stored = cache
    model = ScriptedChatModel(["Hello.", "Bye."], **kwargs)
    policies = [RetryPolicy(), RetryPolicy(max_retries=5, nudge=lambda messages, error: "Go on.")]
    retrying = [RetryingChatModel(model, policy) for policy in policies]
    assert [ask(whole_way, one).content for one in (model, *retrying)] == ["Hello."] * 3
    for one in (retrying[0], retrying[1], model):
        assert ask(whole_way, one, "And?").content == "Bye."
    assert len(model.requests) == len(stored.keys) == 2


@pytest.mark.parametrize("whole_way", ["invoke", "ainvoke"])
def test_a_text_stored_before_is_not_served_where_a_tool_call_is_required(whole_way, cache):
    kwargs, _ = cache
    model = ScriptedChatModel(["Let me see.", call("look_up"), "never"], **kwargs)
    forcing = {"tools": [{"name": "look_up"}], "tool_choice": "any"}
    assert ask(whole_way, model.bind(**forcing)).content == "Let me see."
    retrying = RetryingChatModel(model, RetryPolicy(require_tool_call=True)).bind(**forcing)
    assert ask(whole_way, retrying).tool_calls
    assert ask(whole_way, model.bind(**forcing)).tool_calls  # the better of the two is kept


@pytest.mark.parametrize("whole_way", ["invoke", "ainvoke"])
def test_a_cache_stores_no_text_where_a_tool_call_is_required(whole_way, cache):
    kwargs, stored = cache
    policy = RetryPolicy(max_retries=0, require_tool_call=True)
    model = wrapped("Let me see.", "Let me see.", "Hello.", policy=policy, **kwargs)
    forced = model.bind(tools=[{"name": "look_up"}], tool_choice="any")
    assert [ask(whole_way, forced).content for _ in range(2)] == ["Let me see."] * 2
    assert stored.keys == []
    assert ask(whole_way, model).content == "Hello."
    assert len(stored.keys) == 1


@pytest.mark.parametrize("whole_way", ["invoke", "ainvoke"])
def test_a_cache_serves_no_blank_that_was_stored_before(whole_way):
    """By the bare model, or by an earlier release: whatever is found under the key."""

    class Remembering(Cache):
        def lookup(self, prompt: str, llm_string: str) -> Any:
            return [ChatGeneration(message=AIMessage(content=" "))]

    model = wrapped("Hello.", cache=Remembering())
    assert ask(whole_way, model).content == "Hello."


@pytest.mark.parametrize("whole_way", ["invoke", "ainvoke"])
def test_the_cache_in_use_is_the_one_that_counts_now(whole_way):
    """It may be another at each call: the model's own, the global one, or none."""
    model = wrapped("a", "b", "c", "d", "e")
    own, first, second = Cache(), Cache(), Cache()
    try:
        for cache in (own, first, second):
            model.cache = own if cache is own else None
            set_llm_cache(cache)
            assert [ask(whole_way, model).content for _ in range(2)] == [
                "abc"[len(model.requests) - 1]
            ] * 2
        model.cache = own
        assert ask(whole_way, model).content == "a"
        model.cache = False
        assert ask(whole_way, model).content == "d"
        model.cache = None
        set_llm_cache(None)
        assert ask(whole_way, model).content == "e"
    finally:
        set_llm_cache(None)
    assert [len(cache.keys) for cache in (own, first, second)] == [1, 1, 1]


def test_a_cache_serves_by_what_is_required_of_each_call(cache):
    kwargs, _ = cache
    policy = RetryPolicy(max_retries=0, require_tool_call=True)
    model = wrapped("Let me see.", call("look_up"), policy=policy, **kwargs)
    free = model.bind(tools=[{"name": "look_up"}])
    forced = model.bind(tools=[{"name": "look_up"}], tool_choice="any")
    for _ in range(2):
        assert free.invoke("Hi").content == "Let me see."
        assert forced.invoke("Hi").tool_calls
    assert len(model.requests) == 2


def test_what_is_changed_between_cached_calls_has_its_effect(cache):
    """Whatever the wrapper keeps for the next cached call, it has the state of that call."""
    kwargs, stored = cache
    model = wrapped("a", "b", cls=Parameters, model="m", **kwargs)
    assert model.invoke("Hi").content == "a"
    model.temperature = 0.5
    assert model.invoke("Hi").content == "b"
    assert model.cache is kwargs["cache"]
    assert len(set(stored.keys)) == 2


def test_many_threads_share_one_cached_wrapper(cache):
    kwargs, stored = cache
    model = RetryingChatModel(ScriptedChatModel(blank_once_for_each(), **kwargs), RAISE)
    prompts = [str(number % 5) for number in range(100)]
    expected = [f"answer to {prompt}" for prompt in prompts]
    assert [reply.content for reply in model.batch(prompts)] == expected
    assert len(stored.keys) >= 5


def test_keys_tell_inner_models_apart(cache):
    kwargs, stored = cache
    arguments: list[dict[str, str]] = [{}, {"model_name": "model-b"}, {"base_url": "elsewhere"}]
    models = [
        RetryingChatModel(SerializableModel(answer=str(number), **given, **kwargs))
        for number, given in enumerate(arguments)
    ]
    # What is serialized tells `answer` apart, too: it is the same for all, but for the reply.
    assert [model.invoke("Hi").content for model in models] == list("012")
    assert len(set(stored.keys)) == 3


def test_keys_of_models_that_are_not_serializable_tell_them_apart(cache):
    kwargs, stored = cache
    for name in ("model-a", "model-b"):
        wrapped("a", cls=Parameters, model=name, **kwargs).invoke("Hi")
    assert len(set(stored.keys)) == 2


def test_keys_tell_call_arguments_apart(cache):
    kwargs, stored = cache
    model = wrapped("a", "b", "c", **kwargs)
    assert model.invoke("Hi").content == "a"
    assert model.invoke("Hi", stop=["END"]).content == "b"
    assert model.bind_tools([add]).invoke("Hi").content == "c"
    assert len(set(stored.keys)) == 3


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_keys_are_those_of_an_integration(make):
    inner = make()("http://localhost")
    model = RetryingChatModel(inner, RAISE)
    assert model._get_llm_string(stop=["END"]) == inner._get_llm_string(stop=["END"])
    assert model._get_llm_string(a=1) == inner._get_llm_string(a=1)


# --- at the hook ---


def test_every_attempt_has_a_message_list_of_its_own():
    model = wrapped(*BLANKS_THEN, cls=Editing)
    assert model.invoke([("human", "Hi")]).content == "Hello."
    first, *retries = (request.messages for request in model.requests)
    assert [message.content for message in first] == ["Hi"]
    assert [len(messages) for messages in retries] == [1, 1]
    assert all(messages[0].content.startswith("Hi\n\n") for messages in retries)


@pytest.mark.parametrize("where", ["generation_info", "llm_output"])
def test_the_finish_reason_is_read_where_it_stands_before_langchain_merges_it(where):
    class Telling(Whole):
        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            (generation,) = super()._generate(messages, stop, **kwargs).generations
            told = {"finish_reason": "length"}
            info = told if where == "generation_info" else None
            generation = ChatGeneration(message=generation.message, generation_info=info)
            output = told if where == "llm_output" else None
            return ChatResult(generations=[generation], llm_output=output)

    with pytest.raises(EmptyCompletionError, match="truncated") as caught:
        wrapped("", cls=Telling).invoke("Hi")
    assert caught.value.finish_reasons == ("length",)


def test_the_finish_reason_of_a_stream_is_read_where_it_stands(streaming_way):
    class Telling(SyncStreaming):
        def _stream(self, messages, stop=None, run_manager=None, **kwargs):
            for chunk in super()._stream(messages, stop, **kwargs):
                yield ChatGenerationChunk(
                    message=chunk.message, generation_info={"finish_reason": "length"}
                )

    with pytest.raises(EmptyCompletionError, match="truncated"):
        ask(streaming_way, wrapped([""], cls=Telling))


def test_a_usable_candidate_comes_first_without_another_request():
    model = wrapped("", cls=Candidates)
    assert model.invoke("Hi", n=3).content == "also 1"
    assert len(model.requests) == 1
    (candidates,) = wrapped("", cls=Candidates).generate([[HumanMessage("Hi")]], n=3).generations
    assert [generation.text for generation in candidates] == ["also 1", "", "also 2"]


# --- streams ---


@pytest.mark.parametrize("cls", [Whole, WholeSync])
def test_a_model_that_does_not_stream_is_retried_under_stream(streaming_way, cls):
    model = wrapped(*BLANKS_THEN, cls=cls)
    (reply,) = chunks_of(streaming_way, model)
    assert reply.content == "Hello."
    assert len(model.requests) == 3


def test_nothing_is_seen_before_the_commit_and_all_after_it_at_once():
    model = wrapped(["", " ", "a", "b"], cls=Journal)
    for chunk in model.stream("Hi"):
        model.journal.append(("reads", chunk.content))
    made = [("makes", number) for number in range(4)]
    reads = [("reads", text) for text in ("", " ", "a", "b")]
    assert model.journal[:7] == [*made[:3], *reads[:3], made[3]]
    assert model.journal[7] == reads[3]


def test_closed_while_it_flows_the_inner_stream_is_closed():
    model = wrapped([""], ["", " ", "a", "b"], cls=Journal)
    stream = model.stream("Hi")
    assert next(stream).content == ""
    stream.close()
    assert model.journal[-2:] == [("stopped by", "GeneratorExit"), "closed"]
    assert model.streams_open == 0


async def test_cancelled_while_holding_the_inner_stream_is_closed():
    model = wrapped(["", " ", "a"], cls=Journal, waits_before=2)

    async def read() -> None:
        async for _ in model.astream("Hi"):
            raise AssertionError("nothing usable has come")

    task = asyncio.create_task(read())
    while "waits" not in model.journal and not task.done():
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.journal[-2:] == [("stopped by", "CancelledError"), "closed"]


def test_an_error_after_empty_pieces_goes_through_with_nothing_seen(streaming_way):
    model = wrapped(["", " ", "a"], cls=Journal, fails_before=2)
    with pytest.raises(ConnectionError):
        chunks_of(streaming_way, model)
    assert [entry for entry in model.journal if entry == "closed"] == ["closed"]
    assert len(model.requests) == 1


def test_nothing_is_retried_after_the_commit():
    model = wrapped(["a", ValueError("No generation chunks were returned")], "never")
    stream = model.stream("Hi")
    assert next(stream).content == "a"
    with pytest.raises(ValueError, match="No generation"):
        next(stream)
    assert len(model.requests) == 1


@pytest.mark.skipif(not hasattr(BaseChatModel, "stream_events"), reason="no typed events here")
@pytest.mark.filterwarnings("ignore:.*in beta")
@pytest.mark.parametrize("cls", [ScriptedChatModel, SyncStreaming, Native, NativeSync])
async def test_typed_events_are_those_of_the_accepted_attempt(cls):
    script = [["", " "], [], ["Hel", "lo"]]
    sync = list(wrapped(*script, cls=cls).stream_events("Hi", version="v3"))
    stream = await wrapped(*script, cls=cls).astream_events("Hi", version="v3")
    for events in (sync, [event async for event in stream]):
        kinds = [event["event"] for event in events]
        assert kinds.count("message-start") == kinds.count("message-finish") == 1
        assert events[-1]["metadata"]["empty_retry"]["attempts"] == 3
        deltas = [event["delta"]["text"] for event in events if "delta" in event]
        assert "".join(deltas) == "Hello"


def test_informing_hooks_keep_what_they_tell(way):
    reply = ask(way, wrapped("", "Hello.", cls=Informing))
    assert reply.response_metadata["finish_reason"] == "stop"
    assert reply.response_metadata["empty_retry"]["attempts"] == 2


def test_a_model_of_langchains_own_works(way):
    model = GenericFakeChatModel(messages=iter(["", "", "Hello you."]))
    assert ask(way, RetryingChatModel(model, RAISE)).content == "Hello you."


# --- calls without handlers of their own ---


@pytest.mark.filterwarnings("ignore:The `__fields__` attribute is deprecated")  # core 0.3.40's own
def test_retries_reach_handlers_that_only_langchain_knows(way):
    """Such as a tracer switched on by the environment, or a hook registered for the context."""
    context = pytest.importorskip("langchain_core.tracers.context")
    with context.collect_runs() as collected:
        ask(way, wrapped(*BLANKS_THEN))
    (run,) = collected.traced_runs
    assert [event["name"] for event in run.events].count("retry") == 2


def test_retries_reach_the_models_own_handlers(way):
    model = wrapped(*BLANKS_THEN, callbacks=[Recorder()])
    ask(way, model)
    assert [name for name, *_ in model.callbacks[0].heard].count("on_retry") == 2


# --- concurrency ---


def blank_once_for_each() -> Any:
    """A script that tells calls apart by what they ask."""

    def reply(messages: list[Any]) -> Any:
        asked, _, nudge = messages[0].content.partition("\n\n")
        return f"answer to {asked}" if nudge else ""

    return reply


async def test_one_wrapper_in_many_tasks_and_threads():
    model = RetryingChatModel(ScriptedChatModel(blank_once_for_each()), RAISE)
    prompts = [str(number) for number in range(50)]
    expected = [f"answer to {prompt}" for prompt in prompts]
    for replies in (await model.abatch(prompts), await asyncio.to_thread(model.batch, prompts)):
        assert [reply.content for reply in replies] == expected


def test_one_policy_serves_many_models_and_event_loops():
    policy = RetryPolicy(max_retries=2, wait=None)
    for _ in range(3):
        for way in WAYS:
            assert ask(way, wrapped(*BLANKS_THEN, policy=policy)).content == "Hello."
