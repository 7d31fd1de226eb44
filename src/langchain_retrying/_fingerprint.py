"""A value as text that is the same in every process, for comparing policies and keying caches."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import types
from collections.abc import Mapping
from enum import Enum
from typing import Any

from langchain_core.messages import BaseMessage

_SCALARS = (str, bytes, int, float, Enum, type(None))


def fingerprint(value: Any, _inside: tuple[int, ...] = ()) -> str:
    """Plain data, callables, messages and tenacity strategies as text without memory addresses.

    Functions count by where they are defined, what they do and what they close over; strategies
    and dataclasses by their class and attributes; other objects by their class and plain data.
    """
    if isinstance(value, _SCALARS):
        return repr(value)
    if isinstance(value, BaseMessage):
        return repr(value)
    if isinstance(value, (type, types.BuiltinFunctionType)):
        return _name(value)
    if id(value) in _inside:  # a function that closes over itself
        return "..."

    def part(inner: Any) -> str:
        return fingerprint(inner, (*_inside, id(value)))

    if isinstance(value, Mapping):
        return f"{{{','.join(sorted(f'{part(k)}:{part(v)}' for k, v in value.items()))}}}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(part, value))}]"
    if isinstance(value, (set, frozenset)):
        return f"{{{','.join(sorted(map(part, value)))}}}"
    if isinstance(value, types.MethodType):
        return f"{part(value.__self__)}.{value.__name__}"
    if isinstance(value, functools.partial):
        return part(["partial", value.func, value.args, value.keywords])
    if isinstance(value, types.FunctionType):
        closure = [cell.cell_contents for cell in value.__closure__ or ()]
        return f"{_name(value)}({_code(value.__code__)},{part([closure, value.__defaults__])})"
    attributes = getattr(value, "__dict__", {})
    if not (type(value).__module__.startswith("tenacity") or dataclasses.is_dataclass(value)):
        attributes = {k: v for k, v in attributes.items() if isinstance(v, _SCALARS)}
    return f"{_name(type(value))}({part(attributes)})"


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def _code(code: types.CodeType) -> str:
    constants = [
        _code(const) if isinstance(const, types.CodeType) else repr(const)
        for const in code.co_consts
    ]
    text = repr((code.co_code, constants, code.co_names))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
