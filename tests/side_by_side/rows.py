"""A row: one use of a chat model, done with the bare model and with the wrapped one.

What comes out of both must be equal, and so must what the model, or the provider, was sent.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.tracers.schemas import Run
from pydantic import BaseModel

from langchain_retrying import RetryingChatModel, RetryPolicy
from wire import turns

# What differs between two runs of the same: generated ids and times.
_GENERATED = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIMES = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?|\[[\d.]+m?s\]| at 0x[0-9a-f]+"
)
_TIMING = {"start_time", "end_time", "dotted_order", "time", "created_at", "updated_at"}
# What may differ: the frames of an exception in a trace; a wrapped model in the repr of what is
# around it, since the repr says that it is wrapped; after retries, the account of them.
_FRAMES = re.compile(r"Traceback \(most recent call last\):.*", re.DOTALL)
_INSIDE = re.compile(r"(?<=.)RetryingChatModel\((.*?), RetryPolicy\([^()]*\)\)", re.DOTALL)
_ACCOUNT = re.compile(
    r"'empty_retry': \{.*?\], 'rejected_input_tokens': \d+, 'rejected_output_tokens': \d+\}"
)


@dataclass(frozen=True)
class Row:
    """What is done with which model; `says` are the turns of a provider behind it."""

    model: Callable[..., BaseChatModel]
    use: Callable[..., Any]
    says: tuple[Any, ...] = ()

    def check(self, provider: Any = None) -> None:
        """Nothing is empty: all is the same."""
        bare = self._outcome(lambda model: model, provider)
        wrapped = self._outcome(RetryingChatModel, provider)
        assert_same(normal(bare), normal(wrapped))

    def check_with_blanks(self, provider: Any = None) -> None:
        """Each reply is blank at first: all but what tells of the retries is the same."""
        bare = self._outcome(lambda model: model, provider)
        policy = RetryPolicy(nudge=NUDGE)
        wrapped = self._outcome(
            lambda model: RetryingChatModel(model, policy), provider, blanks=True
        )
        assert wrapped["asked"] > bare["asked"] or not bare["asked"]
        assert_same(*(normal(outcome["result"], retries=False) for outcome in (bare, wrapped)))

    @property
    def scripted(self) -> bool:
        """Whether the model's replies depend on the request only, so that blanks can precede."""
        return callable(getattr(self.model(), "replies", None))

    def _outcome(self, wrap: Callable[[Any], Any], provider: Any, *, blanks: bool = False) -> Any:
        if provider is None:
            model: Any = self.model()
            if blanks:
                model.replies = blank_at_first(model.replies)
        else:
            says = self.says or (turns.HELLO,)
            provider.play(*says, unless=blank_unless_nudged if blanks else None)
            model = self.model(provider.url)
        result = self.use(wrap(model))
        if inspect.iscoroutine(result):
            result = asyncio.run(result)
        sent = getattr(model, "requests", None) if provider is None else provider.requests
        asked = len(sent or ()) + (0 if provider is None else provider.refused)
        return {"result": result, "sent": sent, "asked": asked}


def blank_at_first(replies: Callable[[list[BaseMessage]], Any]) -> Callable[..., Any]:
    """A script that answers only what has been asked for again."""
    prefills: set[str] = set()

    @functools.wraps(replies)  # the repr of a model shows its script
    def reply(messages: list[BaseMessage]) -> Any:
        if isinstance(messages[-1], AIMessage):  # which is asked for again without a nudge
            asked = repr(messages)
            again = asked in prefills
            prefills.add(asked)
            return replies(messages) if again else BLANK
        return replies(without_nudge(messages)) if NUDGE in str(messages[-1].content) else BLANK

    return reply


def without_nudge(messages: list[BaseMessage]) -> list[BaseMessage]:
    """The messages as the caller gave them."""
    *before, last = messages
    if last.content == NUDGE:
        return before
    content = (
        last.content.removesuffix(f"\n\n{NUDGE}")
        if isinstance(last.content, str)
        else last.content[:-1]
    )
    return [*before, last.model_copy(update={"content": content})]


def blank_unless_nudged(request: dict[str, Any]) -> turns.Turn | None:
    """The same of a provider."""
    return None if NUDGE in str(request["json"]) else turns.BLANK


NUDGE = "Once more, please."
BLANK = ["", AIMessageChunk(content=" ", response_metadata={"finish_reason": "stop"})]


# Warnings of LangChain's own on what the rows use.
FILTERS = [
    pytest.mark.filterwarnings(f"ignore:{text}")
    for text in (
        ".*deprecated",
        ".*in beta",
        ".*create_react_agent has been moved",
        "The v3 streaming protocol",
        "Counting tokens in tool schemas",
        "Received unexpected tool content block",
        "Pydantic serializer warnings:UserWarning",
    )
]


