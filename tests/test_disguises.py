"""Exceptions that are blanks in disguise are told from those that a caller's mistake raises."""

from __future__ import annotations

import copy
import json
import types
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from conftest import ask
from langchain_retrying import RetryingChatModel
from langchain_retrying.disguises import verdict_on
from langchain_retrying.refusals import is_refusal
from langchain_retrying.testing import ScriptedChatModel
from wire.clients import build
from wire.server import _GOOD, WireServer, encode, good


@pytest.fixture
def server():
    with WireServer() as server:
        yield server


def is_blank_in_disguise(error: Exception, **kwargs: Any) -> bool:
    return verdict_on(error, ScriptedChatModel(), **kwargs) is not None


def without(mode: str, change: Any) -> Any:
    """A good reply of OpenAI's, changed."""
    body = copy.deepcopy(_GOOD["openai-chat", mode])
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
    server.play(encode("openai-chat", mode, body), good("openai-chat", mode))
    model = RetryingChatModel(build({"class": "ChatOpenAI"}, server.url))
    if kwargs and mode == "stream":
        kwargs = {**kwargs, "stream": True}
    assert ask(prefix + mode, model, **kwargs).content == "Recovered."
    assert len(server.requests) == 2


def test_a_null_of_the_callers_is_an_error_as_it_is_bare(server, way):
    prompt = [HumanMessage("Hi"), AIMessage("", additional_kwargs={"tool_calls": [None]})]
    server.play(good("openai-chat", "stream" if "stream" in way else "invoke"))
    bare = build({"class": "ChatOpenAI"}, server.url)
    with pytest.raises((TypeError, AttributeError)) as expected:
        ask(way, bare, prompt)
    with pytest.raises(type(expected.value)) as raised:
        ask(way, RetryingChatModel(bare), prompt)
    assert str(raised.value) == str(expected.value)
    assert server.requests == []


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
    server.play(torn, good("bedrock-converse", "stream"))
    with pytest.raises(ConnectionError, match="Incomplete Bedrock response stream"):
        ask("stream", model)
    empty = encode("bedrock-converse", "stream", "")
    server.play(empty, good("bedrock-converse", "stream"))
    assert "Recovered." in str(ask("stream", model).content)


def thrower(error):
    raise error


def throwing_generator(error):
    yield from (thrower(error) for _ in (1,))


def raised_in(module, function, error):
    """The exception as a function of that name in that module raises it."""
    code = thrower.__code__.replace(co_name=function)
    try:
        types.FunctionType(code, {} if module is None else {"__name__": module})(error)
    except Exception as raised:
        return raised


NO_CHUNKS = "No generation chunks were returned"
NULL = "'NoneType' object has no attribute 'model_dump'"
NULL_CHOICES = "Received response with null value for `choices`."
OPENAI = "langchain_openai.chat_models.base"
DISGUISES = [
    ("langchain_core.language_models.chat_models", "stream", ValueError(NO_CHUNKS)),
    ("langchain_core.language_models.chat_models", "astream", ValueError(NO_CHUNKS)),
    (
        "langchain_core.language_models.chat_models",
        "generate_from_stream",
        ValueError("No generations found in stream."),
    ),
    (
        "langchain_core.language_models.chat_models",
        "agenerate_from_stream",
        ValueError("No generations found in stream."),
    ),
    ("langchain_anthropic.chat_models", "_format_output", TypeError(NULL)),
    (OPENAI, "_construct_lc_result_from_responses_api", TypeError(NULL)),
    (OPENAI, "_convert_chunk_to_generation_chunk", AttributeError(NULL)),
    (OPENAI, "_convert_delta_to_message_chunk", AttributeError(NULL)),
    (OPENAI, "_convert_dict_to_message", AttributeError(NULL)),
    (OPENAI, "_convert_responses_chunk_to_generation_chunk", AttributeError(NULL)),
    (OPENAI, "_create_chat_result", TypeError(NULL)),
    (OPENAI, "_create_chat_result", TypeError(NULL_CHOICES)),
    ("openai.lib.streaming.chat._completions", "handle_chunk", TypeError(NULL)),
    ("openai.lib._parsing._completions", "parse_chat_completion", TypeError(NULL)),
    (
        OPENAI,
        "_create_chat_result",
        ValueError("Unexpected response type from OpenAI API: got NoneType: None"),
    ),
    ("openai.lib.streaming.chat", "current_completion_snapshot", AssertionError()),
    (
        "langchain_ollama.chat_models",
        "_chat_stream_with_aggregation",
        ValueError("No data received from Ollama stream."),
    ),
    (
        "langchain_ollama.chat_models",
        "_achat_stream_with_aggregation",
        ValueError("No data received from Ollama stream."),
    ),
    *(
        (module, "json", json.JSONDecodeError("Expecting value", body, 0))
        for module in ("httpx._models", "httpx2._models", "google.genai._api_client", "ollama")
        for body in ("", " \n\n")
    ),
]
TORN = ("langchain_aws.chat_models.bedrock_converse", "_stream", "Incomplete Bedrock response")


@pytest.mark.parametrize(("module", "function", "error"), DISGUISES, ids=repr)
@pytest.mark.parametrize("without_chunks", [True, False])
def test_a_disguise_is_known_by_who_raised_what(module, function, error, without_chunks):
    def is_blank(module, function, error):
        raised = raised_in(module, function, error.with_traceback(None))
        return is_blank_in_disguise(raised, without_chunks=without_chunks)

    assert is_blank(module, function, error)
    assert not is_blank("another_package", function, error)
    if isinstance(error, json.JSONDecodeError):
        assert not is_blank(module, function, json.JSONDecodeError("Expecting value", "<p>", 0))
        return
    assert not is_blank(module, "another_function", error)
    assert not is_blank(module, function, RuntimeError(str(error)))
    assert not is_blank(module, function, type(error)(f"Another text. {error}"))


def test_a_torn_stream_is_a_blank_only_if_no_chunk_has_come():
    *where, text = TORN
    error = raised_in(*where, ConnectionError(f"{text} stream"))
    assert is_blank_in_disguise(error)
    assert is_blank_in_disguise(error, without_chunks=True)
    assert not is_blank_in_disguise(error, without_chunks=False)


def test_frames_of_comprehensions_and_of_the_json_module_raise_for_their_callers():
    def through(module, function, error):
        """Raised by a frame of that name which `httpx.json` has called."""
        code = throwing_generator.__code__.replace(co_name="json")
        call = types.FunctionType(thrower.__code__.replace(co_name=function), {"__name__": module})
        try:
            list(types.FunctionType(code, {"__name__": "httpx", "thrower": call})(error))
        except Exception as raised:
            return raised

    for where, blank in (
        (("json.decoder", "raw_decode"), True),
        (("another_package", "<listcomp>"), True),
        (("another_package", "f"), False),
    ):
        error = json.JSONDecodeError("Expecting value", "", 0)
        assert is_blank_in_disguise(through(*where, error)) is blank


def test_an_exception_raised_nowhere_is_no_blank():
    assert not is_blank_in_disguise(ValueError(NO_CHUNKS))
    nameless = raised_in(None, "stream", ValueError(NO_CHUNKS))
    assert not is_blank_in_disguise(nameless)
    assert not is_blank_in_disguise(json.JSONDecodeError("Expecting value", "", 0))


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
    ids=str,
)
def test_a_refusal_is_known_by_its_status(attributes, refusal):
    error = Exception()
    vars(error).update(attributes)
    assert is_refusal(error) is refusal
