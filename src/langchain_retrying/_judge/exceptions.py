"""Exceptions that are empty replies in disguise: what integrations make of a reply of nothing.

Recognised by kind: what an exception tells of, and that the inner model's own package, or a client
that it called, raised it while a reply was read. Everything else is an error, and goes through.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from inspect import CO_ASYNC_GENERATOR, CO_GENERATOR
from traceback import walk_tb
from types import FrameType
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.load.serializable import Serializable
from langchain_core.messages import AIMessageChunk, BaseMessage
from pydantic import BaseModel, ValidationError

from langchain_retrying._judge.finish_reasons import normalise
from langchain_retrying._judge.reply import KIND_OF_END, NOTHING, Verdict, examine
from langchain_retrying._judge.saved import saved_reply
from langchain_retrying._judge.visible_text import VisibleText

# What LangChain itself says of a stream without a chunk.
_NO_CHUNKS = re.compile(r"No generation(?: chunks were returned|s found in stream)")
# What Python, an integration or its client says of nothing where a reply belongs.
_NOTHING = re.compile(
    r"NoneType|\bnull value\b|(?<!non-)\bempty\b|raised Stop(?:Async)?Iteration"
    r"|\bno (?:\w+ )?(?:choices?|generations?|chunks?|candidates?|responses?|data|content|outputs?"
    r"|completions?|text|reply)\b",
    re.IGNORECASE,
)
# What they say of what they were given.
_OF_A_REQUEST = re.compile(
    r"\b(?:must|should|cannot be|can't be|requires?|required|key|prompt|schema)\b", re.IGNORECASE
)
_REFUSED = 400  # and what is above: the statuses of errors
# An HTTP status that is told in words only, as by ChatNVIDIA.
_STATUS = re.compile(r"\A\[[45]\d\d\]|\bstatus(?:[ _]?code)?[ :=]+[45]\d\d\b", re.IGNORECASE)
_FAULTS = (NotImplementedError, MemoryError, RecursionError, ImportError)
_OF_NOTHING = (IndexError, StopIteration, StopAsyncIteration, UnboundLocalError)
# Where a reply and its parts stand in what providers send.
_PARTS = frozenset(
    {"body", "data", "choices", "candidates", "output", "message", "delta", "content", "parts"}
)
_TORN = re.compile("incomplete .*stream", re.IGNORECASE)
_CONNECTION = re.compile("Timeout|Connect|Network|Transport|Protocol|OSError")
_NOT_JSON = re.compile(r" at line \d+ column \d+$")
_TYPED_END = re.compile("(.+)(?:Finish|Stop)Reason|.*Blocked")
_WORD_END = re.compile("(?<=[a-z0-9])(?=[A-Z])")

_HOOKS = frozenset({"_generate", "_agenerate", "_stream", "_astream"})  # LangChain's names
_GENERATOR = CO_GENERATOR | CO_ASYNC_GENERATOR
_LIBRARIES = frozenset(
    {*sys.stdlib_module_names, "langchain_core", "langchain_retrying", "pydantic", "tenacity"}
)
# What a client has got from a provider, by its class.
_RECEIVED = re.compile("(?:Response|Stream|State|Chunk|Event|Completion)$|^bytes$")


def causes_of(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what it was raised from, each once: some are their own cause."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__


def statuses_in(error: BaseException) -> Iterator[int]:
    """Whatever may be an HTTP status in an exception, or what it was raised from."""
    for cause in causes_of(error):
        response = getattr(cause, "response", None)
        if isinstance(response, dict):  # botocore's
            yield from _integers((response.get("ResponseMetadata") or {}).get("HTTPStatusCode"))
        for place, names in ((response, ("status_code",)), (cause, _STATUSES)):
            yield from _integers(*(getattr(place, name, None) for name in names))


_STATUSES = ("status_code", "status", "code")


def _integers(*values: Any) -> Iterator[int]:
    return (value for value in values if isinstance(value, int))


def verdict_on(
    error: Exception, model: BaseChatModel, *, without_chunks: bool = True
) -> Verdict | None:
    """The verdict on the reply that an exception tells of; None: it is an error.

    Args:
        error: As caught, with its traceback.
        model: The model that was asked.
        without_chunks: Whether no chunk had come before it.

    """
    try:
        return _verdict_on(error, model, without_chunks=without_chunks)
    except Exception:
        # Other people's objects are looked at: a fault of one must not take the exception's place.
        return None


def _verdict_on(error: Exception, model: BaseChatModel, *, without_chunks: bool) -> Verdict | None:
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    if not frames or isinstance(error, _FAULTS) or _is_http_error(error):
        return None
    raised_in = _package(frames[-1])
    if raised_in == "langchain_core" and _NO_CHUNKS.match(str(error)):
        return NOTHING
    own = {cls.__module__.partition(".")[0] for cls in type(model).__mro__ if "." in cls.__module__}
    own -= _LIBRARIES
    frames = list(_while_reading(frames, own))
    if not frames:
        return None
    if any(_CONNECTION.search(cls.__name__) for cls in type(error).__mro__):
        # Of the client, an error; but some integrations' own name for a stream of nothing.
        is_torn = raised_in in own and _TORN.search(str(error)) is not None
        return NOTHING if is_torn and without_chunks else None
    return _typed_end(error) or (NOTHING if _is_of_nothing(error, frames) else None)


def _while_reading(frames: Sequence[FrameType], own: set[str]) -> Sequence[FrameType]:
    """The frames from the model's own on, if a reply was read in the last of them; else none.

    A request is built by functions that are handed messages or arguments of the caller's, and are
    neither hooks of LangChain's nor generators; a client that builds one has received nothing yet.
    """
    places = [place for place, frame in enumerate(frames) if _package(frame) in own]
    if not places:
        return ()
    given = {
        id(part)
        for place in places
        if frames[place].f_code.co_name in _HOOKS
        for part in _parts(frames[place].f_locals.get("kwargs", {}))
    }
    handed = (frames[place] for place in reversed(places) if _is_handed(frames[place], given))
    code = next((frame.f_code for frame in handed), None)
    if code is None or not (code.co_name in _HOOKS or code.co_flags & _GENERATOR):
        return ()
    called = frames[places[-1] + 1 :]
    clients = [frame for frame in called if _package(frame) not in _LIBRARIES]
    if clients:
        if any(_package(frame) == "langchain_core" for frame in called):
            return ()  # a callback, or something else of the user's
        received = any(_RECEIVED.search(type(value).__name__) for value in _locals(clients))
        if not (received or any(frame.f_code.co_flags & _GENERATOR for frame in clients)):
            return ()
    return frames[places[0] :]


def _is_handed(frame: FrameType, given: set[int]) -> bool:
    """Whether a function is handed messages, or one of the given objects, and nothing received."""
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    values = [frame.f_locals.get(name) for name in names]
    if any(_RECEIVED.search(type(value).__name__) for value in values):
        return False
    for value in values:
        first = value[0] if isinstance(value, (list, tuple)) and value else value
        classes = type(first).__mro__
        if BaseMessage in classes and AIMessageChunk not in classes:
            return True
        parts = [value, *_parts(value)] if isinstance(value, (dict, list)) else ()
        if any(id(part) in given for part in parts):
            return True
    return False


def _parts(value: Any) -> Iterator[Any]:
    """The lists and mappings in arguments, and those in the lists: tools, a response format."""
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, (dict, list)):
            yield part
            yield from _parts(part) if isinstance(part, list) else ()


def _typed_end(error: Exception) -> Verdict | None:
    """The verdict where the exception's class names the finish reason."""
    name = type(error).__name__
    named = _TYPED_END.match(name)
    kind = KIND_OF_END.get(normalise(name)) if named else None
    if named is None or kind is None:
        return None
    return Verdict(kind, _WORD_END.sub("_", named[1] or name).lower())


