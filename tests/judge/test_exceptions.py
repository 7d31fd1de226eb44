"""Exceptions that are blanks in disguise are told from those that a caller's mistake raises."""

from __future__ import annotations

import json
import types
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel, ValidationError

from conftest import ask, named
from langchain_retrying import ReplyKind, RetryingChatModel
from langchain_retrying._judge.exceptions import verdict_on
from langchain_retrying._judge.kinds import NOTHING, Verdict
from langchain_retrying._judge.refusals import is_refusal
from langchain_retrying.testing import ScriptedChatModel
from wire.clients import build
from wire.replies import encode, failure
from wire.turns import GOOD, body_of


def without(mode: str, change: Any) -> Any:
    """A good reply of OpenAI's, changed."""
    body = body_of(GOOD, "openai-chat", mode)
    change(body)
    return body


def null_message(body):
    body["choices"][0]["message"] = None


def null_choice(body):
    body["choices"] = [None]


def null_first_choice(body):
    body[0]["choices"] = [None]


def no_choices(body):
    del body["choices"]


JSON_MODE = {"response_format": {"type": "json_object"}}


@pytest.mark.parametrize(
    ("mode", "body", "kwargs"),
    [
        ("invoke", without("invoke", null_message), {}),
        ("invoke", without("invoke", null_message), JSON_MODE),
        ("invoke", without("invoke", null_choice), {}),
        ("invoke", without("invoke", no_choices), {}),
        ("invoke", "", {}),
        ("invoke", " \n\n", {}),
        ("invoke", "null", {}),
        ("stream", without("stream", null_first_choice), {}),
        ("stream", "", {}),
        ("stream", "", JSON_MODE),
    ],
)
@pytest.mark.parametrize("prefix", ["", "a"])
def test_a_body_with_nothing_in_it_is_a_blank(server, mode, body, kwargs, prefix):
    server.play(encode("openai-chat", mode, body), GOOD)
    model = RetryingChatModel(build({"class": "ChatOpenAI"}, server.url))
    if kwargs and mode == "stream":
        kwargs = {**kwargs, "stream": True}
    assert ask(prefix + mode, model, **kwargs).content == "Recovered."
    assert len(server.requests) == 2


def test_a_null_of_the_callers_is_an_error_as_it_is_bare(server, way):
    prompt = [HumanMessage("Hi"), AIMessage("", additional_kwargs={"tool_calls": [None]})]
    server.play(GOOD)
    bare = build({"class": "ChatOpenAI"}, server.url)
    with pytest.raises((TypeError, AttributeError)) as expected:
        ask(way, bare, prompt)
    with pytest.raises(type(expected.value)) as raised:
        ask(way, RetryingChatModel(bare), prompt)
    assert str(raised.value) == str(expected.value)
    assert verdict_on(expected.value, bare) is None
    assert server.requests == []


def test_a_fault_of_what_is_looked_at_takes_no_exceptions_place():
    hostile = type("HostileError", (TypeError,), {"body": property(lambda self: 1 / 0)})
    assert raised_at("reader", hostile("'NoneType' object is not iterable")) is None


@pytest.mark.parametrize("length", [1, 2])
def test_causes_in_a_circle_are_looked_at_once(length):
    errors = [OTHER_MODULE.OtherError("'NoneType' object ...") for _ in range(length)]
    for position, error in enumerate(errors):
        error.__cause__ = errors[(position + 1) % length]
    assert raised_at("reader", errors[0]) == NOTHING


@pytest.mark.parametrize(
    ("name", "body"),
    [
        (
            "ChatGoogleGenerativeAI",
            {"error": {"code": 400, "message": "contents must not be empty", "status": "INVALID"}},
        ),
        ("ChatBedrockConverse", {"message": "The text field is empty."}),
        ("ChatOpenAI", {"error": {"message": "messages is empty", "code": None}}),
    ],
)
def test_a_status_is_an_error_whatever_it_says_of_emptiness(server, name, body, way):
    server.play(failure(body))
    kwargs = {"disable_streaming": False} if name == "ChatBedrockConverse" else {}
    model = RetryingChatModel(build({"class": name, "kwargs": kwargs}, server.url))
    with pytest.raises(Exception) as bare:  # noqa: PT011 -- the provider's, whichever it is
        ask(way, model.inner_model)
    server.requests.clear()
    with pytest.raises(type(bare.value)):
        ask(way, model)
    assert len(server.requests) == 1


