"""A value as text that is the same in every process, for comparing policies and keying caches.

It may hold whatever a user's function closes over, so it is to be shown to nobody: `digest` is.
"""

from __future__ import annotations

import functools
import hashlib
import re
import types
from collections.abc import Mapping
from enum import Enum
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from pydantic import SecretBytes, SecretStr

_PLAIN = (str, bytes, int, float, Enum, re.Pattern, BaseMessage, SecretStr, SecretBytes, type(None))


_DEEPEST = 8
_OF_A_PROCESS = ("threading", "_thread", "asyncio.locks")


def fingerprint(value: Any, _seen: dict[int, Any] | None = None, _depth: int = 0) -> str:
    """Plain data, callables, messages and tenacity strategies as text without memory addresses.

    Functions count by where they are defined, what they do and what they close over; other objects
    by their class and attributes, as far as eight levels down, and each of them once.
    """
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, BaseChatModel):  # LangChain's own key for it holds no secret
        return f"{_name(type(value))}({value._get_llm_string()})"
    name = _name_that_says_it_all(value)
    if name is not None:
        return name
    seen = {} if _seen is None else _seen  # by id; it keeps what it holds from being replaced
    if id(value) in seen or _depth > _DEEPEST:  # such as a function that closes over itself
        return _name(type(value))
    seen[id(value)] = value

    def part(inner: Any) -> str:
        return fingerprint(inner, seen, _depth + 1)

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
        closure = [_cell(cell) for cell in value.__closure__ or ()]
        details = part([closure, value.__defaults__, value.__kwdefaults__])
        return f"{_name(value)}({_code(value.__code__)},{details})"
    reduce: Any = type(value).__reduce__
    if reduce is not object.__reduce__:  # it says itself what it is made of
        return part(value.__reduce__())
    return f"{_name(type(value))}({part(_attributes(value))})"


def digest(value: Any) -> str:
    """The fingerprint, so that only equality can be seen from it."""
    return hashlib.sha256(fingerprint(value).encode()).hexdigest()


def _name_that_says_it_all(value: Any) -> str | None:
    if isinstance(value, (type, types.BuiltinFunctionType)):
        return _name(value)
    if isinstance(value, types.ModuleType):
        return value.__name__
    if type(value).__module__ in _OF_A_PROCESS:  # an event, a lock: what it is at the moment
        return _name(type(value))
    return None


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def _attributes(value: Any) -> dict[str, Any]:
    slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ())]
    return {
        **getattr(value, "__dict__", {}),
        **{name: getattr(value, name) for name in slots if hasattr(value, name)},
    }


def _cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _code(code: types.CodeType) -> str:
    constants = [_constant(constant) for constant in code.co_consts]
    text = repr((code.co_code, constants, code.co_names))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _constant(constant: Any) -> str:
    return _code(constant) if isinstance(constant, types.CodeType) else fingerprint(constant)
