"""Whether two policies are made of equal parts: tenacity's strategies have no `==` of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from langchain_core.language_models import BaseChatModel
from tenacity.retry import retry_base
from tenacity.stop import stop_base
from tenacity.wait import wait_base


def are_equal(one: Any, other: Any) -> bool:
    """Whether two values are equal.

    Lists, mappings, dataclasses and tenacity's strategies are if their parts are; all else is if
    its own `==` says so, so a function is equal to itself only, and so is a lock.
    """
    parts, others = _parts(one), _parts(other)
    if parts is None or others is None:
        return bool(one == other)
    if type(one) is not type(other) or parts.keys() != others.keys():
        return False
    return all(are_equal(part, others[name]) for name, part in parts.items())


def _parts(value: Any) -> Mapping[Any, Any] | None:
    """What a value is made of; None: it is compared as it is."""
    if isinstance(value, dict):
        return value
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value))
    if isinstance(value, (stop_base, wait_base, retry_base, partial)):
        return _parts(value.__reduce_ex__(4))  # what pickle would keep
    if isinstance(value, BaseChatModel):  # as LangChain's caches do: clients have no `==`
        return {"key": value._get_llm_string()}
    if isinstance(value, (FunctionType, MethodType)) and value.__module__ == "tenacity.retry":
        # Held by its predicates, such as `retry_if_exception_type(OSError)`; or their own method.
        closure = [cell.cell_contents for cell in value.__closure__ or ()]
        return {"code": value.__code__, "closure": closure}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.compare}
    return None