def test_a_page_of_html_is_an_error(server):
    server.play(encode("openai-chat", "invoke", "<!doctype html>", "text/html"))
    model = RetryingChatModel(build({"class": "ChatOpenAI"}, server.url))
    with pytest.raises(Exception, match=r"Unexpected response type|has no attribute"):
        model.invoke("Hi")
    assert len(server.requests) == 1


def test_a_stream_torn_after_its_start_is_an_error_and_one_without_a_chunk_a_blank(server):
    pytest.importorskip("langchain_aws", reason="the exception is Bedrock's")
    model = RetryingChatModel(
        build({"class": "ChatBedrockConverse", "kwargs": {"disable_streaming": False}}, server.url)
    )
    torn = encode("bedrock-converse", "stream", [{"messageStart": {"role": "assistant"}}])
    server.play(torn, GOOD)
    with pytest.raises(ConnectionError, match="Incomplete Bedrock response stream"):
        ask("stream", model)
    empty = encode("bedrock-converse", "stream", "")
    server.play(empty, GOOD)
    assert "Recovered." in str(ask("stream", model).content)


OTHER = """
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableLambda


class OtherError(Exception):
    pass


class LengthFinishReasonError(OtherError):
    pass


class ContentFilterStopReasonError(OtherError):
    pass


class PromptBlockedError(OtherError):
    pass


class UnknownFinishReasonError(OtherError):
    pass


def read(response, error):
    raise error


def read_with(response: Any, tools, error):
    raise error


def aggregate(messages, run_manager, error):
    raise error


def build(messages, error):
    raise error


def build_tools(tools, error):
    raise error


class Other(BaseChatModel):
    place: str
    error: Any
    client: Any

    @property
    def _llm_type(self):
        return "other"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        client, error = self.client, self.error
        received = client.Response()
        if self.place == "hook":
            raise error
        if self.place == "reader":
            read(self.place, error)
        if self.place == "reader of what was received":
            read(received, error)
        if self.place == "reader with tools":
            read_with(received, kwargs["tools"], error)
        if self.place == "helper of the hook's":
            aggregate(messages, run_manager, error)
        if self.place == "builder of any arguments":
            self._any(messages)
        if self.place == "builder":
            build(messages, error)
        if self.place == "builder's helper":
            build({"text": [messages[0]]}["text"], error)
        if self.place == "builder of tools":
            build_tools(kwargs["tools"], error)
        if self.place == "builder of a tool":
            build_tools([*kwargs["tools"]], error)
        if self.place == "builder of a payload":
            build_tools({"tools": kwargs["tools"]}, error)
        if self.place == "client reads":
            client.read(received, error)
        if self.place == "generator of the client's":
            list(client.lines("data: null", error))
        if self.place == "client builds":
            client.build(messages[0].content, error)
        if self.place == "callback":
            RunnableLambda(partial(client.read, received)).invoke(error)
        if self.place == "reader of a generator":
            list(self._stream_of(messages))

    def _stream_of(self, messages):
        raise self.error
        yield

    def _any(self, *arguments):
        raise self.error

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        read(None, self.error)
        yield
"""
CLIENT = """
class Response:
    pass


def read(response, error):
    raise error


def lines(line, error):
    raise error
    yield


def build(text, error):
    raise error
"""


def module(name, source):
    made = types.ModuleType(name)
    code = compile(source, name, "exec", dont_inherit=True)
    exec(code, made.__dict__)  # noqa: S102  # a package that is not installed
    return made


