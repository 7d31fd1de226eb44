"""Checks of what a policy is given: each error says what is wrong and what to write."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from langchain_core.messages import AIMessage

from langchain_retrying._judge.kinds import ReplyKind
from langchain_retrying._judge.reply import is_empty_ai_message

Value = TypeVar("Value")


def check_kind(must: str, value: Any, *kinds: type) -> None:
    """Raise an error that says what a value must be, unless it is; True is not taken for 1."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise TypeError(f"{must}, not {type(value).__name__}")


def check_int(name: str, value: Any, *, at_least: int) -> None:
    check_kind(f"{name} must be an int", value, int)
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}, not {value}")


def check_callable(name: str, value: Any, wanted: str) -> None:
    if isinstance(value, type):
        raise TypeError(f"{name} must be {wanted}, not the class {value.__name__}: call it")
    if not callable(value):
        raise TypeError(f"{name} must be {wanted}, not {type(value).__name__}")
    if any(map(_is_async, _functions_in(value))):
        raise TypeError(f"{name} must not be async: one policy serves sync and async calls")


def _functions_in(value: Any) -> Iterator[Any]:
    """What a callable runs: itself or its method, and what `partial` or tenacity puts together."""
    yield from (value, getattr(type(value), "__call__", None))  # noqa: B004 -- it is wanted itself
    if isinstance(value, functools.partial):
        yield from _functions_in(value.func)
    elif type(value).__module__.startswith("tenacity"):
        for part in vars(value).values():
            for inner in part if isinstance(part, (list, tuple)) else [part]:
                yield from _functions_in(inner)


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def returned(name: str, value: Value) -> Value:
    """What a callable of the user's has returned.

    Not every async callable can be told as such beforehand. What it returns is true whatever it
    would have said, so nothing is judged by it.

    Raises:
        TypeError: It is to be awaited.

    """
    if isinstance(value, (int, float, str)):  # told faster than what is awaitable
        return value
    if inspect.isawaitable(value) or inspect.isasyncgen(value):
        if inspect.iscoroutine(value):
            value.close()  # or Python warns that it was never awaited
        raise TypeError(
            f"{name} must not be async, but has returned {type(value).__name__}: "
            "one policy serves sync and async calls"
        )
    return value


def checked_ladders(remedies: Any, max_retries: int) -> dict[ReplyKind, tuple[Any, ...]]:
    """The ladder of each kind that has one of its own; an empty one turns the kind off."""
    check_kind("remedies must be a mapping such as {ReplyKind.BLANK: [Nudge()]}", remedies, Mapping)
    ladders = {ReplyKind(kind): ladder or () for kind, ladder in remedies.items()}
    if ReplyKind.ANSWER in ladders:
        raise ValueError("remedies: an answer is never retried; leave ReplyKind.ANSWER out")
    for kind, ladder in ladders.items():
        check_kind(f"remedies for {kind.value} must be a list of Nudge() ...", ladder, list, tuple)
        rungs = len(ladder)
        if rungs > max_retries:
            raise ValueError(
                f"remedies for {kind.value} have {rungs} rungs, one for each retry, so "
                f"max_retries={max_retries} never reaches the last: write max_retries={rungs}"
            )
        ladders[kind] = tuple(_checked_rung(kind, rung) for rung in ladder)
    return ladders


def _checked_rung(kind: ReplyKind, rung: Any) -> Any:
    rung = tuple(rung) if isinstance(rung, list) else rung
    for remedy in rung if isinstance(rung, tuple) and rung else [rung]:
        wanted = "a callable (request, error) such as Nudge(), or repeat to change nothing"
        check_callable(f"a remedy for {kind.value}", remedy, wanted)
    return rung


def check_on_exhausted(outcome: Any) -> None:
    if outcome in ("return", "raise"):
        return
    if not isinstance(outcome, (str, AIMessage)):
        wanted = '"return", "raise", a text, an AIMessage or a callable (error)'
        check_callable("on_exhausted", outcome, wanted)
    elif is_empty_ai_message(AIMessage(outcome) if isinstance(outcome, str) else outcome):
        raise ValueError('on_exhausted must not be an empty text; write "return" or "raise"')
    elif isinstance(outcome, str) and outcome.isascii() and len(outcome.split()) == 1:
        # A language without spaces says a lot in one word.
        raise ValueError(
            f"on_exhausted={outcome!r} is one word, and may be a slip: "
            f'write "return" or "raise", or AIMessage({outcome!r}) if it is to be the answer'
        )
