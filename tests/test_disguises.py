"""Exceptions that are blanks in disguise are told from those that a caller's mistake raises."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from conftest import ask
from langchain_retrying import RetryingChatModel
from wire.clients import build
from wire.server import _GOOD, WireServer, encode, good


@pytest.fixture
def server():
    with WireServer() as server:
        yield server


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
