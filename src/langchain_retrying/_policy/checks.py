"""Checks of what a policy is given: each error says what is wrong and what to write."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, BaseMessage

from langchain_retrying._judge.reply import ReplyKind, is_empty_ai_message

Value = TypeVar("Value")
_AT_ONCE = (int, float, str, type(None))  # a bool is an int; told faster than what is awaitable


def check_int(name: str, value: Any, *, at_least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}, not {value}")


def check_bool(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value!r:.40}")


def check_seconds(name: str, value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number of seconds or None, not {value!r:.40}")
    if not value > 0:
        raise ValueError(f"{name} must be above 0, not {value}")


def checked_names(names: Any) -> tuple[str, ...]:
    if isinstance(names, str):
        raise TypeError(f"terminal_tools must be names, not one: write terminal_tools=[{names!r}]")
    if not isinstance(names, Iterable):
        raise TypeError(f"terminal_tools must be names of tools, not {names!r:.40}")
    checked = tuple(names)  # once: a generator is used up then
    if not all(isinstance(name, str) for name in checked):
        raise TypeError(f"terminal_tools must be names of tools, not {names!r:.40}")
    return checked


def checked_remedies(remedies: Any, max_retries: int) -> dict[ReplyKind, tuple[Any, ...]]:
    """The ladder of each kind that has one of its own; an empty one turns the kind off."""
    if not isinstance(remedies, Mapping):
        raise TypeError(
            "remedies must be a mapping such as {ReplyKind.BLANK: [Nudge()]}, "
            f"not {type(remedies).__name__}"
        )
    checked: dict[ReplyKind, tuple[Any, ...]] = {}
    for key, ladder in remedies.items():
        try:
            kind = ReplyKind(key)
        except ValueError as error:
            raise ValueError(f"remedies: {key!r:.40} is no ReplyKind") from error
        if kind is ReplyKind.ANSWER:
            raise ValueError("remedies: an answer is never retried; leave ReplyKind.ANSWER out")
        if not isinstance(ladder, (list, tuple, type(None))):
            raise TypeError(f"remedies for {kind.value} must be a list, such as [Nudge()]")
        checked[kind] = tuple(checked_rung(rung, kind) for rung in ladder or ())
        rungs = len(checked[kind])
        if rungs > max_retries:
            raise ValueError(
                f"remedies for {kind.value} have {rungs} rungs, one for each retry, so "
                f"max_retries={max_retries} never reaches the last: write max_retries={rungs}"
            )
    return checked


def checked_rung(rung: Any, kind: ReplyKind) -> Any:
    several = isinstance(rung, (list, tuple))
    for remedy in rung if several else [rung]:
        name = f"a remedy for {kind.value}"
        check_callable(name, remedy, "a callable (request, error) such as Nudge()")
        if remedy is None:
            raise TypeError(f"{name} must not be None; write repeat to change nothing")
    if several and not rung:
        raise ValueError(f"a rung for {kind.value} is empty; write repeat to change nothing")
    return tuple(rung) if several else rung


def check_callable(name: str, value: Any, wanted: str) -> None:
    if value is None:
        return
    if isinstance(value, type):
        raise TypeError(f"{name} must be {wanted}, not the class {value.__name__}: call it")
    if not callable(value):
        raise TypeError(f"{name} must be {wanted} or None, not {type(value).__name__}")
    if any(map(_is_async, _callables_in(value))):
        raise TypeError(f"{name} must not be async: one policy serves sync and async calls")


def _callables_in(value: Any) -> Iterator[Any]:
    """A callable, and those that it is put together from: by `partial`, or by tenacity's `|`."""
    yield value
    if isinstance(value, functools.partial):
        yield from _callables_in(value.func)
    elif type(value).__module__.partition(".")[0] == "tenacity":
        for part in vars(value).values():
            for inner in part if isinstance(part, (list, tuple)) else [part]:
                yield from _callables_in(inner)


def _is_async(value: Any) -> bool:
    return any(
        inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call)
        for call in (value, getattr(type(value), "__call__", None))  # noqa: B004 -- the method is wanted, not whether there is one
    )


def returned(name: str, value: Value) -> Value:
    """What a callable of the user's has returned.

    Not every async callable can be told as such beforehand. What it returns is true whatever it
    would have said, so nothing is judged by it.

    Raises:
        TypeError: It is to be awaited.

    """
    if isinstance(value, _AT_ONCE):
        return value
    if inspect.isawaitable(value) or inspect.isasyncgen(value):
        if inspect.iscoroutine(value):
            value.close()  # or Python warns that it was never awaited
        raise TypeError(
            f"{name} must not be async, but has returned {type(value).__name__}: "
            "one policy serves sync and async calls"
        )
    return value


def check_nudge(nudge: Any, without: str) -> None:
    """Check a nudge.

    Args:
        nudge: As given.
        without: What to write to have none.

    """
    if isinstance(nudge, (str, BaseMessage)):
        content = nudge if isinstance(nudge, str) else nudge.content
        if not (content.strip() if isinstance(content, str) else content):
            raise ValueError(f"nudge must not be empty; write {without}")
    else:
        check_callable("nudge", nudge, "a text, a message or a callable (messages, error)")


def check_on_exhausted(outcome: Any) -> None:
    if isinstance(outcome, str):
        if outcome not in ("return", "raise"):
            _check_stand_in(outcome)
    elif isinstance(outcome, AIMessage):
        if is_empty_ai_message(outcome):
            raise ValueError("on_exhausted must not be an empty AIMessage: give it some text")
    elif outcome is None:
        raise TypeError('on_exhausted must not be None; write "return" to get the empty reply')
    else:
        check_callable(
            "on_exhausted", outcome, '"return", "raise", a text, an AIMessage or a callable (error)'
        )


def _check_stand_in(text: str) -> None:
    if is_empty_ai_message(AIMessage(content=text)):
        raise ValueError('on_exhausted must not be an empty text; write "return" or "raise"')
    word, *more = text.lower().split()
    if word in ("return", "raise") and not more:
        raise ValueError(f"on_exhausted={text!r}: write {word!r}")
    if word.isascii() and not more:  # a language without spaces says a lot in one
        raise ValueError(
            f"on_exhausted={text!r} is one word, and may be a slip: "
            f'write "return" or "raise", or AIMessage({text!r}) if it is to be the answer'
        )
