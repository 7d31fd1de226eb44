"""Exceptions that are empty replies in disguise: what integrations make of a reply of nothing.

Recognised by kind: what an exception tells of, and that the inner model's own package, or a client
that it called, raised it while a reply was read. Everything else is an error, and goes through.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from inspect import CO_ASYNC_GENERATOR, CO_GENERATOR, getargvalues
from itertools import dropwhile
from traceback import walk_tb
from types import FrameType
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.load.serializable import Serializable
from langchain_core.messages import BaseMessage
from pydantic import BaseModel, ValidationError

from langchain_retrying._judge.finish_reasons import kind_of_end
from langchain_retrying._judge.kinds import NOTHING, ReplyKind, Verdict
from langchain_retrying._judge.visible_text import shows_something

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
_TORN = re.compile("incomplete .*stream", re.IGNORECASE)
_CONNECTION = re.compile("Timeout|Connect|Network|Transport|Protocol|OSError")
_NOT_JSON = re.compile(r" at line \d+ column \d+$")
_TYPED_END = re.compile("(.+)(?:Finish|Stop)Reason|.*Blocked")
_WORD_END = re.compile("(?<=[a-z0-9])(?=[A-Z])")

# Where a reply and its parts stand in what providers send, and where words stand in them.
_PARTS = frozenset(
    {"body", "data", "choices", "candidates", "output", "message", "delta", "content", "parts"}
    | {"tool_calls", "function_call", "function", "custom", "functionCall", "toolUse"}
)
_WORDS = frozenset({"content", "text", "refusal", "name"})

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


def statuses_in(error: BaseException) -> list[int]:
    """Whatever may be an HTTP status in an exception, or what it was raised from."""
    found: list[Any] = []
    for cause in causes_of(error):
        response = getattr(cause, "response", None)
        if isinstance(response, dict):  # botocore's
            found.append(response.get("ResponseMetadata", {}).get("HTTPStatusCode"))
        found.append(getattr(response, "status_code", None))
        found += [getattr(cause, name, None) for name in ("status_code", "status", "code")]
    return [status for status in found if isinstance(status, int)]


def verdict_on(
    error: Exception, model: BaseChatModel, *, without_chunks: bool = True
) -> Verdict | None:
    """The verdict on the reply that an exception tells of; None: it is an error.

    Args:
        error: As caught, with its traceback.
        model: The model that was asked.
        without_chunks: Whether no chunk had come before it.

    """
    # Other people's objects are looked at, and there may be no traceback: no fault of theirs must
    # take the exception's place.
    with suppress(Exception):
        return _verdict_on(error, model, without_chunks=without_chunks)
    return None


def _verdict_on(error: Exception, model: BaseChatModel, *, without_chunks: bool) -> Verdict | None:
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    if isinstance(error, _FAULTS) or _is_http_error(error):
        return None
    raised_in = _package(frames[-1])
    if raised_in == "langchain_core" and _NO_CHUNKS.match(str(error)):
        return NOTHING
    own = {cls.__module__.partition(".")[0] for cls in type(model).__mro__ if "." in cls.__module__}
    own -= _LIBRARIES
    frames = list(dropwhile(lambda frame: _package(frame) not in own, frames))
    if not _is_reading(frames, own):
        return None
    if any(_CONNECTION.search(cls.__name__) for cls in type(error).__mro__):
        # Of the client, an error; but some integrations' own name for a stream of nothing.
        is_torn = raised_in in own and _TORN.search(str(error)) is not None
        return NOTHING if is_torn and without_chunks else None
    return _typed_end(error) or (NOTHING if _is_of_nothing(error, frames) else None)


def _is_http_error(error: Exception) -> bool:
    if any(status >= _REFUSED for status in statuses_in(error)):
        return True
    return any(_STATUS.search(str(cause)) for cause in causes_of(error))


def _typed_end(error: Exception) -> Verdict | None:
    """The verdict where the exception's class names the finish reason."""
    name = type(error).__name__
    named, kind = _TYPED_END.match(name), kind_of_end("", name)
    if named is None or kind is ReplyKind.BLANK:
        return None
    return Verdict(kind, _WORD_END.sub("_", named[1] or name).lower())


