"""Checks of a policy's arguments: each error says what is wrong and what to write."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from langchain_retrying.remedies import Rung
from langchain_retrying.reply import ReplyKind, is_empty_ai_message


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
    if not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"terminal_tools must be names of tools, not {names!r:.40}")
    return tuple(names)


def checked_remedies(remedies: Any) -> dict[ReplyKind, tuple[Rung, ...]]:
    if not isinstance(remedies, Mapping):
        raise TypeError(
            "remedies must be a mapping such as {ReplyKind.BLANK: [Nudge()]}, "
            f"not {type(remedies).__name__}"
        )
    checked: dict[ReplyKind, tuple[Rung, ...]] = {}
    for key, ladder in remedies.items():
        try:
            kind = ReplyKind(key)
        except ValueError as error:
            raise ValueError(f"remedies: {key!r:.40} is no ReplyKind") from error
        if kind is ReplyKind.ANSWER:
            raise ValueError("remedies: an answer is never retried; leave ReplyKind.ANSWER out")
        if not isinstance(ladder, (list, tuple)):
            raise TypeError(f"remedies for {kind.value} must be a list, such as [Nudge()]")
        if not ladder:
            raise ValueError(f"remedies for {kind.value} are empty: leave the kind out")
        checked[kind] = tuple(checked_rung(rung, kind) for rung in ladder)
    return checked


def checked_rung(rung: Any, kind: ReplyKind) -> Rung:
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
    call = value if inspect.isfunction(value) else getattr(value, "__call__", None)  # noqa: B004 -- the method is wanted, not whether there is one
    if inspect.iscoroutinefunction(call):
        raise TypeError(f"{name} must not be async: one policy serves sync and async calls")


def check_nudge(nudge: Any) -> None:
    if isinstance(nudge, str):
        if not nudge.strip():
            raise ValueError("nudge must not be empty; write nudge=None to repeat silently")
    elif not isinstance(nudge, BaseMessage):
        check_callable("nudge", nudge, "a text, a message or a callable (messages, error)")


def check_on_exhausted(outcome: Any) -> None:
    if isinstance(outcome, str):
        word = outcome.strip().lower()
        if not word:
            raise ValueError('on_exhausted must not be an empty text; write "return" or "raise"')
        if word in ("return", "raise") and outcome != word:
            raise ValueError(f"on_exhausted={outcome!r}: write {word!r}")
    elif isinstance(outcome, AIMessage):
        if is_empty_ai_message(outcome):
            raise ValueError("on_exhausted must not be an empty AIMessage: give it some text")
    elif outcome is None:
        raise TypeError('on_exhausted must not be None; write "return" to get the empty reply')
    else:
        check_callable(
            "on_exhausted", outcome, '"return", "raise", a text, an AIMessage or a callable (error)'
        )