def _is_of_nothing(error: BaseException, frames: Sequence[FrameType]) -> bool:
    """Whether an exception is of a kind that reading nothing gives, and nothing else was read."""
    bodies = list(_bodies(frames))
    for cause in causes_of(error):
        if isinstance(cause, json.JSONDecodeError):
            return not _is_visible(cause.doc) or any(map(_is_blank_response, _locals(frames)))
        body = getattr(cause, "body", None)
        if isinstance(body, str) and not _is_visible(body):
            return True
        bodies += _parsed(body)
        if any(map(_tells_something, bodies)):
            return False
        if isinstance(cause, ValidationError):
            return any(map(_is_of_no_part, cause.errors(include_url=False)))
    text = str(cause)
    if isinstance(cause, KeyError):
        return cause.args[0] in _PARTS
    if isinstance(cause, AssertionError):
        return not text
    if _NOT_JSON.search(text):
        return any("choices" in body for body in bodies)
    if isinstance(cause, _OF_NOTHING):
        return True
    return bool(_NOTHING.search(text[:200])) and not _OF_A_REQUEST.search(text[:200])


def _is_of_no_part(detail: Any) -> bool:
    """Whether a detail of a validation error is that text, or a part of a reply, is not there."""
    given = detail["input"]
    if isinstance(given, str):
        return not _is_visible(given)
    # Neither positions nor the alternatives of a union.
    names = [name for name in detail["loc"] if isinstance(name, str) and name.isidentifier()]
    last = next((name for name in reversed(names) if name != "str"), None)
    return (given is None or detail["type"] == "missing") and last in _PARTS


def _bodies(frames: Sequence[FrameType]) -> Iterator[Mapping[Any, Any]]:
    """What may be a provider's reply, or a part of it, among what the frames work on."""
    for value in _locals(frames):
        # Not `isinstance`, which would remember the class of everything that is at hand.
        classes = type(value).__mro__
        if dict in classes:
            yield value
        elif BaseModel in classes and Serializable not in classes:
            yield value.model_dump(warnings=False)


def _parsed(body: Any) -> Iterator[Mapping[Any, Any]]:
    """The body that an exception carries, if it is a mapping in JSON."""
    with suppress(TypeError, ValueError):
        parsed = json.loads(body)
        if isinstance(parsed, Mapping):
            yield parsed


def _tells_something(body: Mapping[Any, Any]) -> bool:
    """Whether what was read tells of an error, or of an answer that could not be taken in."""
    if body.get("error"):
        return True
    try:
        return examine(saved_reply(body)).is_answer
    except (AttributeError, KeyError, TypeError, ValueError):
        return False  # no reply, or one with nothing where its parts belong


def _is_blank_response(value: Any) -> bool:
    content = getattr(value, "__dict__", {}).get("_content")  # of requests and httpx
    return isinstance(content, bytes) and not content.strip()


def _is_visible(text: str) -> bool:
    visible = VisibleText()
    visible.add(text)
    return visible.at_end()


def _is_http_error(error: Exception) -> bool:
    if any(status >= _REFUSED for status in statuses_in(error)):
        return True
    return any(_STATUS.search(str(cause)) for cause in causes_of(error))


def _locals(frames: Sequence[FrameType]) -> Iterator[Any]:
    for frame in frames:
        yield from frame.f_locals.values()


def _package(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]