def _is_reading(frames: Sequence[FrameType], own: set[str]) -> bool:
    """Whether a reply was read where an exception was raised, not a request built.

    What is handed parts of a request builds one, but for generators, and for LangChain's hooks and
    their helpers, which take its run manager. A client reads once it has received something.
    """
    mine = [frame for frame in frames if _package(frame) in own]
    given = {id(part): part for frame in mine if _is_hook(frame) for part in _handed(frame)}
    if not any(_is_a(BaseMessage, part) for part in given.values()):
        return False
    innermost = next(f for f in reversed(mine) if any(id(part) in given for part in _handed(f)))
    if not (_is_hook(innermost) or _is_generator(innermost)):
        return False
    called = frames[frames.index(mine[-1]) + 1 :]
    clients = [frame for frame in called if _package(frame) not in _LIBRARIES]
    if not clients:
        return True
    if any(_package(frame) == "langchain_core" for frame in called):
        return False  # a callback, or something else of the user's
    return _has_received(_locals(clients)) or any(map(_is_generator, clients))


def _is_hook(frame: FrameType) -> bool:
    return "run_manager" in getargvalues(frame).args


def _is_generator(frame: FrameType) -> bool:
    return bool(frame.f_code.co_flags & (CO_GENERATOR | CO_ASYNC_GENERATOR))


def _handed(frame: FrameType) -> Iterable[Any]:
    """The parts of a request that a function is handed; none beside something received."""
    names, rest, keywords, values = getargvalues(frame)
    arguments = [values.get(name) for name in (*names, rest, keywords) if name]
    return () if _has_received(arguments) else _parts_of_requests(arguments)


def _parts_of_requests(value: Any) -> Iterator[Any]:
    """Messages, and mappings such as tools and a response format, wherever they stand in it."""
    if isinstance(value, dict) or _is_a(BaseMessage, value):
        yield value
    if isinstance(value, (dict, list, tuple)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _parts_of_requests(part)


def _has_received(values: Iterable[Any]) -> bool:
    return any(_RECEIVED.search(type(value).__name__) for value in values)


def _is_of_nothing(error: Exception, frames: Sequence[FrameType]) -> bool:
    """Whether an exception is of a kind that reading nothing gives, and nothing else was read."""
    *_, root = causes = list(causes_of(error))
    values = list(_locals(frames))
    carried = [getattr(cause, "doc", getattr(cause, "body", None)) for cause in causes]
    texts = [text for text in [*carried, *_contents(values)] if isinstance(text, str)]
    bodies = list(_bodies(values))
    if any(map(_tells_something, bodies)):
        return False
    if isinstance(root, _OF_NOTHING) or not all(map(shows_something, texts)):
        return True
    if isinstance(root, ValidationError):
        return any(map(_is_of_no_part, root.errors(include_url=False)))
    if isinstance(root, KeyError):
        return root.args[0] in _PARTS
    text = str(root)
    if isinstance(root, AssertionError) and not text:
        return True
    if _NOT_JSON.search(text):
        return bool(bodies)
    return bool(_NOTHING.search(text[:200])) and not _OF_A_REQUEST.search(text[:200])


def _contents(values: Iterable[Any]) -> Iterator[str]:
    """The texts of responses of requests and httpx."""
    for value in values:
        content = getattr(value, "__dict__", {}).get("_content")
        if isinstance(content, bytes):
            yield content.decode(errors="replace")


def _bodies(values: Iterable[Any]) -> Iterator[dict[Any, Any]]:
    """What may be a provider's reply, or a part of it."""
    for value in values:
        is_model = _is_a(BaseModel, value) and not _is_a(Serializable, value)
        body = value.model_dump(warnings=False) if is_model else value
        if isinstance(body, dict) and body.keys() & {"error", *_PARTS}:
            yield body


def _tells_something(part: Any) -> bool:
    """Whether a part of a reply tells of an error, or of an answer that could not be taken in."""
    if isinstance(part, str):
        return shows_something(part)
    if isinstance(part, list):
        return any(map(_tells_something, part))
    if not isinstance(part, dict):
        return bool(part)
    return bool(part.get("error")) or any(
        _tells_something(value)
        for name, value in part.items()
        if name in (_WORDS if isinstance(value, str) else _PARTS)
    )


def _is_of_no_part(detail: Any) -> bool:
    """Whether a detail of a validation error is that text, or a part of a reply, is not there."""
    is_part = detail["type"] == "json_invalid" or not _PARTS.isdisjoint(detail["loc"])
    return is_part and not _tells_something(detail["input"])


def _is_a(cls: type, value: Any) -> bool:
    """Tell what `isinstance` would, which remembers the class of everything that is at hand."""
    return cls in type(value).__mro__


def _locals(frames: Iterable[FrameType]) -> Iterator[Any]:
    for frame in frames:
        yield from frame.f_locals.values()


def _package(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]