def needs(feature: Any, what: str) -> Any:
    """Marks rows on what this release of LangChain may not have."""
    return pytest.mark.skipif(not feature, reason=f"this release of LangChain has no {what}")


V1_OUTPUT = needs("output_version" in BaseChatModel.model_fields, "output_version")
PROFILE = needs("profile" in BaseChatModel.model_fields, "model profiles")
V3_EVENTS = needs(hasattr(BaseChatModel, "stream_events"), "stream_events")


def row(name: str, model: Any, use: Any, *says: Any, marks: Any = ()) -> Any:
    return pytest.param(Row(model, use, says), id=name.replace(" ", "_"), marks=marks)


def _tells_of_retry(item: Any) -> bool:
    """Whether it is what a handler heard, or a tracer traced, of a retry."""
    if isinstance(item, dict):
        return item.get("name") == "retry"
    return isinstance(item, tuple) and item[:1] == ("on_retry",)


def differences(bare: Any, wrapped: Any, path: str = "") -> Iterator[str]:
    """Where two pieces of plain data differ, one a line."""
    if isinstance(bare, dict) and isinstance(wrapped, dict) and bare.keys() == wrapped.keys():
        for key in bare:
            yield from differences(bare[key], wrapped[key], f"{path}.{key}")
    elif isinstance(bare, list) and isinstance(wrapped, list) and len(bare) == len(wrapped):
        for position, pair in enumerate(zip(bare, wrapped, strict=True)):
            yield from differences(*pair, f"{path}[{position}]")
    elif bare != wrapped or type(bare) is not type(wrapped):
        yield f"{path}: {bare!r} != {wrapped!r}"


class Unordered(list[Any]):
    """What comes from several threads or tasks, in any order."""


def assert_same(bare: Any, wrapped: Any) -> None:
    if bare == wrapped:
        return
    found = list(islice(differences(bare, wrapped), 8))
    assert not found, "\n".join(["bare model != wrapped model", *found])


def normal(value: Any, *, retries: bool = True) -> Any:
    """As plain data without times, and with generated ids numbered as they appear."""
    return _Normal(retries=retries).of(value)


class _Normal:
    def __init__(self, *, retries: bool) -> None:
        self._ids: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._objects: dict[int, Any] = {}
        self._left_out = _TIMING if retries else {*_TIMING, "empty_retry"}
        self._retries = retries

    def of(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if value is None or isinstance(value, (bool, int, float, bytes)):
            return value
        if isinstance(value, dict):
            return self._mapping(value)
        if isinstance(value, (list, tuple)) and not isinstance(value, Unordered):
            return [self.of(item) for item in value if self._retries or not _tells_of_retry(item)]
        if id(value) not in self._objects:  # the same are heard, traced and returned
            self._objects[id(value)] = self._object(value)
        return self._objects[id(value)]

    def _object(self, value: Any) -> Any:
        if isinstance(value, UUID):
            return self._text(str(value))
        if isinstance(value, datetime):
            return "(time)"
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, (set, frozenset, Unordered)):
            return sorted(map(self.of, value), key=repr)
        if isinstance(value, BaseChatModel):
            return f"model of class {type(value).__name__}"
        if callable(value) and hasattr(value, "__qualname__"):
            return value.__qualname__
        parts = _parts(value)
        return self._text(repr(value)) if parts is None else [type(value).__name__, self.of(parts)]

    def _text(self, text: str) -> str:
        if text not in self._texts:
            shown = _INSIDE.sub(r"\1", _FRAMES.sub("", text))
            if not self._retries:
                shown = _ACCOUNT.sub("", shown)
            shown = _GENERATED.sub(self._number, shown)
            self._texts[text] = _TIMES.sub("(time)", shown)
        return self._texts[text]

    def _mapping(self, value: Mapping[Any, Any]) -> dict[Any, Any]:
        data = {self.of(k): self.of(v) for k, v in value.items() if k not in self._left_out}
        return data if self._retries else {k: v for k, v in data.items() if v != {}}

    def _number(self, found: re.Match[str]) -> str:
        return self._ids.setdefault(found[0], f"#{len(self._ids) + 1}")


def _parts(value: Any) -> Any:
    """What an object consists of; None if that isn't known."""
    if isinstance(value, BaseException):
        return str(value)
    if isinstance(value, Run):
        return {name: getattr(value, name) for name in _OF_A_RUN}
    if isinstance(value, BaseModel):
        return {**vars(value), **(value.model_extra or {})}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return None


_OF_A_RUN = ("name", "run_type", "serialized", "extra", "inputs", "outputs", "events", "tags")
_OF_A_RUN += ("error", "child_runs", "id", "parent_run_id")
