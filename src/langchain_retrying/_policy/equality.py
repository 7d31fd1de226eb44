"""Whether two policies are made of equal parts: tenacity's strategies have no `==` of their own."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel


def are_equal(one: Any, other: Any) -> bool:
    """Whether two values are equal, or of one type and made of equal parts.

    A list, a mapping and a dataclass are made of what they hold; another object without an `==` of
    its own of what pickle would keep. So a function is equal to itself only, and so is a lock. Two
    models are equal if LangChain's caches take them for one: clients inside have no `==`.
    """
    pairs = [(one, other)]
    seen: dict[tuple[int, int], Any] = {}
    while pairs:
        one, other = pair = pairs.pop()
        if one is other or (id(one), id(other)) in seen:
            continue
        seen[id(one), id(other)] = pair  # kept, so that the ids stay theirs
        parts, others = _parts(one), _parts(other)
        if parts is None or others is None:
            if one != other:
                return False
        elif type(one) is type(other) and parts.keys() == others.keys():
            pairs += [(part, others[name]) for name, part in parts.items()]
        else:
            return False
    return True


def _parts(value: Any) -> Mapping[Any, Any] | None:
    """What a value is made of; None: it is compared as it is."""
    if isinstance(value, dict):
        return value
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value))
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.compare}
    if isinstance(value, BaseChatModel):
        return {"key": value._get_llm_string()}
    if getattr(value, "__module__", None) == "tenacity.retry":
        return _parts_of_predicate(value)
    equal: Any = type(value).__eq__
    if equal is not object.__eq__:
        return None
    try:
        return _parts(value.__reduce_ex__(4))
    except Exception:
        return None


def _parts_of_predicate(value: Any) -> Mapping[str, Any] | None:
    """Of `retry_if_exception_type(OSError)`: it holds a function, or method, of its own making."""
    if isinstance(value, types.MethodType):
        return {"function": value.__func__, "self": value.__self__}
    if isinstance(value, types.FunctionType):
        closure = [cell.cell_contents for cell in value.__closure__ or ()]
        return {"code": value.__code__, "closure": closure}
    return _parts(value.__reduce_ex__(4))
