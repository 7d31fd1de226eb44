"""Exceptions that are blank replies in disguise: what integrations make of an empty body.

Recognised narrowly, by type, by text and by the package that raised. Everything else is an error
and goes through.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType


@dataclass(frozen=True)
class _Disguise:
    type: type[Exception]
    text: str
    """How the exception's text begins."""
    packages: tuple[str, ...]
    """Top-level packages, one of whose functions raised it."""
    check: Callable[[Exception], bool] = lambda error: True


_DISGUISES = (
    # A stream without a chunk, as LangChain tells it.
    _Disguise(ValueError, "No generation chunks were returned", ("langchain_core",)),
    _Disguise(ValueError, "No generations found in stream.", ("langchain_core",)),
    # `choices: null`, also as the OpenAI client's parser for JSON modes stumbles over it.
    _Disguise(TypeError, "Received response with null value for 'choices'", ("langchain_openai",)),
    # `choices`, `output` or `content` null where a list belongs.
    _Disguise(
        TypeError,
        "'NoneType' object is not iterable",
        ("langchain_openai", "openai", "langchain_anthropic"),
    ),
    # `message: null` in a choice.
    _Disguise(AttributeError, "'NoneType' object has no attribute", ("langchain_openai", "openai")),
    # A body that is nothing but white space.
    _Disguise(
        json.JSONDecodeError,
        "Expecting value",
        ("json",),
        lambda error: isinstance(error, json.JSONDecodeError) and not error.doc.strip(),
    ),
)


def is_disguised_blank(error: Exception) -> bool:
    """Whether an exception of the inner model tells of a reply that was empty."""
    return any(
        isinstance(error, disguise.type)
        and str(error).startswith(disguise.text)
        and _raised_by(error.__traceback__) in disguise.packages
        and disguise.check(error)
        for disguise in _DISGUISES
    )


def _raised_by(traceback: TracebackType | None) -> str:
    name = ""
    while traceback is not None:
        name = traceback.tb_frame.f_globals.get("__name__", "")
        traceback = traceback.tb_next
    return name.partition(".")[0]
