"""Checks of what a policy is given: each error says what is wrong and what to write."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from langchain_core.messages import AIMessage

from langchain_retrying._judge.reply import ReplyKind, is_empty_ai_message

Value = TypeVar("Value")


def check_int(name: str, value: Any, *, at_least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}, not {value}")


def check_bool(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value!r:.40}")


def check_seconds(name: str, value: Any) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number of seconds or None, not {value!r:.40}")
    if not value > 0:
        raise ValueError(f"{name} must be above 0, not {value}")


def check_callable(name: str, value: Any, wanted: str) -> None:
    if isinstance(value, type):
        raise TypeError(f"{name} must be {wanted}, not the class {value.__name__}: call it")
    if not callable(value):
        raise TypeError(f"{name} must be {wanted}, not {value!r:.40}")
    call = getattr(type(value), "__call__", None)  # noqa: B004 -- the method is wanted, not whether there is one
    if inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(call):
        raise TypeError(f"{name} must not be async: one policy serves sync and async calls")


def returned(name: str, value: Value) -> Value:
    """What a callable of the user's has returned.

    Not every async callable can be told as such beforehand. What it returns is true whatever it
    would have said, so nothing is judged by it.

    Raises:
        TypeError: It is to be awaited.

    """
    if inspect.isawaitable(value) or inspect.isasyncgen(value):
        if inspect.iscoroutine(value):
            value.close()  # or Python warns that it was never awaited
        raise TypeError(
            f"{name} must not be async, but has returned {type(value).__name__}: "
            "one policy serves sync and async calls"
        )
    return value


def checked_names(name: str, names: Any) -> tuple[str, ...]:
    if isinstance(names, str):
        raise TypeError(f"{name} must be names, not one: write {name}=[{names!r}]")
    checked = tuple(names) if isinstance(names, Iterable) else (names,)  # a generator is used up
    if not all(isinstance(one, str) for one in checked):
        raise TypeError(f"{name} must be names of tools, not {names!r:.40}")
    return checked


def checked_ladders(remedies: Any, max_retries: int) -> dict[ReplyKind, tuple[Any, ...]]:
    """The ladder of each kind that has one of its own; an empty one turns the kind off."""
    if not isinstance(remedies, Mapping):
        wanted = "a mapping such as {ReplyKind.BLANK: [Nudge()]}"
        raise TypeError(f"remedies must be {wanted}, not {type(remedies).__name__}")
    checked = {}
    for kind, ladder in ((ReplyKind(key), ladder) for key, ladder in remedies.items()):
        if kind is ReplyKind.ANSWER:
            raise ValueError("remedies: an answer is never retried; leave ReplyKind.ANSWER out")
        if not isinstance(ladder, (list, tuple, type(None))):
            raise TypeError(f"remedies for {kind.value} must be a list, such as [Nudge()]")
        rungs = len(ladder or ())
        if rungs > max_retries:
            raise ValueError(
                f"remedies for {kind.value} have {rungs} rungs, one for each retry, so "
                f"max_retries={max_retries} never reaches the last: write max_retries={rungs}"
            )
        checked[kind] = tuple(_checked_rung(kind, rung) for rung in ladder or ())
    return checked


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
