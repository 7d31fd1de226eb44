"""Structured output whose strict parser raises on a reply of nothing, through ChatOpenAI."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from pydantic import BaseModel, ValidationError

from conftest import chunks_of
from langchain_retrying import Nudge, ReplyKind, RetryingChatModel, RetryPolicy
from wire.clients import build
from wire.turns import Turn

# Of the client's own, about what it has parsed itself.
pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")

RETRY_ALL = {kind: [Nudge()] for kind in (ReplyKind.BLANK, ReplyKind.TRUNCATED, ReplyKind.BLOCKED)}


class Animal(BaseModel):
    name: str


def ask(server: Any, way: str, *turns: Turn, method: str = "json_schema", **policy: Any):
    """The last of what comes out, and the number of requests."""
    server.play(*turns)
    model = RetryingChatModel(build({"class": "ChatOpenAI"}, server.url), RetryPolicy(**policy))
    structured = model.with_structured_output(Animal, method=method)
    return chunks_of(way, structured)[-1], len(server.requests)


@pytest.mark.parametrize("method", ["json_schema", "json_mode"])
@pytest.mark.parametrize("content", [" \n", "", None, "<think>Hm", "<think>Hm</think>\n"])
def test_a_reply_of_nothing_is_a_blank_for_a_strict_parser_too(server, way, method, content):
    good = Turn('{"name": "Otter"}')
    assert ask(server, way, Turn(content), good, method=method) == (Animal(name="Otter"), 2)


@pytest.mark.parametrize("content", ["", " ", "<think>Hm", '{"name": "Ot'])
@pytest.mark.parametrize(
    ("reason", "error"),
    [
        ("length", openai.LengthFinishReasonError),
        ("content_filter", openai.ContentFilterFinishReasonError),
    ],
)
def test_a_typed_error_is_raised_as_it_is_bare_or_takes_the_ladder_of_its_kind(
    server, way, reason, error, content
):
    if "stream" in way and "<think>" in content:
        error = ValueError  # of the parser, at the first chunk
    elif "stream" in way and content.strip():
        error = Exception  # after what had been shown
    if error is not ValueError:
        with pytest.raises(error):
            ask(server, way, Turn(content, finish=reason))
        assert len(server.requests) == 1
    if error is not Exception:
        good = Turn('{"name": "Otter"}')
        asked = ask(server, way, Turn(content, finish=reason), good, remedies=RETRY_ALL)
        assert asked == (Animal(name="Otter"), 2)


@pytest.mark.parametrize("content", ['{"name": null}', "{}", "null", "An otter."])
def test_an_answer_that_does_not_fit_the_schema_stays_the_callers_error(server, way, content):
    with pytest.raises((ValidationError, ValueError)):
        ask(server, way, Turn(content), remedies=RETRY_ALL)
    assert len(server.requests) == 1