CLIENT_MODULE = module("other_client.http", CLIENT)
OTHER_MODULE = module("langchain_other.chat_models", OTHER)
READING = (
    "hook",
    "reader",
    "reader with tools",
    "client reads",
    "reader of a generator",
    "generator of the client's",
    "helper of the hook's",
)
BUILDING = (
    "builder",
    "builder of any arguments",
    "builder's helper",
    "builder of tools",
    "builder of a tool",
    "builder of a payload",
    "client builds",
    "callback",
)


def raised_at(place, error, package=OTHER_MODULE, prompt="Hi"):
    """The verdict on an exception of an integration that nobody has heard of."""
    model = package.Other(place=place, error=error, client=CLIENT_MODULE)
    try:
        model._generate([HumanMessage(prompt)] if prompt else [], tools=[{"type": "function"}])
    except Exception as raised:
        return verdict_on(raised, model)


def invalid(**fields):
    try:
        AIMessage(**fields)
    except ValidationError as error:
        return error.with_traceback(None)


def invalid_json(text, schema):
    try:
        schema.model_validate_json(text)
    except ValidationError as error:
        return error.with_traceback(None)


def with_attributes(error, **attributes):
    vars(error).update(attributes)
    return error


def caused(error, cause):
    error.__cause__ = cause
    return error


class Body(BaseModel):
    choices: list[dict[str, Any]]
    fingerprint: str | None = None


class Animal(BaseModel):
    name: str


class APITimeoutError(Exception):
    pass


OF_NOTHING = [
    TypeError("'NoneType' object is not iterable"),
    AttributeError("'NoneType' object has no attribute 'get'"),
    IndexError("list index out of range"),
    KeyError("choices"),
    AssertionError(),
    UnboundLocalError("cannot access local variable 'chunk'"),
    StopIteration(),
    RuntimeError("generator raised StopIteration"),
    json.JSONDecodeError("Expecting value", "", 0),
    json.JSONDecodeError("Expecting value", " \n\n", 0),
    json.JSONDecodeError("Expecting value", "<think>Hm", 0),
    OTHER_MODULE.OtherError("Received empty stream from Other"),
    OTHER_MODULE.OtherError("the API returned a response with no choices."),
    OTHER_MODULE.OtherError("No data received"),
    ValueError("Received response with null value for `choices`"),
    with_attributes(OTHER_MODULE.OtherError("Invalid"), body="\n"),
    caused(OTHER_MODULE.OtherError("Invalid"), TypeError("'NoneType' object is not iterable")),
    invalid(content=None),
    invalid_json(" \n", Animal),
    invalid_json("<think>Hm</think>", Animal),
    invalid_json("{}", Body),
    invalid_json('{"choices": null}', Body),
    invalid_json('{"choices": [null]}', Body),
    with_attributes(OTHER_MODULE.OtherError("No content"), status_code=200),
    with_attributes(OTHER_MODULE.OtherError("No content"), body="<p>"),
    with_attributes(OTHER_MODULE.OtherError("No content"), body=b"\xff"),
]
OF_SOMETHING = [
    TypeError("f() missing 1 required positional argument: 'a'"),
    AttributeError("'str' object has no attribute 'get'"),
    KeyError("usage"),
    AssertionError("no key is set"),
    OTHER_MODULE.OtherError(),
    RuntimeError("Event loop is closed"),
    json.JSONDecodeError("Expecting value", "<!doctype html>", 0),
    json.JSONDecodeError("Unterminated string", '{"choices": [{"me', 17),
    ValueError("Expected a non-empty value for `model`"),
    ValueError("expected value at line 1 column 1"),
    ValueError("The answer: " + "a" * 200 + " was empty"),
    OTHER_MODULE.UnknownFinishReasonError("Invalid"),
    invalid_json("Hello", Animal),
    invalid_json('{"name": null}', Animal),
    invalid_json("{}", Animal),
    invalid_json('{"choices": [{}], "fingerprint": 4}', Body),
    invalid_json('{"choices": 4}', Body),
    invalid_json('{"error": {"message": "No capacity"}}', Body),
    invalid_json('{"output": {"content": "Hello"}}', Body),
    with_attributes(OTHER_MODULE.OtherError("No content"), status_code=503),
    with_attributes(OTHER_MODULE.OtherError("No content"), code=400),
    with_attributes(
        OTHER_MODULE.OtherError("No content"), response=types.SimpleNamespace(status_code=500)
    ),
    # The status is that of the client's, or told in words.
    caused(
        OTHER_MODULE.OtherError("No content"), with_attributes(OTHER_MODULE.OtherError(), code=429)
    ),
    with_attributes(
        OTHER_MODULE.OtherError("The text is empty"),
        response={"ResponseMetadata": {"HTTPStatusCode": 400}},
    ),
    OTHER_MODULE.OtherError("[401] Unauthorized: no content"),
    OTHER_MODULE.OtherError("The call failed with status code 500: no response"),
    # Of what was given, or of what there is not.
    ValueError("OTHER_API_KEY must not be empty"),
    RuntimeError("tool schema: parameters is NoneType"),
    NotImplementedError("no text support"),
    MemoryError("no data"),
    APITimeoutError("No response"),
    ConnectionError("No response"),
    TimeoutError("empty"),
]


