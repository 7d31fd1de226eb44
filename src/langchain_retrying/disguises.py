"""Exceptions that are blank replies in disguise: what integrations make of an empty body.

Recognised narrowly, by type, by text and by the function that raised. Everything else is an error
and goes through. Seen with langchain-openai 0.3 to 1.7, langchain-anthropic and langchain-aws 1.x.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from types import TracebackType

from langchain_core.language_models import BaseChatModel

from langchain_retrying.reply import NOTHING, Verdict


@dataclass(frozen=True)
class _Disguise:
    types: tuple[type[Exception], ...]
    text: re.Pattern[str]
    """What the exception says, from its beginning."""
    raised_in: frozenset[tuple[str, str]]
    """Top-level package and function, one of which raised it."""
    only_without_chunks: bool = False
    """Whether it is one only if no chunk has come; else it is a torn stream."""


_DISGUISES = (
    # A stream without a chunk, as LangChain tells it.
    _Disguise(
        (ValueError,),
        re.compile(r"No generation chunks were returned|No generations found in stream\."),
        frozenset(
            ("langchain_core", function)
            for function in ("stream", "astream", "generate_from_stream", "agenerate_from_stream")
        ),
    ),
    # A null where the reply belongs: choices, one of them, its message, output, content. Only in
    # functions that read replies: those that write requests stumble over a caller's nulls.
    _Disguise(
        (TypeError, AttributeError),
        re.compile(r"'NoneType' object |Received response with null value for .choices"),
        frozenset(
            {
                ("langchain_anthropic", "_format_output"),
                ("langchain_openai", "_construct_lc_result_from_responses_api"),
                ("langchain_openai", "_convert_chunk_to_generation_chunk"),
                ("langchain_openai", "_convert_delta_to_message_chunk"),
                ("langchain_openai", "_convert_dict_to_message"),
                ("langchain_openai", "_convert_responses_chunk_to_generation_chunk"),
                ("langchain_openai", "_create_chat_result"),
                ("openai", "handle_chunk"),
                ("openai", "parse_chat_completion"),
            }
        ),
    ),
    # A body that is `null`.
    _Disguise(
        (ValueError,),
        re.compile(r"Unexpected response type from OpenAI.* got NoneType: None"),
        frozenset({("langchain_openai", "_create_chat_result")}),
    ),
    # A stream in a JSON mode that ends before anything has come.
    _Disguise(
        (AssertionError,),
        re.compile(r"$"),
        frozenset({("openai", "current_completion_snapshot")}),
    ),
    _Disguise(
        (ConnectionError,),
        re.compile(r"Incomplete Bedrock response stream"),
        frozenset({("langchain_aws", "_stream")}),
        only_without_chunks=True,
    ),
    _Disguise(
        (ValueError,),
        re.compile(r"No data received from Ollama stream"),
        frozenset(
            {
                ("langchain_ollama", "_chat_stream_with_aggregation"),
                ("langchain_ollama", "_achat_stream_with_aggregation"),
            }
        ),
    ),
)


_HTTP_READERS = ("httpx", "httpx2", "google", "ollama")
"""Packages that parse a response's body as JSON."""


def verdict_on(
    error: Exception, model: BaseChatModel, *, without_chunks: bool = True
) -> Verdict | None:
    """The verdict on the reply that an exception tells of; None: it is an error.

    Args:
        error: As caught, with its traceback.
        model: The model that was asked.
        without_chunks: Whether no chunk had come before it.

    """
    package, function = _raised_in(error.__traceback__)
    if isinstance(error, json.JSONDecodeError):
        # A body of nothing, or of keep-alive newlines.
        is_blank = package in _HTTP_READERS and not error.doc.strip()
    else:
        is_blank = any(
            isinstance(error, disguise.types)
            and (package, function) in disguise.raised_in
            and disguise.text.match(str(error)) is not None
            and (without_chunks or not disguise.only_without_chunks)
            for disguise in _DISGUISES
        )
    return NOTHING if is_blank else None


def _raised_in(traceback: TracebackType | None) -> tuple[str, str]:
    """Package and function of the innermost frame; comprehensions and `json` aside."""
    package, function = "", ""
    while traceback is not None:
        frame = traceback.tb_frame
        name = frame.f_globals.get("__name__", "").partition(".")[0]
        if name != "json" and not frame.f_code.co_name.startswith("<"):
            package, function = name, frame.f_code.co_name
        traceback = traceback.tb_next
    return package, function