def fresh(error):
    return error.with_traceback(None)


@pytest.mark.parametrize("error", OF_NOTHING, ids=named)
def test_an_exception_of_nothing_is_a_blank_where_a_reply_is_read(error):
    for place in READING:
        assert raised_at(place, fresh(error)) == NOTHING, place
    for place in BUILDING:
        assert raised_at(place, fresh(error)) is None, place


@pytest.mark.parametrize("error", OF_SOMETHING, ids=named)
def test_an_exception_of_anything_else_is_none(error):
    for place in READING + BUILDING:
        assert raised_at(place, fresh(error)) is None, place


NULL = TypeError("'NoneType' object is not iterable")


def test_only_a_package_of_the_models_class_raises_for_it():
    """A module in an application's own folder is none, nor is that of another model."""
    alone = module("other", OTHER)
    assert raised_at("reader", fresh(NULL), alone) is None
    model = OTHER_MODULE.Other(place="reader", error=fresh(NULL), client=CLIENT_MODULE)
    with pytest.raises(TypeError) as raised:
        model._generate([HumanMessage("Hi")])
    assert verdict_on(raised.value, model) == NOTHING
    assert verdict_on(raised.value, ScriptedChatModel()) is None
    assert verdict_on(fresh(NULL), model) is None


def test_the_package_of_a_base_raises_for_a_class_derived_from_its_own():
    class Derived(OTHER_MODULE.Other):
        pass

    model = Derived(place="reader", error=fresh(NULL), client=CLIENT_MODULE)
    with pytest.raises(TypeError) as raised:
        model._generate([HumanMessage("Hi")])
    assert verdict_on(raised.value, model) == NOTHING


def test_a_stream_is_read_where_it_is_made():
    model = OTHER_MODULE.Other(place="", error=fresh(NULL), client=CLIENT_MODULE)
    with pytest.raises(TypeError) as raised:
        next(model._stream([HumanMessage("Hi")]))
    assert verdict_on(raised.value, model) == NOTHING


def test_a_request_of_no_messages_is_the_callers_mistake():
    assert raised_at("reader", IndexError("list index out of range"), prompt=None) is None


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("LengthFinishReasonError", ReplyKind.TRUNCATED, "length"),
        ("ContentFilterStopReasonError", ReplyKind.BLOCKED, "content_filter"),
        ("PromptBlockedError", ReplyKind.BLOCKED, "prompt_blocked_error"),
    ],
)
def test_a_typed_error_tells_its_finish_reason(name, kind, reason):
    error = getattr(OTHER_MODULE, name)
    for place in READING:
        assert raised_at(place, error("Invalid")) == Verdict(kind, reason)
    for place in BUILDING:
        assert raised_at(place, error("Invalid")) is None


def test_a_torn_stream_is_a_blank_only_if_no_chunk_has_come():
    error = ConnectionError("Incomplete Other response stream")
    assert raised_at("reader", fresh(error)) == NOTHING
    assert raised_at("client reads", fresh(error)) is None
    raised_at("reader", fresh(error))
    model = OTHER_MODULE.Other(place="", error=error, client=CLIENT_MODULE)
    assert verdict_on(error, model, without_chunks=False) is None


@pytest.mark.parametrize(
    "received",
    [
        {"error": {"message": "No capacity"}, "choices": None},
        {"choices": [{"message": {"content": "Hello"}}], "usage": None},
        {"choices": [{"message": {"content": None, "tool_calls": [{"custom": {"name": "f"}}]}}]},
        {"choices": [{"delta": {"content": "Hello"}}]},
        Body(choices=[{"message": {"content": "Hello"}}]),
        {"content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn"},
    ],
    ids=named,
)
def test_a_reply_that_tells_something_is_none_of_nothing(received):
    """An integration stumbled over some other part of it, or over its error."""
    for error in (NULL, IndexError("list index out of range"), invalid_json("{}", Body)):
        assert raised_at_with(received, fresh(error)) is None


@pytest.mark.parametrize(
    "received",
    [
        {"error": None, "choices": None},
        {"choices": [None]},
        {"choices": [{"message": None}]},
        {"choices": [{"delta": {"tool_calls": [{"id": "1", "function": None}]}}]},
        {"message": None},
        {"content": None, "stop_reason": "end_turn"},
        "Hello",
    ],
    ids=named,
)
def test_a_reply_that_tells_nothing_is_of_nothing(received):
    assert raised_at_with(received, fresh(NULL)) == NOTHING


def test_a_message_of_langchains_at_hand_is_no_reply_of_a_provider():
    assert raised_at_with(AIMessage("Hello"), fresh(NULL), place="hook") == NOTHING


def raised_at_with(received, error, place="reader of what was received"):
    client = types.SimpleNamespace(Response=lambda: received)
    model = OTHER_MODULE.Other(place=place, error=error, client=client)
    try:
        model._generate([HumanMessage("Hi")])
    except Exception as raised:
        return verdict_on(raised, model)


def test_json_that_a_stream_could_not_parse_is_judged_by_what_has_come():
    error = ValueError("expected value at line 1 column 1")
    thinking = {"choices": [{"message": {"content": "<think>Hm"}}]}
    assert raised_at_with(thinking, fresh(error)) == NOTHING
    prose = {"choices": [{"message": {"content": "Hello"}}]}
    assert raised_at_with(prose, fresh(error)) is None


def test_a_body_that_a_client_has_read_and_found_blank():
    """langchain-nvidia-ai-endpoints parses what Python writes of such a response."""
    error = json.JSONDecodeError("Expecting property name", "{'_content': b''}", 1)
    for content, verdict in ((b"\n", NOTHING), (b"<p>", None), (False, None)):
        response = types.SimpleNamespace(_content=content)
        assert raised_at_with(response, fresh(error)) == verdict


@pytest.mark.parametrize(
    "text", ["No generation chunks were returned", "No generations found in stream."]
)
def test_langchain_itself_tells_of_a_stream_without_a_chunk(text):
    def told(name, text=text):
        error = ValueError(text)
        try:
            module(name, "def tell(error): raise error").tell(error)
        except ValueError:
            return verdict_on(error, ScriptedChatModel())

    assert told("langchain_core.language_models.chat_models") == NOTHING
    assert told("another_package.chat_models") is None
    assert told("langchain_core.language_models.chat_models", "No generations") is None


@pytest.mark.parametrize(
    ("attributes", "refusal"),
    [
        *(
            (attributes, status in (400, 422))
            for status in (399, 400, 401, 421, 422, 423, 500)
            for attributes in (
                {"status_code": status},
                {"code": status},
                {"code": "invalid", "status_code": status},
                {"response": types.SimpleNamespace(status_code=status)},
                {"response": {"ResponseMetadata": {"HTTPStatusCode": status}}},
            )
        ),
        ({}, False),
        ({"response": {}}, False),
        ({"response": {"ResponseMetadata": {}}}, False),
        ({"response": object()}, False),
    ],
    ids=named,
)
def test_a_refusal_is_known_by_its_status(attributes, refusal):
    error = Exception()
    vars(error).update(attributes)
    assert is_refusal(error) is refusal
